/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thresholds, violations and moves as JSON. */
#include "daemon/view-pressure.h"
#include "util/uuid.h"

json_t *ebb_view_pressure(const struct ebb_state *s)
{
	const struct ebb_pressure *p = ebb_state_pressure(s);

	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "memory_threshold_percent",
			 p->memory_threshold_percent, "memory_target_percent",
			 p->memory_target_percent, "memory_failover_percent",
			 p->memory_failover_percent, "memory_window_s", p->memory_window_s,
			 "core_hot_percent", p->core_hot_percent, "host_hot_percent",
			 p->host_hot_percent, "hot_window_s", p->hot_window_s, "cool_down_s",
			 p->cool_down_s);
}

void ebb_view_node_pressure(json_t *node_view, const struct ebb_state *s, uint16_t node)
{
	const struct ebb_pressure *p = ebb_state_pressure(s);
	const struct {
		const char *key;
		uint32_t percent;
	} all[] = {
		{ "mem_threshold_bytes", p->memory_threshold_percent },
		{ "mem_target_bytes", p->memory_target_percent },
		{ "mem_failover_bytes", p->memory_failover_percent },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		json_object_set_new(node_view, all[i].key,
				    json_integer((json_int_t)ebb_state_pool_bytes(
					    s, node, all[i].percent)));
}

static double seconds_since(usec_t at, usec_t now)
{
	return now > at ? (double)(now - at) / EBB_USEC_PER_SEC : 0;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? (double)part * 100 / (double)all : 0;
}

static void add_violation(json_t *all, const struct ebb_state *s, enum ebb_pressed pressed,
			  uint16_t i, usec_t now)
{
	const struct ebb_violation *v = ebb_state_violation(s, pressed, i);
	const bool is_core = pressed == EBB_PRESSED_CORE;

	if (!v->is_on)
		return;
	json_array_append_new(all, json_pack(
		"{s:s, s:i, s:o, s:f, s:f, s:f, s:s}", "resource", ebb_pressed_name(pressed),
		"node", is_core ? ebb_state_host(s)->cores[i].node : i, "core",
		is_core ? json_integer(i) : json_null(), "percent", percent(v->level, v->capacity),
		"peak_percent", percent(v->peak, v->capacity), "since_s",
		seconds_since(v->since, now), "text", v->text));
}

json_t *ebb_view_violations(const struct ebb_state *s, usec_t now)
{
	json_t *all = json_array();

	for (enum ebb_pressed p = 0; p < EBB_PRESSED_MAX; p++)
		for (uint16_t i = 0; ebb_state_violation(s, p, i); i++)
			add_violation(all, s, p, i, now);
	return all;
}

json_t *ebb_view_move(const struct ebb_vm *vm, usec_t now)
{
	const struct ebb_vm_move *m = &vm->move;
	char uuid[EBB_UUID_TEXT_SIZE];

	if (!m->is_on)
		return json_null();
	ebb_uuid_format(vm->uuid, uuid);
	return json_pack("{s:s, s:s, s:s, s:i, s:f, s:s}", "vm", vm->name, "uuid", uuid, "resource",
			 ebb_pressed_name(m->pressed), "node", m->host_node, "since_s",
			 seconds_since(m->at, now), "text", m->text);
}

json_t *ebb_view_moves(const struct ebb_state *s, usec_t now)
{
	json_t *all = json_array();

	for (size_t i = 0; i < ebb_state_num_vms(s); i++)
		if (ebb_state_vm_at(s, i)->move.is_on)
			json_array_append_new(all, ebb_view_move(ebb_state_vm_at(s, i), now));
	return all;
}
