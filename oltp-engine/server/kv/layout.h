/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout.h - which part of a key or a field is in its row, and which in a class table. No I/O. */
#ifndef OLTP_KV_LAYOUT_H
#define OLTP_KV_LAYOUT_H

#include "oltp-engine/server/kv/keyspace.h"

/* Of a hash, at the end of the row's body. */
#define HASH_HEAD_AT	(ROW_BODY_BYTES - sizeof(struct hash_head))

/* Where name and value of a row are. */
struct layout {
	bool is_name_out, is_value_out;	/* in the class table */
	uint32_t out_bytes;		/* of both there */
	uint8_t place;
};

struct layout layout_of(uint8_t type, uint32_t name_bytes, uint32_t value_bytes);

#endif
