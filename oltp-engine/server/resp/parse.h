/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of RESP2 and RESP3, from bytes: arrays of bulk strings, and inline commands (one line of
 * words, as somebody types them into a terminal). Both versions send requests in the same form.
 *
 * The parser can stop and go on after every byte. It knows no socket, and keeps no bytes: the
 * caller has all bytes of the request that is being parsed in one buffer, which may grow and move
 * from one call to the next. Memory for arguments grows with the arguments that have come, not with
 * the number that a request announces.
 *
 * Errors are those that Redis documents ("ERR Protocol error: ..."). One thing is stricter than in
 * Redis: a line of an array ends with CR LF, and so does each bulk string; there the byte after CR
 * is not looked at.
 */
#ifndef RESP_PARSE_H
#define RESP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESP_INLINE_MAX	(64u << 10)	/* bytes of an inline command, or of a line of an array */

struct resp_arg {
	const char *bytes;	/* not ended by a zero; may contain zeros */
	uint32_t n;
};

struct resp_limits {
	uint32_t args_max;		/* of one request; 1 or more */
	uint32_t bulk_bytes_max;	/* of one argument */
	uint32_t request_bytes_max;	/* of a whole request, line ends and lengths included */
};

enum resp_result {
	RESP_MORE,	/* the request is not complete */
	RESP_REQUEST,	/* one is */
	RESP_ERROR,	/* for good: the connection is to be closed */
};

enum resp_state {
	RESP_STATE_START,	/* nothing of a request was seen */
	RESP_STATE_LENGTH,	/* in the line of a bulk string's length */
	RESP_STATE_BULK,	/* in the bytes of one */
	RESP_STATE_FAILED,
};

/* All fields are the parser's; args and n_args are for the caller after RESP_REQUEST. */
struct resp_parser {
	struct resp_limits limits;
	enum resp_state state;
	uint32_t at;		/* parsed up to there, from the start of the request */
	uint32_t seen;		/* from at on so many bytes have no line end */
	uint32_t args_due;	/* arguments of the request, all of them */
	uint32_t bulk_bytes;	/* of the one that is being read */
	uint32_t n_args;
	uint32_t room;		/* of the two arrays below */
	struct resp_arg *args;
	uint32_t *offsets;	/* of arguments, from the start of the request */
	char *text;		/* arguments of an inline command, without quotes and escapes */
	char error[64];		/* after RESP_ERROR: the reply, without "-" and line end */
};

/* Allocates nothing. */
void resp_parser_init(struct resp_parser *parser, const struct resp_limits *limits);
void resp_parser_finish(struct resp_parser *parser);

/*
 * bytes: from the start of the request, all that have come, n of them. RESP_REQUEST: the request
 * took the first *ret_used bytes, and the next call begins behind them. Its arguments point into
 * bytes, or into memory of the parser, and are valid until the next call; without arguments
 * (n_args 0: an empty line or array) there is nothing to answer. RESP_MORE: *ret_used is 0; with
 * more bytes call again. RESP_ERROR: see error; all further calls give the same. "No memory" is an
 * error as well.
 */
enum resp_result resp_parse(struct resp_parser *parser, const char *bytes, size_t n,
			    size_t *ret_used);

#endif
