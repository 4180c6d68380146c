/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: the guest driver's table of CPUs (invariants I1 to I5 of cpuset.h). */
#include "cpuset_fixture.h"

static void test_insert_refuses(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, 0, 1, EBB_CPU_STATE_COMING, ALICE, 1), -EINVAL);
	assert_int_equal(add(f, 1, 1, EBB_CPU_STATE_COMING, 0, 1), -EINVAL);
	assert_int_equal(add(f, 1, 1, EBB_CPU_STATE_LEAVING, ALICE, 1), -EINVAL);
	assert_int_equal(add(f, 100, 1, EBB_CPU_STATE_COMING, ALICE, 1), -EEXIST);
	assert_int_equal(add(f, 1, 0, EBB_CPU_STATE_COMING, ALICE, 1), -EEXIST);
	assert_int_equal(f->set.count, 1);
	for (u64 id = 1; id < CAPACITY; id++)
		assert_int_equal(add(f, id, id, EBB_CPU_STATE_COMING, ALICE, EBB_CPUSET_NO_CPU), 0);
	assert_int_equal(add(f, 50, 50, EBB_CPU_STATE_COMING, ALICE, 1), -ENOSPC);
	check(&f->set);
}

static void test_replug_while_leaving(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, 1, 4, EBB_CPU_STATE_LEAVING, 0, 1), 0);
	assert_false(ebb_cpuset_is_used(&f->set, 4));
	assert_int_equal(add(f, 2, 4, EBB_CPU_STATE_COMING, ALICE, EBB_CPUSET_NO_CPU), 0);
	check(&f->set);
	assert_true(ebb_cpuset_is_leaving(&f->set, 4));
	assert_true(ebb_cpuset_is_used(&f->set, 4));
	ebb_cpuset_delete(&f->set, 1);
	assert_false(ebb_cpuset_is_leaving(&f->set, 4));
	assert_true(ebb_cpuset_is_used(&f->set, 4));
	assert_int_equal(ebb_cpuset_online(&f->set, 2, 1), 0);
	assert_int_equal(ebb_cpuset_find_cpu(&f->set, 1)->desc.hv_cpu_id, 2);
	check(&f->set);
}

static void test_grant_to_online(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, 1, 1, EBB_CPU_STATE_COMING, ALICE, EBB_CPUSET_NO_CPU), 0);
	assert_null(ebb_cpuset_find_cpu(&f->set, EBB_CPUSET_NO_CPU));
	assert_int_equal(ebb_cpuset_online(&f->set, 2, 1), -ENOENT);
	assert_int_equal(ebb_cpuset_online(&f->set, 1, 3), 0);
	assert_int_equal(ebb_cpuset_find_cpu(&f->set, 3)->state, EBB_CPU_STATE_OWNED);
	assert_int_equal(ebb_cpuset_online(&f->set, 1, 4), -ESTALE);
	assert_int_equal(ebb_cpuset_online(&f->set, 100, 4), -ESTALE);
	assert_null(ebb_cpuset_find_cpu(&f->set, 4));
	assert_int_equal(ebb_cpuset_num_owned(&f->set, ALICE), 1);
	assert_int_equal(ebb_cpuset_num_owned(&f->set, BOB), 0);
	assert_int_equal(ebb_cpuset_num_owned(&f->set, 0), 0);
	assert_int_equal(ebb_cpuset_num_hotplug(&f->set), 1);
	check(&f->set);
}

/* Closed, or the driver removed, while somebody brings it online. */
static void test_taken_while_coming(void **state)
{
	struct fixture *f = *state;

	add(f, 1, 1, EBB_CPU_STATE_COMING, ALICE, EBB_CPUSET_NO_CPU);
	assert_int_equal(ebb_cpuset_let_go_owner(&f->set, 0), 1);
	assert_int_equal(ebb_cpuset_online(&f->set, 1, 1), -ESTALE);
	assert_int_equal(ebb_cpuset_find(&f->set, 1)->state, EBB_CPU_STATE_LEAVING);
	check(&f->set);
}

