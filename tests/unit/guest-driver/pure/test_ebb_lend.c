/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: the guest driver's table of CPUs where the host can lend them (cpuset.h). */
#include "cpuset_fixture.h"

#define LENT	VIRTIO_EBB_CPU_F_LENT
#define PARKED	(VIRTIO_EBB_CPU_F_LENT | VIRTIO_EBB_CPU_F_PARKED)

/* A CPU with the same number for everything, lent with these flags. */
static void add_lent(struct fixture *f, u64 id, u16 flags, bool is_online)
{
	struct ebb_cpu_desc desc = desc_of(id, id);

	assert_int_equal(ebb_cpuset_insert(&f->set, &desc, EBB_CPU_STATE_LENDING, 0, id), 0);
	assert_true(ebb_cpuset_lent(&f->set, id, flags, is_online));
	assert_int_equal(entry(f, id)->state, EBB_CPU_STATE_LENT);
}

static void test_cannot_lend(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, 1, 1, EBB_CPU_STATE_LENT, 0, 1), -EINVAL);
	assert_int_equal(add(f, 1, 1, EBB_CPU_STATE_LENDING, 0, 1), -EINVAL);
	add(f, 1, 1, EBB_CPU_STATE_OWNED, ALICE, 1);
	ebb_cpuset_let_go(&f->set, 1);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_LEAVING);
	assert_false(ebb_cpuset_lent(&f->set, 1, LENT, true));
}

static void test_lend_and_take_back(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_desc desc = desc_of(1, 1);
	struct ebb_cpu_entry e;

	add(f, 1, 1, EBB_CPU_STATE_OWNED, ALICE, 1);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_LEND, &e), 0);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_LEND, &e), -EBUSY);
	ebb_cpuset_end_give(&f->set, 1, EBB_GIVE_LEND);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_LENDING);
	assert_int_equal(ebb_cpuset_num_owned(&f->set, ALICE), 0);
	assert_int_equal(ebb_cpuset_num_hotplug(&f->set), 1);
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, BOB), -ESTALE);

	assert_true(ebb_cpuset_lent(&f->set, 1, LENT, true));
	assert_false(entry(f, 1)->busy || entry(f, 1)->arrives);
	assert_int_equal(entry(f, 1)->desc.flags, LENT);
	assert_int_equal(ebb_cpuset_num_hotplug(&f->set), 0);
	assert_int_equal(ebb_cpuset_num_lent(&f->set), 1);
	assert_true(ebb_cpuset_is_tried(&f->set));
	/* A second answer, from a request that crossed: nothing is left to change. */
	assert_false(ebb_cpuset_lent(&f->set, 1, PARKED, false));
	assert_int_equal(entry(f, 1)->desc.flags, LENT);

	desc.flags = VIRTIO_EBB_CPU_F_HT;
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, BOB), 0);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_COMING);
	assert_int_equal(entry(f, 1)->cpu, 1);
	assert_int_equal(entry(f, 1)->desc.flags, VIRTIO_EBB_CPU_F_HT);
	assert_int_equal(ebb_cpuset_online(&f->set, 1, 1), 0);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_LEND, &e), -EACCES);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_LEND, &e), 0);
}

static void test_regrant_refuses(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_desc desc = desc_of(9, 9);

	add_lent(f, 1, LENT, true);
	add(f, 2, 2, EBB_CPU_STATE_OWNED, ALICE, 2);
	add(f, 3, 3, EBB_CPU_STATE_LEAVING, 0, 3);
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, BOB), -ENOENT);
	desc = desc_of(1, 7);
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, BOB), -EEXIST);
	desc = desc_of(1, 1);
	desc.pxm = 1;
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, BOB), -EEXIST);
	desc = desc_of(2, 2);
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, BOB), -EEXIST);
	assert_int_equal(entry(f, 2)->owner, ALICE);
	desc = desc_of(3, 3);
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, BOB), -ESTALE);
	desc = desc_of(100, 0);
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, BOB), -EEXIST);
	/* Nobody waits for it any more: it is lent again. */
	desc = desc_of(1, 1);
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, 0), 0);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_LENDING);
}

