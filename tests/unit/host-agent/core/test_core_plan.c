// SPDX-License-Identifier: GPL-2.0-or-later
/* What policies are shown, and nodes on which they give out hardware threads. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

/* A policy that notes what it sees, and says what it is told to. */
static struct {
	unsigned int num_asked;
	usec_t cooldown;
	struct ebb_view_node node;	/* 0 */
	struct ebb_view_vm vms[4];
	uint16_t targets[4];		/* of node 0, by order of arrival */
	uint16_t second;		/* of node 1 of the first VM */
	bool use_threads;
} puppet;

static int puppet_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	(void)st;
	puppet.num_asked++;
	puppet.cooldown = view->cooldown;
	puppet.node = view->nodes[0];
	for (uint32_t v = 0; v < view->num_vms && v < 4; v++) {
		puppet.vms[v] = view->vms[v];
		ret_plan->targets[v].nodes[0] = puppet.targets[v];
	}
	ret_plan->targets[0].nodes[1] = puppet.second;
	ret_plan->use_threads[0] = puppet.use_threads;
	return 0;
}

static const struct ebb_policy_ops puppet_policy = {
	.abi = EBB_POLICY_ABI,
	.size = sizeof(struct ebb_policy_ops),
	.name = "puppet",
	.decide = puppet_decide,
};

static void begin(struct script *s, uint32_t cores, uint32_t threads)
{
	memset(&puppet, 0, sizeof(puppet));
	script_init(s, 1, cores, threads, false);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &puppet_policy), 0);
}

static void boot(struct script *s, char vm, uint64_t order, uint16_t reserved)
{
	struct ebb_sla sla = script_sla("1/6");

	sla.class = EBB_CLASS_RESERVED;
	sla.priority = (uint16_t)(100 * order);
	sla.nodes[0].reserved = reserved;
	assert_int_equal(script_define(s, vm, &sla), 0);
	assert_int_equal(script_running(s, vm, order), 0);
	assert_int_equal(script_hello(s, vm, true, true, 1, ""), 0);
	script_settle(s);
}

/* Another plan, at once. */
static void replan(struct script *s)
{
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &ebb_policy_fair), 0);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &puppet_policy), 0);
}

static void add(struct script *s, char vm, uint16_t count, bool allow_ht)
{
	assert_int_equal(script_add(s, vm, s->now, count, 0, allow_ht), 0);
	script_settle(s);
}

static uint16_t held(const struct script *s, char vm)
{
	return script_vm(s, vm)->nodes[0].held;
}

static void test_view(void **state)
{
	struct script s;

	(void)state;
	begin(&s, 8, 1);
	puppet.targets[0] = 2;
	boot(&s, 'a', 3, 4);
	assert_int_equal(puppet.vms[0].priority, 300);
	assert_int_equal(puppet.vms[0].class, EBB_CLASS_RESERVED);
	assert_int_equal(puppet.vms[0].nodes[0].reserved, 4);
	assert_int_equal(puppet.vms[0].nodes[0].wanted, 1);
	assert_int_equal(puppet.cooldown, SEC(60));
	assert_int_equal(puppet.node.mem_capacity, 512);
	assert_int_equal(puppet.node.mem_threshold, 460);
	assert_int_equal(puppet.node.mem_target, 409);
	script_finish(&s);
}

static void test_wanted(void **state)
{
	struct script s;
	unsigned int asked;

	(void)state;
	begin(&s, 8, 1);
	puppet.targets[0] = 2;
	boot(&s, 'a', 1, 4);
	/* One of four is granted, the other three it wants all the same. */
	asked = puppet.num_asked;
	add(&s, 'a', 4, false);
	assert_int_equal(held(&s, 'a'), 2);
	assert_true(puppet.num_asked > asked);
	assert_int_equal(puppet.vms[0].nodes[0].wanted, 5);
	/* Asking again for the same tells nothing new. */
	asked = puppet.num_asked;
	add(&s, 'a', 3, false);
	assert_int_equal(puppet.num_asked, asked);
	/* More than it may ever have is no wish. */
	add(&s, 'a', 30, false);
	assert_int_equal(puppet.vms[0].nodes[0].wanted, 6);
	/* It may have them now, and takes one of the four; after a while it wants no more. */
	puppet.targets[0] = 6;
	replan(&s);
	script_settle(&s);
	add(&s, 'a', 1, false);
	assert_int_equal(held(&s, 'a'), 3);
	asked = puppet.num_asked;
	s.now += EBB_WANT_USEC;
	assert_true(s.wake_at <= s.now);
	script_settle(&s);
	assert_true(puppet.num_asked > asked);
	assert_int_equal(puppet.vms[0].nodes[0].wanted, 3);
	/* What it gives back of its own accord is news. */
	asked = puppet.num_asked;
	assert_int_equal(script_remove(&s, 'a', 99, 2), 0);
	script_settle(&s);
	assert_true(puppet.num_asked > asked);
	assert_int_equal(puppet.vms[0].nodes[0].wanted, 2);
	script_finish(&s);
}

