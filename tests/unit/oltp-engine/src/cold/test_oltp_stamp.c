// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whoever moves a record keeps the stamp of its last use: never the age of a transaction that held
 * the record when somebody looked, nor a stamp from before that transaction. The transaction comes
 * just before one of the looks at the lock word, and is gone before that look or right after it;
 * each look has its turn. The word is in a page that cannot be touched, and each instruction that
 * was about to is let through alone.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <cmocka.h>

#include "oltp-engine/src/cold/admit.h"
#include "oltp-engine/src/cold/cold_compact.h"
#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define RECORD_BYTES	8u
#define KEY		7u
#define OTHER_KEY	8u
/* So few that two for one are worth compacting. */
#define FILE_EXTENTS	8u
#define PAGE_BYTES	4096ul
/* As it were of a clock that runs for long, so that it is no epoch. */
#define HOLDER_TS	(1ull << 45 | 1)
/* Of the last use at first, and as the transaction leaves it. */
#define STAMP_BEFORE	2u
#define STAMP		3u

static struct record *trapped;
static volatile sig_atomic_t n_looks, n_holders;
/* The look before which the transaction comes, and whether it is gone before that look. */
static int holder_at;
static bool is_gone_at_look;

static uintptr_t trapped_page(void)
{
	return (uintptr_t)trapped & ~(PAGE_BYTES - 1);
}

static void page_protect(int prot)
{
	if (mprotect((void *)trapped_page(), PAGE_BYTES, prot))
		abort();
}

#if defined(__x86_64__)
#define CAN_STEP	true
#define TRAP_FLAG	0x100

static void single_step(void *context, bool is_on)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	*flags = is_on ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
}
#else
#define CAN_STEP	false

static void single_step(void *context, bool is_on)
{
	(void)context, (void)is_on;
}
#endif

static uint64_t lock_word(void)
{
	return atomic_load_explicit(&trapped->lock, memory_order_relaxed);
}

/* Relaxed: for any other order TSan takes a lock, which it may hold where the handlers come. */
static void lock_set(uint64_t word)
{
	atomic_store_explicit(&trapped->lock, word, memory_order_relaxed);
}

/* Somebody is about to look. A record that is moved right now is not to be had. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number;
	if (((uintptr_t)info->si_addr & ~(PAGE_BYTES - 1)) != trapped_page())
		abort();
	page_protect(PROT_READ | PROT_WRITE);
	if (info->si_addr == &trapped->lock && ++n_looks == holder_at &&
	    !(lock_word() & LOCK_HELD)) {
		lock_set(is_gone_at_look ? STAMP : LOCK_WRITER | HOLDER_TS);
		n_holders++;
	}
	single_step(context, true);
}

/* And has looked. */
static void on_step(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	if (lock_word() == (LOCK_WRITER | HOLDER_TS))
		lock_set(STAMP);
	page_protect(PROT_NONE);
	single_step(context, false);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *),
		   struct sigaction *ret_before)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	assert_int_equal(sigaction(number, &action, ret_before), 0);
}

/* An engine with a disk for records, and no manager but the test. */
struct scene {
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;
	struct evict evict;
};

static void insert(struct scene *s, uint64_t key)
{
	const uint64_t data = 0;

	assert_int_equal(oltp_txn_begin(s->w), OLTP_OK);
	assert_int_equal(oltp_txn_insert(s->w, s->table, key, &data), OLTP_OK);
	assert_int_equal(oltp_txn_commit(s->w), OLTP_OK);
}

static struct record *find(struct scene *s, uint64_t key)
{
	struct index_ref ref;
	struct record *record = index_find(&s->table->index, key, index_hash(key), &ref);

	assert_non_null(record);
	return record;
}

static void scene_open(struct scene *s)
{
	assert_int_equal(oltp_engine_open(NULL, &s->engine), 0);
	assert_int_equal(cold_create(s->engine, rig_dir(), FILE_EXTENTS * COLD_EXTENT_BYTES,
				     &s->engine->cold), 0);
	assert_int_equal(oltp_table_create(s->engine, RECORD_BYTES, 16, &s->table), 0);
	assert_int_equal(oltp_worker_create(s->engine, &s->w), 0);
	assert_int_equal(evict_init(&s->evict, s->engine), 0);
	insert(s, KEY);
	insert(s, OTHER_KEY);
}

static void scene_close(struct scene *s)
{
	evict_flush(&s->evict);
	assert_true(evict_settle(&s->evict, UINT64_MAX));
	evict_finish(&s->evict);
	oltp_worker_destroy(s->w);
	oltp_engine_close(s->engine);
}

/* From now on looks at the record count. */
static void trap(struct record *record)
{
	trapped = record;
	n_looks = n_holders = 0;
	lock_release_exclusive(&record->lock, STAMP_BEFORE);
	page_protect(PROT_NONE);
}

/* Moves the record with KEY, however often it has to try, and returns the stamp that it keeps. */
typedef uint64_t move_fn(struct scene *s);

