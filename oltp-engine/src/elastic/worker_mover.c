// SPDX-License-Identifier: GPL-2.0-or-later
/* The thread that waits for CPUs: see worker_mover.h. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "oltp-engine/src/base/clock.h"
#include "worker_mover.h"

static void do_add(const struct mover *mover, const struct mover_job *job, struct oltp_move *move)
{
	struct oltp_cpu cpus[OLTP_MOVE_MAX];
	int rc;

	*move = (struct oltp_move){ .is_add = true, .node = job->node, .start_ns = clock_now_ns() };
	rc = mover->ops->add(mover->source, job->node, job->n_cpus, cpus, &move->times);
	move->call_ns = clock_now_ns() - move->start_ns;
	if (rc < 0) {
		move->rc = rc;
		return;
	}
	move->n_cpus = (uint32_t)rc;
	for (uint32_t i = 0; i < move->n_cpus; i++)
		move->cpus[i] = cpus[i].cpu;
	if (move->n_cpus)
		move->node = cpus[0].node;
}

static void do_remove(const struct mover *mover, const struct mover_job *job, uint32_t nth,
		      struct oltp_move *move)
{
	*move = (struct oltp_move){
		.n_cpus = 1,
		.cpus = { job->cpus[nth] },
		.stop_ns = job->stop_ns[nth],
		.start_ns = clock_now_ns(),
	};
	move->rc = mover->ops->remove(mover->source, job->cpus[nth], &move->times);
	move->call_ns = clock_now_ns() - move->start_ns;
}

static void do_job(struct mover *mover)
{
	struct mover_result *result = &mover->result;
	const struct mover_job *job = &mover->job;

	if (job->is_add) {
		result->n_moves = 1;
		do_add(mover, job, &result->moves[0]);
		return;
	}
	result->n_moves = job->n_cpus;
	for (uint32_t i = 0; i < job->n_cpus; i++)
		do_remove(mover, job, i, &result->moves[i]);
}

/* Job and result belong to this thread while the state is BUSY, so the calls need no lock. */
static void *mover_main(void *arg)
{
	struct mover *mover = arg;
	const uint64_t one = 1;

	pthread_mutex_lock(&mover->lock);
	for (;;) {
		while (mover->state != MOVER_BUSY && mover->state != MOVER_QUIT)
			pthread_cond_wait(&mover->changed, &mover->lock);
		if (mover->state == MOVER_QUIT)
			break;
		pthread_mutex_unlock(&mover->lock);
		do_job(mover);
		pthread_mutex_lock(&mover->lock);
		mover->state = MOVER_ENDED;
		pthread_cond_broadcast(&mover->changed);
		/* Cannot fail: the counter is 0 or 1. */
		if (write(mover->event_fd, &one, sizeof(one)) < 0)
			break;
	}
	pthread_mutex_unlock(&mover->lock);
	return NULL;
}

int mover_start(struct mover *mover, const struct oltp_cpu_source_ops *ops, void *source)
{
	int rc;

	*mover = (struct mover){ .ops = ops, .source = source, .state = MOVER_IDLE };
	mover->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (mover->event_fd < 0)
		return -errno;
	pthread_mutex_init(&mover->lock, NULL);
	pthread_cond_init(&mover->changed, NULL);
	rc = -pthread_create(&mover->thread, NULL, mover_main, mover);
	if (rc) {
		pthread_cond_destroy(&mover->changed);
		pthread_mutex_destroy(&mover->lock);
		close(mover->event_fd);
	}
	return rc;
}

void mover_finish(struct mover *mover)
{
	pthread_mutex_lock(&mover->lock);
	mover->state = MOVER_QUIT;
	pthread_cond_broadcast(&mover->changed);
	pthread_mutex_unlock(&mover->lock);
	pthread_join(mover->thread, NULL);
	pthread_cond_destroy(&mover->changed);
	pthread_mutex_destroy(&mover->lock);
	close(mover->event_fd);
}

void mover_submit(struct mover *mover, const struct mover_job *job)
{
	pthread_mutex_lock(&mover->lock);
	mover->job = *job;
	mover->state = MOVER_BUSY;
	pthread_cond_broadcast(&mover->changed);
	pthread_mutex_unlock(&mover->lock);
}

static void collect_locked(struct mover *mover, struct mover_result *ret_result)
{
	uint64_t count;

	*ret_result = mover->result;
	mover->state = MOVER_IDLE;
	/* Empties the counter; nothing to do if it is empty already. */
	if (read(mover->event_fd, &count, sizeof(count)) < 0)
		return;
}

bool mover_collect(struct mover *mover, struct mover_result *ret_result)
{
	bool ended;

	pthread_mutex_lock(&mover->lock);
	ended = mover->state == MOVER_ENDED;
	if (ended)
		collect_locked(mover, ret_result);
	pthread_mutex_unlock(&mover->lock);
	return ended;
}

void mover_wait(struct mover *mover, struct mover_result *ret_result)
{
	pthread_mutex_lock(&mover->lock);
	while (mover->state != MOVER_ENDED)
		pthread_cond_wait(&mover->changed, &mover->lock);
	collect_locked(mover, ret_result);
	pthread_mutex_unlock(&mover->lock);
}