static void test_wanted_anywhere(void **state)
{
	struct ebb_sla sla = script_sla("1/3,0/6");
	struct script s;

	(void)state;
	memset(&puppet, 0, sizeof(puppet));
	script_init(&s, 2, 8, 1, false);
	assert_int_equal(ebb_state_policy_set(s.state, s.now, &puppet_policy), 0);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_running(&s, 'a', 1), 0);
	assert_int_equal(script_hello(&s, 'a', true, true, 1, ""), 0);
	script_settle(&s);
	assert_int_equal(script_add(&s, 'a', 7, 5, EBB_NODE_ANY, false), 0);
	script_expect(&s, "response a 7 nack limit []");
	/* First where there is most room: four of six, then one of two here. */
	assert_int_equal(puppet.vms[0].nodes[0].wanted, 2);
	assert_int_equal(puppet.vms[0].nodes[1].wanted, 4);
	script_finish(&s);
}

/* ---- threads ------------------------------------------------------------- */

static uint16_t cores_of(const struct script *s, char vm)
{
	bool is_seen[EBB_MAX_THREADS] = { false };
	uint16_t cores = 0;

	for (uint16_t t = 0; t < s->host.num_threads; t++) {
		const uint16_t core = s->host.threads[t].core;

		if (ebb_state_thread_owner(s->state, t, NULL) != script_vm(s, vm))
			continue;
		cores += !is_seen[core];
		is_seen[core] = true;
	}
	return cores;
}

static void test_threads(void **state)
{
	struct script s;

	(void)state;
	/* Four cores of two threads. */
	begin(&s, 4, 2);
	puppet.use_threads = true;
	puppet.targets[0] = 5;
	puppet.targets[1] = 2;
	boot(&s, 'a', 1, 1);
	boot(&s, 'b', 2, 1);
	assert_int_equal(ebb_state_node_capacity(s.state, 0), 8);
	assert_int_equal(script_vm(&s, 'a')->nodes[0].limit, 5);
	assert_int_equal(script_vm(&s, 'b')->nodes[0].limit, 2);
	/* Five threads are worth three cores; those come first, and no more than three. */
	add(&s, 'a', 5, false);
	assert_int_equal(held(&s, 'a'), 3);
	assert_int_equal(cores_of(&s, 'a'), 3);
	add(&s, 'a', 5, true);
	assert_int_equal(held(&s, 'a'), 5);
	assert_int_equal(cores_of(&s, 'a'), 3);
	/* Beside "b" there is a thread, and it is nobody else's. */
	add(&s, 'b', 1, false);
	assert_int_equal(held(&s, 'b'), 1);
	add(&s, 'b', 1, true);
	assert_int_equal(held(&s, 'b'), 2);
	assert_int_equal(cores_of(&s, 'b'), 1);
	script_finish(&s);
}

/* More than fits is wanted: what is promised is whole cores. */
static void test_threads_clamped(void **state)
{
	struct script s;

	(void)state;
	begin(&s, 4, 2);
	puppet.use_threads = true;
	puppet.targets[0] = 5;
	puppet.targets[1] = 5;
	boot(&s, 'a', 1, 1);
	boot(&s, 'b', 2, 1);
	assert_int_equal(script_vm(&s, 'a')->nodes[0].limit, 4);
	assert_int_equal(script_vm(&s, 'b')->nodes[0].limit, 4);
	assert_true(script_find_record(&s, '\0', EBB_EVENT_POLICY));
	script_finish(&s);
}

/* From cores to threads and back, with two VMs all the time. */
static void test_threads_walk_down(void **state)
{
	struct script s;

	(void)state;
	begin(&s, 4, 2);
	puppet.targets[0] = 2;
	puppet.targets[1] = 2;
	boot(&s, 'a', 1, 1);
	boot(&s, 'b', 2, 1);
	add(&s, 'a', 1, true);
	add(&s, 'b', 1, true);
	assert_int_equal(cores_of(&s, 'a'), 2);
	assert_int_equal(cores_of(&s, 'b'), 2);
	puppet.use_threads = true;
	puppet.targets[0] = puppet.targets[1] = 4;
	replan(&s);
	script_settle(&s);
	add(&s, 'a', 2, true);
	add(&s, 'b', 2, true);
	assert_int_equal(held(&s, 'a'), 4);
	assert_int_equal(held(&s, 'b'), 4);
	assert_int_equal(cores_of(&s, 'a'), 2);
	assert_int_equal(cores_of(&s, 'b'), 2);
	/* Back to cores: what is too much is demanded, and nobody is offered anything before. */
	puppet.use_threads = false;
	puppet.targets[0] = 1;
	puppet.targets[1] = 3;
	replan(&s);
	script_expect(&s, "limits a 4/1!300", "limits b 4/3!300");
	assert_int_equal(ebb_state_node_capacity(s.state, 0), 4);
	for (uint16_t vcpu = 1; vcpu <= 3; vcpu++)
		assert_int_equal(script_remove(&s, 'a', 100 + vcpu, vcpu), 0);
	script_settle(&s);
	assert_int_equal(held(&s, 'a'), 1);
	assert_int_equal(script_vm(&s, 'b')->nodes[0].limit, 3);
	assert_int_equal(cores_of(&s, 'b'), 2);
	script_finish(&s);
}

