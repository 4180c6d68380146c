// SPDX-License-Identifier: GPL-2.0-or-later
/* The lock word: what excludes what, the age rule, and that nobody waits for ever. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "oltp-engine/src/storage/lock.h"
#include "tests/lib/chance.h"

static uint64_t ts_of(uint64_t clock, uint64_t worker)
{
	return clock << LOCK_TS_WORKER_BITS | worker;
}

static bool holds_nothing(const void *holder)
{
	(void)holder;
	return false;
}

static struct lock_book book;

static struct lock_wait wait_of(enum oltp_cc cc, _Atomic uint64_t *word, uint64_t ts,
				bool exclusive, uint64_t mine)
{
	return (struct lock_wait){ .scheme = lock_scheme_get(cc), .book = &book, .word = word,
				   .ts = ts, .exclusive = exclusive, .mine = mine,
				   .is_in_the_way = holds_nothing };
}

static enum lock_verdict verdict(enum oltp_cc cc, uint64_t seen, uint64_t ts, bool is_upgrade)
{
	struct lock_wait wait = wait_of(cc, NULL, ts, is_upgrade, is_upgrade);

	return wait.scheme->on_conflict(&wait, seen);
}

static void test_conflict_matrix(void **state)
{
	(void)state;
	/* held by another: reader, writer; wanted: reader, writer */
	static const bool may[2][2] = { { true, false }, { false, false } };

	for (int held = 0; held < 2; held++) {
		for (int wanted = 0; wanted < 2; wanted++) {
			_Atomic uint64_t word = 0;
			uint64_t seen = 0;

			assert_true(held ? lock_try_exclusive(&word, ts_of(5, 1), &seen) :
					   lock_try_shared(&word, ts_of(5, 1), &seen));
			assert_int_equal(wanted ? lock_try_exclusive(&word, ts_of(6, 2), &seen) :
						  lock_try_shared(&word, ts_of(6, 2), &seen),
					 may[held][wanted]);
			if (!may[held][wanted])
				assert_int_equal(seen & LOCK_TS_MASK, ts_of(5, 1));
		}
	}
}

static void test_word_is_free_after_release(void **state)
{
	(void)state;
	_Atomic uint64_t word = 0;
	uint64_t seen;

	for (uint64_t i = 1; i <= 3; i++)
		assert_true(lock_try_shared(&word, ts_of(i, i), &seen));
	for (int i = 0; i < 3; i++) {
		assert_false(lock_try_exclusive(&word, ts_of(9, 9), &seen));
		lock_release_shared(&word, 0);
	}
	assert_true(lock_try_exclusive(&word, ts_of(9, 9), &seen));
	lock_release_exclusive(&word, 0);
	assert_int_equal(word, 0);
}

/* Who takes a word knows what its last holder left. */
static void test_what_was_there_is_told(void **state)
{
	(void)state;
	const uint64_t left[] = { 0, 5, LOCK_MARK | 5 };

	for (uint32_t i = 0; i < ARRAY_SIZE(left); i++) {
		_Atomic uint64_t word = LOCK_WAITER | left[i];
		uint64_t seen = ~0ull;

		assert_true(lock_try_exclusive(&word, ts_of(9, 9), &seen));
		assert_int_equal(seen, LOCK_WAITER | left[i]);
		assert_int_equal(lock_stamp(seen), i == 1 ? 5 : 0);
		assert_false(lock_try_exclusive(&word, ts_of(8, 8), &seen));
		assert_int_equal(seen, LOCK_WRITER | ts_of(9, 9));
	}
}

static void test_one_try_takes_free_words_only(void **state)
{
	(void)state;
	for (uint32_t exclusive = 0; exclusive < 2; exclusive++) {
		_Atomic uint64_t word = LOCK_WAITER | 5;
		uint64_t seen = ~0ull, held;

		assert_true(lock_try_free(&word, ts_of(9, 9), exclusive, &seen));
		assert_int_equal(seen, LOCK_WAITER | 5);
		held = (exclusive ? LOCK_WRITER : LOCK_READER_ONE) | ts_of(9, 9);
		assert_int_equal(word, held);
		for (uint32_t again = 0; again < 2; again++)
			assert_false(lock_try_free(&word, ts_of(3, 3), again, &seen));
		assert_int_equal(word, held);
	}
}

