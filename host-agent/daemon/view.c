/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state as JSON. */
#include <string.h>
#include "core/explain.h"
#include "daemon/view.h"
#include "daemon/view-pressure.h"
#include "daemon/view-io.h"
#include "daemon/view-shared.h"
#include "model/sla.h"
#include "util/uuid.h"

static json_t *mem_promises_view(const struct ebb_state *s, uint16_t node)
{
	struct ebb_mem_promise_node n;

	if (ebb_state_pool_capacity(s, node) == 0)
		return json_null();
	ebb_state_mem_promises(s, node, &n);
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "most_bytes", (json_int_t)n.most_bytes,
			 "allowed_bytes", (json_int_t)n.allowed_bytes, "promised_bytes",
			 (json_int_t)n.promised_bytes, "free_bytes", (json_int_t)n.free_bytes,
			 "overbooked_bytes", (json_int_t)(n.promised_bytes > n.most_bytes ?
							  n.promised_bytes - n.most_bytes : 0));
}

static json_t *node_view(const struct ebb_state *s, uint16_t node, usec_t now)
{
	const struct ebb_host *h = ebb_state_host(s);
	uint32_t cores = 0, threads = 0;
	json_t *o;

	for (uint16_t c = 0; c < h->num_cores; c++) {
		if (h->cores[c].node != node)
			continue;
		cores++;
		threads += h->cores[c].num_threads;
	}
	o = json_pack("{s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:b, s:f}",
		      "node", node, "cores", cores,
		      "threads", threads, "capacity", ebb_state_node_capacity(s, node), "used",
		      ebb_state_node_used(s, node), "mem_capacity_bytes",
		      (json_int_t)ebb_state_pool_capacity(s, node), "mem_held_bytes",
		      (json_int_t)ebb_state_pool_held(s, node), "mem_promised_bytes",
		      (json_int_t)ebb_state_pool_promised(s, node), "uses_threads",
		      ebb_state_node_uses_threads(s, node), "wasted_core_s",
		      (double)ebb_state_node_wasted_usec(s, node, now) / EBB_USEC_PER_SEC);
	if (o)
		ebb_view_node_pressure(o, s, node);
	json_object_set_new(o, "promises", ebb_view_promises(s, node));
	json_object_set_new(o, "mem_promises", mem_promises_view(s, node));
	return o;
}

static json_t *core_view(const struct ebb_state *s, uint16_t core)
{
	const struct ebb_core *c = &ebb_state_host(s)->cores[core];
	json_t *threads = json_array();

	for (uint16_t t = 0; t < c->num_threads; t++) {
		const struct ebb_thread *thread = &ebb_state_host(s)->threads[c->threads[t]];
		uint16_t vcpu = 0;
		const struct ebb_vm *vm = ebb_state_thread_owner(s, c->threads[t], &vcpu);
		char uuid[EBB_UUID_TEXT_SIZE];

		if (vm)
			ebb_uuid_format(vm->uuid, uuid);
		json_array_append_new(
			threads, json_pack("{s:i, s:s?, s:s?, s:o, s:o}", "cpu", thread->os_cpu,
					   "vm", vm ? vm->name : NULL, "uuid", vm ? uuid : NULL,
					   "vcpu",
					   vm ? json_integer(vcpu) : json_null(), "shared",
					   ebb_view_shared_thread(s, c->threads[t])));
	}
	return json_pack("{s:i, s:i, s:o}", "core", core, "node", c->node, "threads", threads);
}

json_t *ebb_view_host(const struct ebb_state *s, usec_t now)
{
	const struct ebb_host *h = ebb_state_host(s);
	json_t *nodes = json_array(), *cores = json_array();

	for (uint16_t n = 0; n < h->num_nodes; n++)
		json_array_append_new(nodes, node_view(s, n, now));
	for (uint16_t c = 0; c < h->num_cores; c++)
		json_array_append_new(cores, core_view(s, c));
	return json_pack("{s:b, s:f, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "emulated",
			 h->is_emulated, "share",
			 h->is_emulated ? h->share_permille / 1000.0 : 1.0, "policy",
			 ebb_state_policy(s)->name, "loaded", ebb_state_is_loaded(s), "quorum",
			 ebb_state_has_quorum(s), "nodes",
			 nodes, "cores", cores, "pressure", ebb_view_pressure(s),
			 "shared", ebb_view_shared(s), "io", ebb_view_io(s));
}

