// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * 1000 VMs on a host with hardly more cores: what core/arbiter.h promises holds all the same, and
 * what happens to one VM sets off no more than it must.  (How long decisions take is measured by
 * `make bench-agent`.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/core.h"

#define NUM_VMS		1000u
#define NUM_NODES	16u
#define NODE_CORES	64u
#define POOL_BLOCKS	4096u
#define NODE_BLOCKS	(32u * POOL_BLOCKS)
#define LEAVER		500u
/* Each step ends what the last began: plug, place, answer, and what that brings about. */
#define MAX_STEPS	20u
/* The first bytes of a VM, its UUID among them, which may always be read: VMs are found by it. */
#define OPEN_BYTES	64u

struct fixture {
	struct ebb_state *state;
	usec_t now;
	size_t num_actions, num_steps, num_granted; /* of the last carry_on() */
};

/* A page that holds the size of the mapping and ends in OPEN_BYTES, and behind it all the rest. */
static void *page_alloc(void *ctx, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t size = page + (bytes + page - 1) / page * page;
	char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)ctx;
	if (base == MAP_FAILED)
		return NULL;
	*(size_t *)base = size;
	return base + page - OPEN_BYTES;
}

static char *base_of(const void *ptr)
{
	return (char *)ptr + OPEN_BYTES - sysconf(_SC_PAGESIZE);
}

static void page_free(void *ctx, void *ptr)
{
	(void)ctx;
	if (ptr)
		munmap(base_of(ptr), *(size_t *)base_of(ptr));
}

static void protect(const void *ptr, int how)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *base = base_of(ptr);

	assert_int_equal(mprotect(base + page, *(size_t *)base - page, how), 0);
}

static void set_uuid(uint8_t *uuid, uint32_t vm)
{
	memset(uuid, 0, 16);
	memcpy(uuid, &vm, sizeof(vm));
}

static void report(struct fixture *f, const struct ebb_fact *fact)
{
	assert_int_equal(ebb_state_report(f->state, f->now, fact), 0);
}

/* One startup CPU, three more at most, spread over two guest nodes, and a pool on one. */
static void boot(struct fixture *f, uint32_t vm)
{
	static const struct ebb_vcpu_def vcpus[4] = { { 0, true }, { 0, false }, { 1, false },
						      { 1, false } };
	static const struct ebb_vcpu_fact plugged = { .vcpu = 0, .thread = EBB_THREAD_NONE };
	static const struct ebb_hello_cpu startup = { .flags = VIRTIO_EBB_CPU_F_STARTUP };
	static const struct ebb_pool_fact pool = {
		.block_bytes = EBB_BLOCK_BYTES, .size_bytes = POOL_BLOCKS * EBB_BLOCK_BYTES,
	};
	struct ebb_fact fact = { .type = EBB_FACT_VM_DEFINED };

	set_uuid(fact.uuid, vm);
	fact.u.vm_defined.sla = (struct ebb_sla){
		.weight = 100 + vm % 7, .deadline_ms = 2000, .num_nodes = 2,
		.io = { .weight = 100, .penalty = 1 },
		.mem_weight = 100 + vm % 5, .mem_deadline_ms = 2000,
		.nodes = {
			{ .startup = 1, .reserved = 1, .max = 2,
			  .host_node = (uint16_t)(vm % NUM_NODES),
			  .mem_min = 8, .mem_max = POOL_BLOCKS },
			{ .max = 2, .host_node = (uint16_t)((vm + 1) % NUM_NODES) },
		},
	};
	fact.u.vm_defined.pool_blocks[0] = POOL_BLOCKS;
	fact.u.vm_defined.num_vcpus = 4;
	fact.u.vm_defined.vcpus = vcpus;
	report(f, &fact);
	fact.type = EBB_FACT_VM_RUNNING;
	fact.u.vm_running = (struct ebb_fact_vm_running){
		.order = vm + 1, .as_of = f->now, .num_plugged = 1, .plugged = &plugged,
	};
	report(f, &fact);
	fact.type = EBB_FACT_HELLO;
	fact.u.hello = (struct ebb_fact_hello){
		.is_first = true, .has_driver = true, .num_nodes = 2, .max_cpus = 4,
		.num_cpus = 1, .cpus = &startup, .num_pools = 1, .pools = &pool,
	};
	report(f, &fact);
}

/* The device takes over its limit, and the guest plugs all of it. */
static void take_over(struct fixture *f, const struct ebb_action *a)
{
	const uint64_t bytes = a->u.limits.nodes[0].mem_limit_bytes;
	const struct ebb_pool_fact pool = {
		.block_bytes = EBB_BLOCK_BYTES, .size_bytes = POOL_BLOCKS * EBB_BLOCK_BYTES,
		.requested_bytes = bytes, .held_bytes = bytes,
	};
	struct ebb_fact fact = {
		.type = EBB_FACT_MEM, .u.mem = { .num_pools = 1, .pools = &pool },
	};

	memcpy(fact.uuid, a->uuid, sizeof(fact.uuid));
	report(f, &fact);
}