/* Whether it is alone or not, and whoever waits. */
static void test_reader_leaves_without_a_look(void **state)
{
	(void)state;
	_Atomic uint64_t word = 0;
	uint64_t seen;

	assert_true(lock_try_shared(&word, ts_of(7, 1), &seen));
	lock_release_alone(&word, ts_of(7, 1), 5);
	assert_int_equal(word, 5);
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(lock_try_shared(&word, ts_of(i, i), &seen));
	lock_release_alone(&word, ts_of(1, 1), 6);
	lock_release_alone(&word, ts_of(3, 3), 6);
	assert_int_equal(word, LOCK_READER_ONE | ts_of(1, 1));
	word |= LOCK_WAITER;
	lock_release_alone(&word, ts_of(2, 2), 6);
	assert_int_equal(word, LOCK_WAITER | 6);
}

static void test_age_is_the_oldest_reader(void **state)
{
	(void)state;
	_Atomic uint64_t word = 0;
	uint64_t seen;

	assert_true(lock_try_shared(&word, ts_of(7, 1), &seen));
	assert_true(lock_try_shared(&word, ts_of(3, 2), &seen));
	assert_true(lock_try_shared(&word, ts_of(5, 3), &seen));
	assert_int_equal(word & LOCK_TS_MASK, ts_of(3, 2));
	/* L2: the oldest may have left, the age must not grow younger than a reader that stays. */
	lock_release_shared(&word, 0);
	assert_true((word & LOCK_TS_MASK) <= ts_of(5, 3));
	/* A first reader sets the age anew. */
	lock_release_shared(&word, 0);
	lock_release_shared(&word, 0);
	assert_true(lock_try_shared(&word, ts_of(8, 4), &seen));
	assert_int_equal(word & LOCK_TS_MASK, ts_of(8, 4));
}

static void test_upgrade_needs_to_be_alone(void **state)
{
	(void)state;
	_Atomic uint64_t word = 0;
	uint64_t seen;

	assert_true(lock_try_shared(&word, ts_of(1, 1), &seen));
	assert_true(lock_try_shared(&word, ts_of(2, 2), &seen));
	assert_false(lock_try_upgrade(&word, ts_of(1, 1), 1, &seen));
	lock_release_shared(&word, 0);
	assert_true(lock_try_upgrade(&word, ts_of(1, 1), 1, &seen));
	assert_int_equal(word, LOCK_WRITER | ts_of(1, 1));

	/* Both readers may be the same transaction. */
	word = 0;
	assert_true(lock_try_shared(&word, ts_of(1, 1), &seen));
	assert_true(lock_try_shared(&word, ts_of(1, 1), &seen));
	assert_true(lock_try_upgrade(&word, ts_of(1, 1), 2, &seen));
}

static void test_readers_do_not_overflow_into_other_bits(void **state)
{
	(void)state;
	_Atomic uint64_t word = 0;
	uint64_t seen;
	uint64_t n = 0;

	while (lock_try_shared(&word, ts_of(1, 1), &seen))
		assert_true(++n <= OLTP_WORKERS_MAX);
	assert_int_equal(n, OLTP_WORKERS_MAX);
	assert_false(word & (LOCK_WRITER | LOCK_WAITER));
	while (n--)
		lock_release_shared(&word, 0);
	assert_false(word & LOCK_HELD);
}

static void test_waiting_writer_stops_new_readers(void **state)
{
	(void)state;
	_Atomic uint64_t word = 0;
	uint64_t seen;

	assert_true(lock_try_shared(&word, ts_of(5, 1), &seen));
	word |= LOCK_WAITER;
	assert_false(lock_try_shared(&word, ts_of(6, 2), &seen));
	/* Free again (L3): the hint alone keeps nobody out. */
	lock_release_shared(&word, 0);
	assert_true(lock_try_shared(&word, ts_of(6, 2), &seen));
	assert_false(word & LOCK_WAITER);
}

