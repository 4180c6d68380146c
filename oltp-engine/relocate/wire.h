/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the two nodes of a relocation send each other, over a stream socket: frames of a header of
 * WIRE_HEADER_BYTES and a payload. Numbers are little-endian; what is reserved, or is not listed
 * here, is zero.
 *
 *	type	 unit  gen  flags	    n		    payload
 *	HELLO	 -     -    HAS_TABLE	    units	    struct wire_entry [n]
 *	ASK	 yes   yes  COPY	    -		    struct wire_ask
 *	GIVE	 yes   yes  CLOSES, DELTA   records	    -
 *	GOT	 yes   yes  -		    -		    -
 *	REFUSE	 yes   yes  VALUES	    -		    -
 *	BYE	 -     -    -		    -		    -
 *	BYE_GOT	 -     -    -		    -		    -
 *	RECORDS	 yes   yes  AHEAD or DELTA  records	    n times: struct wire_record, its bytes,
 *							    zeroes up to a multiple of 8
 *	CLEAR	 yes   yes  AHEAD or DELTA  page	    -
 *	TIMES	 -     -    -		    -		    struct wire_times
 *
 * The first seven are the messages of units.h. RECORDS brings resident records of the unit that a
 * GIVE with the same generation will follow; the GIVE says how many there were in all, so that a
 * unit is not taken if some of its records got lost with a connection.
 *
 * Records that go ahead of the GIVE (docs/relocation.md) come in RECORDS with AHEAD, with the
 * generation by which the sender owns the unit. CLEAR forgets records of the unit that came ahead,
 * those of one page or all (WIRE_CLEAR_ALL, with AHEAD only), with which a unit begins. RECORDS,
 * CLEAR and GIVE with DELTA are about later changes: the unit consists of them and of the records
 * that came ahead on this connection, or that the receiver gave away by the sender's generation and
 * kept. ASK with COPY: the sender has such records as of that generation.
 *
 * REFUSE with VALUES: the sender could not read values that records of the unit referred to, and
 * shall be sent the values (kv/record.h).
 *
 * TIMES tells the source once per second how fast the target answers (drain.h). Each connection
 * begins with HELLO. A node that gets a frame that is not well formed, of another version or of
 * another relocation closes the connection.
 */
#ifndef RELOCATE_WIRE_H
#define RELOCATE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drain.h"
#include "units.h"

#define WIRE_VERSION		5u
#define WIRE_HEADER_BYTES	56u
#define WIRE_PAYLOAD_MAX	262144u
#define WIRE_RECORD_MAX		65536u
/* Far above what is reached; one above it can still be counted. */
#define WIRE_NUMBER_MAX		(1ull << 62)

enum wire_type {
	/* 1 to 7: enum units_kind */
	WIRE_RECORDS = 8,
	WIRE_TIMES = 9,
	WIRE_CLEAR = 10,
};

#define WIRE_FLAG_HAS_TABLE	1u
#define WIRE_FLAG_CLOSES	1u	/* of GIVE */
#define WIRE_FLAG_COPY		1u	/* of ASK */
#define WIRE_FLAG_VALUES	1u	/* of REFUSE */
#define WIRE_FLAG_AHEAD		1u	/* of RECORDS and CLEAR */
#define WIRE_FLAG_DELTA		2u

#define WIRE_CLEAR_ALL		UINT32_MAX	/* instead of a page */

struct wire_header {
	uint32_t bytes;		/* of the whole frame; a multiple of 8 */
	uint16_t version;
	uint16_t type;
	uint64_t relocation;	/* drawn when it began, the same on both nodes */
	uint64_t from, to;	/* incarnations: see units.h */
	uint64_t gen;
	uint32_t unit;
	uint32_t flags;
	uint32_t n;
	uint32_t reserved;
};

struct wire_entry {
	uint64_t gen;
	uint32_t holds;		/* enum units_holds */
	uint32_t reserved;
};

struct wire_record {
	uint64_t key;		/* of the engine's record; 0 of records of kv/unit.h */
	uint32_t table;		/* in the order in which the engine's tables were made; or 0 */
	uint32_t bytes;		/* 1 to WIRE_RECORD_MAX */
};