static json_t *sums(const struct ebb_ledger *l)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "metered_usec", (json_int_t)l->metered_usec, "wanted",
			 (json_int_t)l->wanted, "promised", (json_int_t)l->promised, "got",
			 (json_int_t)l->got, "violated", (json_int_t)l->violated, "unclear",
			 (json_int_t)l->unclear, "intervals", (json_int_t)l->num_intervals,
			 "violations", (json_int_t)l->num_violations, "unclear_intervals",
			 (json_int_t)l->num_unclear);
}

/* In its life, on whatever hosts. */
static json_t *account_view(const struct ebb_vm *vm)
{
	struct ebb_account a;

	ebb_vm_account(vm, &a);
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o, s:o}",
			 "age_s", (double)a.age / EBB_USEC_PER_SEC, "reserved_core_s",
			 (double)a.core_usec[EBB_CLASS_RESERVED] / EBB_USEC_PER_SEC, "spot_core_s",
			 (double)a.core_usec[EBB_CLASS_SPOT] / EBB_USEC_PER_SEC, "reserved_mib_s",
			 (double)a.mib_usec[EBB_CLASS_RESERVED] / EBB_USEC_PER_SEC, "spot_mib_s",
			 (double)a.mib_usec[EBB_CLASS_SPOT] / EBB_USEC_PER_SEC, "cpu", sums(&a.cpu),
			 "memory", sums(&a.mem));
}

static const char *vm_state(const struct ebb_vm *vm)
{
	if (!vm->has_sla || (vm->is_running && !vm->is_admitted))
		return "unmanaged";
	return vm->is_incoming ? "incoming" : vm->is_outgoing ? "outgoing" :
	       vm->is_running ? "running" : "stopped";
}

/* Time left to the first deadline of an open demand, at least 1. */
static json_int_t left_ms(usec_t at, usec_t now)
{
	return (json_int_t)((at > now ? at - now : 0) / EBB_USEC_PER_MSEC + 1);
}