static void test_no_wait_never_waits(void **state)
{
	(void)state;
	_Atomic uint64_t word = LOCK_WRITER | ts_of(5, 1);

	for (int exclusive = 0; exclusive < 2; exclusive++) {
		struct lock_wait wait = wait_of(OLTP_CC_NO_WAIT, &word, ts_of(1, 2), exclusive, 0);

		assert_int_equal(lock_contended(&wait), OLTP_CONFLICT);
		assert_false(wait.has_waited);
		assert_false(wait.was_wounded);
	}
	assert_int_equal(word, LOCK_WRITER | ts_of(5, 1));
}

static void test_wait_die_age_rule(void **state)
{
	(void)state;
	const enum oltp_cc cc = OLTP_CC_WAIT_DIE;
	const uint64_t held = LOCK_WRITER | ts_of(5, 3);

	assert_int_equal(verdict(cc, held, ts_of(4, 9), false), LOCK_WAIT);
	assert_int_equal(verdict(cc, held, ts_of(6, 1), false), LOCK_DIE);
	/* Same clock: the worker's number decides, so two never wait for each other. */
	assert_int_equal(verdict(cc, held, ts_of(5, 2), false), LOCK_WAIT);
	assert_int_equal(verdict(cc, held, ts_of(5, 4), false), LOCK_DIE);
	/* Upgrade: the oldest reader waits, any other dies. */
	assert_int_equal(verdict(cc, 2 * LOCK_READER_ONE | ts_of(5, 3), ts_of(5, 3), true),
			 LOCK_WAIT);
	assert_int_equal(verdict(cc, 2 * LOCK_READER_ONE | ts_of(5, 3), ts_of(6, 4), true),
			 LOCK_DIE);
}

static void test_younger_dies_and_reports_whom_it_met(void **state)
{
	(void)state;
	_Atomic uint64_t word = LOCK_WRITER | ts_of(5, 1);
	struct lock_wait wait = wait_of(OLTP_CC_WAIT_DIE, &word, ts_of(6, 2), true, 0);

	assert_int_equal(lock_contended(&wait), OLTP_CONFLICT);
	assert_int_equal(wait.youngest, ts_of(5, 1));
	assert_false(word & LOCK_WAITER);
}

static void *release_later(void *arg)
{
	_Atomic uint64_t *word = arg;

	while (!(atomic_load(word) & LOCK_WAITER))
		sched_yield();
	lock_release_exclusive(word, 0);
	return NULL;
}

static void test_older_waits_until_released(void **state)
{
	(void)state;
	_Atomic uint64_t word = LOCK_WRITER | ts_of(5, 1);
	struct lock_wait wait = wait_of(OLTP_CC_WAIT_DIE, &word, ts_of(4, 2), true, 0);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, release_later, &word), 0);
	assert_int_equal(lock_contended(&wait), OLTP_OK);
	assert_true(wait.has_waited);
	pthread_join(thread, NULL);
	assert_int_equal(word, LOCK_WRITER | ts_of(4, 2));
}

/* ---- wound_wait: what a conflict is answered, one look at a time ---- */

static bool holds_what_an_older_wants(const void *holder)
{
	(void)holder;
	return true;
}