static void test_who_may_remove(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_entry e = { .cpu = 77 };

	add(f, 1, 1, EBB_CPU_STATE_OWNED, ALICE, 1);
	add(f, 2, 2, EBB_CPU_STATE_LEAVING, 0, 2);
	assert_int_equal(begin(f, 0, ALICE, EBB_GIVE_REMOVE, &e), -EPERM);
	assert_int_equal(begin(f, 9, ALICE, EBB_GIVE_REMOVE, &e), -ENOENT);
	assert_int_equal(begin(f, EBB_CPUSET_NO_CPU, ALICE, EBB_GIVE_REMOVE, &e), -ENOENT);
	assert_int_equal(begin(f, 1, BOB, EBB_GIVE_REMOVE, &e), -EACCES);
	assert_int_equal(begin(f, 2, ALICE, EBB_GIVE_REMOVE, &e), -EINPROGRESS);
	assert_int_equal(e.cpu, 77);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_REMOVE, &e), 0);
	assert_int_equal(e.desc.hv_cpu_id, 1);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_REMOVE, &e), -EBUSY);
	ebb_cpuset_undo_give(&f->set, &e);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_REMOVE, &e), 0);
}

/* I4: what one task works on is not picked up by another. */
static void test_claim_respects_busy(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_entry e;
	u64 next_ns = 0;

	add(f, 1, 1, EBB_CPU_STATE_OWNED, ALICE, 1);
	assert_int_equal(begin(f, 1, ALICE, EBB_GIVE_REMOVE, &e), 0);
	assert_int_equal(ebb_cpuset_let_go_owner(&f->set, 0), 1);
	assert_false(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	assert_true(next_ns == EBB_CPUSET_NEVER);
	ebb_cpuset_undo_give(&f->set, &e);
	assert_true(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	assert_int_equal(e.desc.hv_cpu_id, 1);
	assert_false(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	ebb_cpuset_delete(&f->set, 1);
	check(&f->set);
}

static void test_backoff(void **state)
{
	static const u64 waits_ms[] = { 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000 };
	struct fixture *f = *state;
	struct ebb_cpu_entry e;
	u64 now_ns = 5 * MS, next_ns = 0;

	add(f, 1, 1, EBB_CPU_STATE_LEAVING, 0, 1);
	for (unsigned int i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
		assert_true(ebb_cpuset_claim(&f->set, now_ns, &e, &next_ns));
		ebb_cpuset_retry(&f->set, 1, now_ns);
		assert_false(ebb_cpuset_claim(&f->set, now_ns, &e, &next_ns));
		assert_true(next_ns == now_ns + waits_ms[i] * MS);
		assert_false(ebb_cpuset_claim(&f->set, next_ns - 1, &e, &next_ns));
		now_ns = next_ns;
	}
	for (unsigned int i = 0; i < 300; i++)
		ebb_cpuset_retry(&f->set, 1, now_ns);
	assert_false(ebb_cpuset_claim(&f->set, now_ns, &e, &next_ns));
	assert_true(next_ns == now_ns + 10000 * MS);

	ebb_cpuset_retry_now(&f->set);
	assert_true(ebb_cpuset_claim(&f->set, now_ns, &e, &next_ns));
	ebb_cpuset_retry(&f->set, 1, now_ns);
	assert_false(ebb_cpuset_claim(&f->set, now_ns, &e, &next_ns));
	assert_true(next_ns == now_ns + 100 * MS);
}

static void test_is_tried(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_entry e;
	u64 next_ns;

	assert_true(ebb_cpuset_is_tried(&f->set));
	add(f, 1, 1, EBB_CPU_STATE_OWNED, ALICE, 1);
	assert_false(ebb_cpuset_is_tried(&f->set));
	ebb_cpuset_leave(&f->set, 1);
	assert_false(ebb_cpuset_is_tried(&f->set));
	assert_true(ebb_cpuset_claim(&f->set, 0, &e, &next_ns));
	assert_false(ebb_cpuset_is_tried(&f->set));
	ebb_cpuset_retry(&f->set, 1, 0);
	assert_true(ebb_cpuset_is_tried(&f->set));
	assert_true(ebb_cpuset_claim(&f->set, 1000 * MS, &e, &next_ns));
	assert_false(ebb_cpuset_is_tried(&f->set));
}

static void test_earliest_retry_first(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_entry e;
	u64 next_ns = 0;

	add(f, 1, 1, EBB_CPU_STATE_LEAVING, 0, 1);
	add(f, 2, 2, EBB_CPU_STATE_LEAVING, 0, 2);
	ebb_cpuset_retry(&f->set, 1, 50 * MS);
	ebb_cpuset_retry(&f->set, 2, 20 * MS);
	assert_false(ebb_cpuset_claim(&f->set, 60 * MS, &e, &next_ns));
	assert_true(next_ns == 120 * MS);
	assert_true(ebb_cpuset_claim(&f->set, 130 * MS, &e, &next_ns));
	assert_int_equal(e.desc.hv_cpu_id, 2);
}

static void test_leave_owner(void **state)
{
	struct fixture *f = *state;

	add(f, 1, 1, EBB_CPU_STATE_OWNED, ALICE, 1);
	add(f, 2, 2, EBB_CPU_STATE_OWNED, BOB, 2);
	add(f, 3, 3, EBB_CPU_STATE_COMING, ALICE, EBB_CPUSET_NO_CPU);
	assert_int_equal(ebb_cpuset_let_go_owner(&f->set, ALICE), 2);
	assert_int_equal(ebb_cpuset_let_go_owner(&f->set, ALICE), 0);
	assert_int_equal(ebb_cpuset_find(&f->set, 2)->state, EBB_CPU_STATE_OWNED);
	assert_int_equal(ebb_cpuset_let_go_owner(&f->set, 0), 1);
	assert_int_equal(ebb_cpuset_find(&f->set, 100)->state, EBB_CPU_STATE_STARTUP);
	ebb_cpuset_leave(&f->set, 100);
	assert_int_equal(ebb_cpuset_find(&f->set, 100)->state, EBB_CPU_STATE_STARTUP);
	check(&f->set);
}

static void test_delete_keeps_order(void **state)
{
	struct fixture *f = *state;

	for (u64 id = 1; id <= 4; id++)
		add(f, id, id, EBB_CPU_STATE_OWNED, ALICE, id);
	ebb_cpuset_delete(&f->set, 2);
	ebb_cpuset_delete(&f->set, 2);
	assert_int_equal(f->set.count, 4);
	assert_int_equal(f->set.entries[0].desc.hv_cpu_id, 100);
	assert_int_equal(f->set.entries[1].desc.hv_cpu_id, 1);
	assert_int_equal(f->set.entries[2].desc.hv_cpu_id, 3);
	assert_int_equal(f->set.entries[3].desc.hv_cpu_id, 4);
	ebb_cpuset_delete(&f->set, 4);
	assert_null(ebb_cpuset_find(&f->set, 4));
	check(&f->set);
}

static void test_flags(void **state)
{
	struct fixture *f = *state;
	struct ebb_cpu_desc desc = desc_of(1, 1);

	desc.flags = VIRTIO_EBB_CPU_F_HT;
	ebb_cpuset_insert(&f->set, &desc, EBB_CPU_STATE_OWNED, ALICE, 1);
	desc.flags = VIRTIO_EBB_CPU_F_HT | VIRTIO_EBB_CPU_F_FORCED;
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), 0);
	assert_int_equal(ebb_cpuset_find(&f->set, 1)->desc.flags, desc.flags);
	desc.flags = VIRTIO_EBB_CPU_F_HT;
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), 0);
	desc.flags = VIRTIO_EBB_CPU_F_FORCED;
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), -EINVAL);
	desc.flags = VIRTIO_EBB_CPU_F_HT;
	desc.arch_id = 2;
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), -EINVAL);
	desc.arch_id = 1;
	desc.pxm = 1;
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), -EINVAL);
	desc = desc_of(9, 1);
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), -ENOENT);
	desc = desc_of(100, 0);
	desc.flags = VIRTIO_EBB_CPU_F_STARTUP | VIRTIO_EBB_CPU_F_FORCED;
	assert_int_equal(ebb_cpuset_set_flags(&f->set, &desc), -EINVAL);
	assert_int_equal(ebb_cpuset_find(&f->set, 1)->desc.flags, VIRTIO_EBB_CPU_F_HT);
}