struct wire_ask {
	uint64_t birth;		/* see gate.h, at most WIRE_NUMBER_MAX; 0: of nobody */
};

struct wire_times {
	uint64_t requests;
	uint64_t total_ns;
};

_Static_assert(sizeof(struct wire_header) == WIRE_HEADER_BYTES, "header");
_Static_assert(offsetof(struct wire_header, relocation) == 8, "header.relocation");
_Static_assert(offsetof(struct wire_header, unit) == 40, "header.unit");
_Static_assert(sizeof(struct wire_entry) == 16, "entry");
_Static_assert(sizeof(struct wire_record) == 16, "record");
_Static_assert(sizeof(struct wire_ask) == 8, "ask");
_Static_assert(sizeof(struct wire_times) == 16, "times");
_Static_assert(UNITS_MAX * sizeof(struct wire_entry) <= WIRE_PAYLOAD_MAX, "entries fit");
_Static_assert(WIRE_RECORD_MAX + sizeof(struct wire_record) <= WIRE_PAYLOAD_MAX, "records fit");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire's byte order is the machine's");

/* What both nodes of a relocation agree on. */
struct wire_terms {
	uint64_t relocation;
	uint32_t n_units;	/* 1 to UNITS_MAX */
};

/* A frame that was checked. The payload is in the caller's buffer. */
struct wire_message {
	struct wire_header header;
	const uint8_t *payload;
};

/*
 * Takes a frame from the start of a buffer. Returns its length, and the frame; 0: more bytes are
 * needed (never more than WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX); -EPROTONOSUPPORT: another version;
 * -ESTALE: another relocation; -EPROTO: not well formed. After an error nothing that follows can be
 * relied on. A header is checked as soon as it is there, before its payload is.
 */
int wire_parse(const struct wire_terms *terms, const uint8_t *at, size_t bytes,
	       struct wire_message *ret_message);

/* For units_receive: of a type up to BYE_GOT; ret_table[n_units] is written for HELLO only. */
struct units_message wire_units_message(const struct wire_message *message,
					struct units_entry *ret_table);

/*
 * Of RECORDS: the record at *at (0 for the first), whose bytes are in the buffer. Moves *at to the
 * next. False: there are no more.
 */
bool wire_record_next(const struct wire_message *message, uint32_t *at,
		      struct wire_record *ret_record, const uint8_t **ret_bytes);

/* Of TIMES. */
struct drain_times wire_drain_times(const struct wire_message *message);

/* All of these need room for a whole frame at `to`, and return its length. */

#define WIRE_MESSAGE_MAX(n_units)	(WIRE_HEADER_BYTES + (n_units) * sizeof(struct wire_entry))

/*
 * A message of units.h. units: for the entries of HELLO. records: of GIVE, how many were sent
 * before it. flags: of GIVE, 0 or WIRE_FLAG_DELTA; of ASK, 0 or WIRE_FLAG_COPY; of REFUSE, 0 or
 * WIRE_FLAG_VALUES. Room: WIRE_MESSAGE_MAX of the units.
 */
uint32_t wire_put_message(const struct wire_terms *terms, const struct units *units,
			  const struct units_message *message, uint32_t records, uint32_t flags,
			  uint8_t *to);

/* Room: WIRE_HEADER_BYTES and struct wire_times. */
uint32_t wire_put_times(const struct wire_terms *terms, uint64_t from, uint64_t to_incarnation,
			const struct drain_times *times, uint8_t *to);

/*
 * RECORDS: begin, add as many as there is room for, and send what is there then. Room:
 * WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX. add returns the length so far, or 0: the record does not
 * fit into this frame, and the frame is as before. flags: 0, WIRE_FLAG_AHEAD or WIRE_FLAG_DELTA;
 * with AHEAD, give has the generation by which the sender owns the unit.
 */
void wire_records_begin(const struct wire_terms *terms, const struct units_message *give,
			uint32_t flags, uint8_t *to);
uint32_t wire_records_add(uint8_t *to, const struct wire_record *record, const uint8_t *bytes);

/* give, flags: as of RECORDS, but flags are not 0. Room: WIRE_HEADER_BYTES. */
uint32_t wire_put_clear(const struct wire_terms *terms, const struct units_message *give,
			uint32_t flags, uint32_t page, uint8_t *to);

#endif