static void test_older_wounds_the_writer(void **state)
{
	(void)state;
	const uint64_t old = ts_of(4, 9), young = ts_of(5, 3);
	const struct lock_slot *slot = lock_book_slot(&book, young);

	book = (struct lock_book){ .end = 9 };
	assert_int_equal(verdict(OLTP_CC_WOUND_WAIT, LOCK_WRITER | young, old, false), LOCK_WAIT);
	assert_true(lock_slot_is_wounded(slot, young));
	/* Of that worker, no other transaction is meant. */
	assert_false(lock_slot_is_wounded(slot, young + (1u << LOCK_TS_WORKER_BITS)));
	assert_false(lock_slot_is_wounded(lock_book_slot(&book, old), old));
	/* It dies when it waits itself, whatever it meets. */
	for (int is_upgrade = 0; is_upgrade < 2; is_upgrade++)
		assert_int_equal(verdict(OLTP_CC_WOUND_WAIT, LOCK_READER_ONE | ts_of(9, 1), young,
					 is_upgrade), LOCK_DIE);
	assert_int_equal(verdict(OLTP_CC_WOUND_WAIT, LOCK_WRITER | ts_of(9, 1), young, false),
			 LOCK_DIE);
	lock_slot_clear_wound(lock_book_slot(&book, young));
	assert_int_equal(verdict(OLTP_CC_WOUND_WAIT, LOCK_WRITER | ts_of(3, 1), young, false),
			 LOCK_WAIT);
}

static void test_younger_waits_and_wounds_nobody(void **state)
{
	(void)state;
	book = (struct lock_book){ .end = 9 };
	/* Older ones, one by its number only, and what moves records: it is nobody's to wound. */
	assert_int_equal(verdict(OLTP_CC_WOUND_WAIT, LOCK_WRITER | ts_of(4, 3), ts_of(5, 2), false),
			 LOCK_WAIT);
	assert_int_equal(verdict(OLTP_CC_WOUND_WAIT, LOCK_WRITER | ts_of(5, 1), ts_of(5, 2), false),
			 LOCK_WAIT);
	assert_int_equal(verdict(OLTP_CC_WOUND_WAIT, LOCK_WRITER, ts_of(5, 2), false), LOCK_WAIT);
	for (uint32_t i = 0; i <= OLTP_WORKERS_MAX; i++)
		assert_int_equal(book.slots[i].wounded, 0);
}

static void test_young_lose_their_patience_so_often(void **state)
{
	(void)state;
	_Atomic uint64_t word = LOCK_WRITER | ts_of(4, 1);
	struct lock_wait wait = wait_of(OLTP_CC_WOUND_WAIT, &word, ts_of(5, 2), true, 0);

	book = (struct lock_book){ .end = 9 };
	assert_int_equal(lock_contended(&wait), OLTP_CONFLICT);
	assert_true(wait.has_waited);
	assert_false(wait.was_wounded);
	assert_int_equal(word, LOCK_WRITER | ts_of(4, 1));
	wait.is_long = true;
	wait.n_retries = LOCK_PATIENT_AFTER - 1;
	assert_int_equal(wait.scheme->on_conflict(&wait, word), LOCK_DIE);
	wait.n_retries = LOCK_PATIENT_AFTER;
	assert_int_equal(wait.scheme->on_conflict(&wait, word), LOCK_WAIT);
	/* The older one never does. */
	wait.n_retries = 0;
	assert_int_equal(wait.scheme->on_conflict(&wait, LOCK_WRITER | ts_of(6, 1)), LOCK_WAIT);
}

static void test_writer_says_what_it_wants_of_readers(void **state)
{
	(void)state;
	_Atomic uint64_t word = 2 * LOCK_READER_ONE | ts_of(3, 1), elsewhere = word;
	struct lock_wait wait = wait_of(OLTP_CC_WOUND_WAIT, &word, ts_of(5, 2), true, 0);

	book = (struct lock_book){ .end = 9 };
	assert_int_equal(wait.scheme->on_conflict(&wait, word), LOCK_WAIT);
	assert_true(lock_book_is_wanted(&book, ts_of(5, 3), &word));
	assert_false(lock_book_is_wanted(&book, ts_of(5, 1), &word));
	assert_false(lock_book_is_wanted(&book, ts_of(5, 2), &word));
	assert_false(lock_book_is_wanted(&book, ts_of(5, 3), &elsewhere));
	/* Only who sees the hint asks. */
	assert_false(lock_is_in_the_way(&book, ts_of(5, 3), &word));
	word |= LOCK_WAITER;
	assert_true(lock_is_in_the_way(&book, ts_of(5, 3), &word));
	assert_false(lock_is_in_the_way(&book, ts_of(4, 3), &word));
	/* Nothing is left of it once it has given up. */
	wait.is_in_the_way = holds_what_an_older_wants;
	assert_int_equal(lock_contended(&wait), OLTP_CONFLICT);
	assert_true(wait.was_wounded);
	assert_false(lock_book_is_wanted(&book, ts_of(5, 3), &word));
}

