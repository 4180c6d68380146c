/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The broker experiment in simulated time, with the very policies of ebbd: on each node of a host
 * half of the databases are large and cold (their memory is full, their load has just stopped), the
 * others are small, and their load has just begun.  After a while the cold ones are used again.
 * Source: "Flexible resource allocation for relational database-as-a-service", section 8.1.
 *
 * A database has more data than memory and is bound by its disk, which does a fixed number of reads
 * a second; each access that misses needs one.  How often a part of the data is used follows a Zipf
 * law (as YCSB) or falls off exponentially (as TPC-C).  It keeps the pages that are used most and
 * gives back those that are used least.  It answers a question with a histogram of some hundred
 * sampled pages.  Their rates follow from the age of their last use but one, in time during which
 * the database ran: pauses are left out.  During a pause less use is expected of all pages, as in
 * oltp-engine (src/memory/idle.h).
 */
#ifndef EBB_SIMULATE_BROKERED_H
#define EBB_SIMULATE_BROKERED_H

#include "model/policy.h"

/* Parts of a database that are used alike, the most used first. */
#define BROKERED_PARTS		128u
#define BROKERED_SAMPLES	300u	/* at most VIRTIO_EBB_VOM_MAX_BUCKETS */

#define BROKERED_IDLE_HALF_S	120u	/* if nothing else is wanted: IDLE_HALF_MS of oltp-engine */
#define BROKERED_IDLE_S		1800u	/* of the cold ones, before */
#define BROKERED_RAMP_S		600u	/* length of the ramp-up */
#define BROKERED_RESTART_S	1200u	/* when the cold ones are used again */
#define BROKERED_LENGTH_S	1800u
#define BROKERED_AVERAGE_S	120u	/* of the moving average */

struct brokered_db {
	double part_blocks;		/* size of a part */
	double share[BROKERED_PARTS];	/* of all accesses */
	double held[BROKERED_PARTS];	/* blocks in memory */
	double sum_held;
	double load;			/* 0: none; 1: as much as it can do */
	double reads;			/* that its disk can do a second */
	double did[BROKERED_LENGTH_S];	/* accesses until the end of each second that it ran */
	uint32_t ran_s;
	double before;			/* accesses a second before that, and for how long */
	double before_s;
	double pause_s;			/* the one that goes on */
	uint64_t chance;
};

/* Zipf with this theta (below 1), or with 0 exponential; keeps_blocks are in memory. */
void brokered_db_init(struct brokered_db *db, double blocks, double theta, double reads,
		      double keeps_blocks, uint64_t seed);
/* A number from 0 to 1. */
double brokered_db_chance(struct brokered_db *db);
/*
 * Runs one second and returns the accesses.  Blocks that it misses are read, as far as it may hold
 * them (may_hold).  At most BROKERED_LENGTH_S times, or so often after brokered_db_settle.
 */
double brokered_db_run(struct brokered_db *db, double may_hold);
/* The part of its accesses that misses now, 0 to 1. */
double brokered_db_missed(const struct brokered_db *db);
/* Counts accesses and the reads that follow from them; load, disk and history do not change. */
void brokered_db_access(struct brokered_db *db, double accesses, double may_hold);
/* It has run for so long as it did in the last second. */
void brokered_db_settle(struct brokered_db *db, double seconds);
/* It does not run for so long. */
void brokered_db_pause(struct brokered_db *db, double seconds);
/* Gives back that many blocks, the least used ones. */
void brokered_db_give(struct brokered_db *db, double blocks);
/* Up to BROKERED_SAMPLES buckets; returns how many.  After a pause so long, half is expected. */
uint32_t brokered_db_tell(struct brokered_db *db, double idle_half_s, struct ebb_vom_bucket *ret);

struct brokered_options {
	uint64_t seed;
	uint32_t num_vms;		/* 2 to EBB_MAX_VMS, even */
	uint16_t num_nodes;		/* 1 to EBB_MAX_NODES; VMs go round */
	uint32_t idle_half_s;		/* see brokered_db_tell; at least 1 */
};

struct brokered_result {
	const char *policy;
	/* Accesses a second of all warm databases in the ramp-up, moving average of two minutes. */
	double ramp_median, ramp_p95;
	/* The same of the cold ones, from when they are used again. */
	double restart_median;
	double warm_mib, cold_mib;	/* that one of each has on average when the cold restart */
	uint32_t num_asked;
	uint32_t num_brokered;		/* nodes and times at which memory was asked back */
	double worst_used;		/* most that was in use of a node, of its capacity */
};

/* -ENOMEM, or what the policy says. */
int brokered_run(const struct brokered_options *options, const struct ebb_policy_ops *policy,
		 struct brokered_result *ret);

#endif
