// SPDX-License-Identifier: GPL-2.0-or-later
/* What guests say that their memory is worth, as JSON: see view.h. */
#include "daemon/view.h"

static json_t *nodes_view(const struct ebb_vm *vm)
{
	json_t *nodes = json_array();

	for (uint16_t g = 0; vm->has_sla && g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_pool *pool = &vm->nodes[g].pool;

		if (!vm->sla.nodes[g].has_pool)
			continue;
		json_array_append_new(nodes, json_pack("{s:i, s:I, s:I}", "node", g, "held_bytes",
						       (json_int_t)pool->held * EBB_BLOCK_BYTES,
						       "cutoff", (json_int_t)pool->told_cutoff));
	}
	return nodes;
}

static json_t *buckets_view(const struct ebb_vm *vm)
{
	json_t *all = json_array();

	for (uint16_t g = 0; vm->has_sla && g < vm->sla.num_nodes; g++) {
		const struct ebb_vom_bucket *buckets;
		uint32_t n = ebb_vm_vom_of(vm, g, &buckets);

		for (uint32_t i = 0; i < n; i++)
			json_array_append_new(all, json_pack("{s:i, s:I, s:I}", "node", g, "value",
							     (json_int_t)buckets[i].value, "kib",
							     (json_int_t)buckets[i].kib));
	}
	return all;
}

json_t *ebb_view_histogram(const struct ebb_vm *vm, usec_t now)
{
	const struct ebb_vm_vom *vom = &vm->vom;
	json_t *age = vom->at ? json_real((double)(now - vom->at) / 1e3) : json_null();

	return json_pack("{s:s, s:b, s:I, s:o, s:I, s:I, s:I, s:o, s:o}", "name", vm->name,
			 "can_tell", vm->can_vom, "seq", (json_int_t)vom->seq, "age_ms", age,
			 "asks", (json_int_t)vom->num_asks, "answers",
			 (json_int_t)vom->num_answers, "refused", (json_int_t)vom->num_refused,
			 "nodes", nodes_view(vm), "buckets", buckets_view(vm));
}
