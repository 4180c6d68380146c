/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * out.h - replies of the Redis serialization protocol, versions 2 and 3, appended to a buffer.
 *
 * Knows no socket and no command. Types are those of the protocol's specification
 * (redis.io/docs/latest/develop/reference/protocol-spec); what version 2 does not have is written
 * as its documents say: a map as an array of keys and values, a set as an array, a verbatim text
 * as a bulk string.
 *
 * A buffer is for one thread at a time. No function returns an error: has_failed stays set once
 * memory was short or a reply went beyond max, and what is in the buffer is then no whole reply.
 * The caller that appends a reply looks at it once, at the end.
 */
#ifndef OLTP_RESP_OUT_H
#define OLTP_RESP_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct resp_out {
	char *bytes;		/* n of them are filled in; NULL as long as nothing was appended */
	size_t n;
	size_t room;		/* bytes allocated */
	size_t max;		/* n never goes beyond this */
	bool has_failed;	/* no memory, or beyond max; cleared by reset and truncate */
	uint8_t version;	/* of the protocol: 2 or 3 */
};

/* Version 2, nothing allocated. max: bytes, at least 1. */
void resp_out_init(struct resp_out *out, size_t max);

/* Frees the bytes. Accepts a zeroed buffer; it may be used again after resp_out_init. */
void resp_out_finish(struct resp_out *out);

/* Empties the buffer; its memory and version stay. */
void resp_out_reset(struct resp_out *out);

/*
 * Takes back everything after the first n bytes, and has_failed with it: call it with an n that the
 * buffer had when it was whole.
 */
void resp_out_truncate(struct resp_out *out, size_t n);

/* Takes the bytes from `from` to `to` out; those behind them move there. */
void resp_out_cut(struct resp_out *out, size_t from, size_t to);

/*
 * Room for n more bytes after those that are there; NULL: failed. What is written there counts once
 * out->n is raised by as much, by the caller. Valid until the next call with this buffer.
 */
char *resp_out_reserve(struct resp_out *out, size_t n);

/* Appends bytes as they are. */
void resp_out_raw(struct resp_out *out, const void *bytes, size_t n);

/* "+text". text: one line. */
void resp_out_simple(struct resp_out *out, const char *text);

/*
 * "-text", where text begins with the code of the error ("ERR", "WRONGTYPE"). Ends of lines in it
 * become blanks; errorf: like printf, cut at 511 bytes.
 */
void resp_out_error(struct resp_out *out, const char *text);
void resp_out_errorf(struct resp_out *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void resp_out_integer(struct resp_out *out, int64_t value);

/* A string of any bytes. */
void resp_out_bulk(struct resp_out *out, const void *bytes, size_t n);

/* The same of a C string. */
void resp_out_text(struct resp_out *out, const char *text);

/* Text for people, such as that of INFO: "txt" in version 3. */
void resp_out_verbatim(struct resp_out *out, const char *text, size_t n);

/* Nothing: "$-1", or "*-1" where an array was asked for; both are "_" in version 3. */
void resp_out_null(struct resp_out *out);
void resp_out_null_array(struct resp_out *out);

/* Heads of what consists of n more replies (map: n pairs of them), to be appended next. */
void resp_out_array(struct resp_out *out, size_t n);
void resp_out_map(struct resp_out *out, size_t n);
void resp_out_set(struct resp_out *out, size_t n);

/*
 * Puts the head of an array or map in front of the bytes from at on: for callers that know the
 * number of replies only after the last one.
 */
void resp_out_array_at(struct resp_out *out, size_t at, size_t n);
void resp_out_map_at(struct resp_out *out, size_t at, size_t n);

/* A string in front of the bytes from at on. */
void resp_out_bulk_at(struct resp_out *out, size_t at, const void *bytes, size_t n);

#endif
