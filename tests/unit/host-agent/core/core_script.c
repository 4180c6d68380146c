// SPDX-License-Identifier: GPL-2.0-or-later
/* See core_script.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/sla-io.h"
#include "tests/unit/host-agent/core/core_script.h"
#include "util/heap.h"

void script_init_loading(struct script *s, uint32_t sockets, uint32_t cores, uint32_t threads,
			 bool count_threads)
{
	memset(s, 0, sizeof(*s));
	s->now = SEC(1000);
	assert_int_equal(ebb_host_emulate(sockets, cores, threads, 250, &s->host), 0);
	for (uint32_t n = 0; n < sockets; n++)
		s->host.pool_blocks[n] = SCRIPT_POOL_MIB / EBB_BLOCK_MIB;
	ebb_state_config_default(&s->cfg);
	/* Not in the way of those who ask when something is due. */
	s->cfg.charge_usec = SEC(1000000);
	s->cfg.mem_overhead_bytes = (uint64_t)SCRIPT_OVERHEAD_MIB << 20;
	s->cfg.count_threads = count_threads;
	s->cfg.alloc = (struct ebb_alloc){ .alloc = ebb_heap_alloc, .free = ebb_heap_free };
	s->policy = &ebb_policy_fair;
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	assert_non_null(s->state);
}

void script_loaded(struct script *s)
{
	const struct ebb_fact fact = { .type = EBB_FACT_LOADED };

	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
}

void script_init(struct script *s, uint32_t sockets, uint32_t cores, uint32_t threads,
		 bool count_threads)
{
	script_init_loading(s, sockets, cores, threads, count_threads);
	script_loaded(s);
}

void script_finish(struct script *s)
{
	ebb_state_destroy(s->state);
}

struct script *script_new(void **state)
{
	*state = calloc(1, sizeof(struct script));
	assert_non_null(*state);
	return *state;
}

int script_setup(void **state)
{
	script_init(script_new(state), 1, 8, 1, false);
	return 0;
}

int script_teardown(void **state)
{
	script_finish(*state);
	free(*state);
	return 0;
}

struct ebb_sla script_sla(const char *nodes)
{
	struct ebb_sla sla = {
		.class = EBB_CLASS_SPOT, .weight = 100, .deadline_ms = 300,
		.io = { .weight = 100, .penalty = 1 },
		.mem_weight = 100, .mem_deadline_ms = 300,
	};
	unsigned startup, max, mem_min, mem_max;
	int used;

	while (sscanf(nodes, "%u/%u%n", &startup, &max, &used) == 2) {
		sla.nodes[sla.num_nodes] = (struct ebb_sla_node){
			.startup = (uint16_t)startup, .reserved = (uint16_t)startup,
			.max = (uint16_t)max,
			.host_node = sla.num_nodes,
		};
		nodes += used;
		if (sscanf(nodes, "m%u-%u%n", &mem_min, &mem_max, &used) == 2) {
			sla.nodes[sla.num_nodes].mem_min = mem_min / EBB_BLOCK_MIB;
			sla.nodes[sla.num_nodes].mem_max = mem_max / EBB_BLOCK_MIB;
			nodes += used;
		}
		sla.num_nodes++;
		nodes += *nodes == ',';
	}
	return sla;
}

static void set_uuid(struct ebb_fact *fact, char vm)
{
	memset(fact->uuid, 0, sizeof(fact->uuid));
	fact->uuid[0] = (uint8_t)vm;
}

static int report(struct script *s, char vm, struct ebb_fact *fact)
{
	set_uuid(fact, vm);
	return ebb_state_report(s->state, s->now, fact);
}

