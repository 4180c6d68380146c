// SPDX-License-Identifier: GPL-2.0-or-later
/* See volume_table.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/src/base/checksum.h"
#include "volume_table.h"

int volume_table_init(struct volume_table *table, uint64_t bytes, uint32_t unit_bytes)
{
	*table = (struct volume_table){
		.unit_bytes = unit_bytes,
		.n_units = (uint32_t)((bytes - VOLUME_DATA_FROM) / unit_bytes),
	};
	table->units = calloc(table->n_units, 1);
	return table->units ? 0 : -ENOMEM;
}

static void file_free(struct volume_file *file)
{
	free(file->extents);
	free(file);
}

void volume_table_finish(struct volume_table *table)
{
	while (table->files) {
		struct volume_file *file = table->files;

		table->files = file->next;
		file_free(file);
	}
	free(table->units);
	*table = (struct volume_table){ 0 };
}

struct volume_file *volume_table_find(const struct volume_table *table, const char *name)
{
	struct volume_file *file = table->files;

	while (file && (!file->name[0] || strcmp(file->name, name)))
		file = file->next;
	return file;
}

static int name_check(const char *name)
{
	if (!name[0])
		return -EINVAL;
	return strlen(name) < VOLUME_NAME_BYTES ? 0 : -ENAMETOOLONG;
}

int volume_table_create(struct volume_table *table, const char *name,
			struct volume_file **ret_file)
{
	struct volume_file *file;
	int rc = name_check(name);

	if (rc)
		return rc;
	if (table->n_files == VOLUME_FILES_MAX)
		return -ENOSPC;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	memcpy(file->name, name, strlen(name));
	file->next = table->files;
	table->files = file;
	table->n_files++;
	table->version++;
	*ret_file = file;
	return 0;
}

static void mark(struct volume_table *table, uint32_t unit, uint32_t n, uint8_t flag)
{
	for (uint32_t i = 0; i < n; i++)
		table->units[unit + i] |= flag;
}

static void unmark(struct volume_table *table, uint32_t unit, uint32_t n, uint8_t flag)
{
	for (uint32_t i = 0; i < n; i++)
		table->units[unit + i] &= (uint8_t)~flag;
}

static uint32_t units_of(const struct volume_file *file)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < file->n_extents; i++)
		n += file->extents[i].n;
	return n;
}

/* Gives units back from the file's end, until it has that many. */
static void shrink(struct volume_table *table, struct volume_file *file, uint32_t n_units)
{
	uint32_t surplus = units_of(file) - n_units;

	while (surplus) {
		struct volume_extent *last = &file->extents[file->n_extents - 1];
		uint32_t n = last->n < surplus ? last->n : surplus;

		unmark(table, last->unit + last->n - n, n, VOLUME_UNIT_TAKEN);
		last->n -= n;
		surplus -= n;
		if (!last->n) {
			file->n_extents--;
			table->n_extents--;
		}
	}
}

/* Free units from this one on, up to max. */
static uint32_t run_at(const struct volume_table *table, uint32_t unit, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && unit + n < table->n_units && !table->units[unit + n])
		n++;
	return n;
}

/* The first run of so many, or the longest that there is. */
static struct volume_extent run_find(const struct volume_table *table, uint32_t wanted)
{
	struct volume_extent best = { 0, 0 };
	uint32_t unit = 0;

	while (unit < table->n_units && best.n < wanted) {
		uint32_t n = run_at(table, unit, wanted);

		if (n > best.n)
			best = (struct volume_extent){ unit, n };
		unit += n + 1;
	}
	return best;
}

static int extent_add(struct volume_table *table, struct volume_file *file,
		      struct volume_extent extent)
{
	if (table->n_extents == VOLUME_EXTENTS_MAX)
		return -ENOSPC;
	if (file->n_extents == file->room) {
		uint32_t room = file->room ? 2 * file->room : 4;
		struct volume_extent *extents = realloc(file->extents, room * sizeof(*extents));

		if (!extents)
			return -ENOMEM;
		file->extents = extents;
		file->room = room;
	}
	file->extents[file->n_extents++] = extent;
	table->n_extents++;
	return 0;
}