/* Random life: whatever order things happen in, the invariants hold and nothing is lost. */
static void test_random_walk(void **state)
{
	struct fixture *f = *state;
	u64 now_ns = 0, next_id = 1000, next_ns;
	unsigned int claimed = 0;
	struct ebb_cpu_entry e;
	u64 busy_ids[CAPACITY];

	srand(7);
	for (unsigned int step = 0; step < 200000; step++) {
		u64 owner = 1 + rand() % 3;
		u64 id = f->set.entries[rand() % f->set.count].desc.hv_cpu_id;
		u32 arch_id = rand() % 6;

		now_ns += rand() % (50 * MS);
		switch (rand() % 7) {
		case 0:
			next_id += !add(f, next_id, arch_id, EBB_CPU_STATE_COMING, owner,
					EBB_CPUSET_NO_CPU);
			break;
		case 1:
			ebb_cpuset_online(&f->set, id, 10 + arch_id);
			break;
		case 2:
			if (claimed < CAPACITY &&
			    !begin(f, 10 + arch_id, owner, EBB_GIVE_REMOVE, &e)) {
				ebb_cpuset_end_give(&f->set, e.desc.hv_cpu_id, EBB_GIVE_REMOVE);
				busy_ids[claimed++] = e.desc.hv_cpu_id;
			}
			break;
		case 3:
			ebb_cpuset_let_go_owner(&f->set, rand() % 16 ? owner : 0);
			break;
		case 4:
			if (claimed < CAPACITY &&
			    ebb_cpuset_claim(&f->set, now_ns, &e, &next_ns))
				busy_ids[claimed++] = e.desc.hv_cpu_id;
			break;
		case 5:
			if (claimed)
				ebb_cpuset_delete(&f->set, busy_ids[--claimed]);
			break;
		case 6:
			if (claimed)
				ebb_cpuset_retry(&f->set, busy_ids[--claimed], now_ns);
			break;
		}
		check(&f->set);
		for (unsigned int i = 0; i < claimed; i++) {
			assert_non_null(ebb_cpuset_find(&f->set, busy_ids[i]));
			assert_true(ebb_cpuset_find(&f->set, busy_ids[i])->busy);
		}
	}
	assert_true(next_id > 2000);

	while (claimed)
		ebb_cpuset_delete(&f->set, busy_ids[--claimed]);
	ebb_cpuset_let_go_owner(&f->set, 0);
	ebb_cpuset_retry_now(&f->set);
	while (ebb_cpuset_claim(&f->set, now_ns, &e, &next_ns))
		ebb_cpuset_delete(&f->set, e.desc.hv_cpu_id);
	assert_int_equal(f->set.count, 1);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_insert_refuses),
		TEST(test_replug_while_leaving),
		TEST(test_grant_to_online),
		TEST(test_taken_while_coming),
		TEST(test_who_may_remove),
		TEST(test_claim_respects_busy),
		TEST(test_backoff),
		TEST(test_is_tried),
		TEST(test_earliest_retry_first),
		TEST(test_leave_owner),
		TEST(test_delete_keeps_order),
		TEST(test_flags),
		TEST(test_random_walk),
	};

	return cmocka_run_group_tests_name("ebb_cpuset", tests, NULL, NULL);
}
