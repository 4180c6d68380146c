/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replies of RESP2 and RESP3, as a client sees them. Pure: bytes in, parts of them out.
 * hiredis would do this, but that of Debian 12 (0.14) knows RESP2 only: it gives a connection up
 * at the first push.
 */
#ifndef LOAD_REPLY_H
#define LOAD_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest reply; what is longer is a violation of the protocol. */
#define REPLY_BYTES_MAX		(16u << 20)

/* Where the search for the end of a reply goes on. Zeroed: at its first byte. */
struct reply_scan {
	size_t at;
	uint64_t pending;	/* elements that have not been seen yet; 0: not begun */
};

/*
 * bytes[0..n) begin with a reply; more may have been added since the last call with this scan, and
 * none removed. Returns 1 and how long the whole reply is (scan is zeroed again), 0 if it is not
 * complete yet, or -EPROTO.
 */
int reply_scan(struct reply_scan *scan, const char *bytes, size_t n, size_t *ret_length);

/* One element: a value, or the head of an aggregate, whose elements follow. */
struct reply_item {
	char type;		/* the byte of the protocol: + - : $ * _ , # ( ! = % ~ > | */
	bool is_null;		/* "$-1", "*-1" or "_" */
	int64_t integer;	/* of ':'; of an aggregate, how many elements follow directly */
	const char *bytes;	/* text of all others */
	size_t n;
};

/*
 * The element at bytes[*at]; *at is moved behind it. For replies that reply_scan has found whole.
 * Returns 1, 0 (the end was reached within an element), or -EPROTO.
 */
int reply_item(const char *bytes, size_t n, size_t *at, struct reply_item *ret_item);

/* A decimal number of 64 bits that fills the text. Errors: -EPROTO. */
int reply_integer(const char *text, size_t n, int64_t *ret);

#endif
