/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * channel.h - a stream socket to the peer that does not block: bytes that came and were not used
 * yet, and bytes that have to go. Knows nothing of frames.
 */
#ifndef OLTP_MOVE_CHANNEL_H
#define OLTP_MOVE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_IN_BYTES	(1u << 20)	/* above the longest frame */
/* Bytes that may have to go: far above a page of records, which is the most that goes at once. */
#define CHANNEL_OUT_MAX		(32u << 20)

struct channel {
	int fd;			/* -1: none */
	uint64_t number;	/* of connections so far */
	uint8_t *in;		/* bytes from in_from to n_in have come and were not used */
	size_t in_from, n_in;
	uint8_t *out;
	size_t n_out, n_sent, out_room;
	uint64_t received_bytes, sent_bytes;	/* of all connections so far */
};

/* Errors: -ENOMEM. */
int channel_init(struct channel *c);
void channel_finish(struct channel *c);

/* Takes over a connected socket; what there was of an earlier one is dropped. */
void channel_connect(struct channel *c, int fd);
void channel_close(struct channel *c);

/*
 * Room for that many bytes at the end of the output; NULL: no memory, or more than OUT_MAX bytes
 * wait.
 */
uint8_t *channel_reserve(struct channel *c, size_t bytes);
void channel_add(struct channel *c, size_t bytes);

/* Reads, or writes, what can be. False: the connection has ended; what came before is in in. */
bool channel_read(struct channel *c);
bool channel_write(struct channel *c);

/* Bytes that have to go. */
size_t channel_backlog(const struct channel *c);

/* The first bytes of what has come were used. */
void channel_used(struct channel *c, size_t bytes);

#endif
