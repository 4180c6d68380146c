/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From looks at a domain to facts, in the right order and only when there is news. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backend/real/watch.h"
#include "model/sla.h"
#include "tests/unit/host-agent/core/core_script.h"

struct fixture {
	struct ebb_watch watch;
	struct ebb_look look;
	struct ebb_sink sink;
	char facts[256];		/* names of the facts of the last look */
	uint32_t weight;		/* that the last definition told */
	bool is_incoming, is_outgoing;	/* as the last running told */
	int answer;			/* of who is told */
};

static int take_fact(void *ctx, usec_t now, const struct ebb_fact *fact)
{
	static const char *const names[EBB_FACT_MAX] = {
		[EBB_FACT_VM_DEFINED] = "defined", [EBB_FACT_VM_INVALID] = "invalid",
		[EBB_FACT_VM_REMOVED] = "removed", [EBB_FACT_VM_RUNNING] = "running",
		[EBB_FACT_VM_STOPPED] = "stopped",
	};
	struct fixture *f = ctx;
	size_t len = strlen(f->facts);

	assert_int_equal(now, 77);
	assert_int_equal(fact->uuid[3], 9);
	snprintf(f->facts + len, sizeof(f->facts) - len, "%s%s", len ? " " : "",
		 names[fact->type] ? names[fact->type] : "?");
	if (fact->type == EBB_FACT_VM_DEFINED) {
		assert_string_equal(fact->u.vm_defined.name, "web");
		assert_int_equal(fact->u.vm_defined.num_vcpus, 4);
		f->weight = fact->u.vm_defined.sla.weight;
	} else if (fact->type == EBB_FACT_VM_RUNNING) {
		assert_int_equal(fact->u.vm_running.order, f->look.domain.order);
		assert_int_equal(fact->u.vm_running.as_of, 50);
		assert_int_equal(fact->u.vm_running.num_plugged, 1);
		f->is_incoming = fact->u.vm_running.is_incoming;
		f->is_outgoing = fact->u.vm_running.is_outgoing;
	} else if (fact->type == EBB_FACT_VM_INVALID) {
		assert_string_equal(fact->u.vm_invalid.text, f->look.domain.error.text);
	}
	return f->answer;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct ebb_virt_domain *d = &f->look.domain;

	f->watch.uuid[3] = 9;
	f->sink = (struct ebb_sink){ f, take_fact };
	f->look.as_of = 50;
	f->look.is_ready = true;
	f->look.num_plugged = 1;
	d->exists = true;
	d->sla = 1;
	strcpy(d->name, "web");
	d->metadata.num_vcpus = 4;
	ebb_sla_default(&d->metadata.sla);
	d->metadata.sla.num_nodes = 1;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void expect(struct fixture *f, const char *facts, enum ebb_watch_result result)
{
	f->facts[0] = '\0';
	assert_int_equal(ebb_watch_apply(&f->watch, &f->look, 77, &f->sink), result);
	assert_string_equal(f->facts, facts);
}

static void start(struct fixture *f, uint64_t order)
{
	f->look.domain.is_running = true;
	f->look.domain.order = order;
}

static void test_life(void **state)
{
	struct fixture *f = *state;

	expect(f, "defined", EBB_WATCH_KEEP);
	expect(f, "", EBB_WATCH_KEEP);
	start(f, 5);
	f->look.is_ready = false;
	expect(f, "", EBB_WATCH_AGAIN);
	f->look.is_ready = true;
	expect(f, "running", EBB_WATCH_KEEP);
	/* Every look at a running VM is news for the core. */
	expect(f, "running", EBB_WATCH_KEEP);
	/* A vCPU without thread later on: it has ended, and the look says so. */
	f->look.is_ready = false;
	expect(f, "running", EBB_WATCH_KEEP);
	f->look.domain.is_running = false;
	expect(f, "stopped", EBB_WATCH_KEEP);
	f->look.domain.exists = false;
	expect(f, "removed", EBB_WATCH_FORGET);
}

/* Stopped and started between two looks. */
static void test_restarted(void **state)
{
	struct fixture *f = *state;

	start(f, 5);
	expect(f, "defined running", EBB_WATCH_KEEP);
	start(f, 6);
	f->look.domain.metadata.sla.weight = 200;
	expect(f, "stopped defined running", EBB_WATCH_KEEP);
}

/* Not told while libvirt sets it up: only after that it says that the VM comes from elsewhere. */
static void test_incoming(void **state)
{
	struct fixture *f = *state;

	start(f, 5);
	f->look.domain.is_starting = true;
	expect(f, "defined", EBB_WATCH_AGAIN);
	f->look.domain.is_starting = false;
	f->look.domain.is_moving = true;
	expect(f, "running", EBB_WATCH_KEEP);
	assert_true(f->is_incoming);
	assert_false(f->is_outgoing);
	f->look.domain.is_moving = false;
	expect(f, "running", EBB_WATCH_KEEP);
	assert_false(f->is_incoming);
}

/* It leaves for another host, of which an agent that starts meanwhile must not think it comes. */
static void test_outgoing(void **state)
{
	struct fixture *f = *state;

	start(f, 5);
	f->look.domain.is_moving = f->look.domain.is_leaving = true;
	expect(f, "defined running", EBB_WATCH_KEEP);
	assert_true(f->is_outgoing);
	assert_false(f->is_incoming);
	f->look.domain.is_moving = f->look.domain.is_leaving = false;
	expect(f, "running", EBB_WATCH_KEEP);
	assert_false(f->is_outgoing);
}

static void test_changed(void **state)
{
	struct fixture *f = *state;

	expect(f, "defined", EBB_WATCH_KEEP);
	f->look.domain.metadata.sla.weight = 300;
	expect(f, "defined", EBB_WATCH_KEEP);
	f->look.domain.metadata.vcpus[2].node = 1;
	expect(f, "defined", EBB_WATCH_KEEP);
	f->look.domain.metadata.sla.nodes[0].mem_max = 64;
	f->look.domain.metadata.pool_blocks[0] = 64;
	expect(f, "defined", EBB_WATCH_KEEP);
	f->look.domain.metadata.boot_bytes[0] = 1 << 30;
	expect(f, "defined", EBB_WATCH_KEEP);
	/* What is plugged is no part of the definition. */
	f->look.domain.metadata.is_enabled[2] = true;
	f->look.domain.metadata.mem_blocks[0] = 5;
	expect(f, "", EBB_WATCH_KEEP);
}

/* The operator has spoken, and a look finds what was there before it was written down. */
static void test_sla_set(void **state)
{
	struct fixture *f = *state;
	struct ebb_metadata *m = &f->look.domain.metadata;
	struct ebb_sla set = m->sla;

	expect(f, "defined", EBB_WATCH_KEEP);
	set.weight = 500;
	ebb_watch_sla_set(&f->watch, &set);
	f->look.is_sla_stale = true;
	m->sla.weight = 300;
	expect(f, "", EBB_WATCH_KEEP);
	/* Other news come with what is in force. */
	m->vcpus[2].node = 1;
	expect(f, "defined", EBB_WATCH_KEEP);
	assert_int_equal(f->weight, 500);
	/* Written by now; the core hears once more what it knows. */
	f->look.is_sla_stale = false;
	m->sla.weight = 500;
	expect(f, "defined", EBB_WATCH_KEEP);
	assert_int_equal(f->weight, 500);
	/* It could not be written: it stays in force until somebody changes the metadata. */
	set.weight = 700;
	ebb_watch_sla_set(&f->watch, &set);
	expect(f, "", EBB_WATCH_KEEP);
	m->vcpus[2].node = 0;
	expect(f, "defined", EBB_WATCH_KEEP);
	assert_int_equal(f->weight, 700);
	m->sla.weight = 100;
	expect(f, "defined", EBB_WATCH_KEEP);
	assert_int_equal(f->weight, 100);
}

/* Often enough for a window that is short, and only if it matters. */
static void test_period(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ebb_watch_period(&f->watch, 2000000, EBB_TIME_NEVER), 5000000);
	expect(f, "defined", EBB_WATCH_KEEP);
	assert_int_equal(ebb_watch_period(&f->watch, 2000000, EBB_TIME_NEVER), 5000000);
	f->look.domain.metadata.sla.is_shared = true;
	expect(f, "defined", EBB_WATCH_KEEP);
	assert_int_equal(ebb_watch_period(&f->watch, 2000000, EBB_TIME_NEVER), 500000);
	assert_int_equal(ebb_watch_period(&f->watch, 15000000, EBB_TIME_NEVER), 3750000);
	assert_int_equal(ebb_watch_period(&f->watch, 60000000, EBB_TIME_NEVER), 5000000);
	/* For promises, its own or those of others that share cores. */
	assert_int_equal(ebb_watch_period(&f->watch, 15000000, 1000000), 1000000);
	assert_int_equal(ebb_watch_period(&f->watch, 2000000, 1000000), 500000);
	assert_int_equal(ebb_watch_period(&f->watch, 60000000, 60000000), 5000000);
	assert_false(ebb_watch_is_promised(&f->watch));
	f->look.domain.metadata.sla.reserve_percent = 50;
	expect(f, "defined", EBB_WATCH_KEEP);
	assert_false(ebb_watch_is_promised(&f->watch));
	start(f, 5);
	expect(f, "running", EBB_WATCH_KEEP);
	assert_true(ebb_watch_is_promised(&f->watch));
	f->look.domain.metadata.sla.is_shared = false;
	expect(f, "defined running", EBB_WATCH_KEEP);
	assert_false(ebb_watch_is_promised(&f->watch));
	assert_int_equal(ebb_watch_period(&f->watch, 15000000, 1000000), 5000000);
}

