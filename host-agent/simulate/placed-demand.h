/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Databases that are placed: their classes, how long they live and what their VMs use over time.
 * All pure; the same random state gives the same databases.
 *
 * CPU follows a row of real or made-up traces.  Public traces have no memory and disk of
 * databases, so these are made, from the data that a database has in the end.  Sizes of databases
 * are log-normal: the median is 20% of the disk that the class may use, sigma 1.2.  The disk holds
 * the data, memory the fifth of it that is used often, neither more than the maximum of the class:
 * 0.32 and 0.50 of it on average.  The median is chosen so that memory, which is scarcest, is
 * nearly used up at an over-subscription of 2.2.  A VM reaches 95% of that in the first 5% of its
 * life, steadily, from a tenth at its beginning, and the rest until its end.  ("Flexible resource
 * allocation for relational database-as-a-service", 2.2: memory grows rapidly at the beginning of a
 * life, and much less later.)
 * A serverless database is paused while it has not been active for an hour, and uses no CPU and no
 * memory then, as clouds do by default ("intermittent and unpredictable usage", section 1).
 *
 * Half of the databases live long: a median of 56 days, nine tenths less than 88 (section 2.2;
 * log-normal).  The other half is there for some work of hours ("placed, do some continuous
 * computation and then are deleted within a few hours", section 6): a median of 4 hours,
 * log-normal with sigma 0.7, with four fifths of their CPUs in use throughout.
 */
#ifndef EBB_SIMULATE_PLACED_DEMAND_H
#define EBB_SIMULATE_PLACED_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "place/place.h"
#include "simulate/placed-traces.h"

#define SIM_PLACE_CLASSES	11u
#define SIM_PLACE_MAX_REPLICAS	3u
/* Of a class, for each vCPU; hosts have the same proportions. */
#define SIM_PLACE_MEM_MIB	5120u
#define SIM_PLACE_DISK_MIB	(50u * 1024u)
/* A secondary uses what its primary does, but only this part of its CPU: it applies the log. */
#define SIM_PLACE_SECONDARY_CPU	0.3
/* A database is active if it used more than this part of its CPUs in a step of the last hour. */
#define SIM_PLACE_ACTIVE_PART	0.05
#define SIM_PLACE_ACTIVE_STEPS	6u
/* Part of all databases: those that live for hours. */
#define SIM_PLACE_BRIEF		0.5

struct sim_place_class {
	const char *name;
	uint32_t vcpus;
	uint32_t replicas;		/* VMs of a database: a primary and secondaries */
	double fraction;		/* of all databases; the sum is 1 */
	bool is_serverless;
};

extern const struct sim_place_class sim_place_classes[SIM_PLACE_CLASSES];

/* What is drawn for a database; its replicas are alike. */
struct sim_place_database {
	uint32_t class;
	uint32_t life;			/* steps, at least 1 */
	bool is_brief;
	uint32_t row;			/* of the traces */
	uint32_t shift;			/* whole days by which its row is shifted, in steps */
	double memory_peak, disk_peak;	/* parts of the maximum, 0 to 1 */
};

/* Which rows of the traces a database may have: none belongs to both. */
enum sim_place_half { SIM_PLACE_EARLIER, SIM_PLACE_SIMULATED };

/* class: -1: drawn, too. */
void sim_place_draw(uint64_t *random, const struct sim_place_traces *traces,
		    enum sim_place_half half, int32_t class, struct sim_place_database *ret);

/* The most that a VM of the class may use, CPU in thousandths. */
void sim_place_maximum(uint32_t class, double ret[PLACE_N_RESOURCES]);

/*
 * What a VM of the database uses `age` steps after its beginning, which was at step `born` (steps
 * are counted from a midnight).
 */
void sim_place_use(const struct sim_place_database *db, const struct sim_place_traces *traces,
		   bool is_secondary, uint32_t born, uint32_t age,
		   double ret[PLACE_N_RESOURCES]);

bool sim_place_is_active(const struct sim_place_database *db,
			 const struct sim_place_traces *traces, uint32_t born, uint32_t age);

#endif
