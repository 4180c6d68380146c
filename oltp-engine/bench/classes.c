// SPDX-License-Identifier: GPL-2.0-or-later
/* See classes.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/base/hist.h"

/* Without arrivals: measure one transaction in so many; a power of two. */
#define MEASURE_EVERY	16u

/* Written by one worker; read by anybody. */
struct class_counts {
	_Atomic uint64_t committed, conflicts, failed;
	struct hist hist;
};

struct class_sums {
	uint64_t committed, conflicts, failed;
	struct hist_view hist;
};

struct class_worker {
	struct classes *classes;
	struct class_worker *next;
	uint32_t n_begun;			/* without arrivals */
	uint64_t arrival_ns;			/* of the next transaction; 0: work is unlimited */
	uint8_t class_of[OLTP_TICKETS];
	uint64_t start_ns[OLTP_TICKETS];	/* 0: not measured */
	struct class_counts counts[];
};

struct classes {
	uint32_t n;
	const char *names[CLASSES_MAX];
	pthread_mutex_t lock;		/* what follows */
	struct class_worker *workers;
	struct class_sums gone[CLASSES_MAX];
};

int classes_create(const char *const *names, uint32_t n, struct classes **ret_classes)
{
	struct classes *classes;

	if (n < 1 || n > CLASSES_MAX)
		return -EINVAL;
	classes = calloc(1, sizeof(*classes));
	if (!classes)
		return -ENOMEM;
	classes->n = n;
	memcpy(classes->names, names, n * sizeof(*names));
	pthread_mutex_init(&classes->lock, NULL);
	*ret_classes = classes;
	return 0;
}

void classes_destroy(struct classes *classes)
{
	if (!classes)
		return;
	pthread_mutex_destroy(&classes->lock);
	free(classes);
}

int classes_attach(struct classes *classes, struct class_worker **ret_worker)
{
	struct class_worker *worker =
		calloc(1, sizeof(*worker) + classes->n * sizeof(worker->counts[0]));

	if (!worker)
		return -ENOMEM;
	worker->classes = classes;
	pthread_mutex_lock(&classes->lock);
	worker->next = classes->workers;
	classes->workers = worker;
	pthread_mutex_unlock(&classes->lock);
	*ret_worker = worker;
	return 0;
}

static void add(struct class_sums *sums, const struct class_counts *counts)
{
	sums->committed += atomic_load_explicit(&counts->committed, memory_order_relaxed);
	sums->conflicts += atomic_load_explicit(&counts->conflicts, memory_order_relaxed);
	sums->failed += atomic_load_explicit(&counts->failed, memory_order_relaxed);
	hist_view_add(&sums->hist, &counts->hist);
}

void classes_detach(struct class_worker *worker)
{
	struct class_worker **link;
	struct classes *classes;

	if (!worker)
		return;
	classes = worker->classes;
	pthread_mutex_lock(&classes->lock);
	for (link = &classes->workers; *link != worker;)
		link = &(*link)->next;
	*link = worker->next;
	for (uint32_t i = 0; i < classes->n; i++)
		add(&classes->gone[i], &worker->counts[i]);
	pthread_mutex_unlock(&classes->lock);
	free(worker);
}

void class_arrived(struct class_worker *worker, uint64_t arrival_ns)
{
	worker->arrival_ns = arrival_ns;
}

void class_begin(struct class_worker *worker, uint32_t slot, uint32_t class)
{
	worker->class_of[slot] = (uint8_t)class;
	worker->start_ns[slot] = worker->arrival_ns;
	if (!worker->arrival_ns && worker->n_begun++ % MEASURE_EVERY == 0)
		worker->start_ns[slot] = clock_now_ns();
	worker->arrival_ns = 0;
}

/* One thread writes: no need for a locked instruction. */
static void count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

void class_attempted(struct class_worker *worker, uint32_t slot, enum oltp_rc rc)
{
	struct class_counts *counts = &worker->counts[worker->class_of[slot]];

	switch (rc) {
	case OLTP_OK:
		count(&counts->committed);
		if (worker->start_ns[slot])
			hist_record_since(&counts->hist, worker->start_ns[slot],
					  clock_now_ns());
		break;
	case OLTP_CONFLICT:
		count(&counts->conflicts);
		break;
	case OLTP_COLD:
		break;
	default:
		count(&counts->failed);
		break;
	}
}

uint32_t classes_count(const struct classes *classes)
{
	return classes->n;
}

void classes_read(struct classes *classes, uint32_t class, struct class_figures *ret_figures)
{
	struct class_sums sums;

	pthread_mutex_lock(&classes->lock);
	sums = classes->gone[class];
	for (const struct class_worker *w = classes->workers; w; w = w->next)
		add(&sums, &w->counts[class]);
	pthread_mutex_unlock(&classes->lock);
	*ret_figures = (struct class_figures){
		.name = classes->names[class],
		.committed = sums.committed,
		.conflicts = sums.conflicts,
		.failed = sums.failed,
		.measured = hist_view_count(&sums.hist),
		.p50_us = hist_view_quantile_ns(&sums.hist, 0.5) / 1e3,
		.p95_us = hist_view_quantile_ns(&sums.hist, 0.95) / 1e3,
		.p99_us = hist_view_quantile_ns(&sums.hist, 0.99) / 1e3,
	};
}

void classes_report(struct classes *classes, double seconds, struct fields *fields)
{
	fields_object_begin(fields, "classes");
	for (uint32_t i = 0; i < classes->n; i++) {
		struct class_figures f;

		classes_read(classes, i, &f);
		fields_object_begin(fields, f.name);
		fields_u64(fields, "committed", f.committed);
		fields_number(fields, "tps", 1,
			      seconds > 0 ? (double)f.committed / seconds : 0);
		fields_u64(fields, "conflicts", f.conflicts);
		fields_u64(fields, "failed", f.failed);
		fields_u64(fields, "measured", f.measured);
		fields_number(fields, "p50_us", 2, f.p50_us);
		fields_number(fields, "p95_us", 2, f.p95_us);
		fields_number(fields, "p99_us", 2, f.p99_us);
		fields_object_end(fields);
	}
	fields_object_end(fields);
}