/* The action ends well.  Returns true if it granted a request. */
static bool end_action(struct fixture *f, const struct ebb_action *a)
{
	const struct ebb_fact done = {
		.type = EBB_FACT_ACTION_DONE,
		.u.action_done = { .id = a->id, .type = a->type },
	};

	if (a->id)
		report(f, &done);
	return a->type == EBB_ACTION_RESPONSE && a->u.response.status == VIRTIO_EBB_ACK;
}

/* All actions at once, each ended well, until there is nothing more to do at this moment. */
static void carry_on(struct fixture *f)
{
	static struct ebb_action items[8192];
	struct ebb_actions actions = { .items = items, .capacity = 8192 };

	f->num_actions = f->num_steps = f->num_granted = 0;
	do {
		ebb_state_next(f->state, f->now, &actions);
		f->num_steps++;
		f->num_actions += actions.count;
		assert_true(f->num_steps <= MAX_STEPS);
		for (size_t i = 0; i < actions.count; i++) {
			f->num_granted += end_action(f, &items[i]);
			if (items[i].type == EBB_ACTION_LIMITS)
				take_over(f, &items[i]);
		}
	} while (actions.count > 0 || actions.wake_at <= f->now);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* I1, I3, I4 and M1, M2, M4 of core/arbiter.h, counted anew. */
static void check_promises(const struct fixture *f)
{
	uint32_t cpus[NUM_NODES] = { 0 }, blocks[NUM_NODES] = { 0 };

	assert_int_equal(ebb_state_num_vms(f->state), NUM_VMS);
	for (uint32_t i = 0; i < NUM_VMS; i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(f->state, i);

		assert_true(vm->is_running && vm->is_admitted);
		for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
			const struct ebb_sla_node *sla = &vm->sla.nodes[g];
			const struct ebb_vm_node *n = &vm->nodes[g];
			const struct ebb_vm_pool *p = &vm->pools[g];

			assert_in_range(n->limit, sla->startup, sla->max);
			assert_in_range(n->target, sla->startup, sla->max);
			assert_in_range(p->limit, sla->mem_min, sla->mem_max);
			assert_in_range(p->target, sla->mem_min, sla->mem_max);
			cpus[sla->host_node] += larger(n->used, n->limit);
			blocks[sla->host_node] += larger(larger(p->held, p->requested),
							 larger(p->promised, p->limit));
		}
	}
	for (uint32_t n = 0; n < NUM_NODES; n++) {
		assert_true(cpus[n] <= NODE_CORES);
		assert_true(blocks[n] <= NODE_BLOCKS);
	}
}

/* I2: whoever owns a thread is the only one, is known to, and is where its SLA says. */
static void check_owners(const struct fixture *f)
{
	static bool is_owned[EBB_MAX_THREADS];
	const struct ebb_host *host = ebb_state_host(f->state);

	memset(is_owned, 0, sizeof(is_owned));
	for (uint32_t i = 0; i < NUM_VMS; i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(f->state, i);

		for (uint16_t k = 0; k < vm->num_vcpus; k++) {
			const struct ebb_vcpu *v = &vm->vcpus[k];
			uint16_t vcpu = EBB_MAX_VCPUS;

			assert_int_equal(v->is_startup && v->thread == EBB_THREAD_NONE,
					 v->is_startup && !vm->is_running);
			if (v->thread == EBB_THREAD_NONE)
				continue;
			assert_false(is_owned[v->thread]);
			is_owned[v->thread] = true;
			assert_ptr_equal(ebb_state_thread_owner(f->state, v->thread, &vcpu), vm);
			assert_int_equal(vcpu, k);
			assert_int_equal(host->threads[v->thread].node,
					 vm->sla.nodes[v->node].host_node);
		}
	}
}

static void check(const struct fixture *f)
{
	check_promises(f);
	check_owners(f);
}

static void set_up_state(struct fixture *f)
{
	static struct ebb_host host;
	struct ebb_state_config cfg;

	assert_int_equal(ebb_host_emulate(NUM_NODES, NODE_CORES, 1, 250, &host), 0);
	for (uint32_t n = 0; n < NUM_NODES; n++)
		host.pool_blocks[n] = NODE_BLOCKS;
	ebb_state_config_default(&cfg);
	cfg.alloc = (struct ebb_alloc){ .alloc = page_alloc, .free = page_free };
	f->state = ebb_state_create(&cfg, &host, &ebb_policy_fair);
	assert_non_null(f->state);
	f->now = EBB_USEC_PER_SEC;
	report(f, &(struct ebb_fact){ .type = EBB_FACT_LOADED });
}

