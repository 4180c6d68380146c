/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small table of CPUs of the guest driver, for its tests: one startup CPU (id 100, APIC id 0). */
#ifndef EBB_TESTS_CPUSET_FIXTURE_H
#define EBB_TESTS_CPUSET_FIXTURE_H

#include "guest-driver/pure/cpuset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <linux/virtio_ebb.h>

#define CAPACITY	8
#define ALICE		1
#define BOB		2
#define MS		1000000ULL

struct fixture {
	struct ebb_cpuset set;
	struct ebb_cpu_entry storage[CAPACITY];
};

struct ebb_cpu_desc desc_of(u64 id, u32 arch_id);

/* ebb_cpuset_insert(), with the flags that the startup set has. */
int add(struct fixture *f, u64 id, u32 arch_id, enum ebb_cpu_state state, u64 owner, u32 cpu);

int begin(struct fixture *f, u32 cpu, u64 owner, enum ebb_give how,
	  struct ebb_cpu_entry *ret_entry);

/* The entry with this id, which there must be, in a table that is in order. */
struct ebb_cpu_entry *entry(struct fixture *f, u64 id);

/* I1 to I5 hold for whatever is in the table. */
void check(const struct ebb_cpuset *set);

/* For cmocka; the second one with a device that can lend. */
int setup(void **state);
int setup_lend(void **state);
int teardown(void **state);

#endif /* EBB_TESTS_CPUSET_FIXTURE_H */
