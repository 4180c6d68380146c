// SPDX-License-Identifier: GPL-2.0-or-later
/* The reclaiming side of epochs: see epoch.h. */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "epoch.h"

/*
 * Most readers are through within a transaction's time. One that is not may have lost its CPU, even
 * to this thread.
 */
#define SPINS	100u
#define STEP_NS	20000u

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

void epoch_init(struct epoch *epoch)
{
	*epoch = (struct epoch){ .readers_end = 0 };
	atomic_init(&epoch->now, 1);
	epoch->has_membarrier = !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	pthread_mutex_init(&epoch->lock, NULL);
}

void epoch_finish(struct epoch *epoch)
{
	pthread_mutex_destroy(&epoch->lock);
}

void epoch_join(struct epoch *epoch, uint32_t number, const _Atomic uint64_t *announced)
{
	pthread_mutex_lock(&epoch->lock);
	epoch->readers[number] = announced;
	if (number >= epoch->readers_end)
		epoch->readers_end = number + 1;
	pthread_mutex_unlock(&epoch->lock);
}

void epoch_quit(struct epoch *epoch, uint32_t number)
{
	pthread_mutex_lock(&epoch->lock);
	epoch->readers[number] = NULL;
	pthread_mutex_unlock(&epoch->lock);
}

uint64_t epoch_advance(struct epoch *epoch)
{
	uint64_t now = atomic_fetch_add_explicit(&epoch->now, 1, memory_order_seq_cst) + 1;

	/* Registered, so it cannot fail. */
	if (epoch->has_membarrier)
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	return now;
}

static bool reader_has_passed(const _Atomic uint64_t *announced, uint64_t then)
{
	uint64_t theirs = announced ? atomic_load_explicit(announced, memory_order_acquire) :
				      EPOCH_NONE;

	return theirs == EPOCH_NONE || theirs >= then;
}

bool epoch_has_passed(struct epoch *epoch, uint64_t then)
{
	bool has = true;

	pthread_mutex_lock(&epoch->lock);
	for (uint32_t i = 0; has && i < epoch->readers_end; i++)
		has = reader_has_passed(epoch->readers[i], then);
	pthread_mutex_unlock(&epoch->lock);
	return has;
}

bool epoch_wait(struct epoch *epoch, uint64_t then, uint64_t deadline_ns)
{
	for (uint32_t tries = 1; !epoch_has_passed(epoch, then); tries++) {
		if (clock_now_ns() >= deadline_ns)
			return false;
		if (tries < SPINS)
			cpu_relax();
		else
			clock_sleep(STEP_NS);
	}
	return true;
}
