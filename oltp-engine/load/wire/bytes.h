/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes to be sent or received: added at the end, taken from the front. Pure but for memory. */
#ifndef LOAD_BYTES_H
#define LOAD_BYTES_H

#include <stddef.h>

/* Zeroed: empty. */
struct wire_bytes {
	char *bytes;		/* those at [first, end) are in use */
	size_t first, end, room;
};

void wire_bytes_free(struct wire_bytes *b);
void wire_bytes_clear(struct wire_bytes *b);

/* Room for n more behind end, or NULL: no memory. The caller then adds to end what it filled. */
char *wire_bytes_reserve(struct wire_bytes *b, size_t n);
void wire_bytes_take(struct wire_bytes *b, size_t n);

/*
 * A command of n arguments: the head, then the arguments. Errors: -ENOMEM. What was added before
 * stays; a command of which a part fails has to be cleared away with the rest.
 */
int wire_command(struct wire_bytes *b, size_t n);
int wire_argument(struct wire_bytes *b, const char *bytes, size_t n);
int wire_text(struct wire_bytes *b, const char *text);

#endif
