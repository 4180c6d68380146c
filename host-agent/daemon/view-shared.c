/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See view-shared.h. */
#include "daemon/view-shared.h"
#include <stdio.h>
#include "util/uuid.h"

static json_t *users(const struct ebb_state *s, uint16_t thread)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ebb_state_num_vms(s); i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(s, i);
		char uuid[EBB_UUID_TEXT_SIZE];

		ebb_uuid_format(vm->uuid, uuid);
		for (uint16_t k = 0; vm->is_running && k < vm->num_vcpus; k++)
			if (vm->vcpu_shares[k].thread == thread)
				json_array_append_new(
					list, json_pack("{s:s, s:s, s:i, s:i}", "vm", vm->name,
							"uuid", uuid, "vcpu", k, "use_permille",
							vm->vcpu_shares[k].use));
	}
	return list;
}

json_t *ebb_view_shared_thread(const struct ebb_state *s, uint16_t thread)
{
	struct ebb_shared_thread t;

	if (!ebb_state_shared_thread(s, thread, &t))
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:b, s:b, s:o}", "use_permille", t.use,
			 "demand_permille", t.demand, "num_active", t.num_active, "hot", t.is_hot,
			 "stuck", t.is_stuck, "vcpus", users(s, thread));
}

json_t *ebb_view_shared(const struct ebb_state *s)
{
	struct ebb_shared_totals t;

	ebb_state_shared_totals(s, &t);
	if (t.num_threads == 0)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:i, s:b, s:i, s:i, s:i, s:I, s:I, s:I, s:I}",
			 "threads", t.num_threads, "vms", t.num_vms, "vcpus", t.num_vcpus,
			 "use_permille", t.permille, "hot", t.is_hot, "hot_threads", t.num_hot,
			 "stuck_threads", t.num_stuck, "throttled_vms", t.num_throttled,
			 "looks", (json_int_t)t.num_looks, "moved_vms", (json_int_t)t.num_moved_vms,
			 "moved_vcpus", (json_int_t)t.num_moved_vcpus,
			 "cost_us", (json_int_t)t.cost_usec);
}

json_t *ebb_view_promises(const struct ebb_state *s, uint16_t node)
{
	struct ebb_promise_node n;

	ebb_state_promises(s, node, &n);
	if (n.most_percent == 0)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:i, s:i}", "most_percent", n.most_percent,
			 "allowed_percent", n.allowed_percent, "promised_percent",
			 n.promised_percent, "free_percent",
			 n.allowed_percent - n.promised_percent, "overbooked_percent",
			 n.promised_percent > n.most_percent ?
				 n.promised_percent - n.most_percent : 0);
}

static void add_promise(json_t *o, const struct ebb_vm_reserve *own)
{
	char text[EBB_TEXT_SIZE] = "";

	if (own->is_refused)
		snprintf(text, sizeof(text), "%snot promised: node %u of the host has %u%% of a "
			 "core %s", own->promised_percent ? "more is " : "", own->short_node,
			 own->short_percent, own->promised_percent ? "for it" : "left to promise");
	else if (own->is_missing && own->promised_percent)
		snprintf(text, sizeof(text), "this host can not keep promises of CPU time");
	json_object_set_new(o, "promised_percent", json_integer(own->promised_percent));
	json_object_set_new(o, "kept_percent",
			    json_real(own->is_missing ? 0 : own->keep_permille / 10.0));
	json_object_set_new(o, "promise_error", json_string(text));
}

void ebb_view_add_share(json_t *o, const struct ebb_vm *vm)
{
	const struct ebb_vm_share *own = &vm->share;

	add_promise(o, &vm->reserve);
	json_object_set_new(o, "throttle_permille",
			    json_integer(own->throttled <= 1000 ? own->throttled : 0));
	json_object_set_new(o, "moves", json_integer((json_int_t)own->num_moves));
}
