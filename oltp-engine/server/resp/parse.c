// SPDX-License-Identifier: GPL-2.0-or-later
/* See parse.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "parse.h"

/* Digits of the largest length that is not refused anyway. */
#define DIGITS_MAX	10u

/* After a request with more arguments their memory is given back. */
#define ARGS_KEPT	256u

void resp_parser_init(struct resp_parser *p, const struct resp_limits *limits)
{
	*p = (struct resp_parser){ .limits = *limits };
}

void resp_parser_finish(struct resp_parser *p)
{
	free(p->args);
	free(p->offsets);
	free(p->text);
	p->args = NULL;
	p->offsets = NULL;
	p->text = NULL;
	p->room = p->n_args = 0;
}

static enum resp_result fail(struct resp_parser *p, const char *what)
{
	snprintf(p->error, sizeof(p->error), "ERR Protocol error: %s", what);
	p->state = RESP_STATE_FAILED;
	return RESP_ERROR;
}

static enum resp_result fail_memory(struct resp_parser *p)
{
	return fail(p, "no memory");
}

/* Room for one more argument. */
static bool make_room(struct resp_parser *p)
{
	uint32_t room = p->room ? p->room * 2 : 8;
	uint32_t *offsets;
	void *args;

	if (p->n_args < p->room)
		return true;
	args = realloc(p->args, room * sizeof(*p->args));
	if (!args)
		return false;
	p->args = args;
	offsets = realloc(p->offsets, room * sizeof(*offsets));
	if (!offsets)
		return false;
	p->offsets = offsets;
	p->room = room;
	return true;
}

static bool add_arg(struct resp_parser *p, uint32_t offset, uint32_t n)
{
	if (!make_room(p))
		return false;
	p->offsets[p->n_args] = offset;
	p->args[p->n_args++].n = n;
	return true;
}

/* The request is complete: its arguments are at their offsets from base. */
static enum resp_result complete(struct resp_parser *p, const char *base, uint32_t used,
				 size_t *ret_used)
{
	for (uint32_t i = 0; i < p->n_args; i++)
		p->args[i].bytes = base + p->offsets[i];
	p->state = RESP_STATE_START;
	p->at = p->seen = 0;
	*ret_used = used;
	return RESP_REQUEST;
}

/*
 * A whole number in decimal. False: it is none, or one of so many digits that no limit allows it.
 */
static bool parse_number(const char *text, uint32_t n, int64_t *ret_number)
{
	bool is_negative = n > 1 && text[0] == '-';
	int64_t number = 0;
	uint32_t i = is_negative;

	/* No zeros ahead, as in Redis. */
	if (n - i == 0 || n - i > DIGITS_MAX || (text[i] == '0' && n > 1))
		return false;
	for (; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		number = number * 10 + (text[i] - '0');
	}
	*ret_number = is_negative ? -number : number;
	return true;
}

/*
 * Looks for the line that begins at p->at, and moves behind it. RESP_REQUEST: *ret_line, of
 * *ret_bytes without its end. too_long: what is wrong with a line that does not end.
 */
static enum resp_result take_line(struct resp_parser *p, const char *bytes, uint32_t n,
				  const char *too_long, const char **ret_line, uint32_t *ret_bytes)
{
	const char *line = bytes + p->at;
	uint32_t there = n - p->at;
	const char *end = memchr(line + p->seen, '\n', there - p->seen);

	if (!end) {
		p->seen = there;
		return there > RESP_INLINE_MAX ? fail(p, too_long) : RESP_MORE;
	}
	if ((size_t)(end - line) > RESP_INLINE_MAX)
		return fail(p, too_long);
	*ret_line = line;
	*ret_bytes = (uint32_t)(end - line);
	p->at += *ret_bytes + 1;
	p->seen = 0;
	return RESP_REQUEST;
}