/* Some of the wanted units. */
static int take(struct volume_table *table, struct volume_file *file, uint32_t wanted,
		uint32_t *ret_n)
{
	struct volume_extent *last = file->n_extents ? &file->extents[file->n_extents - 1] : NULL;
	struct volume_extent run;
	int rc;

	/* Right behind what it has, so that files lie in few pieces. */
	run.unit = last ? last->unit + last->n : 0;
	run.n = last ? run_at(table, run.unit, wanted) : 0;
	if (run.n) {
		last->n += run.n;
	} else {
		run = run_find(table, wanted);
		rc = run.n ? extent_add(table, file, run) : -ENOSPC;
		if (rc)
			return rc;
	}
	mark(table, run.unit, run.n, VOLUME_UNIT_TAKEN);
	*ret_n = run.n;
	return 0;
}

int volume_table_grow(struct volume_table *table, struct volume_file *file, uint64_t bytes)
{
	const uint32_t had = units_of(file);
	uint64_t need = bytes / table->unit_bytes + (bytes % table->unit_bytes != 0);
	uint32_t has = had, n;

	if (need > table->n_units)
		return -ENOSPC;
	while (has < need) {
		int rc = take(table, file, (uint32_t)need - has, &n);

		if (rc) {
			shrink(table, file, had);
			return rc;
		}
		has += n;
	}
	if (has > had)
		table->version++;
	return 0;
}

void volume_table_extend(struct volume_table *table, struct volume_file *file, uint64_t bytes)
{
	if (bytes <= file->bytes)
		return;
	file->bytes = bytes;
	file->grown = ++table->version;
}

void volume_table_cut(struct volume_table *table, struct volume_file *file)
{
	if (!file->bytes && !file->n_extents)
		return;
	shrink(table, file, 0);
	file->bytes = 0;
	file->grown = ++table->version;
}

static void drop_if_unused(struct volume_table *table, struct volume_file *file)
{
	struct volume_file **at = &table->files;

	if (file->name[0] || file->n_open)
		return;
	shrink(table, file, 0);
	while (*at != file)
		at = &(*at)->next;
	*at = file->next;
	table->n_files--;
	file_free(file);
}

int volume_table_rename(struct volume_table *table, struct volume_file *file, const char *to)
{
	struct volume_file *other = volume_table_find(table, to);
	int rc = name_check(to);

	if (rc || other == file)
		return rc;
	if (other)
		volume_table_remove(table, other);
	memset(file->name, 0, sizeof(file->name));
	memcpy(file->name, to, strlen(to));
	table->version++;
	return 0;
}

void volume_table_remove(struct volume_table *table, struct volume_file *file)
{
	memset(file->name, 0, sizeof(file->name));
	table->version++;
	drop_if_unused(table, file);
}

void volume_table_opened(struct volume_file *file)
{
	file->n_open++;
}

void volume_table_closed(struct volume_table *table, struct volume_file *file)
{
	file->n_open--;
	drop_if_unused(table, file);
}

uint64_t volume_table_place(const struct volume_table *table, const struct volume_file *file,
			    uint64_t offset, uint64_t *ret_bytes)
{
	for (uint32_t i = 0; i < file->n_extents; i++) {
		uint64_t bytes = (uint64_t)file->extents[i].n * table->unit_bytes;

		if (offset < bytes) {
			*ret_bytes = bytes - offset;
			return VOLUME_DATA_FROM +
			       (uint64_t)file->extents[i].unit * table->unit_bytes + offset;
		}
		offset -= bytes;
	}
	*ret_bytes = 0;
	return 0;
}