static void test_reader_waits_for_older_writers_only(void **state)
{
	(void)state;
	_Atomic uint64_t word = LOCK_READER_ONE | LOCK_WAITER | ts_of(3, 1);
	struct lock_wait young = wait_of(OLTP_CC_WOUND_WAIT, &word, ts_of(6, 4), false, 0);
	struct lock_wait old = wait_of(OLTP_CC_WOUND_WAIT, &word, ts_of(4, 5), false, 0);

	book = (struct lock_book){ .end = 9 };
	lock_book_want(&book, ts_of(5, 2), &word);
	assert_int_equal(young.scheme->on_conflict(&young, word), LOCK_WAIT);
	assert_int_equal(old.scheme->on_conflict(&old, word), LOCK_JOIN);
	assert_int_equal(lock_contended(&old), OLTP_OK);
	assert_false(old.has_waited);
	assert_int_equal(word & LOCK_READERS_MASK, 2 * LOCK_READER_ONE);
	assert_true(word & LOCK_WAITER);
	lock_book_unwant(&book, ts_of(5, 2));
	assert_int_equal(lock_contended(&young), OLTP_OK);
	assert_int_equal(word & LOCK_READERS_MASK, 3 * LOCK_READER_ONE);
	/* Room for more must remain, and readers never join a writer. */
	word = LOCK_READERS_MASK | LOCK_WAITER | ts_of(3, 1);
	assert_int_equal(old.scheme->on_conflict(&old, word), LOCK_DIE);
	assert_false(lock_try_join(&word, old.ts));
	word = LOCK_WRITER | ts_of(3, 1);
	assert_false(lock_try_join(&word, old.ts));
}

static void test_every_number_is_looked_at(void **state)
{
	(void)state;
	_Atomic uint64_t word = 0;

	book = (struct lock_book){ .end = 0 };
	lock_book_enter(&book, OLTP_WORKERS_MAX);
	lock_book_enter(&book, 3);
	for (uint64_t number = 1; number <= OLTP_WORKERS_MAX; number += OLTP_WORKERS_MAX - 1) {
		assert_false(lock_book_is_wanted(&book, ts_of(6, 2), &word));
		lock_book_want(&book, ts_of(5, number), &word);
		assert_true(lock_book_is_wanted(&book, ts_of(6, 2), &word));
		lock_book_unwant(&book, ts_of(5, number));
	}
}

/* Threads take two of a few words in any order, by the words alone: the counters must add up. */
#define STRESS_WORDS	4
#define STRESS_THREADS	4
#define STRESS_ROUNDS	400000

struct stress {
	enum oltp_cc cc;
	uint64_t worker;
	uint64_t done;
};

static _Atomic uint64_t stress_words[STRESS_WORDS];
static uint64_t stress_values[STRESS_WORDS];
static pthread_barrier_t stress_start;

static bool stress_take(const struct stress *s, _Atomic uint64_t *word, uint64_t ts)
{
	struct lock_wait wait = wait_of(s->cc, word, ts, true, 0);
	uint64_t seen;

	return lock_try_exclusive(word, ts, &seen) || !lock_contended(&wait);
}

static void *stress_main(void *arg)
{
	struct stress *s = arg;
	uint64_t random = s->worker;

	pthread_barrier_wait(&stress_start);
	for (uint64_t round = 0; round < STRESS_ROUNDS; round++) {
		uint64_t ts = ts_of(round, s->worker);
		int a, b;

		chance_step(&random);
		a = (int)(random >> 40) % STRESS_WORDS;
		b = (a + 1 + (int)(random >> 50) % (STRESS_WORDS - 1)) % STRESS_WORDS;
		for (;;) {
			lock_slot_clear_wound(lock_book_slot(&book, ts));
			if (stress_take(s, &stress_words[a], ts)) {
				if (stress_take(s, &stress_words[b], ts))
					break;
				lock_release_exclusive(&stress_words[a], 0);
			}
			sched_yield();
		}
		stress_values[a]++;
		stress_values[b]++;
		lock_release_exclusive(&stress_words[a], 0);
		lock_release_exclusive(&stress_words[b], 0);
		s->done++;
	}
	return NULL;
}

