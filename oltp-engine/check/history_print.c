// SPDX-License-Identifier: GPL-2.0-or-later
/* Writing operations as docs/history-format.md describes them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "history.h"

struct text {
	char *at;
	size_t room, n;		/* n: with what there was no room for */
};

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...)
{
	size_t used = text->n < text->room ? text->n : text->room;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->at + used, text->room - used, format, args);
	va_end(args);
	if (n > 0)
		text->n += (size_t)n;
}

static void put_value(struct text *text, uint64_t value)
{
	if (value == HISTORY_ABSENT)
		put(text, ":-");
	else
		put(text, ":%" PRIu64, value);
}

size_t history_op_print(const struct history *history, const struct history_op *op, char *text,
			size_t room)
{
	static const char letters[] = "alwrids";
	const uint64_t *values = VEC_PLACE(history->values, op->at);
	struct text out = { text, room, 0 };

	put(&out, "%c:%" PRIu64, letters[op->kind], op->key);
	switch (op->kind) {
	case HISTORY_LIST:
		if (op->is_known && !op->n)
			put(&out, ":");
		for (uint32_t i = 0; op->is_known && i < op->n; i++)
			put(&out, "%c%" PRIu64, i ? ',' : ':', values[i]);
		break;
	case HISTORY_SCAN:
		put(&out, ":%" PRIu64, op->value);
		if (op->is_known && !op->n)
			put(&out, ":");
		for (uint32_t i = 0; op->is_known && i < op->n; i++)
			put(&out, "%c%" PRIu64 "=%" PRIu64, i ? ',' : ':', values[2 * i],
			    values[2 * i + 1]);
		break;
	case HISTORY_APPEND:
	case HISTORY_WRITE:
	case HISTORY_INSERT:
	case HISTORY_READ:
	case HISTORY_DELETE:
		if (op->is_known)
			put_value(&out, op->value);
		break;
	}
	return out.n;
}
