/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>

#include "simulate/placed-demand.h"
#include "util/random.h"

#define BRIEF_LIFE	24.0		/* median, steps */
#define BRIEF_SIGMA	0.7
#define BRIEF_CPU	0.8
#define LONG_LIFE	(56.0 * SIM_PLACE_DAY)
#define LONG_SIGMA	0.3527		/* ln(88 / 56) over the 0.9 quantile of a normal, 1.2816 */
#define MAX_LIFE	(400.0 * SIM_PLACE_DAY)
/* Growth of memory and disk, in parts of the life and of the peak. */
#define GROWN_LIFE	0.05
#define GROWN_PART	0.95
#define FIRST_PART	0.1
/* Data in the end, in parts of the disk of the class. */
#define DATA_MEDIAN	0.2
#define DATA_SIGMA	1.2
/* The fifth of the data that is used often, in parts of memory, which is a tenth of the disk. */
#define MEMORY_OF_DATA	2.0

/* Sizes as clouds sell them: half as many of twice the size, so each has as many vCPUs in all. */
const struct sim_place_class sim_place_classes[SIM_PLACE_CLASSES] = {
	{ "provisioned-2",  2,  1, 0.256, false },
	{ "provisioned-4",  4,  1, 0.128, false },
	{ "provisioned-8",  8,  1, 0.064, false },
	{ "provisioned-16", 16, 1, 0.032, false },
	{ "provisioned-32", 32, 1, 0.016, false },
	{ "serverless-2",   2,  1, 0.216, true },
	{ "serverless-4",   4,  1, 0.108, true },
	{ "serverless-8",   8,  1, 0.054, true },
	{ "serverless-16",  16, 1, 0.027, true },
	{ "replicated-4",   4,  3, 0.066, false },
	{ "replicated-8",   8,  3, 0.033, false },
};

/* Box-Muller. */
static double normal(uint64_t *random)
{
	const double u = ebb_random_unit(random), v = ebb_random_unit(random);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static uint32_t draw_class(uint64_t *random)
{
	double u = ebb_random_unit(random);
	uint32_t class = 0;

	while (class + 1 < SIM_PLACE_CLASSES && u >= sim_place_classes[class].fraction)
		u -= sim_place_classes[class++].fraction;
	return class;
}

/* Earlier VMs have the even rows, simulated VMs the odd ones. */
static uint32_t draw_row(uint64_t *random, uint32_t num_rows, enum sim_place_half half)
{
	const uint32_t odd = half == SIM_PLACE_SIMULATED;
	const uint32_t rows = (num_rows + !odd) / 2;

	return 2 * (uint32_t)(ebb_random(random) % rows) + odd;
}

void sim_place_draw(uint64_t *random, const struct sim_place_traces *traces,
		    enum sim_place_half half, int32_t class, struct sim_place_database *ret)
{
	const uint32_t chosen = class < 0 ? draw_class(random) : (uint32_t)class;
	const bool is_brief = ebb_random_unit(random) < SIM_PLACE_BRIEF;
	const double median = is_brief ? BRIEF_LIFE : LONG_LIFE;
	const double sigma = is_brief ? BRIEF_SIGMA : LONG_SIGMA;
	const double life = median * exp(sigma * normal(random));
	const uint32_t row = draw_row(random, traces->num_rows, half);
	const uint32_t days = traces->rows[row].num_steps / SIM_PLACE_DAY;
	const double data = DATA_MEDIAN * exp(DATA_SIGMA * normal(random));

	*ret = (struct sim_place_database){
		.class = chosen,
		.life = life < 1 ? 1 : life > MAX_LIFE ? (uint32_t)MAX_LIFE : (uint32_t)life,
		.is_brief = is_brief,
		.row = row,
		.shift = (uint32_t)(ebb_random(random) % days) * SIM_PLACE_DAY,
		.memory_peak = fmin(1, MEMORY_OF_DATA * data), .disk_peak = fmin(1, data),
	};
}

void sim_place_maximum(uint32_t class, double ret[PLACE_N_RESOURCES])
{
	const uint32_t vcpus = sim_place_classes[class].vcpus;

	ret[PLACE_CPU] = 1000 * vcpus;
	ret[PLACE_MEMORY] = SIM_PLACE_MEM_MIB * vcpus;
	ret[PLACE_DISK] = SIM_PLACE_DISK_MIB * vcpus;
}

/* The part of its peak that a VM has reached. */
static double grown(const struct sim_place_database *db, uint32_t age)
{
	const double x = (double)age / db->life;

	if (x < GROWN_LIFE)
		return FIRST_PART + (GROWN_PART - FIRST_PART) * x / GROWN_LIFE;
	return x < 1 ? GROWN_PART + (1 - GROWN_PART) * (x - GROWN_LIFE) / (1 - GROWN_LIFE) : 1;
}

static double cpu_part(const struct sim_place_database *db, const struct sim_place_traces *traces,
		       uint32_t step)
{
	const struct sim_place_row *row = &traces->rows[db->row];

	return db->is_brief ? BRIEF_CPU :
			      (double)row->percent[(step + db->shift) % row->num_steps] / 100;
}

bool sim_place_is_active(const struct sim_place_database *db,
			 const struct sim_place_traces *traces, uint32_t born, uint32_t age)
{
	for (uint32_t back = 0; back < SIM_PLACE_ACTIVE_STEPS && back <= age; back++)
		if (cpu_part(db, traces, born + age - back) > SIM_PLACE_ACTIVE_PART)
			return true;
	/* It has just been made. */
	return age < SIM_PLACE_ACTIVE_STEPS;
}

void sim_place_use(const struct sim_place_database *db, const struct sim_place_traces *traces,
		   bool is_secondary, uint32_t born, uint32_t age,
		   double ret[PLACE_N_RESOURCES])
{
	const bool is_paused = sim_place_classes[db->class].is_serverless &&
			       !sim_place_is_active(db, traces, born, age);
	const double cpu = is_paused ? 0 : cpu_part(db, traces, born + age);
	const double part = grown(db, age);

	sim_place_maximum(db->class, ret);
	ret[PLACE_CPU] *= cpu * (is_secondary ? SIM_PLACE_SECONDARY_CPU : 1);
	ret[PLACE_MEMORY] *= is_paused ? 0 : part * db->memory_peak;
	ret[PLACE_DISK] *= part * db->disk_peak;
}