static void add_node_memory(json_t *o, const struct ebb_sla_node *sla,
			    const struct ebb_vm_pool *p, usec_t now)
{
	const struct {
		const char *key;
		uint32_t blocks;
	} all[] = {
		{ "mem_floor_bytes", sla->mem_min },	 { "mem_ceiling_bytes", sla->mem_max },
		{ "mem_held_bytes", p->held },		 { "mem_limit_bytes", p->limit },
		{ "mem_target_bytes", p->target },	 { "mem_told_bytes", p->told },
		{ "mem_unconfirmed_bytes", p->unconfirmed },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		json_object_set_new(o, all[i].key,
				    json_integer((json_int_t)(all[i].blocks * EBB_BLOCK_BYTES)));
	json_object_set_new(o, "mem_deadline_ms",
			    json_integer(p->num_due ? left_ms(p->due[0].at, now) : 0));
}

static json_t *vm_nodes(const struct ebb_vm *vm, usec_t now)
{
	json_t *nodes = json_array();

	for (uint16_t g = 0; vm->has_sla && g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_node *n = &vm->nodes[g];
		const struct ebb_sla_node *sla = &vm->sla.nodes[g];

		json_t *o = json_pack(
			"{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I}", "node", g,
			"host_node", sla->host_node, "floor", sla->startup, "ceiling", sla->max,
			"reserved", sla->reserved, "wanted", n->wanted, "held", n->held, "lent",
			n->lent,
			"limit", n->limit, "target", n->target, "deadline_ms",
			n->num_due ? left_ms(n->due[0], now) : (json_int_t)0);

		add_node_memory(o, sla, &vm->pools[g], now);
		json_array_append_new(nodes, o);
	}
	return nodes;
}

static json_t *core_of(const struct ebb_state *s, uint16_t thread)
{
	if (thread == EBB_THREAD_NONE)
		return json_null();
	return json_integer(ebb_state_host(s)->threads[thread].core);
}

static json_t *vm_vcpus(const struct ebb_state *s, const struct ebb_vm *vm)
{
	json_t *vcpus = json_array();

	for (uint16_t i = 0; vm->has_sla && i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		json_array_append_new(vcpus, json_pack(
			"{s:i, s:i, s:s, s:o, s:o}", "vcpu", i, "node", v->node, "state",
			ebb_vcpu_state_name(vm, i), "core", core_of(s, v->thread), "runs_on",
			core_of(s, v->placed)));
	}
	return vcpus;
}

static json_t *vm_telemetry(const struct ebb_vm *vm, usec_t now)
{
	const struct ebb_telemetry *t = &vm->telemetry;

	if (!vm->telemetry_at)
		return json_null();
	return json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}",
			 "apps", t->num_apps, "committed", (json_int_t)t->committed, "aborted",
			 (json_int_t)t->aborted, "failed", (json_int_t)t->failed, "accesses",
			 (json_int_t)t->accesses, "p50_us", (json_int_t)t->p50_us, "p95_us",
			 (json_int_t)t->p95_us, "p99_us", (json_int_t)t->p99_us, "workers",
			 (json_int_t)t->workers, "cpus_online", (json_int_t)t->cpus_online,
			 "cpu_permille", (json_int_t)t->cpu_permille, "mem_total_bytes",
			 (json_int_t)t->mem_total_bytes, "mem_available_bytes",
			 (json_int_t)t->mem_available_bytes, "age_ms",
			 (double)(now - vm->telemetry_at) / EBB_USEC_PER_MSEC);
}

/* The first deadline of all nodes; 0: nothing is demanded. */
static json_int_t mem_deadline_ms(const struct ebb_vm *vm, usec_t now)
{
	usec_t first = EBB_TIME_NEVER;

	for (uint16_t g = 0; vm->has_sla && g < vm->sla.num_nodes; g++)
		if (vm->pools[g].num_due > 0 && vm->pools[g].due[0].at < first)
			first = vm->pools[g].due[0].at;
	return first == EBB_TIME_NEVER ? 0 : left_ms(first, now);
}