static void test_move(move_fn *move)
{
	struct sigaction fault_before, step_before;
	struct scene s;
	int n_held = 0;

	if (!CAN_STEP)
		skip();
	handle(SIGSEGV, on_fault, &fault_before);
	handle(SIGTRAP, on_step, &step_before);
	for (int i = 0; i < 2; i++) {
		is_gone_at_look = i;
		holder_at = 0;
		do {
			uint64_t stamp;

			holder_at++;
			scene_open(&s);
			stamp = move(&s);
			if (stamp != (n_holders ? STAMP : STAMP_BEFORE))
				fail_msg("stamp %llx, look %d of %d%s", (unsigned long long)stamp,
					 holder_at, (int)n_looks, i ? ", gone before" : "");
			n_held += n_holders;
			scene_close(&s);
		} while (n_looks >= holder_at);
	}
	sigaction(SIGSEGV, &fault_before, NULL);
	sigaction(SIGTRAP, &step_before, NULL);
	/* Before the look that finds the word free, and before it is taken, at least. */
	assert_true(n_held >= 4);
}

static uint64_t to_disk(struct scene *s)
{
	enum evict_result result;

	trap(find(s, KEY));
	do
		result = evict_to_disk(&s->evict, s->table, trapped);
	while (result == EVICT_BUSY);
	page_protect(PROT_READ | PROT_WRITE);
	assert_int_equal(result, EVICT_DONE);
	assert_int_equal(s->evict.filling->n, 1);
	return s->evict.filling->block->used[0];
}

static void test_to_disk(void **state)
{
	(void)state;
	test_move(to_disk);
}

static uint64_t to_other_slot(struct scene *s)
{
	enum evict_result result;

	trap(find(s, KEY));
	do
		result = evict_move(&s->evict, s->table, s->w->node, trapped);
	while (result == EVICT_BUSY);
	page_protect(PROT_READ | PROT_WRITE);
	assert_int_equal(result, EVICT_DONE);
	assert_ptr_not_equal(find(s, KEY), trapped);
	return find(s, KEY)->lock;
}

static void test_to_other_slot(void **state)
{
	(void)state;
	test_move(to_other_slot);
}

/* Each into an extent of its own. */
static void evict_alone(struct scene *s, uint64_t key)
{
	assert_int_equal(evict_to_disk(&s->evict, s->table, find(s, key)), EVICT_DONE);
	evict_flush(&s->evict);
	assert_true(evict_settle(&s->evict, UINT64_MAX));
}

/* As a transaction's read does it that leaves the record in its buffer. */
static void read_to_buffer(struct scene *s, uint64_t key, struct record *record,
			   struct index_ref *ret_ref)
{
	struct cold_block *block;

	assert_null(index_find(&s->table->index, key, index_hash(key), ret_ref));
	assert_true(cold_pin(s->engine->cold, ret_ref));
	block = cold_stub_block(s->engine->cold, ret_ref->entry);
	atomic_store_explicit(&record->key, key, memory_order_relaxed);
	assert_true(admit_to_buffer(ret_ref, record, STAMP_BEFORE));
	cold_unpin(block);
}

/* A buffered record stays where it is, and gets another place on disk. */
static uint64_t to_other_extent(struct scene *s)
{
	static _Alignas(PAGE_BYTES) uint8_t page[PAGE_BYTES];
	struct record *record = (struct record *)(page + PAGE_BYTES / 2);
	const struct admit_by by = admit_by_worker(s->w);
	struct compact compact;
	struct io_queue io;
	struct index_ref ref;
	uint64_t stub_before, stamp;
	bool has_failed, is_done;
	uint8_t *in;

	evict_alone(s, KEY);
	evict_alone(s, OTHER_KEY);
	read_to_buffer(s, KEY, record, &ref);
	in = aligned_alloc(4096, COLD_EXTENT_BYTES);
	assert_non_null(in);
	assert_int_equal(io_queue_init(&io, s->engine->cold->file.fd, 1, NULL,
				       &s->engine->io_meters), 0);
	assert_int_equal(compact_init(&compact, s->engine->cold, &io, in), 0);
	stub_before = buffered_of(record)->stub;
	trap(record);
	do
		is_done = compact_turn(&compact, &has_failed);
	while (!is_done && !has_failed);
	page_protect(PROT_READ | PROT_WRITE);
	assert_false(has_failed);
	assert_ptr_equal(find(s, KEY), trapped);
	assert_int_not_equal(buffered_of(record)->stub, stub_before);
	stamp = record->lock;
	assert_true(buffered_release(s->engine->cold, &by, record, &ref, false));
	compact_finish(&compact);
	io_queue_finish(&io);
	free(in);
	return stamp;
}

static void test_to_other_extent(void **state)
{
	(void)state;
	test_move(to_other_extent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_to_disk),
		cmocka_unit_test(test_to_other_slot),
		cmocka_unit_test(test_to_other_extent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
