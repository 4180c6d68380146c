// SPDX-License-Identifier: GPL-2.0-or-later
/* See node_set.h. */
#include "node_set.h"
#include "txn.h"

/* A scan that was disturbed reads a leaf again at once: that leaf is among the last of the set. */
#define LOOK_BACK	8u

enum oltp_rc node_set_add(struct oltp_worker *worker, const _Atomic uint64_t *word,
			  uint64_t version, uint64_t mask)
{
	uint32_t n = worker->n_nodes;

	version &= mask;
	for (uint32_t i = n; i && n - i < LOOK_BACK; i--) {
		const struct node_version *node = &worker->node_set[i - 1];

		if (node->word != word)
			continue;
		return node->version == version ? OLTP_OK : txn_doom(worker, OLTP_CONFLICT);
	}
	if (n == worker->engine->txn_records_max)
		return txn_doom(worker, OLTP_FULL);
	worker->node_set[worker->n_nodes++] = (struct node_version){ word, version, mask };
	return OLTP_OK;
}

enum oltp_rc node_set_update(struct oltp_worker *worker, const _Atomic uint64_t *word,
			     uint64_t before, uint64_t after, const _Atomic uint64_t *new_word,
			     uint64_t new_version)
{
	uint32_t n = worker->n_nodes;
	uint64_t mask = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct node_version *node = &worker->node_set[i];

		if (node->word != word)
			continue;
		/* Somebody else was here since: the check at commit would fail, so fail now. */
		if (node->version != before)
			return txn_doom(worker, OLTP_CONFLICT);
		node->version = after;
		mask = node->mask;
	}
	return mask && new_word ? node_set_add(worker, new_word, new_version, mask) : OLTP_OK;
}

bool node_set_is_valid(const struct oltp_worker *worker)
{
	for (uint32_t i = 0; i < worker->n_nodes; i++) {
		const struct node_version *node = &worker->node_set[i];

		if ((atomic_load_explicit(node->word, memory_order_seq_cst) & node->mask) !=
		    node->version)
			return false;
	}
	return true;
}