/* Only its last owner may park or remove a CPU that is lent. */
static void test_who_may_give_lent(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_entry e;

	assert_int_equal(begin(f, 0, ALICE, EBB_GIVE_LEND, &e), -EPERM);
	assert_int_equal(begin(f, 0, ALICE, EBB_GIVE_PARK, &e), -EPERM);
	assert_int_equal(begin(f, 5, ALICE, EBB_GIVE_PARK, &e), -ENOENT);
	add(f, 1, 1, EBB_CPU_STATE_OWNED, BOB, 1);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_LEND, &e), 0);
	ebb_cpuset_end_give(&f->set, 1, EBB_GIVE_LEND);
	assert_true(ebb_cpuset_lent(&f->set, 1, LENT, true));

	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_LEND, &e), -EALREADY);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_PARK, &e), -EACCES);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_REMOVE, &e), -EACCES);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_LENT);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_LEND, &e), -EALREADY);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_PARK, &e), 0);
	assert_true(entry(f, 1)->state == EBB_CPU_STATE_LENDING && entry(f, 1)->parks);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_REMOVE, &e), -EACCES);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_REMOVE, &e), -EBUSY);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_LEND, &e), -EINPROGRESS);
	ebb_cpuset_end_give(&f->set, 1, EBB_GIVE_PARK);
	assert_true(ebb_cpuset_lent(&f->set, 1, PARKED, false));
	assert_false(entry(f, 1)->arrives);

	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_PARK, &e), -EALREADY);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_LEND, &e), -EBUSY);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_REMOVE, &e), 0);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_LEAVING);
	ebb_cpuset_end_give(&f->set, 1, EBB_GIVE_REMOVE);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_LEND, &e), -EINPROGRESS);
	assert_false(ebb_cpuset_lent(&f->set, 1, LENT, true));
}

/* The right to park or remove a lent CPU goes to whoever lends it next. */
static void test_last_owner_changes(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_desc desc = desc_of(1, 1);
	struct ebb_cpu_entry e;

	add(f, 1, 1, EBB_CPU_STATE_OWNED, ALICE, 1);
	ebb_cpuset_let_go_owner(&f->set, ALICE);
	assert_true(ebb_cpuset_lent(&f->set, 1, LENT, true));
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, BOB), 0);
	assert_int_equal(ebb_cpuset_online(&f->set, 1, 1), 0);
	ebb_cpuset_let_go_cpu(&f->set, 1, BOB);
	assert_true(ebb_cpuset_lent(&f->set, 1, LENT, true));
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_PARK, &e), -EACCES);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_PARK, &e), 0);
}

/* The host handed a CPU over as lent, so that no open ever owned it. */
static void test_administrator_gives_lent(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_entry e;

	add_lent(f, 1, LENT, true);
	add(f, 2, 2, EBB_CPU_STATE_OWNED, ALICE, 2);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_REMOVE, &e), -EACCES);
	assert_int_equal(ebb_cpuset_begin_give(&f->set, 1, BOB, true, EBB_GIVE_REMOVE, &e), 0);
	/* An administrator takes no CPU away from its owner. */
	assert_int_equal(ebb_cpuset_begin_give(&f->set, 2, BOB, true, EBB_GIVE_PARK, &e),
			 -EACCES);
}

/* Undoing an add must not take a CPU from the owner that it has by now. */
static void test_let_go_cpu_of_owner(void **state)
{
	struct fixture *f = *state;

	add(f, 1, 1, EBB_CPU_STATE_OWNED, ALICE, 1);
	ebb_cpuset_let_go_cpu(&f->set, 1, BOB);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_OWNED);
	ebb_cpuset_let_go_cpu(&f->set, 7, ALICE);
	ebb_cpuset_let_go_cpu(&f->set, 1, ALICE);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_LENDING);
}

