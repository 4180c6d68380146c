/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For tests of what the core does around brokering: a script (core_script.h) with two VMs, a and b,
 * that hold 400 MiB each of 1024, and a policy that does what the test says.
 */
#ifndef TESTS_UNIT_BROKER_RIG_H
#define TESTS_UNIT_BROKER_RIG_H

#include "tests/unit/host-agent/core/core_script.h"

#define RIG_VMS		4
#define RIG_REVIEW_USEC	MSEC(100)

/* By VM in order of arrival, its node 0: what it is to have, and what the policy saw last. */
struct rig_told {
	bool asks;
	uint32_t target_mib[RIG_VMS];
	uint64_t cutoff[RIG_VMS];
	unsigned num_decided;
	usec_t asked_at;
	bool is_open;
	usec_t vom_at[RIG_VMS];
	uint32_t held_mib[RIG_VMS];
	char buckets[RIG_VMS][512];	/* "value/MiB value/MiB" */
};
extern struct rig_told told;

int rig_setup(void **state);
int rig_teardown(void **state);

/* The guest has plugged or unplugged, and the device says so. */
void rig_holds(struct script *s, char vm, uint32_t held_mib);
/* Settled, and what devices were told is taken over. */
void rig_settle(struct script *s);
/* Has the policy decide again with the next ebb_state_next(), a millisecond later. */
void rig_decide_again(struct script *s);
/* Has it ask what memory is worth; the number of the last ask. */
void rig_ask(struct script *s);
uint32_t rig_seq(const struct script *s);

#define RIG_CASE(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

#endif /* TESTS_UNIT_BROKER_RIG_H */