static void stress(enum oltp_cc cc)
{
	struct stress stresses[STRESS_THREADS];
	pthread_t threads[STRESS_THREADS];
	uint64_t sum = 0;

	pthread_barrier_init(&stress_start, NULL, STRESS_THREADS);
	book = (struct lock_book){ .end = STRESS_THREADS };
	for (int i = 0; i < STRESS_WORDS; i++) {
		stress_words[i] = 0;
		stress_values[i] = 0;
	}
	for (int i = 0; i < STRESS_THREADS; i++) {
		stresses[i] = (struct stress){ cc, (uint64_t)i + 1, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, stress_main, &stresses[i]), 0);
	}
	for (int i = 0; i < STRESS_THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&stress_start);
	for (int i = 0; i < STRESS_WORDS; i++) {
		assert_int_equal(stress_words[i] & LOCK_HELD, 0);
		sum += stress_values[i];
	}
	assert_int_equal(sum, 2 * STRESS_THREADS * STRESS_ROUNDS);
}

static void test_stress_no_wait(void **state)
{
	(void)state;
	stress(OLTP_CC_NO_WAIT);
}

static void test_stress_wait_die(void **state)
{
	(void)state;
	stress(OLTP_CC_WAIT_DIE);
}

static void test_stress_wound_wait(void **state)
{
	(void)state;
	stress(OLTP_CC_WOUND_WAIT);
}

static void test_names(void **state)
{
	(void)state;
	enum oltp_cc cc;

	assert_int_equal(oltp_cc_parse("wait_die", &cc), 0);
	assert_int_equal(cc, OLTP_CC_WAIT_DIE);
	assert_int_equal(oltp_cc_parse("no_wait", &cc), 0);
	assert_int_equal(cc, OLTP_CC_NO_WAIT);
	assert_int_equal(oltp_cc_parse("wound_wait", &cc), 0);
	assert_int_equal(cc, OLTP_CC_WOUND_WAIT);
	assert_true(oltp_cc_parse("mvcc", &cc) < 0);
	assert_null(lock_scheme_get((enum oltp_cc)3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conflict_matrix),
		cmocka_unit_test(test_word_is_free_after_release),
		cmocka_unit_test(test_what_was_there_is_told),
		cmocka_unit_test(test_one_try_takes_free_words_only),
		cmocka_unit_test(test_reader_leaves_without_a_look),
		cmocka_unit_test(test_age_is_the_oldest_reader),
		cmocka_unit_test(test_upgrade_needs_to_be_alone),
		cmocka_unit_test(test_readers_do_not_overflow_into_other_bits),
		cmocka_unit_test(test_waiting_writer_stops_new_readers),
		cmocka_unit_test(test_no_wait_never_waits),
		cmocka_unit_test(test_wait_die_age_rule),
		cmocka_unit_test(test_younger_dies_and_reports_whom_it_met),
		cmocka_unit_test(test_older_waits_until_released),
		cmocka_unit_test(test_older_wounds_the_writer),
		cmocka_unit_test(test_younger_waits_and_wounds_nobody),
		cmocka_unit_test(test_young_lose_their_patience_so_often),
		cmocka_unit_test(test_writer_says_what_it_wants_of_readers),
		cmocka_unit_test(test_reader_waits_for_older_writers_only),
		cmocka_unit_test(test_every_number_is_looked_at),
		cmocka_unit_test(test_stress_no_wait),
		cmocka_unit_test(test_stress_wait_die),
		cmocka_unit_test(test_stress_wound_wait),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