/* One VM leaves and comes back: the policy is asked about all of them. */
static void leave_and_join(struct fixture *f)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_STOPPED };

	set_uuid(fact.uuid, LEAVER);
	report(f, &fact);
	carry_on(f);
	check_owners(f);
	boot(f, LEAVER);
	carry_on(f);
	check(f);
	/* Some actions for every VM with a share in its two nodes or the two beside them. */
	assert_true(f->num_actions <= 5 * 4 * NUM_VMS / NUM_NODES);
}

/* The next VM from there on that is offered a CPU. */
static const struct ebb_vm *offered_vm(const struct fixture *f, uint32_t from, uint16_t *ret_node)
{
	for (uint32_t i = 0; i < NUM_VMS; i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(f->state, (from + i) % NUM_VMS);

		for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
			if (vm->nodes[g].limit > vm->nodes[g].used) {
				*ret_node = g;
				return vm;
			}
	}
	fail_msg("nobody is offered anything");
	return NULL;
}

/* One request, from the fact to the last action: it concerns nobody else. */
static void ask(struct fixture *f, uint64_t tag)
{
	struct ebb_fact fact = {
		.type = EBB_FACT_REQUEST,
		.u.request = { .tag = tag, .type = VIRTIO_EBB_REQ_CPU_ADD, .count = 1 },
	};
	const struct ebb_vm *vm = offered_vm(f, (uint32_t)tag * 100, &fact.u.request.node);
	const uint16_t node = fact.u.request.node;
	const uint16_t held = vm->nodes[node].held;

	memcpy(fact.uuid, vm->uuid, sizeof(fact.uuid));
	report(f, &fact);
	carry_on(f);
	assert_int_equal(f->num_granted, 1);
	assert_int_equal(ebb_state_vm(f->state, fact.uuid)->nodes[node].held, held + 1);
	/* PLUG, PLACE, RESPONSE, and LIMITS that say what it holds now. */
	assert_true(f->num_actions <= 4);
	check(f);
}

static bool is_on(const struct ebb_vm *vm, uint32_t node)
{
	uint32_t i;

	memcpy(&i, vm->uuid, sizeof(i));
	return i % NUM_NODES == node || (i + 1) % NUM_NODES == node;
}

/* From now on whoever looks at a VM ends this program, but for one, and those on two nodes. */
static void hide(const struct fixture *f, const struct ebb_vm *one, int node, int other)
{
	for (uint32_t i = 0; i < NUM_VMS; i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(f->state, i);
		const bool is_open = vm == one || (node >= 0 && is_on(vm, (uint32_t)node)) ||
				     (other >= 0 && is_on(vm, (uint32_t)other));

		protect(vm, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
	}
}

/*
 * A request that is granted is one pass over the VMs that have a guest node on the same nodes of
 * the host.  Neither taking note of it nor what follows looks at anybody else.
 */
static void ask_unseen(struct fixture *f, uint64_t tag)
{
	static struct ebb_action items[8];
	struct ebb_actions actions = { .items = items, .capacity = 8 };
	struct ebb_fact fact = {
		.type = EBB_FACT_REQUEST,
		.u.request = { .tag = tag, .type = VIRTIO_EBB_REQ_CPU_ADD, .count = 1 },
	};
	const struct ebb_vm *vm = offered_vm(f, (uint32_t)tag * 100, &fact.u.request.node);
	bool is_granted = false;

	memcpy(fact.uuid, vm->uuid, sizeof(fact.uuid));
	hide(f, vm, -1, -1);
	report(f, &fact);
	hide(f, vm, vm->sla.nodes[0].host_node, vm->sla.nodes[1].host_node);
	ebb_state_next(f->state, f->now, &actions);
	hide(f, vm, -1, -1);
	for (uint32_t step = 0; !is_granted; step++) {
		assert_true(step < MAX_STEPS);
		for (size_t i = 0; i < actions.count; i++)
			is_granted |= end_action(f, &items[i]);
		ebb_state_next(f->state, f->now, &actions);
	}
	for (uint32_t i = 0; i < NUM_VMS; i++)
		protect(ebb_state_vm_at(f->state, i), PROT_READ | PROT_WRITE);
}

static void test_thousand(void **state)
{
	struct fixture f = { 0 };

	(void)state;
	set_up_state(&f);
	for (uint32_t vm = 0; vm < NUM_VMS; vm++)
		boot(&f, vm);
	carry_on(&f);
	check(&f);
	for (uint64_t round = 1; round <= 8; round++) {
		f.now += EBB_USEC_PER_SEC;
		leave_and_join(&f);
		ask(&f, round);
		ask_unseen(&f, round + 100);
		check(&f);
	}
	ebb_state_destroy(f.state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thousand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
