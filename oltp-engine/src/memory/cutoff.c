// SPDX-License-Identifier: GPL-2.0-or-later
/* See cutoff.h. */
#include <stdlib.h>

#include "cutoff.h"
#include "oltp-engine/src/txn/engine.h"

struct step {
	uint32_t table;
	double value;		/* the highest of its records and of all older ones */
	double bytes;
	uint64_t age_ns;	/* its records are older than that; 0: it has the youngest */
};

struct steps {
	struct step steps[OLTP_TABLES_MAX * CUTOFF_CLASSES];
	uint32_t n;
};

static int compare_tables(const void *a, const void *b)
{
	const struct oltp_memory_sample *x = a, *y = b;

	return (x->table->id > y->table->id) - (x->table->id < y->table->id);
}

/* Least valuable first. */
static int compare_steps(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

static void table_add(struct steps *all, struct oltp_memory_sample *samples, uint32_t n)
{
	struct oltp_memory_class classes[CUTOFF_CLASSES];
	uint32_t number = samples->table->id, n_classes;
	double value = 0;

	n_classes = oltp_memory_classes_make(samples, n, classes, CUTOFF_CLASSES);
	for (uint32_t i = n_classes; i-- > 0;) {
		value = classes[i].value > value ? classes[i].value : value;
		all->steps[all->n++] = (struct step){ number, value, (double)classes[i].bytes,
						      i ? classes[i - 1].last_ns_max : 0 };
	}
}

void cutoff_ages(struct oltp_memory_sample *samples, uint32_t n, double cutoff, double share,
		 uint64_t ret_ages_ns[OLTP_TABLES_MAX])
{
	struct steps all = { .n = 0 };
	double bytes = 0, seen = 0;

	for (uint32_t i = 0; i < OLTP_TABLES_MAX; i++)
		ret_ages_ns[i] = CUTOFF_NONE;
	qsort(samples, n, sizeof(*samples), compare_tables);
	for (uint32_t from = 0, end; from < n; from = end) {
		for (end = from; end < n && samples[end].table == samples[from].table; end++)
			;
		table_add(&all, samples + from, end - from);
	}
	qsort(all.steps, all.n, sizeof(*all.steps), compare_steps);
	for (uint32_t i = 0; i < all.n; i++)
		bytes += all.steps[i].bytes;
	for (uint32_t i = 0; i < all.n && seen < share * bytes; i++) {
		uint64_t *age_ns = &ret_ages_ns[all.steps[i].table];

		if (all.steps[i].value >= cutoff)
			break;
		seen += all.steps[i].bytes;
		/* Of two steps of the same value the younger may come first. */
		if (all.steps[i].age_ns < *age_ns)
			*age_ns = all.steps[i].age_ns;
	}
}
