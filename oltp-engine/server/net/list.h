/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Doubly linked lists. A list is a link that is its own neighbour while nothing else is in it. */
#ifndef OLTP_NET_LIST_H
#define OLTP_NET_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct link {
	struct link *prev, *next;
};

#define link_entry(link, type, member) \
	((type *)(void *)((char *)(link) - offsetof(type, member)))

/* A list, or a link that is in none. */
static inline void link_init(struct link *link)
{
	link->prev = link->next = link;
}

static inline bool link_is_empty(const struct link *list)
{
	return list->next == list;
}

/* In front of at; at the end, if at is a list. The link is in none. */
static inline void link_add(struct link *at, struct link *link)
{
	link->prev = at->prev;
	link->next = at;
	at->prev->next = link;
	at->prev = link;
}

/* Harmless if it is in none. */
static inline void link_remove(struct link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link_init(link);
}

/* All of from goes to the end of to. */
static inline void link_splice(struct link *to, struct link *from)
{
	if (link_is_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	link_init(from);
}

#endif
