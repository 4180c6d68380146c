/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arrays that grow. All zero is an empty one; vec_free makes it that again. */
#ifndef OLTP_CHECK_VEC_H
#define OLTP_CHECK_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define VEC(type)	struct { type *at; size_t n, room; }

/* The place of item i, or of the end; NULL if there never was an item: C knows no NULL + 0. */
#define VEC_PLACE(vec, i)	((vec).at ? (vec).at + (i) : NULL)

/* The same items with room for more, NULL: no memory, and they are as before. */
static inline void *vec_grow(void *at, size_t *room, size_t item_bytes)
{
	size_t wanted = *room ? *room * 2 : 16;
	void *grown = wanted > SIZE_MAX / 2 / item_bytes ? NULL : realloc(at, wanted * item_bytes);

	if (grown)
		*room = wanted;
	return grown;
}

/* Adds an item. 0 or -ENOMEM. */
#define vec_push(v, ...) ({							\
	int vec_rc = 0;								\
										\
	if ((v)->n == (v)->room) {						\
		void *vec_at = vec_grow((v)->at, &(v)->room, sizeof(*(v)->at));	\
										\
		if (vec_at)							\
			(v)->at = vec_at;					\
		else								\
			vec_rc = -ENOMEM;					\
	}									\
	if (!vec_rc)								\
		(v)->at[(v)->n++] = __VA_ARGS__;				\
	vec_rc;									\
})

#define vec_free(v) do {							\
	free((v)->at);								\
	(v)->at = NULL;								\
	(v)->n = (v)->room = 0;							\
} while (0)

#endif
