// SPDX-License-Identifier: GPL-2.0-or-later
/* The keyspace of another node, to be read: see unit.h. */
#include <errno.h>
#include <string.h>

#include "oltp-engine/server/kv/private.h"
#include "oltp-engine/server/kv/unit.h"

int kv_open_peer(const struct kv *own, struct oltp_engine *engine, struct kv **ret_kv)
{
	const struct kv_config config = {
		.rows = own->rows,
		.long_rows = own->long_rows,
		.hash_bits = own->hash_bits,
		.unit_bits = own->unit_bits,
	};

	return kv_open(engine, &config, ret_kv);
}

int kv_start_peer(struct kv *peer, struct oltp_worker *worker, const struct kv *own)
{
	int rc = meta_read(&peer->meta, worker, peer->hash_bits, peer->ks.secret);

	if (rc)
		return rc;
	/* With another one its keys are in other units. */
	return memcmp(peer->ks.secret, own->ks.secret, sizeof(own->ks.secret)) ? -EUCLEAN : 0;
}