static void test_undo_give(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_entry e;

	add_lent(f, 1, LENT, true);
	assert_int_equal(ebb_cpuset_begin_give(&f->set, 1, BOB, true, EBB_GIVE_REMOVE, &e), 0);
	ebb_cpuset_undo_give(&f->set, &e);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_LENDING);
	assert_false(entry(f, 1)->busy || entry(f, 1)->parks);

	add(f, 2, 2, EBB_CPU_STATE_OWNED, ALICE, 2);
	assert_int_equal(begin(f, 2, ALICE, EBB_GIVE_PARK, &e), 0);
	ebb_cpuset_let_go_owner(&f->set, ALICE);
	ebb_cpuset_undo_give(&f->set, &e);
	assert_int_equal(entry(f, 2)->state, EBB_CPU_STATE_LENDING);
	assert_false(entry(f, 2)->busy || entry(f, 2)->parks);
}

/* The host grants a lent CPU while it is being parked, and parking fails: the host must hear. */
static void test_undo_give_of_granted(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_desc desc = desc_of(1, 1);
	struct ebb_cpu_entry e;
	u64 next_ns;

	add_lent(f, 1, LENT, true);
	assert_int_equal(ebb_cpuset_begin_give(&f->set, 1, BOB, true, EBB_GIVE_PARK, &e), 0);
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, ALICE), -ESTALE);
	ebb_cpuset_undo_give(&f->set, &e);
	assert_true(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	assert_int_equal(e.desc.hv_cpu_id, 1);
	assert_int_equal(e.state, EBB_CPU_STATE_LENDING);

	add_lent(f, 2, PARKED, false);
	assert_int_equal(ebb_cpuset_begin_give(&f->set, 2, BOB, true, EBB_GIVE_REMOVE, &e), 0);
	ebb_cpuset_undo_give(&f->set, &e);
	assert_int_equal(entry(f, 2)->state, EBB_CPU_STATE_LENDING);
	assert_true(entry(f, 2)->parks);
}

static void test_owner_dies(void **state)
{
	struct fixture *f = *state;

	add(f, 1, 1, EBB_CPU_STATE_OWNED, ALICE, 1);
	add(f, 2, 2, EBB_CPU_STATE_COMING, ALICE, EBB_CPUSET_NO_CPU);
	add(f, 3, 3, EBB_CPU_STATE_OWNED, BOB, 3);
	add_lent(f, 4, LENT, true);
	assert_int_equal(ebb_cpuset_let_go_owner(&f->set, ALICE), 2);
	assert_int_equal(entry(f, 1)->state, EBB_CPU_STATE_LENDING);
	assert_int_equal(entry(f, 2)->state, EBB_CPU_STATE_LENDING);
	assert_int_equal(entry(f, 3)->state, EBB_CPU_STATE_OWNED);
	assert_int_equal(ebb_cpuset_online(&f->set, 2, 2), -ESTALE);
	assert_int_equal(entry(f, 2)->cpu, 2);
	/* What never came up goes back for good. */
	ebb_cpuset_leave(&f->set, 3);
	assert_int_equal(entry(f, 3)->state, EBB_CPU_STATE_LEAVING);
	ebb_cpuset_leave(&f->set, 4);
	assert_int_equal(entry(f, 4)->state, EBB_CPU_STATE_LENT);
	assert_int_equal(ebb_cpuset_num_hotplug(&f->set), 3);
}