int script_define(struct script *s, char vm, const struct ebb_sla *sla)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_DEFINED };
	struct ebb_vcpu_def vcpus[EBB_MAX_VCPUS];
	uint16_t n = 0;

	for (uint16_t g = 0; g < sla->num_nodes && g < EBB_MAX_GUEST_NODES; g++)
		for (uint16_t i = 0; i < sla->nodes[g].max && n < EBB_MAX_VCPUS; i++)
			vcpus[n++] = (struct ebb_vcpu_def){
				.node = g, .is_startup = i < sla->nodes[g].startup,
			};
	fact.u.vm_defined.name[0] = vm;
	fact.u.vm_defined.sla = *sla;
	fact.u.vm_defined.num_vcpus = n;
	fact.u.vm_defined.vcpus = vcpus;
	fact.u.vm_defined.volumes = s->volumes;
	for (uint16_t g = 0; g < sla->num_nodes && g < EBB_MAX_GUEST_NODES; g++) {
		const uint32_t blocks = sla->nodes[g].mem_max;

		fact.u.vm_defined.boot_bytes[g] = (uint64_t)SCRIPT_BOOT_MIB << 20;
		fact.u.vm_defined.pool_blocks[g] = blocks;
		s->pools[vm - 'a'][g].node = g;
		s->pools[vm - 'a'][g].block_bytes = EBB_BLOCK_BYTES;
		s->pools[vm - 'a'][g].size_bytes = blocks * EBB_BLOCK_BYTES;
	}
	return report(s, vm, &fact);
}

int script_cpu_times(struct script *s, char vm, const char *times)
{
	struct ebb_fact fact = { .type = EBB_FACT_CPU_TIMES };
	struct ebb_cpu_time all[EBB_MAX_VCPUS];
	unsigned vcpu, ms, runs, waited;
	int used;

	fact.u.cpu_times.as_of = s->now;
	fact.u.cpu_times.vcpus = all;
	for (; sscanf(times, "%u:%u/%u%n", &vcpu, &ms, &runs, &used) == 3; times += used) {
		waited = 0;
		if (sscanf(times + used, "+%u", &waited) == 1)
			used += (int)strcspn(times + used, " ");
		all[fact.u.cpu_times.num_vcpus++] = (struct ebb_cpu_time){
			.vcpu = (uint16_t)vcpu, .cpu_usec = MSEC(ms), .num_runs = runs,
			.wait_usec = MSEC(waited),
		};
	}
	return report(s, vm, &fact);
}

int script_found(struct script *s, char vm, uint64_t order, usec_t as_of, const char *plugged)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_RUNNING };
	struct ebb_vcpu_fact vcpus[EBB_MAX_VCPUS];
	struct ebb_fact_vm_running *r = &fact.u.vm_running;
	unsigned vcpu;
	int used;

	r->order = order;
	r->as_of = as_of;
	r->plugged = vcpus;
	while (sscanf(plugged, "%u@%n", &vcpu, &used) == 1) {
		plugged += used;
		vcpus[r->num_plugged++] = (struct ebb_vcpu_fact){
			.vcpu = (uint16_t)vcpu,
			.thread = *plugged == '-' ? EBB_THREAD_NONE : (uint16_t)atoi(plugged),
		};
		plugged += strcspn(plugged, " ");
		plugged += strspn(plugged, " ");
	}
	return report(s, vm, &fact);
}

int script_running(struct script *s, char vm, uint64_t order)
{
	const struct ebb_vm *v = script_vm(s, vm);
	char text[EBB_MAX_VCPUS * 8] = "";
	size_t n = 0;

	for (uint16_t i = 0; i < v->num_vcpus; i++)
		if (v->vcpus[i].is_startup)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%u@- ", i);
	return script_found(s, vm, order, s->now, text);
}

int script_simple(struct script *s, char vm, enum ebb_fact_type type)
{
	struct ebb_fact fact = { .type = type };

	return report(s, vm, &fact);
}

/* Those of the VM that have a size. */
static uint16_t list_pools(const struct script *s, char vm, struct ebb_pool_fact *ret)
{
	uint16_t num = 0;

	for (uint16_t g = 0; g < EBB_MAX_GUEST_NODES; g++)
		if (s->pools[vm - 'a'][g].size_bytes > 0)
			ret[num++] = s->pools[vm - 'a'][g];
	return num;
}

static uint16_t hello_flags(char letter)
{
	switch (letter) {
	case 'f':
		return VIRTIO_EBB_CPU_F_FORCED;
	case 'l':
		return VIRTIO_EBB_CPU_F_LENT;
	case 'p':
		return VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED;
	default:
		return 0;
	}
}