/* Disks on the volume server come and go while the VM runs. */
static void test_volumes(void **state)
{
	struct fixture *f = *state;

	expect(f, "defined", EBB_WATCH_KEEP);
	start(f, 5);
	expect(f, "running", EBB_WATCH_KEEP);
	f->look.domain.volumes.num = 1;
	strcpy(f->look.domain.volumes.names[0], "data");
	expect(f, "defined running", EBB_WATCH_KEEP);
	expect(f, "running", EBB_WATCH_KEEP);
	f->look.domain.volumes.names[0][0] = 'D';
	expect(f, "defined running", EBB_WATCH_KEEP);
}

static void test_invalid(void **state)
{
	struct fixture *f = *state;

	f->look.domain.sla = -EINVAL;
	strcpy(f->look.domain.error.text, "weight=0");
	expect(f, "invalid", EBB_WATCH_KEEP);
	expect(f, "", EBB_WATCH_KEEP);
	strcpy(f->look.domain.error.text, "weight=-1");
	expect(f, "invalid", EBB_WATCH_KEEP);
	/* Becoming valid while it runs: definition first. */
	start(f, 5);
	f->look.domain.sla = 1;
	expect(f, "defined running", EBB_WATCH_KEEP);
	/* And back: it keeps running, with what was valid last. */
	f->look.domain.sla = -EINVAL;
	expect(f, "invalid", EBB_WATCH_KEEP);
	f->look.domain.is_running = false;
	expect(f, "stopped", EBB_WATCH_KEEP);
}