uint32_t volume_table_encode(struct volume_table *table, struct volume_super *super,
			     uint8_t *image)
{
	struct volume_entry *entry = (struct volume_entry *)(image + VOLUME_BLOCK_BYTES);
	struct volume_extent *extent;
	uint32_t bytes, padded;

	super->n_files = super->n_extents = 0;
	for (const struct volume_file *file = table->files; file; file = file->next) {
		if (!file->name[0])
			continue;
		*entry = (struct volume_entry){ .bytes = file->bytes,
						.n_extents = file->n_extents };
		memcpy(entry->name, file->name, sizeof(entry->name));
		entry++;
		super->n_files++;
	}
	unmark(table, 0, table->n_units, VOLUME_UNIT_IMAGE);
	extent = (struct volume_extent *)entry;
	for (const struct volume_file *file = table->files; file; file = file->next) {
		for (uint32_t i = 0; file->name[0] && i < file->n_extents; i++) {
			*extent++ = file->extents[i];
			super->n_extents++;
			mark(table, file->extents[i].unit, file->extents[i].n, VOLUME_UNIT_IMAGE);
		}
	}
	bytes = (uint32_t)((uint8_t *)extent - image);
	super->table_crc32c = crc32c(0, image + VOLUME_BLOCK_BYTES, bytes - VOLUME_BLOCK_BYTES);
	padded = (bytes + VOLUME_BLOCK_BYTES - 1) & ~(VOLUME_BLOCK_BYTES - 1);
	memset(image + bytes, 0, padded - bytes);
	return padded;
}

static uint8_t flag_of(unsigned int copy)
{
	return copy ? VOLUME_UNIT_COPY1 : VOLUME_UNIT_COPY0;
}

void volume_table_writing(struct volume_table *table, unsigned int copy)
{
	for (uint32_t i = 0; i < table->n_units; i++) {
		if (table->units[i] & VOLUME_UNIT_IMAGE)
			table->units[i] |= flag_of(copy);
	}
}

void volume_table_written(struct volume_table *table, unsigned int copy)
{
	for (uint32_t i = 0; i < table->n_units; i++) {
		if (!(table->units[i] & VOLUME_UNIT_IMAGE))
			table->units[i] &= (uint8_t)~flag_of(copy);
	}
}

/* Free units only, so that no two extents share one. */
static int extent_read(struct volume_table *table, struct volume_file *file,
		       const struct volume_extent *extent)
{
	int rc;

	if (!extent->n || extent->unit >= table->n_units ||
	    extent->n > table->n_units - extent->unit ||
	    run_at(table, extent->unit, extent->n) != extent->n)
		return -EUCLEAN;
	rc = extent_add(table, file, *extent);
	if (!rc)
		mark(table, extent->unit, extent->n,
		     VOLUME_UNIT_TAKEN | VOLUME_UNIT_COPY0 | VOLUME_UNIT_COPY1);
	return rc;
}

static int file_read(struct volume_table *table, const struct volume_entry *entry,
		     const struct volume_extent *extents)
{
	struct volume_file *file;
	int rc;

	if (memchr(entry->name, 0, sizeof(entry->name)) == NULL || !entry->name[0] ||
	    volume_table_find(table, entry->name))
		return -EUCLEAN;
	rc = volume_table_create(table, entry->name, &file);
	for (uint32_t i = 0; !rc && i < entry->n_extents; i++)
		rc = extent_read(table, file, &extents[i]);
	if (rc)
		return rc;
	file->bytes = entry->bytes;
	return file->bytes <= (uint64_t)units_of(file) * table->unit_bytes ? 0 : -EUCLEAN;
}

int volume_table_decode(struct volume_table *table, const struct volume_super *super,
			const uint8_t *image)
{
	const struct volume_entry *entries =
		(const struct volume_entry *)(image + VOLUME_BLOCK_BYTES);
	const struct volume_extent *extents;
	uint32_t n = 0;
	int rc = 0;

	if (super->n_files > VOLUME_FILES_MAX || super->n_extents > VOLUME_EXTENTS_MAX)
		return -EUCLEAN;
	extents = (const struct volume_extent *)(entries + super->n_files);
	/* From the last one, as each is put in front of the others. */
	for (uint32_t i = super->n_files; !rc && i; i--) {
		const struct volume_entry *entry = &entries[i - 1];

		if (entry->n_extents > super->n_extents - n)
			return -EUCLEAN;
		n += entry->n_extents;
		rc = file_read(table, entry, extents + (super->n_extents - n));
	}
	return rc ? rc : n == super->n_extents ? 0 : -EUCLEAN;
}

uint64_t volume_table_free_bytes(const struct volume_table *table)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < table->n_units; i++)
		n += !(table->units[i] & VOLUME_UNIT_TAKEN);
	return n * table->unit_bytes;
}