int script_hello(struct script *s, char vm, bool is_first, bool has_driver, uint64_t resets,
		 const char *hotplugged)
{
	const struct ebb_vm *v = script_vm(s, vm);
	struct ebb_fact fact = { .type = EBB_FACT_HELLO };
	struct ebb_hello_cpu cpus[EBB_MAX_VCPUS];
	struct ebb_pool_fact pools[EBB_MAX_GUEST_NODES];
	struct ebb_fact_hello *h = &fact.u.hello;
	unsigned vcpu;
	int used;

	h->is_first = is_first;
	h->has_driver = has_driver;
	h->can_lend = has_driver && s->can_lend;
	h->can_vom = has_driver && s->can_vom;
	h->can_leave = has_driver && s->can_leave;
	h->can_baseline = has_driver && s->can_baseline;
	h->can_account = s->cfg.writer != 0;
	h->resets = resets;
	h->num_nodes = v->sla.num_nodes;
	h->max_cpus = v->num_vcpus;
	h->cpus = cpus;
	h->pools = pools;
	h->num_pools = list_pools(s, vm, pools);
	for (uint16_t i = 0; i < v->num_vcpus; i++)
		if (v->vcpus[i].is_startup)
			cpus[h->num_cpus++] = (struct ebb_hello_cpu){
				.vcpu = i, .flags = VIRTIO_EBB_CPU_F_STARTUP,
			};
	while (sscanf(hotplugged, "%u%n", &vcpu, &used) == 1) {
		hotplugged += used;
		cpus[h->num_cpus++] = (struct ebb_hello_cpu){
			.vcpu = (uint16_t)vcpu,
			.flags = hello_flags(*hotplugged),
		};
		hotplugged += strspn(hotplugged, "flp ");
	}
	return report(s, vm, &fact);
}

int script_baseline(struct script *s, char vm, uint32_t mib, uint64_t baseline, uint64_t actual)
{
	const struct ebb_fact fact = {
		.type = EBB_FACT_TELEMETRY,
		.u.telemetry = {
			.baseline_mib = mib, .baseline_ios = baseline, .actual_ios = actual,
			.accesses = 100 * (baseline + actual),
		},
	};
	struct ebb_fact copy = fact;

	return report(s, vm, &copy);
}

void script_pool(struct script *s, char vm, uint16_t node, uint32_t requested_mib,
		 uint32_t held_mib, uint32_t unconfirmed_mib)
{
	struct ebb_pool_fact *p = &s->pools[vm - 'a'][node];

	p->requested_bytes = (uint64_t)requested_mib << 20;
	p->held_bytes = (uint64_t)held_mib << 20;
	p->unconfirmed_bytes = (uint64_t)unconfirmed_mib << 20;
}

int script_mem(struct script *s, char vm)
{
	struct ebb_pool_fact pools[EBB_MAX_GUEST_NODES];
	struct ebb_fact fact = {
		.type = EBB_FACT_MEM,
		.u.mem = { .num_pools = list_pools(s, vm, pools), .pools = pools },
	};

	return report(s, vm, &fact);
}

void script_holds(struct script *s, char vm, uint32_t held_mib)
{
	const uint64_t requested = s->pools[vm - 'a'][0].requested_bytes;

	script_pool(s, vm, 0, (uint32_t)(requested >> 20), held_mib, 0);
	assert_int_equal(script_mem(s, vm), 0);
}

const struct ebb_vm_pool *script_vm_pool(const struct script *s, char vm)
{
	return &script_vm(s, vm)->pools[0];
}

int script_vom(struct script *s, char vm, uint32_t seq, const char *buckets)
{
	struct ebb_vom_bucket all[EBB_MAX_VOM_BUCKETS + 1];
	struct ebb_fact fact = { .type = EBB_FACT_VOM, .u.vom = { .seq = seq, .buckets = all } };
	unsigned long long value;
	unsigned node, mib;
	int used;

	for (; sscanf(buckets, "%u:%llu/%u%n", &node, &value, &mib, &used) == 3; buckets += used)
		all[fact.u.vom.num_buckets++] = (struct ebb_vom_bucket){
			.value = value, .kib = mib << 10, .node = (uint16_t)node,
		};
	return report(s, vm, &fact);
}

void script_took(struct script *s, char vm)
{
	bool is_changed = false;

	for (size_t i = 0; i < s->num_last; i++) {
		const struct ebb_action *a = &s->last[i];

		if (a->type != EBB_ACTION_LIMITS || a->uuid[0] != (uint8_t)vm)
			continue;
		for (uint16_t g = 0; g < a->u.limits.num_nodes; g++) {
			struct ebb_pool_fact *p = &s->pools[vm - 'a'][g];

			is_changed = is_changed ||
				     p->requested_bytes != a->u.limits.nodes[g].mem_limit_bytes;
			p->requested_bytes = a->u.limits.nodes[g].mem_limit_bytes;
		}
	}
	if (is_changed)
		assert_int_equal(script_mem(s, vm), 0);
}