static void test_not_ours(void **state)
{
	struct fixture *f = *state;

	f->look.domain.sla = 0;
	start(f, 5);
	expect(f, "", EBB_WATCH_FORGET);
	f->look.domain.sla = 1;
	expect(f, "defined running", EBB_WATCH_KEEP);
	/* The SLA is taken out of a running domain: managed until it stops. */
	f->look.domain.sla = 0;
	expect(f, "removed", EBB_WATCH_KEEP);
	expect(f, "", EBB_WATCH_KEEP);
	f->look.domain.is_running = false;
	expect(f, "stopped", EBB_WATCH_FORGET);
}

/* A transient domain is gone the moment it stops. */
static void test_transient(void **state)
{
	struct fixture *f = *state;

	start(f, 5);
	expect(f, "defined running", EBB_WATCH_KEEP);
	f->look.domain.exists = f->look.domain.is_running = false;
	expect(f, "stopped removed", EBB_WATCH_FORGET);
}

/* What is refused was not told: it is with the next look. */
static void test_told_again(void **state)
{
	struct fixture *f = *state;
	struct ebb_metadata *m = &f->look.domain.metadata;

	f->answer = -ENOMEM;
	expect(f, "defined", EBB_WATCH_KEEP);
	expect(f, "defined", EBB_WATCH_KEEP);
	f->answer = 0;
	expect(f, "defined", EBB_WATCH_KEEP);
	expect(f, "", EBB_WATCH_KEEP);
	start(f, 5);
	expect(f, "running", EBB_WATCH_KEEP);
	f->answer = -EBUSY;
	m->sla.weight = 300;
	expect(f, "defined running", EBB_WATCH_KEEP);
	/* As it was told last: nothing to tell. */
	m->sla.weight = 100;
	f->answer = 0;
	expect(f, "running", EBB_WATCH_KEEP);
	m->sla.weight = 300;
	expect(f, "defined running", EBB_WATCH_KEEP);
	assert_int_equal(f->weight, 300);
	/* What is wrong with it the core has noted. */
	f->answer = -EINVAL;
	m->sla.weight = 0;
	expect(f, "defined running", EBB_WATCH_KEEP);
	expect(f, "running", EBB_WATCH_KEEP);
	f->answer = -ENOSPC;
	f->look.domain.sla = -EINVAL;
	expect(f, "invalid", EBB_WATCH_KEEP);
	expect(f, "invalid", EBB_WATCH_KEEP);
	f->answer = 0;
	expect(f, "invalid", EBB_WATCH_KEEP);
	expect(f, "", EBB_WATCH_KEEP);
}