static void add_memory(json_t *o, const struct ebb_vm *vm, const struct ebb_vm_totals *t,
		       usec_t now)
{
	uint64_t kept = 0;
	const struct {
		const char *key;
		uint64_t value;
	} all[] = {
		{ "mem_floor_bytes", t->mem_floor },   { "mem_ceiling_bytes", t->mem_ceiling },
		{ "mem_held_bytes", t->mem_held },     { "mem_limit_bytes", t->mem_limit },
		{ "mem_target_bytes", t->mem_target },
		{ "mem_unconfirmed_bytes", t->mem_unconfirmed },
		{ "mem_cgroup_bytes", vm->cap.bytes }, { "disk_bytes", vm->disk_bytes },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		json_object_set_new(o, all[i].key, json_integer((json_int_t)all[i].value));
	json_object_set_new(o, "mem_deadline_ms", json_integer(mem_deadline_ms(vm, now)));
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		kept += vm->floor.keep[g];
	json_object_set_new(o, "promised_mem_mib", json_integer(vm->floor.promised_mib));
	json_object_set_new(o, "kept_mem_mib", json_integer((json_int_t)kept * EBB_BLOCK_MIB));
}

json_t *ebb_view_sla_value(const struct ebb_sla_key *key, uint64_t value)
{
	if (key->is_boolean)
		return json_boolean(value);
	return key->value_name ? json_string(key->value_name((uint32_t)value)) :
				 json_integer((json_int_t)value);
}

void ebb_view_add_sla(json_t *o, const struct ebb_sla *sla)
{
	const struct ebb_sla_key *key;

	for (size_t i = 0; (key = ebb_sla_key_at(i)); i++)
		json_object_set_new(o, key->json,
				    ebb_view_sla_value(key, ebb_sla_get(sla, key)));
	json_object_set_new(o, "io_volumes", ebb_view_sla_volumes(sla));
}

/* Of a VM without a valid SLA. */
static void add_no_sla(json_t *o)
{
	static const char *const zeros[] = {
		"reserve_percent", "max_percent", "penalty", "weight", "deadline_ms", "mem_weight",
		"mem_sla_deadline_ms", "reserve_mem_mib", "io_reserve_iops", "io_reserve_bytes",
		"io_max_iops", "io_max_bytes", "io_weight", "io_penalty",
	};

	json_object_set_new(o, "class", json_null());
	json_object_set_new(o, "io_cold", json_null());
	json_object_set_new(o, "shared", json_false());
	for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
		json_object_set_new(o, zeros[i], json_integer(0));
	json_object_set_new(o, "io_volumes", json_array());
}

json_t *ebb_view_vm(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
		    const char *link_error)
{
	struct ebb_vm_totals t = { 0 };
	char uuid[EBB_UUID_TEXT_SIZE];
	json_t *o;

	ebb_uuid_format(vm->uuid, uuid);
	if (vm->has_sla)
		ebb_vm_totals(vm, &t);
	o = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "name",
		      vm->name, "uuid", uuid, "state", vm_state(vm), "error", vm->error,
		      "floor", t.floor, "ceiling", t.ceiling, "cpus_held", t.held, "cpus_lent",
		      t.lent, "cpus_limit", t.limit, "cpus_target", t.target, "nodes",
		      vm_nodes(vm, now), "vcpus", vm_vcpus(s, vm));
	if (!o)
		return NULL;
	if (vm->has_sla)
		ebb_view_add_sla(o, &vm->sla);
	else
		add_no_sla(o);
	json_object_set_new(o, "link", json_string(vm->link_up ? "up" : "down"));
	json_object_set_new(o, "link_error", json_string(link_error));
	json_object_set_new(o, "driver", json_boolean(vm->has_driver));
	json_object_set_new(o, "can_lend", json_boolean(vm->can_lend));
	add_memory(o, vm, &t, now);
	json_object_set_new(o, "move", ebb_view_move(vm, now));
	ebb_view_add_share(o, vm);
	json_object_set_new(o, "account", account_view(vm));
	json_object_set_new(o, "volumes", ebb_view_volumes(s, vm));
	json_object_set_new(o, "telemetry", vm_telemetry(vm, now));
	return o;
}

json_t *ebb_view_explain(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now)
{
	json_t *lines = json_array(), *verdicts = json_array();
	char text[EBB_TEXT_SIZE];
	struct ebb_explain e;

	ebb_explain_vm(s, vm, now, &e);
	for (int i = 0; i < EBB_VERDICT_MAX; i++)
		if (ebb_vm_verdict(vm, now, i, text))
			json_array_append_new(verdicts,
					      json_pack("{s:s, s:s}", "verdict",
							ebb_verdict_name(i), "text", text));
	for (uint32_t i = 0; i < e.num_lines; i++)
		json_array_append_new(lines, json_string(e.lines[i]));
	return json_pack(
		"{s:s, s:o, s:o, s:s, s:o, s:i, s:I, s:o, s:o}", "name", vm->name, "verdicts",
		verdicts, "brokered", ebb_view_brokered(s, vm, now), "waits_for",
		ebb_wait_name(e.wait), "node",
		e.node == EBB_NODE_ANY ? json_null() : json_integer(e.node), "cpus", e.cpus,
		"bytes", (json_int_t)e.bytes, "next_in_ms",
		e.until == EBB_TIME_NEVER
			? json_null()
			: json_integer(e.until > now ? (e.until - now) / EBB_USEC_PER_MSEC : 0),
		"lines", lines);
}