int script_add(struct script *s, char vm, uint64_t tag, uint16_t count, uint16_t node,
	       bool allow_ht)
{
	struct ebb_fact fact = {
		.type = EBB_FACT_REQUEST,
		.u.request = { .tag = tag, .type = VIRTIO_EBB_REQ_CPU_ADD, .count = count,
			       .node = node, .allow_ht = allow_ht },
	};

	return report(s, vm, &fact);
}

int script_remove(struct script *s, char vm, uint64_t tag, uint16_t vcpu)
{
	struct ebb_fact fact = {
		.type = EBB_FACT_REQUEST,
		.u.request = { .tag = tag, .type = VIRTIO_EBB_REQ_CPU_REMOVE, .vcpu = vcpu },
	};

	return report(s, vm, &fact);
}

int script_lend(struct script *s, char vm, uint64_t tag, uint16_t vcpu, bool park)
{
	struct ebb_fact fact = {
		.type = EBB_FACT_REQUEST,
		.u.request = { .tag = tag, .type = VIRTIO_EBB_REQ_CPU_LEND, .vcpu = vcpu,
			       .park = park },
	};

	return report(s, vm, &fact);
}

/* ---- actions as text ----------------------------------------------------- */

#define TEXT	256

static void put(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(char *text, const char *format, ...)
{
	const size_t n = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + n, TEXT - n, format, args);
	va_end(args);
}

static void put_response(char *text, char vm, const struct ebb_action_response *r)
{
	static const char *const status[] = { "ack", "nack", "busy", "error" };

	put(text, "response %c %llu %s %s [", vm, (unsigned long long)r->tag, status[r->status],
	    ebb_reason_name(r->reason));
	for (uint16_t i = 0; i < r->count; i++)
		put(text, "%s%u%s", i ? "," : "", r->cpus[i].vcpu,
		    r->cpus[i].flags & VIRTIO_EBB_CPU_F_HT ? "ht" : "");
	put(text, "]");
}

static unsigned long long mib(uint64_t bytes)
{
	assert_int_equal(bytes % EBB_BLOCK_BYTES, 0);
	return bytes >> 20;
}

static void put_volume(char *text, char vm, const struct ebb_action_volume *v)
{
	put(text, "volume %c %s %u/%llu", vm ? vm : '-', v->name, v->io.reserve_iops,
	    (unsigned long long)v->io.reserve_bytes);
	if (v->io.max_iops || v->io.max_bytes)
		put(text, " max %u/%llu", v->io.max_iops, (unsigned long long)v->io.max_bytes);
	if (v->io.weight != EBB_WEIGHT_DEFAULT)
		put(text, " weight %u", v->io.weight);
	if (v->io.penalty != EBB_PENALTY_DEFAULT)
		put(text, " penalty %u", v->io.penalty);
}

