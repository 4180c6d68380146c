// SPDX-License-Identifier: GPL-2.0-or-later
/* See reply.h. */
#include <errno.h>
#include <string.h>

#include "reply.h"

#define LINE_MAX_BYTES	(64u << 10)
#define ELEMENTS_MAX	(1 << 20)

/* The line at *at without its end; *at is moved behind. Returns as reply_item. */
static int take_line(const char *bytes, size_t n, size_t *at, const char **ret_line,
		     size_t *ret_n)
{
	const char *line = bytes + *at, *end = memchr(line, '\r', n - *at);

	if (!end || end + 1 == bytes + n)
		return n - *at > LINE_MAX_BYTES ? -EPROTO : 0;
	if (end[1] != '\n')
		return -EPROTO;
	*ret_line = line;
	*ret_n = (size_t)(end - line);
	*at += *ret_n + 2;
	return 1;
}

int reply_integer(const char *text, size_t n, int64_t *ret)
{
	bool is_negative = n && *text == '-';
	uint64_t value = 0, most = (uint64_t)INT64_MAX + is_negative;

	if (is_negative || (n && *text == '+')) {
		text++;
		n--;
	}
	if (!n)
		return -EPROTO;
	for (size_t i = 0; i < n; i++) {
		uint64_t digit = (uint64_t)text[i] - '0';

		if (text[i] < '0' || text[i] > '9' || value > (most - digit) / 10)
			return -EPROTO;
		value = value * 10 + digit;
	}
	*ret = (int64_t)(is_negative ? 0 - value : value);
	return 0;
}

/* A length before bytes, or before elements. -1 is null, and no other is below 0. */
static int parse_length(struct reply_item *item, const char *line, size_t line_n, int64_t max)
{
	if (reply_integer(line, line_n, &item->integer) || item->integer < -1 ||
	    item->integer > max)
		return -EPROTO;
	item->is_null = item->integer < 0;
	if (item->is_null)
		item->integer = 0;
	return 1;
}

static int take_bulk(const char *bytes, size_t n, size_t *at, struct reply_item *item)
{
	item->n = (size_t)item->integer;
	if (item->is_null)
		return 1;
	if (n - *at < item->n + 2)
		return 0;
	item->bytes = bytes + *at;
	if (memcmp(item->bytes + item->n, "\r\n", 2))
		return -EPROTO;
	*at += item->n + 2;
	return 1;
}

int reply_item(const char *bytes, size_t n, size_t *at, struct reply_item *ret_item)
{
	struct reply_item item = { 0 };
	const char *line;
	size_t line_n, behind = *at;
	int rc;

	if (behind >= n)
		return 0;
	item.type = bytes[behind++];
	rc = take_line(bytes, n, &behind, &line, &line_n);
	if (rc <= 0)
		return rc;
	switch (item.type) {
	case '+': case '-': case ',': case '#': case '(':
		item.bytes = line;
		item.n = line_n;
		break;
	case '_':
		item.is_null = true;
		break;
	case ':':
		rc = reply_integer(line, line_n, &item.integer) ? -EPROTO : 1;
		break;
	case '$': case '!': case '=':
		rc = parse_length(&item, line, line_n, REPLY_BYTES_MAX);
		if (rc > 0)
			rc = take_bulk(bytes, n, &behind, &item);
		break;
	case '*': case '~': case '>':
		rc = parse_length(&item, line, line_n, ELEMENTS_MAX);
		break;
	case '%': case '|':
		rc = parse_length(&item, line, line_n, ELEMENTS_MAX / 2);
		item.integer *= 2;
		break;
	default:
		rc = -EPROTO;
	}
	if (rc <= 0)
		return rc;
	*at = behind;
	*ret_item = item;
	return 1;
}

static bool is_aggregate(char type)
{
	return type && strchr("*~>%|", type);
}

int reply_scan(struct reply_scan *scan, const char *bytes, size_t n, size_t *ret_length)
{
	if (!scan->pending)
		*scan = (struct reply_scan){ .pending = 1 };
	while (scan->pending) {
		struct reply_item item;
		int rc = reply_item(bytes, n, &scan->at, &item);

		if (rc == 0 && n > REPLY_BYTES_MAX)
			return -EPROTO;
		if (rc <= 0)
			return rc;
		scan->pending--;
		if (is_aggregate(item.type))
			scan->pending += (uint64_t)item.integer;
		/* Attributes precede the element that they are about. */
		if (item.type == '|')
			scan->pending++;
	}
	*ret_length = scan->at;
	*scan = (struct reply_scan){ 0 };
	return 1;
}
