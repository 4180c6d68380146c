/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "oltp-engine/server/resp/out.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN	512u
#define ERROR_MAX	512u
#define HEAD_MAX	24u	/* a mark, a sign, 20 digits, the end of the line */

void resp_out_init(struct resp_out *out, size_t max)
{
	*out = (struct resp_out){ .max = max, .version = 2 };
}

void resp_out_finish(struct resp_out *out)
{
	free(out->bytes);
	*out = (struct resp_out){ 0 };
}

void resp_out_reset(struct resp_out *out)
{
	resp_out_truncate(out, 0);
}

void resp_out_truncate(struct resp_out *out, size_t n)
{
	out->n = n;
	out->has_failed = false;
}

void resp_out_cut(struct resp_out *out, size_t from, size_t to)
{
	if (from == to)
		return;
	memmove(out->bytes + from, out->bytes + to, out->n - to);
	out->n -= to - from;
}

static bool grow(struct resp_out *out, size_t n)
{
	size_t room = out->room < ROOM_MIN ? ROOM_MIN : out->room;
	char *bytes;

	if (out->has_failed || n > out->max - out->n)
		goto fail;
	while (room < out->n + n)
		room *= 2;
	if (room > out->max)
		room = out->max;
	bytes = realloc(out->bytes, room);
	if (!bytes)
		goto fail;
	out->bytes = bytes;
	out->room = room;
	return true;
fail:
	out->has_failed = true;
	return false;
}

char *resp_out_reserve(struct resp_out *out, size_t n)
{
	if (out->has_failed || (n > out->room - out->n && !grow(out, n)))
		return NULL;
	/* So that nothing, appended to nothing, has an address as well. */
	if (!out->bytes && !grow(out, 1))
		return NULL;
	return out->bytes + out->n;
}

void resp_out_raw(struct resp_out *out, const void *bytes, size_t n)
{
	char *to = resp_out_reserve(out, n);

	if (!to || n == 0)
		return;
	memcpy(to, bytes, n);
	out->n += n;
}

/* Writes the digits of value in front of end and returns where they begin. */
static char *digits(char *end, uint64_t value)
{
	do {
		*--end = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	return end;
}

static void head(struct resp_out *out, char mark, bool is_negative, uint64_t value)
{
	char text[HEAD_MAX];
	char *end = text + sizeof(text), *at;

	*--end = '\n';
	*--end = '\r';
	at = digits(end, value);
	if (is_negative)
		*--at = '-';
	*--at = mark;
	resp_out_raw(out, at, (size_t)(text + sizeof(text) - at));
}

void resp_out_simple(struct resp_out *out, const char *text)
{
	size_t n = strlen(text);
	char *to = resp_out_reserve(out, n + 3);

	if (!to)
		return;
	*to = '+';
	memcpy(to + 1, text, n);
	memcpy(to + 1 + n, "\r\n", 2);
	out->n += n + 3;
}

void resp_out_error(struct resp_out *out, const char *text)
{
	size_t n = strlen(text), i;
	char *to = resp_out_reserve(out, n + 3);

	if (!to)
		return;
	*to++ = '-';
	for (i = 0; i < n; i++)
		to[i] = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
	memcpy(to + n, "\r\n", 2);
	out->n += n + 3;
}

void resp_out_errorf(struct resp_out *out, const char *format, ...)
{
	char text[ERROR_MAX];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	resp_out_error(out, text);
}

void resp_out_integer(struct resp_out *out, int64_t value)
{
	head(out, ':', value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void resp_out_bulk(struct resp_out *out, const void *bytes, size_t n)
{
	char text[HEAD_MAX];
	char *at = digits(text + sizeof(text), n);
	size_t n_digits = (size_t)(text + sizeof(text) - at);
	char *to = resp_out_reserve(out, n_digits + n + 5);

	if (!to)
		return;
	*to++ = '$';
	memcpy(to, at, n_digits);
	to += n_digits;
	memcpy(to, "\r\n", 2);
	to += 2;
	if (n > 0)
		memcpy(to, bytes, n);
	memcpy(to + n, "\r\n", 2);
	out->n += n_digits + n + 5;
}

void resp_out_text(struct resp_out *out, const char *text)
{
	resp_out_bulk(out, text, strlen(text));
}

void resp_out_verbatim(struct resp_out *out, const char *text, size_t n)
{
	if (out->version < 3) {
		resp_out_bulk(out, text, n);
		return;
	}
	head(out, '=', false, n + 4);
	resp_out_raw(out, "txt:", 4);
	resp_out_raw(out, text, n);
	resp_out_raw(out, "\r\n", 2);
}

void resp_out_null(struct resp_out *out)
{
	resp_out_raw(out, out->version < 3 ? "$-1\r\n" : "_\r\n", out->version < 3 ? 5 : 3);
}

void resp_out_null_array(struct resp_out *out)
{
	resp_out_raw(out, out->version < 3 ? "*-1\r\n" : "_\r\n", out->version < 3 ? 5 : 3);
}

void resp_out_array(struct resp_out *out, size_t n)
{
	head(out, '*', false, n);
}

void resp_out_map(struct resp_out *out, size_t n)
{
	if (out->version < 3)
		head(out, '*', false, 2 * n);
	else
		head(out, '%', false, n);
}

void resp_out_set(struct resp_out *out, size_t n)
{
	head(out, out->version < 3 ? '*' : '~', false, n);
}

/* The bytes from end on, appended last, change places with the bytes from at to end. */
static void move_in_front(struct resp_out *out, size_t at, size_t end)
{
	size_t n = out->n - end;
	char *last;

	if (out->has_failed || at == end || n == 0)
		return;
	/* Room for a copy behind the end. */
	last = resp_out_reserve(out, n);
	if (!last)
		return;
	memcpy(last, out->bytes + end, n);
	memmove(out->bytes + at + n, out->bytes + at, end - at);
	memcpy(out->bytes + at, last, n);
}

void resp_out_array_at(struct resp_out *out, size_t at, size_t n)
{
	size_t end = out->n;

	resp_out_array(out, n);
	move_in_front(out, at, end);
}

void resp_out_map_at(struct resp_out *out, size_t at, size_t n)
{
	size_t end = out->n;

	resp_out_map(out, n);
	move_in_front(out, at, end);
}

void resp_out_bulk_at(struct resp_out *out, size_t at, const void *bytes, size_t n)
{
	size_t end = out->n;

	resp_out_bulk(out, bytes, n);
	move_in_front(out, at, end);
}