static void render(const struct ebb_action *a, char *text)
{
	const char vm = (char)a->uuid[0];

	text[0] = '\0';
	switch (a->type) {
	case EBB_ACTION_WELCOME:
		put(text, "welcome %c %s", vm,
		    a->u.welcome.status == VIRTIO_EBB_ACK ? "ack" :
							    ebb_reason_name(a->u.welcome.reason));
		break;
	case EBB_ACTION_RESPONSE:
		put_response(text, vm, &a->u.response);
		break;
	case EBB_ACTION_LIMITS:
		put(text, "limits %c", vm);
		for (uint16_t g = 0; g < a->u.limits.num_nodes; g++) {
			put(text, " %u/%u", a->u.limits.nodes[g].held, a->u.limits.nodes[g].limit);
			if (a->u.limits.nodes[g].deadline_ms)
				put(text, "!%u", a->u.limits.nodes[g].deadline_ms);
			if (a->u.limits.nodes[g].mem_held_bytes ||
			    a->u.limits.nodes[g].mem_limit_bytes)
				put(text, " m%llu/%llu", mib(a->u.limits.nodes[g].mem_held_bytes),
				    mib(a->u.limits.nodes[g].mem_limit_bytes));
			if (a->u.limits.nodes[g].mem_deadline_ms)
				put(text, "!%u", a->u.limits.nodes[g].mem_deadline_ms);
			if (a->u.limits.nodes[g].mem_cutoff)
				put(text, "<%llu",
				    (unsigned long long)a->u.limits.nodes[g].mem_cutoff);
			if (a->u.limits.nodes[g].tier)
				put(text, " t%u", a->u.limits.nodes[g].tier);
			if (a->u.limits.nodes[g].mem_promise_mib)
				put(text, " p%u", a->u.limits.nodes[g].mem_promise_mib);
		}
		if (a->u.limits.vom_seq)
			put(text, " v%u", a->u.limits.vom_seq);
		break;
	case EBB_ACTION_CPU_FLAGS:
		put(text, "flags %c %u %s", vm, a->u.cpu_flags.vcpu,
		    a->u.cpu_flags.flags == VIRTIO_EBB_CPU_F_LENT ? "lent" :
		    a->u.cpu_flags.flags ? "forced" : "clear");
		break;
	case EBB_ACTION_ACCOUNT:
		put(text, "account %c", vm);
		break;
	case EBB_ACTION_LINK_CLOSE:
		put(text, "close %c", vm);
		break;
	case EBB_ACTION_REVOKE:
	case EBB_ACTION_MEM_MIRROR:
		put(text, "%s %c %u %llu", a->type == EBB_ACTION_MEM_MIRROR ? "mirror" :
		    a->u.pool.is_leave ? "leave" : "revoke", vm, a->u.pool.node,
		    mib(a->u.pool.bytes));
		break;
	case EBB_ACTION_MEM_CAP:
		put(text, "cap %c %llu", vm, mib(a->u.cap_bytes));
		break;
	case EBB_ACTION_THROTTLE:
		put(text, "throttle %c %u", vm, a->u.permille);
		break;
	case EBB_ACTION_VOLUME:
		put_volume(text, vm, &a->u.volume);
		break;
	case EBB_ACTION_SHARES:
		put(text, "shares %c %u", vm, a->u.shares);
		break;
	case EBB_ACTION_RESERVE:
		put(text, "reserve %c %u @%u %u/%u/%u", vm, a->u.reserve.vcpu, a->u.reserve.thread,
		    a->u.reserve.keep, a->u.reserve.rest, a->u.reserve.max);
		break;
	case EBB_ACTION_PLACE:
	case EBB_ACTION_HOME:
		put(text, "%s %c %u @%u", ebb_action_name(a->type), vm, a->u.vcpu.vcpu,
		    a->u.vcpu.thread);
		break;
	default:
		put(text, "%s %c %u", ebb_action_name(a->type), vm, a->u.vcpu.vcpu);
		break;
	}
}

static void take(struct script *s)
{
	struct ebb_actions actions = { .items = s->last, .capacity = 64 };
	int rounds = 0;

	s->num_last = 0;
	do {
		actions.items = s->last + s->num_last;
		actions.capacity = 64 - s->num_last;
		ebb_state_next(s->state, s->now, &actions);
		s->num_last += actions.count;
		assert_true(++rounds < 50);
	} while (actions.wake_at <= s->now);
	s->wake_at = actions.wake_at;
	for (size_t i = 0; i < s->num_last; i++)
		if (s->last[i].id) {
			assert_true(s->num_open < 64);
			s->open[s->num_open++] = s->last[i];
		}
}

void script_expect_(struct script *s, const char *file, int line, ...)
{
	const char *want;
	char got[TEXT];
	size_t i = 0;
	va_list args;

	take(s);
	va_start(args, line);
	while ((want = va_arg(args, const char *))) {
		got[0] = '\0';
		if (i < s->num_last)
			render(&s->last[i], got);
		if (strcmp(got, want) != 0) {
			for (size_t k = 0; k < s->num_last; k++) {
				render(&s->last[k], got);
				print_error("  action %zu: %s\n", k, got);
			}
			print_error("%s:%d: action %zu should be: %s\n", file, line, i, want);
			fail();
		}
		i++;
	}
	va_end(args);
	if (i < s->num_last) {
		render(&s->last[i], got);
		print_error("%s:%d: action %zu is not expected: %s\n", file, line, i, got);
		fail();
	}
}

