// SPDX-License-Identifier: GPL-2.0-or-later
/* See bytes.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

#define ROOM_MIN	4096u
#define HEAD_BYTES	24u	/* '*' or '$', a number of 64 bits, end of line, and a zero */

void wire_bytes_free(struct wire_bytes *b)
{
	free(b->bytes);
	*b = (struct wire_bytes){ 0 };
}

void wire_bytes_clear(struct wire_bytes *b)
{
	b->first = b->end = 0;
}

char *wire_bytes_reserve(struct wire_bytes *b, size_t n)
{
	if (b->room - b->end >= n)
		return b->bytes + b->end;
	if (b->first) {
		memmove(b->bytes, b->bytes + b->first, b->end - b->first);
		b->end -= b->first;
		b->first = 0;
	}
	if (b->room - b->end < n) {
		size_t room = b->room ? b->room : ROOM_MIN;
		char *bytes;

		while (room - b->end < n)
			room *= 2;
		bytes = realloc(b->bytes, room);
		if (!bytes)
			return NULL;
		b->bytes = bytes;
		b->room = room;
	}
	return b->bytes + b->end;
}

void wire_bytes_take(struct wire_bytes *b, size_t n)
{
	b->first += n;
	if (b->first == b->end)
		wire_bytes_clear(b);
}

static int add_head(struct wire_bytes *b, char type, size_t n)
{
	char *to = wire_bytes_reserve(b, HEAD_BYTES);

	if (!to)
		return -ENOMEM;
	b->end += (size_t)snprintf(to, HEAD_BYTES, "%c%zu\r\n", type, n);
	return 0;
}

int wire_command(struct wire_bytes *b, size_t n)
{
	return add_head(b, '*', n);
}

int wire_argument(struct wire_bytes *b, const char *bytes, size_t n)
{
	int rc = add_head(b, '$', n);
	char *to = rc ? NULL : wire_bytes_reserve(b, n + 2);

	if (!to)
		return -ENOMEM;
	memcpy(to, bytes, n);
	memcpy(to + n, "\r\n", 2);
	b->end += n + 2;
	return 0;
}

int wire_text(struct wire_bytes *b, const char *text)
{
	return wire_argument(b, text, strlen(text));
}
