// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads that add, write, check and release memory while the host revokes some
 * of it and another thread dispatches: no byte of what is held changes, and every
 * block ends once, released or revoked.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/libebb/link.h"
#include "tests/lib/ebb_rig.h"

#define BLOCK		FAKE_EBB_BLOCK_BYTES
#define POOL_BLOCKS	512
#define NUM_WORKERS	4
#define MAX_BLOCKS	16
#define RUN_MS		1500
#define NS_PER_MS	1000000ull

struct shared {
	struct ebb *ebb;
	struct ebb_rig *rig;
	atomic_int is_over;
	atomic_ullong num_added;	/* blocks */
	atomic_ullong num_released;
	atomic_ullong num_told;
	atomic_ullong num_faults;
	atomic_int bad_line;		/* of the first thing that was wrong */
};

struct worker {
	struct shared *shared;
	unsigned int seed;
};

static void must(struct shared *shared, int is_right, int line)
{
	int none = 0;

	if (!is_right)
		atomic_compare_exchange_strong(&shared->bad_line, &none, line);
}

#define MUST(shared, cond)	must(shared, cond, __LINE__)

struct access {
	atomic_ullong *word;		/* the thread sanitizer knows no owner of a lease */
	uint64_t value;
	uint64_t seen;
};

static void access_write(void *arg)
{
	struct access *a = arg;

	atomic_store_explicit(a->word, a->value, memory_order_relaxed);
}

static void access_read(void *arg)
{
	struct access *a = arg;

	a->seen = atomic_load_explicit(a->word, memory_order_relaxed);
}

/* What a block holds depends on its address and the lease's serial number. */
static uint64_t value_of(const char *addr, uint64_t serial)
{
	return (uint64_t)(uintptr_t)addr * 0x9e3779b97f4a7c15ull ^ serial;
}

/* Written once and read twice, unless the host has taken it. */
static void block_use(struct shared *shared, char *addr, uint64_t serial)
{
	struct access a = { .word = (atomic_ullong *)addr, .value = value_of(addr, serial) };

	if (ebb_mem_guard_run(access_read, &a, NULL) == 0)
		MUST(shared, a.seen == 0 || a.seen == a.value);
	else
		shared->num_faults++;
	if (ebb_mem_guard_run(access_write, &a, NULL) == 0 &&
	    ebb_mem_guard_run(access_read, &a, NULL) == 0)
		MUST(shared, a.seen == a.value);
}

/* Gives the blocks back in an order of its own, in pieces. */
static void lease_give_back(struct worker *w, const struct ebb_lease *lease)
{
	struct shared *shared = w->shared;
	uint32_t num = (uint32_t)(lease->bytes / BLOCK), done = 0;
	unsigned char is_done[MAX_BLOCKS] = { 0 };
	int was_told = 0;

	while (done < num) {
		uint32_t first = (uint32_t)rand_r(&w->seed) % num, count = 1;
		int r;

		while (is_done[first])
			first = (first + 1) % num;
		while (first + count < num && !is_done[first + count] && rand_r(&w->seed) % 2)
			count++;
		r = ebb_mem_release(shared->ebb, (char *)lease->addr + first * BLOCK,
				    count * BLOCK);
		MUST(shared, r == 0 || r == -ENOENT);
		if (r == 0)
			shared->num_released += count;
		/* Told of one of several: one by one. */
		for (uint32_t b = first; r < 0 && b < first + count; b++) {
			int one = ebb_mem_release(shared->ebb, (char *)lease->addr + b * BLOCK,
						  BLOCK);

			MUST(shared, one == 0 || one == -ENOENT);
			shared->num_released += one == 0;
			was_told |= one < 0;
		}
		memset(&is_done[first], 1, count);
		done += count;
	}
	/* Otherwise it is closed, and its addresses may be another worker's by now. */
	if (was_told)
		MUST(shared, ebb_lease_close(shared->ebb, lease->addr) == 0);
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	struct shared *shared = w->shared;
	uint64_t serial = 0;

	while (!shared->is_over) {
		uint64_t blocks = 1 + (uint64_t)rand_r(&w->seed) % MAX_BLOCKS;
		struct ebb_lease lease;
		int r = ebb_mem_add(shared->ebb, blocks * BLOCK, 0, &lease);

		MUST(shared, r == 0 || r == -EDQUOT);
		if (r < 0)
			continue;
		shared->num_added += lease.bytes / BLOCK;
		serial++;
		for (int i = 0; i < 20; i++) {
			uint64_t b = (uint64_t)rand_r(&w->seed) % (lease.bytes / BLOCK);

			block_use(shared, (char *)lease.addr + b * BLOCK, serial);
		}
		lease_give_back(w, &lease);
	}
	return NULL;
}

static void *revoker_run(void *arg)
{
	struct shared *shared = arg;

	while (!shared->is_over) {
		fake_ebb_dev_revoke(shared->rig->dev, 0, BLOCK);
		usleep(500);
	}
	return NULL;
}

static void tell(void *arg, void *addr, uint64_t bytes)
{
	struct shared *shared = arg;

	MUST(shared, (uintptr_t)addr % BLOCK == 0 && bytes % BLOCK == 0 && bytes > 0);
	shared->num_told += bytes / BLOCK;
}

static void everything_at_once(void **state)
{
	struct ebb_rig *rig = *state;
	struct shared shared = { .rig = rig };
	struct worker workers[NUM_WORKERS];
	pthread_t threads[NUM_WORKERS], revoker;
	struct ebb_node_share share;
	uint64_t until_ns;

	assert_int_equal(ebb_mem_guard_install(), 0);
	fake_ebb_dev_set_pool(rig->dev, 0, POOL_BLOCKS * BLOCK);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 40 * BLOCK, 0);
	shared.ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	ebb_set_revoked_callback(shared.ebb, tell, &shared);
	for (int i = 0; i < NUM_WORKERS; i++) {
		workers[i] = (struct worker) { &shared, (unsigned int)i };
		assert_int_equal(pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
	}
	assert_int_equal(pthread_create(&revoker, NULL, revoker_run, &shared), 0);
	until_ns = ebb_rig_now_ns() + RUN_MS * NS_PER_MS;
	while (ebb_rig_now_ns() < until_ns || shared.num_added <= 100 || shared.num_told == 0) {
		struct pollfd p = { .fd = ebb_fd(shared.ebb), .events = POLLIN };

		poll(&p, 1, 20);
		assert_int_equal(ebb_dispatch(shared.ebb), 0);
		assert_true(ebb_rig_now_ns() < until_ns + EBB_RIG_SOON_MS * NS_PER_MS);
	}
	shared.is_over = 1;
	for (int i = 0; i < NUM_WORKERS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(revoker, NULL);
	assert_int_equal(ebb_dispatch(shared.ebb), 0);
	if (shared.bad_line)
		fail_msg("line %d", shared.bad_line);
	print_message("%llu blocks added, %llu released, %llu told of, %llu faults\n",
		      shared.num_added, shared.num_released, shared.num_told,
		      shared.num_faults);
	assert_true(shared.num_added > 100 && shared.num_told > 0);
	assert_true(shared.num_added == shared.num_released + shared.num_told);
	share = ebb_rig_share(shared.ebb, 0);
	assert_true(share.mem_owned_bytes == 0 && share.mem_offered_bytes == 40 * BLOCK);
	assert_true(fake_ebb_dev_leased_bytes(rig->dev, 0) == 0);
	ebb_close(shared.ebb);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_at_once, ebb_rig_setup,
						ebb_rig_teardown),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests_name("ebb_mem_threads", tests, NULL, NULL);
}
