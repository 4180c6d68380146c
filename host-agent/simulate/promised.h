/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A promised cache in simulated time, with the policies, the control and the meter of ebbd
 * (core/floor/control.h, core/promise/cache.h): a database that is promised a cache of 10 GiB and
 * has as much is joined by others that want all memory there is.  All are as in brokered.h.  The
 * simulated cache sees the same accesses and keeps what is used most, as the database does.
 */
#ifndef EBB_SIMULATE_PROMISED_H
#define EBB_SIMULATE_PROMISED_H

#include "model/policy.h"

#define PROMISED_LENGTH_S	1200u
#define PROMISED_MIB		10240u

struct promised_options {
	uint64_t seed;
	uint32_t num_others;		/* 1 to PROMISED_MAX_OTHERS */
	bool is_kept;			/* by a floor; no: only metered */
};

#define PROMISED_MAX_OTHERS	16u

struct promised_result {
	const char *policy;
	double relative_io;		/* over all of the time */
	uint32_t num_violations;	/* seconds that broke the promise */
	double mib;			/* that the database held, on average */
	double least_floor_mib;		/* its floor, at its lowest */
	double others;			/* accesses a second of all others, on average */
};

/* Returns 0, -EINVAL for a wrong num_others, or the -errno of the policy. */
int promised_run(const struct promised_options *options, const struct ebb_policy_ops *policy,
		 struct promised_result *ret);

#endif
