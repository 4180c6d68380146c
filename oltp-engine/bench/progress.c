// SPDX-License-Identifier: GPL-2.0-or-later
/* See progress.h. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

#define FIRST_MS	2000u
#define NEXT_MS		500u
#define LINE_BYTES	128u

struct progress {
	FILE *out;
	const char *what;
	const struct bench_progress *of;
	struct timespec start;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stopped;
	bool is_stopped;
};

void progress_format(char *ret_text, size_t bytes, const char *what,
		     const struct bench_progress *of, double seconds)
{
	uint64_t done = of ? of->done : 0, total = of ? of->total : 0;
	double left = done ? seconds * (double)(total - done) / (double)done : 0;

	/* total is set before unit is read. */
	if (!total || done > total)
		snprintf(ret_text, bytes, "oltp: %s, %.0f s", what, seconds);
	else
		snprintf(ret_text, bytes,
			 "oltp: %s, %.0f s: %" PRIu64 " of %" PRIu64 " %s (%.0f%%), %.0f s left",
			 what, seconds, done, total, of->unit, 100.0 * (double)done / (double)total,
			 left);
}

void progress_put(FILE *out, const char *text)
{
	if (!out)
		return;
	/* To the begin of the line, and the rest of it away. */
	fprintf(out, "\r%s\033[K", text);
	fflush(out);
}

FILE *progress_terminal(bool is_quiet)
{
	const char *term = getenv("TERM");

	/* A dumb terminal keeps all that was put into a line; a serial console may be a log. */
	if (is_quiet || !term || !*term || strcmp(term, "dumb") == 0)
		return NULL;
	return isatty(STDERR_FILENO) ? stderr : NULL;
}

static void add_ms(struct timespec *ts, uint32_t ms)
{
	ts->tv_nsec += ms * 1000000l;
	ts->tv_sec += ts->tv_nsec / 1000000000;
	ts->tv_nsec %= 1000000000;
}

static void put(const struct progress *p)
{
	char text[LINE_BYTES];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	progress_format(text, sizeof(text), p->what, p->of,
			(double)(now.tv_sec - p->start.tv_sec) +
			(double)(now.tv_nsec - p->start.tv_nsec) / 1e9);
	progress_put(p->out, text);
}

static void *progress_main(void *arg)
{
	struct progress *p = arg;
	struct timespec next = p->start;
	bool has_line = false;

	add_ms(&next, FIRST_MS);
	pthread_mutex_lock(&p->lock);
	while (!p->is_stopped) {
		if (!pthread_cond_timedwait(&p->stopped, &p->lock, &next))
			continue;
		put(p);
		has_line = true;
		add_ms(&next, NEXT_MS);
	}
	pthread_mutex_unlock(&p->lock);
	if (has_line)
		progress_put(p->out, "");
	return NULL;
}

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static void progress_free(struct progress *p)
{
	pthread_cond_destroy(&p->stopped);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct progress *progress_start(FILE *out, const char *what, const struct bench_progress *of)
{
	struct progress *p = out ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return NULL;
	p->out = out;
	p->what = what;
	p->of = of;
	clock_gettime(CLOCK_MONOTONIC, &p->start);
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->stopped);
	if (pthread_create(&p->thread, NULL, progress_main, p)) {
		progress_free(p);
		return NULL;
	}
	return p;
}

void progress_stop(struct progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->is_stopped = true;
	pthread_cond_signal(&p->stopped);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	progress_free(p);
}