/* Lending takes no time, removing some, and nobody waits for what arrives. */
static void test_claim_order(void **state)
{
	static const u64 want[] = { 3, 4, 2, 1 };
	struct fixture *f = *state;
	struct ebb_cpu_entry e;
	u64 next_ns;

	add_lent(f, 1, LENT, false);
	add(f, 2, 2, EBB_CPU_STATE_LEAVING, 0, 2);
	add(f, 3, 3, EBB_CPU_STATE_LENDING, 0, 3);
	add(f, 4, 4, EBB_CPU_STATE_LENDING, 0, 4);
	add_lent(f, 5, LENT, true);
	add_lent(f, 6, PARKED, false);
	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_true(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
		assert_int_equal(e.desc.hv_cpu_id, want[i]);
	}
	assert_false(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	assert_true(next_ns == EBB_CPUSET_NEVER);
}

static void test_hand_over(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_desc desc = desc_of(1, 1);
	struct ebb_cpu_entry e;
	u64 next_ns = 0;

	desc.flags = LENT;
	assert_int_equal(ebb_cpuset_insert(&f->set, &desc, EBB_CPU_STATE_LENT, 0,
					   EBB_CPUSET_NO_CPU), 0);
	assert_true(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	ebb_cpuset_retry(&f->set, 1, 0);
	assert_false(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	assert_true(next_ns == 100 * MS);
	assert_true(ebb_cpuset_claim(&f->set, next_ns, &e, &next_ns));
	ebb_cpuset_arrived(&f->set, 1, 6);
	assert_int_equal(entry(f, 1)->cpu, 6);
	assert_false(ebb_cpuset_claim(&f->set, 1000 * MS, &e, &next_ns));

	/* Granted while it is being brought online: the owner's, and not busy at the end. */
	add_lent(f, 2, LENT, false);
	assert_true(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	desc = desc_of(2, 2);
	assert_int_equal(ebb_cpuset_regrant(&f->set, &desc, ALICE), 0);
	ebb_cpuset_arrived(&f->set, 2, 2);
	assert_int_equal(entry(f, 2)->state, EBB_CPU_STATE_COMING);
	assert_int_equal(ebb_cpuset_online(&f->set, 2, 2), 0);
	assert_int_equal(begin(f, 2, ALICE, EBB_GIVE_LEND, &e), 0);

	/* It does not appear: the host is asked, and says that there is none. */
	add_lent(f, 3, LENT, false);
	assert_true(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	ebb_cpuset_doubt(&f->set, 3);
	assert_true(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	assert_int_equal(e.desc.hv_cpu_id, 3);
	assert_int_equal(e.state, EBB_CPU_STATE_LENDING);
	ebb_cpuset_delete(&f->set, 3);
	assert_null(ebb_cpuset_find(&f->set, 3));
}

/* An event may come before the startup set was listed, which comes first all the same. */
static void test_startup_first(void **state)
{
	struct fixture *f = *state;

	add_lent(f, 1, LENT, true);
	assert_int_equal(add(f, 101, 7, EBB_CPU_STATE_STARTUP, 0, 7), 0);
	check(&f->set);
	assert_int_equal(f->set.entries[0].desc.hv_cpu_id, 100);
	assert_int_equal(f->set.entries[1].desc.hv_cpu_id, 101);
	assert_int_equal(f->set.entries[2].desc.hv_cpu_id, 1);
}

static void test_flags_of_lent(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_desc desc = desc_of(1, 1);

	add_lent(f, 1, PARKED, false);
	desc.flags = VIRTIO_EBB_CPU_F_FORCED;
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), 0);
	assert_int_equal(entry(f, 1)->desc.flags, PARKED);
	desc.arch_id = 2;
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), -EINVAL);
	/* Told late of what was handed over and is granted by now. */
	add(f, 2, 2, EBB_CPU_STATE_OWNED, ALICE, 2);
	desc = desc_of(2, 2);
	desc.flags = LENT;
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), 0);
	assert_int_equal(entry(f, 2)->desc.flags, 0);
}