/* The number in a line of an array, behind its first byte. False: it is none. */
static bool line_number(const char *line, uint32_t n, int64_t *ret_number)
{
	return n >= 2 && line[n - 1] == '\r' && parse_number(line + 1, n - 2, ret_number);
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What the escape behind a backslash means. Returns how many bytes it has. */
static uint32_t unescape(const char *text, uint32_t n, char *ret_byte)
{
	static const char names[] = "nrtba", bytes[] = "\n\r\t\b\a";
	const char *name;

	if (n >= 3 && text[0] == 'x' && hex_digit(text[1]) >= 0 && hex_digit(text[2]) >= 0) {
		*ret_byte = (char)(hex_digit(text[1]) * 16 + hex_digit(text[2]));
		return 3;
	}
	name = text[0] ? strchr(names, text[0]) : NULL;
	*ret_byte = name ? bytes[name - names] : text[0];
	return 1;
}

/*
 * Copies the word at the start of text to to, without quotes. Returns the bytes of it in text; 0:
 * its quotes do not end, or something else than space follows them.
 */
static uint32_t copy_word(const char *text, uint32_t n, char *to, uint32_t *ret_bytes)
{
	uint32_t i = 0, used = 0;
	char quote = 0;

	for (; i < n && (quote || !is_space(text[i])); i++) {
		if (quote == '"' && text[i] == '\\' && i + 1 < n) {
			i += unescape(text + i + 1, n - i - 1, &to[used++]);
		} else if (quote == '\'' && text[i] == '\\' && i + 1 < n && text[i + 1] == '\'') {
			to[used++] = text[++i];
		} else if (quote && text[i] == quote) {
			if (i + 1 < n && !is_space(text[i + 1]))
				return 0;
			quote = 0;
		} else if (!quote && (text[i] == '"' || text[i] == '\'')) {
			quote = text[i];
		} else {
			to[used++] = text[i];
		}
	}
	*ret_bytes = used;
	return quote ? 0 : i;
}

/* A browser that was made to speak to this port: its lines are no commands. */
static bool is_http(const struct resp_parser *p)
{
	const struct resp_arg *first = &p->args[0];

	return (first->n == 4 && !strncasecmp(first->bytes, "post", 4)) ||
	       (first->n == 5 && !strncasecmp(first->bytes, "host:", 5));
}

static enum resp_result parse_inline(struct resp_parser *p, const char *bytes, uint32_t n,
				     size_t *ret_used)
{
	uint32_t n_line, n_text = 0, n_word;
	enum resp_result result;
	const char *line;
	char *text;

	result = take_line(p, bytes, n, "too big inline request", &line, &n_line);
	if (result != RESP_REQUEST)
		return result;
	if (n_line && line[n_line - 1] == '\r')
		n_line--;
	text = realloc(p->text, n_line + 1);
	if (!text)
		return fail_memory(p);
	p->text = text;
	p->n_args = 0;
	for (uint32_t i = 0; i < n_line;) {
		uint32_t taken;

		if (is_space(line[i])) {
			i++;
			continue;
		}
		taken = copy_word(line + i, n_line - i, text + n_text, &n_word);
		if (!taken)
			return fail(p, "unbalanced quotes in request");
		if (p->n_args == p->limits.args_max)
			return fail(p, "too many arguments");
		if (n_word > p->limits.bulk_bytes_max)
			return fail(p, "invalid bulk length");
		if (!add_arg(p, n_text, n_word))
			return fail_memory(p);
		n_text += n_word;
		i += taken;
	}
	result = complete(p, text, p->at, ret_used);
	if (p->n_args && is_http(p)) {
		*ret_used = 0;
		return fail(p, "this is no HTTP server");
	}
	return result;
}

/* "*N". RESP_REQUEST: N arguments are due. */
static enum resp_result parse_array(struct resp_parser *p, const char *bytes, uint32_t n)
{
	enum resp_result result;
	const char *line;
	uint32_t n_line;
	int64_t due;

	result = take_line(p, bytes, n, "too big mbulk count string", &line, &n_line);
	if (result != RESP_REQUEST)
		return result;
	if (!line_number(line, n_line, &due) || due > p->limits.args_max)
		return fail(p, "invalid multibulk length");
	p->n_args = 0;
	p->args_due = due > 0 ? (uint32_t)due : 0;
	p->state = RESP_STATE_LENGTH;
	return RESP_REQUEST;
}

static enum resp_result fail_expected(struct resp_parser *p, char got)
{
	char what[sizeof("expected '$', got 'x'")];

	/* The reply is a line, and bytes that would end it are not for it. */
	snprintf(what, sizeof(what), "expected '$', got '%c'",
		 (unsigned char)got < ' ' || got == 0x7f ? '?' : got);
	return fail(p, what);
}

/* "$N". RESP_REQUEST: N bytes follow. */
static enum resp_result parse_length(struct resp_parser *p, const char *bytes, uint32_t n)
{
	enum resp_result result;
	const char *line;
	uint32_t n_line;
	int64_t length;

	if (p->at < n && bytes[p->at] != '$')
		return fail_expected(p, bytes[p->at]);
	result = take_line(p, bytes, n, "too big bulk count string", &line, &n_line);
	if (result != RESP_REQUEST)
		return result;
	if (!line_number(line, n_line, &length) || length < 0 ||
	    length > p->limits.bulk_bytes_max)
		return fail(p, "invalid bulk length");
	p->bulk_bytes = (uint32_t)length;
	p->state = RESP_STATE_BULK;
	return RESP_REQUEST;
}

/* The bytes of a bulk string, and its end. RESP_REQUEST: it is an argument. */
static enum resp_result parse_bulk(struct resp_parser *p, const char *bytes, uint32_t n)
{
	const char *end;

	/* Not later, so that a request that is too big takes no memory for what it announces. */
	if ((uint64_t)p->at + p->bulk_bytes + 2 > p->limits.request_bytes_max)
		return fail(p, "too big request");
	if (n - p->at < p->bulk_bytes + 2)
		return RESP_MORE;
	end = bytes + p->at + p->bulk_bytes;
	if (end[0] != '\r' || end[1] != '\n')
		return fail(p, "expected CRLF behind a bulk string");
	if (!add_arg(p, p->at, p->bulk_bytes))
		return fail_memory(p);
	p->at += p->bulk_bytes + 2;
	p->state = RESP_STATE_LENGTH;
	return RESP_REQUEST;
}

static enum resp_result step(struct resp_parser *p, const char *bytes, uint32_t n,
			     size_t *ret_used)
{
	switch (p->state) {
	case RESP_STATE_START:
		return bytes[0] == '*' ? parse_array(p, bytes, n) :
					 parse_inline(p, bytes, n, ret_used);
	case RESP_STATE_LENGTH:
		return parse_length(p, bytes, n);
	case RESP_STATE_BULK:
		return parse_bulk(p, bytes, n);
	case RESP_STATE_FAILED:
		break;
	}
	return RESP_ERROR;
}

enum resp_result resp_parse(struct resp_parser *p, const char *bytes, size_t n, size_t *ret_used)
{
	enum resp_result result;
	uint32_t most;

	*ret_used = 0;
	if (p->state == RESP_STATE_FAILED)
		return RESP_ERROR;
	if (!n)
		return RESP_MORE;
	if (p->state == RESP_STATE_START && p->room > ARGS_KEPT)
		resp_parser_finish(p);
	/* What is beyond the largest request belongs to the next one, or is too much. */
	most = n < p->limits.request_bytes_max ? (uint32_t)n : p->limits.request_bytes_max;
	do {
		result = step(p, bytes, most, ret_used);
		if (result != RESP_REQUEST || *ret_used)
			break;
		if (p->state == RESP_STATE_LENGTH && p->n_args == p->args_due)
			return complete(p, bytes, p->at, ret_used);
	} while (true);
	if (result == RESP_MORE && most == p->limits.request_bytes_max)
		return fail(p, "too big request");
	return result;
}
