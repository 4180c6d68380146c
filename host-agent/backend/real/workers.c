/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pool of worker threads. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "backend/real/workers.h"
#include "util/clock.h"

#define MAX_THREADS	64

struct ebb_workers {
	sd_event_source *wake_source, *timer;
	int wake_fd;
	pthread_mutex_t lock;
	/* There may be something to run, something urgent; a thread has ended a job. */
	pthread_cond_t work, urgent, idle;
	struct ebb_job *jobs;		/* all, in the order of submission */
	struct ebb_job **tail;
	unsigned int num_threads, num_running;
	bool is_urgent_idle;		/* the urgent thread waits for a job */
	bool stop;
	pthread_t threads[MAX_THREADS + 1];
};

/* First queued job of the kind whose lane is free. */
static struct ebb_job *pick_kind_locked(struct ebb_workers *w, bool is_urgent)
{
	for (struct ebb_job *j = w->jobs; j; j = j->next) {
		struct ebb_job *before = w->jobs;

		if (j->phase != EBB_JOB_QUEUED || j->is_urgent != is_urgent)
			continue;
		while (before != j && (before->phase == EBB_JOB_FINISHED ||
				       memcmp(before->lane, j->lane, sizeof(j->lane)) != 0))
			before = before->next;
		if (before == j)
			return j;
	}
	return NULL;
}

/* Urgent jobs are for the urgent thread, unless it is at work. */
static struct ebb_job *pick_locked(struct ebb_workers *w, bool only_urgent)
{
	struct ebb_job *j = NULL;

	if (only_urgent || !w->is_urgent_idle)
		j = pick_kind_locked(w, true);
	return j || only_urgent ? j : pick_kind_locked(w, false);
}

static void signal_locked(struct ebb_workers *w)
{
	pthread_cond_signal(&w->work);
	pthread_cond_signal(&w->urgent);
}

