/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpuset_fixture.h"

struct ebb_cpu_desc desc_of(u64 id, u32 arch_id)
{
	return (struct ebb_cpu_desc) { .hv_cpu_id = id, .arch_id = arch_id };
}

int add(struct fixture *f, u64 id, u32 arch_id, enum ebb_cpu_state state, u64 owner, u32 cpu)
{
	struct ebb_cpu_desc desc = desc_of(id, arch_id);

	if (state == EBB_CPU_STATE_STARTUP)
		desc.flags = VIRTIO_EBB_CPU_F_STARTUP;
	return ebb_cpuset_insert(&f->set, &desc, state, owner, cpu);
}

int begin(struct fixture *f, u32 cpu, u64 owner, enum ebb_give how,
	  struct ebb_cpu_entry *ret_entry)
{
	return ebb_cpuset_begin_give(&f->set, cpu, owner, false, how, ret_entry);
}

int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	ebb_cpuset_init(&f->set, f->storage, CAPACITY, false);
	*state = f;
	return add(f, 100, 0, EBB_CPU_STATE_STARTUP, 0, 0);
}

int setup_lend(void **state)
{
	int rc = setup(state);

	if (!rc)
		((struct fixture *)*state)->set.can_lend = true;
	return rc;
}

int teardown(void **state)
{
	free(*state);
	return 0;
}

void check(const struct ebb_cpuset *set)
{
	bool is_past_startup = false;

	assert_true(set->count <= set->capacity);
	for (unsigned int i = 0; i < set->count; i++) {
		const struct ebb_cpu_entry *a = &set->entries[i];
		bool is_owned = a->state == EBB_CPU_STATE_COMING || a->state == EBB_CPU_STATE_OWNED;

		assert_true(a->desc.hv_cpu_id != 0);
		assert_int_equal(is_owned, a->owner != 0);
		assert_false(is_past_startup && a->state == EBB_CPU_STATE_STARTUP);
		is_past_startup |= a->state != EBB_CPU_STATE_STARTUP;
		assert_false(a->arrives && a->state != EBB_CPU_STATE_LENT);
		assert_false(a->parks && a->state != EBB_CPU_STATE_LENDING);
		assert_false(a->arrives && a->desc.flags & VIRTIO_EBB_CPU_F_PARKED);
		if (!set->can_lend)
			assert_true(a->state <= EBB_CPU_STATE_LEAVING);
		for (unsigned int j = 0; j < i; j++) {
			const struct ebb_cpu_entry *b = &set->entries[j];

			assert_true(a->desc.hv_cpu_id != b->desc.hv_cpu_id);
			if (a->state != EBB_CPU_STATE_LEAVING && b->state != EBB_CPU_STATE_LEAVING)
				assert_true(a->desc.arch_id != b->desc.arch_id);
		}
	}
}

struct ebb_cpu_entry *entry(struct fixture *f, u64 id)
{
	struct ebb_cpu_entry *e = ebb_cpuset_find(&f->set, id);

	assert_non_null(e);
	check(&f->set);
	return e;
}