static void end_with(struct script *s, size_t i, int err, const char *words)
{
	struct ebb_fact fact = {
		.type = EBB_FACT_ACTION_DONE,
		.u.action_done = { .id = s->open[i].id, .type = s->open[i].type, .err = err,
				   .text = words },
	};

	s->open[i] = s->open[--s->num_open];
	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
}

static void end(struct script *s, size_t i, int err)
{
	end_with(s, i, err, NULL);
}

void script_volumes_up(struct script *s)
{
	const struct ebb_fact fact = { .type = EBB_FACT_VOLUMES_UP };

	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
}

void script_volumes_up_with(struct script *s, const char *owned)
{
	struct ebb_fact fact = { .type = EBB_FACT_VOLUMES_UP };
	char names[1][EBB_VOLUME_NAME_SIZE];

	ebb_volume_name_copy(names[0], owned);
	fact.u.volumes_up.num = 1;
	fact.u.volumes_up.owned = names;
	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
}

void script_volumes_lost(struct script *s, const char *text)
{
	struct ebb_fact fact = { .type = EBB_FACT_VOLUMES_LOST };

	strcpy(fact.u.volumes_lost.text, text);
	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
}

void script_volume_meter(struct script *s, const char *name, const char *taker,
			 struct ebb_volume_counters count)
{
	struct ebb_volume_reading readings[2] = {
		{ .name = "of-nobody", .count = count }, { .count = count },
	};
	const struct ebb_fact fact = {
		.type = EBB_FACT_VOLUMES_METERS,
		.u.volumes_meters = { .as_of = s->now, .interval_usec = SEC(1), .num = 2,
				      .volumes = readings },
	};

	strcpy(readings[1].name, name);
	strcpy(readings[1].taker, taker);
	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
}

void script_volume_done(struct script *s, const char *name, int err, const char *text)
{
	for (size_t i = 0; i < s->num_open; i++)
		if (s->open[i].type == EBB_ACTION_VOLUME &&
		    strcmp(s->open[i].u.volume.name, name) == 0) {
			end_with(s, i, err, text);
			return;
		}
	fail_msg("nothing is under way for volume %s", name);
}

void script_done(struct script *s, enum ebb_action_type type, char vm, uint16_t vcpu, int err)
{
	for (size_t i = 0; i < s->num_open; i++)
		if (s->open[i].type == type && s->open[i].uuid[0] == (uint8_t)vm &&
		    (type == EBB_ACTION_MEM_CAP || type == EBB_ACTION_THROTTLE ||
		     type == EBB_ACTION_SHARES ||
		     (type == EBB_ACTION_MEM_MIRROR ? s->open[i].u.pool.node :
		      type == EBB_ACTION_RESERVE ? s->open[i].u.reserve.vcpu :
						   s->open[i].u.vcpu.vcpu) == vcpu)) {
			end(s, i, err);
			return;
		}
	fail_msg("no %s of %c %u is under way", ebb_action_name(type), vm, vcpu);
}

void script_settle(struct script *s)
{
	int rounds = 0;
	bool is_busy;

	do {
		s->now += 100;
		take(s);
		is_busy = s->num_last > 0 || s->num_open > 0;
		while (s->num_open > 0)
			end(s, 0, 0);
		for (char vm = 'a'; vm <= 'z'; vm++)
			script_took(s, vm);
		assert_true(++rounds < 100);
	} while (is_busy);
}

void script_boot(struct script *s, char vm, uint64_t order, const char *nodes)
{
	const struct ebb_sla sla = script_sla(nodes);

	assert_int_equal(script_define(s, vm, &sla), 0);
	assert_int_equal(script_running(s, vm, order), 0);
	assert_int_equal(script_hello(s, vm, true, true, 1, ""), 0);
	script_settle(s);
}

void script_grow(struct script *s, char vm, uint16_t count, uint16_t node)
{
	assert_int_equal(script_add(s, vm, s->now, count, node, false), 0);
	script_settle(s);
}

const struct ebb_vm *script_vm(const struct script *s, char vm)
{
	const uint8_t uuid[16] = { (uint8_t)vm };

	return ebb_state_vm(s->state, uuid);
}

bool script_find_record(struct script *s, char vm, enum ebb_event event)
{
	while (ebb_state_record_pop(s->state, &s->record))
		if (s->record.event == event && s->record.uuid[0] == (uint8_t)vm)
			return true;
	return false;
}