/* ---- packing -------------------------------------------------------------- */

/* "a": two guest nodes on one node of a host of two threads per core; holds that many cores. */
static void boot_two(struct script *s, uint32_t cores, const char *nodes, uint16_t count)
{
	struct ebb_sla sla = script_sla(nodes);

	begin(s, cores, 2);
	s->can_lend = true;
	sla.nodes[1].host_node = 0;
	puppet.targets[0] = count;
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_running(s, 'a', 1), 0);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_settle(s);
	if (count > held(s, 'a'))
		add(s, 'a', (uint16_t)(count - held(s, 'a')), false);
	assert_int_equal(held(s, 'a'), count);
	assert_int_equal(cores_of(s, 'a'), count);
	puppet.use_threads = true;
}

static bool is_owned(const struct script *s, uint16_t thread)
{
	return ebb_state_thread_owner(s->state, thread, NULL) != NULL;
}

/* Three CPUs on three cores are worth two cores: the third one is for the other guest node. */
static void test_packs(void **state)
{
	struct script s;

	(void)state;
	boot_two(&s, 3, "2/3,0/2", 3);
	/* As long as nobody wants it. */
	replan(&s);
	script_expect_nothing(&s);
	puppet.second = 2;
	replan(&s);
	script_expect(&s, "place a 2 @1");
	assert_true(is_owned(&s, 1));
	assert_true(is_owned(&s, 4));
	/* Where it runs nobody knows: what it leaves is not free. */
	script_done(&s, EBB_ACTION_PLACE, 'a', 2, -EIO);
	script_expect_nothing(&s);
	assert_true(is_owned(&s, 4));
	s.now += MSEC(200);
	script_expect(&s, "place a 2 @1");
	script_done(&s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_expect(&s, "limits a 3/3 0/2");
	assert_false(is_owned(&s, 4));
	assert_int_equal(script_vm(&s, 'a')->nodes[0].used, 3);
	assert_int_equal(script_add(&s, 'a', 9, 2, 1, true), 0);
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'a')->nodes[1].held, 2);
	assert_int_equal(cores_of(&s, 'a'), 3);
	script_finish(&s);
}

/* A vCPU of the startup set takes along those that are at home with it. */
static void test_packs_home(void **state)
{
	struct script s;

	(void)state;
	boot_two(&s, 4, "2/4,0/8", 4);
	for (uint16_t vcpu = 2; vcpu <= 3; vcpu++) {
		assert_int_equal(script_lend(&s, 'a', 10 + vcpu, vcpu, false), 0);
		script_settle(&s);
	}
	assert_int_equal(script_vm(&s, 'a')->vcpus[3].placed, 2);
	puppet.targets[0] = 2;
	puppet.second = 8;
	replan(&s);
	script_expect(&s, "limits a 2/2 0/4", "place a 1 @1", "home a 3 @1");
	script_done(&s, EBB_ACTION_PLACE, 'a', 1, 0);
	script_expect_nothing(&s);
	assert_true(is_owned(&s, 2));
	script_done(&s, EBB_ACTION_HOME, 'a', 3, 0);
	script_expect(&s, "limits a 2/2 0/6");
	assert_false(is_owned(&s, 2));
	script_finish(&s);
}

/* The guest gives the CPU back while it moves: both threads are free once it is home. */
static void test_packs_given_back(void **state)
{
	struct script s;

	(void)state;
	boot_two(&s, 3, "2/3,0/2", 3);
	puppet.second = 2;
	replan(&s);
	script_expect(&s, "place a 2 @1");
	script_done(&s, EBB_ACTION_PLACE, 'a', 2, -EIO);
	assert_int_equal(script_lend(&s, 'a', 9, 2, false), 0);
	s.now += MSEC(200);
	script_expect(&s, "limits a 2/3 0/0", "home a 2 @0");
	assert_true(is_owned(&s, 1));
	assert_true(is_owned(&s, 4));
	script_done(&s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(&s, "response a 9 ack none []", "limits a 2/3 0/2");
	assert_false(is_owned(&s, 1));
	assert_false(is_owned(&s, 4));
	script_finish(&s);
}

/* Not to where a vCPU of the startup set is that should be elsewhere. */
static void test_packs_beside(void **state)
{
	struct script s;

	(void)state;
	boot_two(&s, 3, "2/3,0/2", 3);
	s.now += MSEC(10);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@1 1@2 2@4"), 0);
	puppet.second = 2;
	replan(&s);
	script_expect(&s, "place a 0 @0", "place a 2 @3");
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_view),
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_wanted_anywhere),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_threads_clamped),
		cmocka_unit_test(test_threads_walk_down),
		cmocka_unit_test(test_packs),
		cmocka_unit_test(test_packs_home),
		cmocka_unit_test(test_packs_given_back),
		cmocka_unit_test(test_packs_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
