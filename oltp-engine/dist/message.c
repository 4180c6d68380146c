// SPDX-License-Identifier: GPL-2.0-or-later
/* See message.h. */
#include <errno.h>

#include "message.h"
#include "twophase.h"

bool dist_gtid_is_equal(const struct dist_gtid *a, const struct dist_gtid *b)
{
	return a->seq == b->seq && a->incarnation == b->incarnation && a->node == b->node;
}

struct dist_frame dist_frame_make(enum dist_type type, const struct dist_gtid *gtid, uint32_t n,
				  size_t payload_bytes)
{
	static const struct dist_gtid none;

	return (struct dist_frame){
		.bytes = (uint32_t)(DIST_FRAME_BYTES + payload_bytes),
		.version = DIST_VERSION,
		.type = (uint16_t)type,
		.gtid = gtid ? *gtid : none,
		.n = n,
	};
}

static bool is_well_formed(const struct dist_frame *frame, size_t payload)
{
	switch (frame->type) {
	case DIST_PREPARE:
		return frame->n >= 1 && frame->n <= DIST_OPS_MAX &&
		       payload == frame->n * sizeof(struct dist_op);
	case DIST_VOTE:
		if (frame->n == DIST_VOTE_NO)
			return payload == sizeof(uint64_t);
		return frame->n == DIST_VOTE_YES || frame->n == DIST_VOTE_READ;
	case DIST_HELLO:
	case DIST_COMMIT:
	case DIST_ABORT:
	case DIST_PENDING:
	case DIST_ACK:
	case DIST_QUERY:
		return !frame->n && !payload;
	default:
		return false;
	}
}

int dist_frame_check(const struct dist_frame *frame)
{
	if (frame->version != DIST_VERSION)
		return -EPROTONOSUPPORT;
	if (frame->reserved || frame->bytes % 8 || frame->bytes < DIST_FRAME_BYTES ||
	    frame->bytes > DIST_FRAME_BYTES + DIST_PAYLOAD_MAX)
		return -EPROTO;
	return is_well_formed(frame, frame->bytes - DIST_FRAME_BYTES) ? 0 : -EPROTO;
}
