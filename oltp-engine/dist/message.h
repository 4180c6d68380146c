/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages between the nodes of a scale-out engine, over a stream socket. A message is a frame
 * of DIST_FRAME_BYTES and a payload; numbers are little-endian, what is reserved is zero.
 *
 *	type	  from	       gtid	  n			payload
 *	HELLO	  both, first  node: own  0			-
 *	PREPARE	  coordinator  yes	  operations		struct dist_op [n]
 *	VOTE	  participant  yes	  enum dist_vote	yes, read: what the reads returned;
 *								no: 8 bytes, enum oltp_rc
 *	COMMIT	  coordinator  yes	  0			-
 *	ABORT	  coordinator  yes	  0			-
 *	PENDING	  both	       yes	  0			-
 *	ACK	  participant  yes	  0			-
 *	QUERY	  participant  yes	  0			-
 *
 * Whoever connects says HELLO first and is answered with HELLO; a side that sees another version
 * than its own ends the connection. On one connection a coordinator has one transaction at a time
 * in PREPARE; ACKs of earlier ones come whenever they come. QUERY is answered with COMMIT, ABORT or
 * PENDING, a COMMIT that is repeated on another connection with ACK or, while the participant is
 * itself about to ask, PENDING. Anything else is a violation, upon which the connection is closed.
 */
#ifndef DIST_MESSAGE_H
#define DIST_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIST_VERSION		1u
#define DIST_OPS_MAX		64u
#define DIST_FRAME_BYTES	32u
#define DIST_PAYLOAD_MAX	8192u

enum dist_type {
	DIST_HELLO = 1,
	DIST_PREPARE = 2,
	DIST_VOTE = 3,
	DIST_COMMIT = 4,
	DIST_ABORT = 5,
	DIST_PENDING = 6,
	DIST_ACK = 7,
	DIST_QUERY = 8,
};

/* Names a transaction for ever: no node uses a pair of incarnation and sequence number twice. */
struct dist_gtid {
	uint32_t node;		/* of the coordinator */
	uint32_t incarnation;	/* its starts, counted in its log */
	uint64_t seq;
};

struct dist_frame {
	uint32_t bytes;		/* of the whole message; a multiple of 8 */
	uint16_t version;
	uint16_t type;
	struct dist_gtid gtid;
	uint32_t n;
	uint32_t reserved;
};

/* The meaning of code and arg is the application's (struct dist_app). */
struct dist_op {
	uint64_t key;
	uint32_t code;
	uint32_t arg;
};

_Static_assert(sizeof(struct dist_frame) == DIST_FRAME_BYTES, "frame");
_Static_assert(offsetof(struct dist_frame, gtid) == 8, "frame.gtid");
_Static_assert(offsetof(struct dist_frame, n) == 24, "frame.n");
_Static_assert(sizeof(struct dist_op) == 16, "op");
_Static_assert(DIST_OPS_MAX * sizeof(struct dist_op) <= DIST_PAYLOAD_MAX, "operations fit");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire's byte order is the machine's");

bool dist_gtid_is_equal(const struct dist_gtid *a, const struct dist_gtid *b);

/* A frame with its length; payload_bytes: a multiple of 8. gtid NULL: zero. */
struct dist_frame dist_frame_make(enum dist_type type, const struct dist_gtid *gtid, uint32_t n,
				  size_t payload_bytes);

/*
 * Of a frame that came from outside: 0; -EPROTONOSUPPORT: another version; -EPROTO: not well
 * formed, and then nothing in it may be relied on, its length included.
 */
int dist_frame_check(const struct dist_frame *frame);

#endif
