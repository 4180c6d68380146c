/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hash.h - the hash under a key, for commands and procedures: open it, look at fields and change
 * them, close it if it was changed. What is returned of fields is valid until they are changed.
 */
#ifndef OLTP_KV_HASH_H
#define OLTP_KV_HASH_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/server/kv/private.h"

struct hash {
	struct found key;		/* row NULL: there is none, or it was made just now */
	struct hash_head head;		/* id 0: there is none */
	uint64_t n_before;		/* fields when it was opened */
};

/* The hash, or none. exclusive: to change fields. KV_ANSWERED: the key is a string. */
enum oltp_rc hash_open(struct call *c, const struct resp_arg *key, bool exclusive,
		       struct hash *ret_hash);

/* Makes it if there is none; hash_close is to follow. */
enum oltp_rc hash_make(struct call *c, const struct resp_arg *key, struct hash *ret_hash);

/* After fields were changed: writes their number, and a stamp by which a WATCH sees the change. */
enum oltp_rc hash_close(struct call *c, struct hash *hash);

/* The field, or none: ret_found->row NULL. A name longer than fields may have is no field. */
enum oltp_rc hash_find(struct call *c, const struct hash *hash, const struct resp_arg *name,
		       bool exclusive, struct found *ret_found);

/* The value, whatever was there before; of a hash that is open exclusively. */
enum oltp_rc hash_set(struct call *c, struct hash *hash, const struct resp_arg *name,
		      const struct resp_arg *value);

/* The same for a field that hash_find has found, with exclusive, or not found. */
enum oltp_rc hash_set_found(struct call *c, struct hash *hash, struct found *found,
			    const struct resp_arg *value);

/* The field was found with exclusive. */
enum oltp_rc hash_remove_field(struct call *c, struct hash *hash, struct found *found);

#endif