/* Random life: the invariants hold, and what is worked on stays with him who does. */
static void test_random_lending(void **state)
{
	struct fixture *f = *state;
	u64 now_ns = 0, next_id = 1000, next_ns;
	unsigned int claimed = 0, regranted = 0;
	struct ebb_cpu_entry busy[CAPACITY], e;
	struct ebb_cpu_desc desc;

	srand(11);
	for (unsigned int step = 0; step < 200000; step++) {
		u64 owner = 1 + rand() % 3;
		u64 id = f->set.entries[rand() % f->set.count].desc.hv_cpu_id;
		u32 arch_id = rand() % 6;
		enum ebb_give how = rand() % 3;

		now_ns += rand() % (50 * MS);
		switch (rand() % 7) {
		case 0:
			desc = desc_of(next_id, arch_id);
			desc.flags = rand() % 2 ? LENT : 0;
			next_id += !ebb_cpuset_insert(&f->set, &desc, desc.flags ?
						      EBB_CPU_STATE_LENT : EBB_CPU_STATE_COMING,
						      desc.flags ? 0 : owner, EBB_CPUSET_NO_CPU);
			break;
		case 1:
			ebb_cpuset_online(&f->set, id, 10 + arch_id);
			break;
		case 2:
			if (claimed < CAPACITY &&
			    !ebb_cpuset_begin_give(&f->set, 10 + arch_id, owner, rand() % 2, how,
						   &e)) {
				if (rand() % 4) {
					ebb_cpuset_end_give(&f->set, e.desc.hv_cpu_id, how);
					busy[claimed++] = *ebb_cpuset_find(&f->set,
									   e.desc.hv_cpu_id);
				} else {
					ebb_cpuset_undo_give(&f->set, &e);
				}
			}
			break;
		case 3:
			ebb_cpuset_let_go_owner(&f->set, rand() % 16 ? owner : 0);
			break;
		case 4:
			if (claimed < CAPACITY && ebb_cpuset_claim(&f->set, now_ns, &e, &next_ns))
				busy[claimed++] = e;
			break;
		case 5:
			if (!claimed)
				break;
			e = busy[--claimed];
			if (rand() % 4 == 0)
				ebb_cpuset_retry(&f->set, e.desc.hv_cpu_id, now_ns);
			else if (e.state == EBB_CPU_STATE_LEAVING)
				ebb_cpuset_delete(&f->set, e.desc.hv_cpu_id);
			else if (e.state == EBB_CPU_STATE_LENDING)
				ebb_cpuset_lent(&f->set, e.desc.hv_cpu_id, e.parks ? PARKED : LENT,
						rand() % 2);
			else if (rand() % 2)
				ebb_cpuset_arrived(&f->set, e.desc.hv_cpu_id, 10 + arch_id);
			else
				ebb_cpuset_doubt(&f->set, e.desc.hv_cpu_id);
			break;
		case 6:
			desc = ebb_cpuset_find(&f->set, id)->desc;
			desc.flags = 0;
			regranted += !ebb_cpuset_regrant(&f->set, &desc, rand() % 8 ? owner : 0);
			break;
		}
		check(&f->set);
		for (unsigned int i = 0; i < claimed; i++)
			assert_true(entry(f, busy[i].desc.hv_cpu_id)->busy);
	}
	assert_true(next_id > 2000 && regranted > 1000);
}

#define TEST_LEND(fn)	cmocka_unit_test_setup_teardown(fn, setup_lend, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cannot_lend, setup, teardown),
		TEST_LEND(test_lend_and_take_back),
		TEST_LEND(test_regrant_refuses),
		TEST_LEND(test_who_may_give_lent),
		TEST_LEND(test_last_owner_changes),
		TEST_LEND(test_administrator_gives_lent),
		TEST_LEND(test_let_go_cpu_of_owner),
		TEST_LEND(test_undo_give),
		TEST_LEND(test_undo_give_of_granted),
		TEST_LEND(test_owner_dies),
		TEST_LEND(test_claim_order),
		TEST_LEND(test_hand_over),
		TEST_LEND(test_startup_first),
		TEST_LEND(test_flags_of_lent),
		TEST_LEND(test_random_lending),
	};

	return cmocka_run_group_tests_name("ebb_lend", tests, NULL, NULL);
}
