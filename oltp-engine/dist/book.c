// SPDX-License-Identifier: GPL-2.0-or-later
/* See book.h. */
#include <stdlib.h>
#include <string.h>

#include "book.h"

static struct dist_coord_entry **bucket_of(struct dist_book *book, const struct dist_gtid *gtid)
{
	return &book->buckets[gtid->seq % DIST_BOOK_BUCKETS];
}

void dist_book_init(struct dist_book *book)
{
	memset(book, 0, sizeof(*book));
	pthread_mutex_init(&book->lock, NULL);
}

static void free_list(struct dist_coord_entry *entry)
{
	while (entry) {
		struct dist_coord_entry *next = entry->next;

		free(entry);
		entry = next;
	}
}

void dist_book_finish(struct dist_book *book)
{
	for (uint32_t i = 0; i < DIST_BOOK_BUCKETS; i++)
		free_list(book->buckets[i]);
	free_list(book->spare);
	pthread_mutex_destroy(&book->lock);
}

struct dist_coord_entry *dist_book_coord_add(struct dist_book *book, const struct dist_gtid *gtid)
{
	struct dist_coord_entry **bucket = bucket_of(book, gtid);
	struct dist_coord_entry *entry = book->spare;

	if (entry)
		book->spare = entry->next;
	else
		entry = malloc(sizeof(*entry));
	if (!entry)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	entry->gtid = *gtid;
	entry->next = *bucket;
	*bucket = entry;
	book->n_coords++;
	return entry;
}

struct dist_coord_entry *dist_book_coord_find(struct dist_book *book, const struct dist_gtid *gtid)
{
	struct dist_coord_entry *entry = *bucket_of(book, gtid);

	while (entry && !dist_gtid_is_equal(&entry->gtid, gtid))
		entry = entry->next;
	return entry;
}

void dist_book_coord_remove(struct dist_book *book, struct dist_coord_entry *entry)
{
	struct dist_coord_entry **at = bucket_of(book, &entry->gtid);

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	entry->next = book->spare;
	book->spare = entry;
	book->n_coords--;
}

void dist_book_part_add(struct dist_book *book, struct dist_part_entry *entry)
{
	entry->prev = NULL;
	entry->next = book->parts;
	if (book->parts)
		book->parts->prev = entry;
	book->parts = entry;
}

struct dist_part_entry *dist_book_part_find(struct dist_book *book, const struct dist_gtid *gtid)
{
	struct dist_part_entry *entry = book->parts;

	while (entry && !dist_gtid_is_equal(&entry->gtid, gtid))
		entry = entry->next;
	return entry;
}

void dist_book_part_remove(struct dist_book *book, struct dist_part_entry *entry)
{
	if (entry->prev)
		entry->prev->next = entry->next;
	else
		book->parts = entry->next;
	if (entry->next)
		entry->next->prev = entry->prev;
}