/* ---- with the core ---- */

static int take_fact_to_core(void *ctx, usec_t now, const struct ebb_fact *fact)
{
	struct script *s = ctx;

	return ebb_state_report(s->state, now, fact);
}

/*
 * Another number of vCPUs is refused while the VM runs, and is offered again with each look until
 * it can be: when the VM has stopped.
 */
static void test_refused(void **state)
{
	static struct script s;
	struct fixture *f = *state;
	struct ebb_sla *sla = &f->look.domain.metadata.sla;
	const struct ebb_vm *vm;

	script_init(&s, 1, 8, 1, false);
	f->sink = (struct ebb_sink){ &s, take_fact_to_core };
	f->look.as_of = s.now;
	*sla = script_sla("1/4");
	f->look.domain.metadata.vcpus[0].is_startup = true;
	start(f, 5);
	ebb_watch_apply(&f->watch, &f->look, s.now, &f->sink);
	vm = ebb_state_vm(s.state, f->watch.uuid);
	assert_non_null(vm);
	assert_true(vm->is_running);
	assert_int_equal(vm->num_vcpus, 4);
	*sla = script_sla("1/6");
	f->look.domain.metadata.num_vcpus = 6;
	for (int i = 0; i < 3; i++) {
		ebb_watch_apply(&f->watch, &f->look, s.now, &f->sink);
		assert_int_equal(vm->num_vcpus, 4);
	}
	f->look.domain.is_running = false;
	ebb_watch_apply(&f->watch, &f->look, s.now, &f->sink);
	assert_false(vm->is_running);
	assert_int_equal(vm->num_vcpus, 6);
	assert_int_equal(vm->sla.nodes[0].max, 6);
	script_finish(&s);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(life),    TEST(restarted), TEST(changed),   TEST(sla_set), TEST(incoming),
		TEST(invalid), TEST(not_ours),	TEST(transient), TEST(period),
		TEST(told_again), TEST(refused), TEST(volumes), TEST(outgoing),
	};

	return cmocka_run_group_tests_name("daemon/watch", tests, NULL, NULL);
}
