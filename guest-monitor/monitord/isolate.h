/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps threads that did not ask for them off the CPUs that come and go, so that a lent CPU, whose
 * vCPU shares the VM's home cores, is empty.
 *
 * By affinity, not by a partition of CPUs (cgroup v2, cpuset): the kernel refuses
 * to let a thread outside of a partition run in it, but an engine that has just
 * been granted a CPU, by whatever library, must be able to start there at once.
 * A thread that has not asked for certain CPUs is kept to the startup set, and so
 * are the threads and processes that it makes; one that asks gets what it asks for.
 *
 *   I1  a thread (or a list of CPUs that the kernel keeps for its own work) is
 *       narrowed to the startup set if, and only if, it is allowed on every CPU
 *       that is online
 *   I2  it is let go, to all CPUs there can be, if it is allowed on exactly
 *       those of the startup set that are online, and is not an engine's
 *   I3  nothing changes as long as no CPU of the startup set is online, or known
 *
 * isolate.c decides and is pure; sweep.c carries out.
 */
#ifndef EBB_ISOLATE_H
#define EBB_ISOLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than Linux can be built for; CPUs beyond are passed over. */
#define EBB_ISOLATE_MAX_CPUS	8192
#define EBB_ISOLATE_WORDS	(EBB_ISOLATE_MAX_CPUS / 64)

/* As hexadecimal text with a comma after each 32 bits. */
#define EBB_ISOLATE_TEXT_BYTES	(EBB_ISOLATE_MAX_CPUS / 32 * 9 + 2)

/* CPU n is bit n % 64 of word n / 64: on machines of the VM's kind that is also the kernel's. */
struct ebb_isolate_set {
	uint64_t words[EBB_ISOLATE_WORDS];
};

struct ebb_isolate_cpus {
	struct ebb_isolate_set startup;
	struct ebb_isolate_set online;
	struct ebb_isolate_set possible;
};

void ebb_isolate_set_add(struct ebb_isolate_set *set, uint32_t cpu);
bool ebb_isolate_set_is_within(const struct ebb_isolate_set *set,
			       const struct ebb_isolate_set *other);

/* I1 */
bool ebb_isolate_must_narrow(const struct ebb_isolate_cpus *cpus,
			     const struct ebb_isolate_set *allowed);

/* I2 */
bool ebb_isolate_must_let_go(const struct ebb_isolate_cpus *cpus,
			     const struct ebb_isolate_set *allowed, bool is_engine);

/* "0-3,8", with or without an end of line.  -EINVAL: not such a list. */
int ebb_isolate_list_parse(const char *text, struct ebb_isolate_set *ret);

/* "ff,ffffffff", CPU 0 last, likewise. */
int ebb_isolate_mask_parse(const char *text, struct ebb_isolate_set *ret);

/* The same for writing; text has EBB_ISOLATE_TEXT_BYTES. */
void ebb_isolate_mask_format(const struct ebb_isolate_set *set, char *text);

#endif /* EBB_ISOLATE_H */