static void wake_loop(struct ebb_workers *w)
{
	uint64_t one = 1;

	/* Fails only when the counter is full: then the loop is awake anyhow. */
	if (write(w->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void work(struct ebb_workers *w, bool only_urgent)
{
	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		struct ebb_job *j = pick_locked(w, only_urgent);
		int err;

		if (!j) {
			w->is_urgent_idle |= only_urgent;
			pthread_cond_wait(only_urgent ? &w->urgent : &w->work, &w->lock);
			w->is_urgent_idle &= !only_urgent;
			continue;
		}
		j->phase = EBB_JOB_RUNNING;
		w->num_running++;
		/* The other threads take the urgent jobs that they have left to this one. */
		if (only_urgent && pick_kind_locked(w, true))
			pthread_cond_broadcast(&w->work);
		pthread_mutex_unlock(&w->lock);
		err = j->run(j);
		pthread_mutex_lock(&w->lock);
		j->err = err;
		j->phase = EBB_JOB_FINISHED;
		w->num_running--;
		pthread_cond_broadcast(&w->idle);
		/* Its lane is free now. */
		signal_locked(w);
		wake_loop(w);
	}
	pthread_mutex_unlock(&w->lock);
}

static void *worker(void *arg)
{
	work(arg, false);
	return NULL;
}

static void *urgent_worker(void *arg)
{
	work(arg, true);
	return NULL;
}

static struct ebb_job *unlink_locked(struct ebb_workers *w, struct ebb_job **at)
{
	struct ebb_job *j = *at;

	*at = j->next;
	if (w->tail == &j->next)
		w->tail = at;
	return j;
}

static void arm_timer(struct ebb_workers *w)
{
	usec_t next = EBB_TIME_NEVER;

	for (struct ebb_job *j = w->jobs; j; j = j->next)
		if (!j->is_done && j->deadline < next)
			next = j->deadline;
	if (next == EBB_TIME_NEVER) {
		sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(w->timer, next);
	sd_event_source_set_enabled(w->timer, SD_EVENT_ONESHOT);
}

/* One job that has something to say, or that can go; NULL when there is none. */
static struct ebb_job *next_event_locked(struct ebb_workers *w, usec_t now, bool *ret_is_over)
{
	for (struct ebb_job **at = &w->jobs; *at; at = &(*at)->next) {
		struct ebb_job *j = *at;

		if (j->phase == EBB_JOB_FINISHED) {
			*ret_is_over = true;
			return unlink_locked(w, at);
		}
		if (j->is_done || j->deadline > now)
			continue;
		j->err = -ETIMEDOUT;
		j->has_timed_out = true;
		*ret_is_over = j->phase == EBB_JOB_QUEUED;
		return *ret_is_over ? unlink_locked(w, at) : j;
	}
	return NULL;
}

static void dispatch(struct ebb_workers *w)
{
	struct ebb_job *j;
	bool is_over, was_done;
	int err;

	for (;;) {
		pthread_mutex_lock(&w->lock);
		j = next_event_locked(w, ebb_clock_mono_usec(), &is_over);
		if (j) {
			was_done = j->is_done;
			j->is_done = true;
			err = j->err;
		} else {
			arm_timer(w);
		}
		pthread_mutex_unlock(&w->lock);
		if (!j)
			return;
		if (!was_done)
			j->done(j, err);
		if (is_over)
			j->release(j);
	}
}

static int on_wake(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	uint64_t count;

	(void)s;
	(void)revents;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	dispatch(arg);
	return 0;
}

static int on_time(sd_event_source *s, uint64_t usec, void *arg)
{
	(void)s;
	(void)usec;
	dispatch(arg);
	return 0;
}

void ebb_workers_submit(struct ebb_workers *w, struct ebb_job *job)
{
	job->next = NULL;
	job->phase = EBB_JOB_QUEUED;
	job->is_done = job->has_timed_out = false;
	pthread_mutex_lock(&w->lock);
	if (w->stop) {
		pthread_mutex_unlock(&w->lock);
		job->release(job);
		return;
	}
	*w->tail = job;
	w->tail = &job->next;
	arm_timer(w);
	signal_locked(w);
	pthread_mutex_unlock(&w->lock);
}

/* With the caller's real-time priority, also if that is not inherited (SCHED_RESET_ON_FORK). */
static int start_urgent(struct ebb_workers *w, pthread_t *ret)
{
	const int policy = sched_getscheduler(0);
	struct sched_param param;
	pthread_attr_t attr;
	int rc;

	if (policy < 0 || sched_getparam(0, &param) < 0)
		return -errno;
	if (param.sched_priority == 0)
		return -pthread_create(ret, NULL, urgent_worker, w);
	rc = -pthread_attr_init(&attr);
	if (rc < 0)
		return rc;
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	rc = -pthread_attr_setschedpolicy(&attr, policy & ~SCHED_RESET_ON_FORK);
	if (rc == 0)
		rc = -pthread_attr_setschedparam(&attr, &param);
	if (rc == 0)
		rc = -pthread_create(ret, &attr, urgent_worker, w);
	pthread_attr_destroy(&attr);
	return rc;
}

static int start_threads(struct ebb_workers *w, unsigned int num)
{
	sigset_t all, old;
	int rc = 0;

	/* Signals are the loop's business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (; w->num_threads <= num; w->num_threads++) {
		const bool is_urgent = w->num_threads == num;
		pthread_t *thread = &w->threads[w->num_threads];

		rc = is_urgent ? start_urgent(w, thread) : -pthread_create(thread, NULL, worker, w);
		if (rc < 0)
			break;
		pthread_setname_np(*thread, is_urgent ? "ebbd-urgent" : "ebbd-worker");
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static void init_conds(struct ebb_workers *w)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->idle, &attr);
	pthread_condattr_destroy(&attr);
	pthread_cond_init(&w->work, NULL);
	pthread_cond_init(&w->urgent, NULL);
}

int ebb_workers_create(sd_event *event, unsigned int num_threads, struct ebb_workers **ret)
{
	struct ebb_workers *w;
	int rc;

	if (num_threads < 1 || num_threads > MAX_THREADS)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->tail = &w->jobs;
	pthread_mutex_init(&w->lock, NULL);
	init_conds(w);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = w->wake_fd < 0 ? -errno : 0;
	if (rc == 0)
		rc = sd_event_add_io(event, &w->wake_source, w->wake_fd, EPOLLIN, on_wake, w);
	if (rc >= 0)
		rc = sd_event_add_time(event, &w->timer, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_time,
				       w);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
	if (rc >= 0)
		rc = start_threads(w, num_threads);
	if (rc < 0) {
		ebb_workers_destroy(w, 0);
		return rc;
	}
	*ret = w;
	return 0;
}

/* Wait until no job runs; false when the time is up before. */
static bool wait_idle_locked(struct ebb_workers *w, usec_t wait_usec)
{
	usec_t end = ebb_clock_mono_usec() + wait_usec;
	const struct timespec ts = {
		.tv_sec = end / EBB_USEC_PER_SEC, .tv_nsec = end % EBB_USEC_PER_SEC * 1000,
	};

	while (w->num_running)
		if (pthread_cond_timedwait(&w->idle, &w->lock, &ts) == ETIMEDOUT)
			return w->num_running == 0;
	return true;
}

int ebb_workers_destroy(struct ebb_workers *w, usec_t wait_usec)
{
	bool is_idle;

	if (!w)
		return 0;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->work);
	pthread_cond_broadcast(&w->urgent);
	is_idle = wait_idle_locked(w, wait_usec);
	pthread_mutex_unlock(&w->lock);
	if (!is_idle)
		return -EBUSY;
	for (unsigned int i = 0; i < w->num_threads; i++)
		pthread_join(w->threads[i], NULL);
	while (w->jobs) {
		struct ebb_job *j = w->jobs;

		w->jobs = j->next;
		j->release(j);
	}
	sd_event_source_disable_unref(w->wake_source);
	sd_event_source_disable_unref(w->timer);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	pthread_cond_destroy(&w->work);
	pthread_cond_destroy(&w->urgent);
	pthread_cond_destroy(&w->idle);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return 0;
}
