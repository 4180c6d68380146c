/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traces and clusters for place/place.h, made up from a seed. */
#ifndef EBB_TEST_PLACE_RIG_H
#define EBB_TEST_PLACE_RIG_H

#include "place/place.h"

#define RIG_STEP	600u		/* seconds */
#define RIG_DAY		144u		/* steps */
#define RIG_CLASSES	4u

/* Everything that place_create() is given. */
struct rig {
	struct place_config config;
	struct place_traces *traces;
	uint32_t n_hosts, n_vms;
	struct place_host *hosts;
	struct place_vm *vms;
};

/*
 * The demand of a VM of class 0 to RIG_CLASSES - 1: memory grows in the first day, CPU has days
 * and bursts, disk grows slowly; secondaries use a third of the CPU.
 */
void rig_demand(uint64_t seed, uint32_t class, enum place_role role, uint32_t steps, float *ret);
/* per_group traces of each class and role, of so many days. */
struct place_traces *rig_traces(uint32_t per_group, uint32_t days, uint64_t seed);
/* What a VM uses at its age, as rig_demand() has it. */
struct place_vm rig_vm(uint64_t seed, uint64_t id, uint32_t age);
/*
 * Hosts of 16 CPUs, 64 GiB and 2 TiB in 5 fault and 10 upgrade domains, and so many VMs, spread
 * evenly; `per_host` is how many VMs fill a host on average.
 */
struct rig *rig_create(uint32_t n_hosts, uint32_t n_vms, double per_host, uint64_t seed);
void rig_destroy(struct rig *rig);

/* Traces by hand: all of one class and role, `steps` rows; later calls add more. */
struct hand {
	uint32_t n;
	struct place_trace traces[64];
};

/* The amounts from `from` on; before that, nothing. */
void hand_add(struct hand *hand, uint32_t class, enum place_role role, uint32_t steps,
	      uint32_t from, float cpu, float memory, float disk);
/* Frees what hand_add() took, too. */
struct place_traces *hand_traces(struct hand *hand, uint32_t n_classes);

struct place_host plain_host(double cpu, double memory, double disk);
/* A VM of class 0 on no host that uses so much. */
struct place_vm plain_vm(uint64_t id, double cpu, double memory, double disk);
/* Without look-ahead, so that there is no need of traces. */
struct place_config plain_config(void);
struct place *plain_create(const struct place_config *config, const struct place_traces *traces,
			   const struct place_host *hosts, uint32_t n_hosts,
			   const struct place_vm *vms, uint32_t n_vms);

struct place *rig_place(const struct rig *rig);
/* All VMs to where they were when they were given. */
void rig_reset(struct place *place);

#endif
