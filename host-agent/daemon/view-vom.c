// SPDX-License-Identifier: GPL-2.0-or-later
/* The value that guests report for their memory, as JSON: see view.h. */
#include "core/explain.h"
#include "daemon/view.h"

static json_t *nodes_view(const struct ebb_vm *vm)
{
	json_t *nodes = json_array();

	for (uint16_t g = 0; vm->has_sla && g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_pool *pool = &vm->pools[g];

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

static json_t *bytes_of(uint32_t blocks)
{
	return json_integer((json_int_t)(blocks * EBB_BLOCK_BYTES));
}

/* The memory demanded of a VM on a guest node, and the reason. */
static json_t *part_view(const struct ebb_vm *vm, uint16_t g)
{
	const struct ebb_brokered *b = &vm->vom.brokered[g];

	return json_pack("{s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:I, s:I, s:b}", "name",
			 vm->name, "node", g, "host_node", vm->sla.nodes[g].host_node, "weight",
			 (int)vm->sla.mem_weight, "floor_bytes", bytes_of(vm->sla.nodes[g].mem_min),
			 "held_bytes", bytes_of(b->held), "asked_bytes", bytes_of(b->asked),
			 "given_bytes", bytes_of(ebb_vm_given(vm, g)), "cutoff",
			 (json_int_t)b->cutoff, "keeps_from", (json_int_t)b->keeps_from,
			 "guessed", b->vom_at == 0);
}

/* The same of all others that held memory of that node of the host then. */
static json_t *others_view(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g)
{
	const usec_t at = vm->vom.brokered[g].at;
	json_t *all = json_array();

	for (size_t i = 0; i < ebb_state_num_vms(s); i++) {
		const struct ebb_vm *other = ebb_state_vm_at(s, i);

		for (uint16_t k = 0; other != vm && other->is_running &&
		     k < other->sla.num_nodes; k++)
			if (other->sla.nodes[k].host_node == vm->sla.nodes[g].host_node &&
			    other->vom.brokered[k].at == at &&
			    other->vom.brokered[k].held > 0)
				json_array_append_new(all, part_view(other, k));
	}
	return all;
}

json_t *ebb_view_brokered(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now)
{
	json_t *all = json_array();

	for (uint16_t g = 0; vm->is_running && g < vm->sla.num_nodes; g++) {
		const usec_t at = vm->vom.brokered[g].at;
		json_t *part;

		if (!at)
			continue;
		part = part_view(vm, g);
		json_object_set_new(part, "age_ms", json_real((double)(now - at) / 1e3));
		json_object_set_new(part, "others", others_view(s, vm, g));
		json_array_append_new(all, part);
	}
	return all;
}
