/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of VMs that run, by their place in core_env.active, that is, in order of arrival.  Sets let
 * the core visit the VMs that something concerns and no others.  A place is below EBB_MAX_VMS.
 */
#ifndef EBB_CORE_SET_H
#define EBB_CORE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/types.h"

#define CORE_SET_WORDS	((EBB_MAX_VMS + 63) / 64)

struct core_set {
	uint64_t words[CORE_SET_WORDS];
};

static inline void core_set_add(struct core_set *s, size_t place)
{
	s->words[place / 64] |= 1ull << place % 64;
}

static inline void core_set_remove(struct core_set *s, size_t place)
{
	s->words[place / 64] &= ~(1ull << place % 64);
}

static inline bool core_set_has(const struct core_set *s, size_t place)
{
	return s->words[place / 64] >> place % 64 & 1;
}

static inline void core_set_unite(struct core_set *s, const struct core_set *other)
{
	for (size_t w = 0; w < CORE_SET_WORDS; w++)
		s->words[w] |= other->words[w];
}

static inline bool core_set_is_empty(const struct core_set *s)
{
	for (size_t w = 0; w < CORE_SET_WORDS; w++)
		if (s->words[w])
			return false;
	return true;
}

/* The first member that is not before the place; EBB_MAX_VMS: there is none. */
static inline size_t core_set_next(const struct core_set *s, size_t place)
{
	size_t w = place / 64;
	uint64_t word;

	if (place >= EBB_MAX_VMS)
		return EBB_MAX_VMS;
	for (word = s->words[w] & ~0ull << place % 64; !word; word = s->words[w])
		if (++w == CORE_SET_WORDS)
			return EBB_MAX_VMS;
	return w * 64 + (size_t)__builtin_ctzll(word);
}

/* Visits the members in order; one that is added behind the one visited is visited, too. */
#define core_set_for_each(place, s) \
	for (size_t place = core_set_next(s, 0); place < EBB_MAX_VMS; \
	     place = core_set_next(s, place + 1))

/* A VM comes: all from its place on move one up, and it is no member.  The last must be none. */
static inline void core_set_open(struct core_set *s, size_t place)
{
	for (size_t i = EBB_MAX_VMS - 1; i > place; i--)
		if (core_set_has(s, i - 1))
			core_set_add(s, i);
		else
			core_set_remove(s, i);
	core_set_remove(s, place);
}

/* A VM goes: all behind it move one down. */
static inline void core_set_close(struct core_set *s, size_t place)
{
	for (size_t i = place; i + 1 < EBB_MAX_VMS; i++)
		if (core_set_has(s, i + 1))
			core_set_add(s, i);
		else
			core_set_remove(s, i);
	core_set_remove(s, EBB_MAX_VMS - 1);
}

#endif /* EBB_CORE_SET_H */
