/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who may write a shared volume: single steps, and every order of what can happen to two nodes,
 * the storage daemon and ebb-volumed, up to some length.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "volumed/access.h"

static void attach(struct ebb_access *a, const char *name, uint32_t id)
{
	assert_int_equal(ebb_access_attach(a, name, id, a->generation + 1), 0);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(ebb_access_is_name("node-1.a_B"));
	assert_true(ebb_access_is_name("1234567890123456789012345678901234567890"));
	assert_false(ebb_access_is_name("12345678901234567890123456789012345678901"));
	assert_false(ebb_access_is_name(""));
	assert_false(ebb_access_is_name("a@b"));
	assert_false(ebb_access_is_name("a/b"));
}

static void test_attach(void **state)
{
	struct ebb_access a = { 0 };

	(void)state;
	assert_int_equal(ebb_access_attach(&a, "a b", 1, 1), -EINVAL);
	assert_int_equal(a.generation, 0);
	attach(&a, "one", 1);
	assert_int_equal(ebb_access_attach(&a, "one", 2, 2), -EEXIST);
	attach(&a, "two", 2);
	assert_int_equal(ebb_access_attach(&a, "three", 3, 3), -ENOSPC);
	assert_int_equal(a.generation, 2);
	assert_int_equal(a.num, 2);
}

static void test_first_wins(void **state)
{
	struct ebb_access a = { 0 };

	(void)state;
	attach(&a, "one", 1);
	attach(&a, "two", 2);
	assert_int_equal(ebb_access_fence(&a, "three", "two", 2, 3), -ENOENT);
	assert_int_equal(ebb_access_fence(&a, "one", "three", 2, 3), -EINVAL);
	assert_int_equal(ebb_access_fence(&a, "one", "one", 2, 3), -EINVAL);
	assert_int_equal(ebb_access_fence(&a, "one", "two", 1, 3), -ESTALE);
	assert_int_equal(ebb_access_fence(&a, "one", NULL, 3, 4), -ESTALE);
	assert_int_equal(a.generation, 2);
	assert_int_equal(ebb_access_fence(&a, "one", "two", 2, 3), 0);
	assert_int_equal(a.generation, 3);
	assert_string_equal(ebb_access_find(&a, "one")->fenced_by, "two");
	/* The loser; also when it knows the new generation. */
	assert_int_equal(ebb_access_fence(&a, "two", "one", 2, 4), -EACCES);
	assert_int_equal(ebb_access_fence(&a, "two", "one", 3, 4), -EACCES);
	assert_false(ebb_access_find(&a, "two")->is_fenced);
	/* The winner again. */
	assert_int_equal(ebb_access_fence(&a, "one", "two", 2, 4), 0);
	assert_int_equal(a.generation, 3);
}

static void test_detach(void **state)
{
	struct ebb_access a = { 0 };

	(void)state;
	attach(&a, "one", 1);
	attach(&a, "two", 2);
	assert_int_equal(ebb_access_detach(&a, "three", 3), -ENOENT);
	assert_int_equal(ebb_access_step(&a.all[0]), EBB_ACCESS_MAKE);
	assert_int_equal(ebb_access_detach(&a, "one", 3), 0);
	assert_int_equal(ebb_access_detach(&a, "one", 4), 0);
	assert_int_equal(a.generation, 3);
	assert_int_equal(ebb_access_fence(&a, "two", "one", 3, 4), -EACCES);
	/* Its place is taken until its last request has ended. */
	ebb_access_drop_closed(&a);
	assert_int_equal(ebb_access_attach(&a, "one", 3, 4), -EEXIST);
	assert_int_equal(ebb_access_step(&a.all[0]), EBB_ACCESS_REMOVE);
	ebb_access_drop_closed(&a);
	assert_int_equal(a.num, 2);
	ebb_access_removed(&a.all[0]);
	ebb_access_drop_closed(&a);
	assert_int_equal(a.num, 1);
	assert_string_equal(a.all[0].name, "two");
	assert_null(ebb_access_find_id(&a, 1));
}

/* Clients of an export that is still there may write: nothing else counts as closed. */
static void test_not_removed(void **state)
{
	struct ebb_access a = { 0 };
	struct ebb_attachment *t = &a.all[0];

	(void)state;
	attach(&a, "one", 1);
	assert_int_equal(ebb_access_step(t), EBB_ACCESS_MAKE);
	ebb_access_made(t, false);
	assert_int_equal(ebb_access_fence(&a, "one", NULL, 1, 2), 0);
	assert_int_equal(ebb_access_step(t), EBB_ACCESS_REMOVE);
	ebb_access_not_removed(t);
	assert_false(ebb_access_is_settled(t));
	assert_int_equal(ebb_access_step(t), EBB_ACCESS_REMOVE);
	ebb_access_removed(t);
	assert_true(ebb_access_is_settled(t));
	ebb_access_not_removed(t);
	assert_true(ebb_access_is_settled(t));
}

/* ---- every order of events ----------------------------------------------------- */

/*
 * What there is besides: the file, the storage daemon, and requests of clients.  A daemon's answers
 * and events come in order, late.
 */
enum message { MADE, REMOVED, NOT_REMOVED };
struct world {
	struct ebb_access access, file;	/* in memory; on disk */
	bool is_up, is_opened, is_known;	/* ebb-volumed knows that it is opened */
	bool is_started_with[EBB_ACCESS_MAX];	/* an export that its command line has */
	bool has_export[EBB_ACCESS_MAX];	/* of the present storage daemon */
	/* Requests of the clients of each: of the present storage daemon, of those before. */
	unsigned int requests[EBB_ACCESS_MAX], old[EBB_ACCESS_MAX];
	bool has_asked[EBB_ACCESS_MAX];	/* to be removed */
	struct { enum message what; size_t of; } sent[8];
	size_t num_sent;
	bool is_answered;		/* the fence was told to be done */
};

enum { LOSER, WINNER };
static uint64_t num_worlds, num_answered;

static void sends(struct world *w, enum message what, size_t of)
{
	assert_true(w->num_sent < sizeof(w->sent) / sizeof(w->sent[0]));
	w->sent[w->num_sent].what = what;
	w->sent[w->num_sent++].of = of;
}

/* What attach.c does after each event. */
static void advance(struct world *w)
{
	for (size_t i = 0; w->is_known && i < w->access.num; i++) {
		switch (ebb_access_step(&w->access.all[i])) {
		case EBB_ACCESS_MAKE:
			w->has_export[i] = true;
			sends(w, MADE, i);
			break;
		case EBB_ACCESS_REMOVE:
			w->has_export[i] = false;
			w->has_asked[i] = true;
			break;
		default:
			break;
		}
	}
}

static void lose_daemon(struct world *w)
{
	for (size_t i = 0; i < EBB_ACCESS_MAX; i++) {
		w->old[i] += w->requests[i];
		w->requests[i] = 0;
		w->has_export[i] = w->has_asked[i] = false;
	}
	w->num_sent = 0;
	w->is_up = w->is_opened = w->is_known = false;
}

static void start_daemon(struct world *w)
{
	w->is_up = true;
	for (size_t i = 0; i < w->access.num; i++) {
		ebb_access_start(&w->access.all[i]);
		w->is_started_with[i] = w->access.all[i].export == EBB_ACCESS_OPENING;
	}
}

/* It can not open the file while requests of an earlier one are under way. */
static bool open_volume(struct world *w)
{
	if (!w->is_up || w->is_opened || w->old[LOSER] || w->old[WINNER])
		return false;
	memcpy(w->has_export, w->is_started_with, sizeof(w->has_export));
	w->is_opened = true;
	return true;
}

static bool hear_opened(struct world *w)
{
	if (!w->is_opened || w->is_known)
		return false;
	for (size_t i = 0; i < w->access.num; i++)
		ebb_access_opened(&w->access.all[i]);
	w->is_known = true;
	advance(w);
	return true;
}

static bool hear(struct world *w)
{
	struct ebb_attachment *t;

	if (!w->num_sent)
		return false;
	t = &w->access.all[w->sent[0].of];
	if (w->sent[0].what == MADE)
		ebb_access_made(t, false);
	else if (w->sent[0].what == NOT_REMOVED)
		ebb_access_not_removed(t);
	else
		ebb_access_removed(t);
	memmove(w->sent, w->sent + 1, --w->num_sent * sizeof(w->sent[0]));
	advance(w);
	return true;
}

/* ebb-volumed is killed, and with it the daemon, which ends all that it has begun, or not yet. */
static void restart(struct world *w)
{
	lose_daemon(w);
	w->access = w->file;
	for (size_t i = 0; i < w->access.num; i++)
		w->access.all[i].export = EBB_ACCESS_LOST;
	start_daemon(w);
}

/* false: it can not happen now. */
static bool happen(struct world *w, unsigned int what)
{
	const unsigned int of = what % EBB_ACCESS_MAX;

	switch (what) {
	case 0: case 1:		/* a client sends */
		if (!w->has_export[of] || w->requests[of])
			return false;
		w->requests[of]++;
		return true;
	case 2: case 3:		/* a request ends */
		if (!w->requests[of] && !w->old[of])
			return false;
		if (w->old[of])
			w->old[of]--;
		else
			w->requests[of]--;
		return true;
	case 4: case 5:		/* an export that is to go has no requests any more */
		if (!w->has_asked[of] || w->requests[of])
			return false;
		w->has_asked[of] = false;
		sends(w, REMOVED, of);
		return true;
	case 6:
		return hear(w);
	case 7:			/* the fence; then it is written */
		if (w->access.all[LOSER].is_fenced)
			return false;
		assert_int_equal(ebb_access_fence(&w->access, "one", "two", w->access.generation,
						  w->access.generation + 1), 0);
		w->file = w->access;
		advance(w);
		return true;
	case 8:			/* the storage daemon dies, and another one starts */
		if (!w->is_up)
			return false;
		for (size_t i = 0; i < w->access.num; i++)
			ebb_access_lost(&w->access.all[i]);
		lose_daemon(w);
		start_daemon(w);
		return true;
	case 9:
		return open_volume(w);
	case 10:
		restart(w);
		return true;
	case 11:
		return hear_opened(w);
	case 12:		/* the daemon can not remove the loser's export */
		if (!w->has_asked[LOSER])
			return false;
		w->has_asked[LOSER] = false;
		w->has_export[LOSER] = true;
		sends(w, NOT_REMOVED, LOSER);
		return true;
	default:
		return false;
	}
}

/* The fence may be asked for again at any time, and is answered if it counts. */
static void check(struct world *w)
{
	w->is_answered |= w->access.all[LOSER].is_fenced &&
			  ebb_access_is_settled(&w->access.all[LOSER]);
	if (!w->is_answered)
		return;
	num_answered++;
	assert_true(w->file.all[LOSER].is_fenced);
	assert_false(w->has_export[LOSER]);
	assert_int_equal(w->requests[LOSER] + w->old[LOSER], 0);
}

/* Left alone, all comes to an end: the loser is shut and the winner is open. */
static void check_ends(struct world w)
{
	static const unsigned int quiet[] = { 2, 3, 4, 5, 6, 9, 11 };
	bool is_more = true;

	while (is_more) {
		is_more = false;
		for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
			is_more |= happen(&w, quiet[i]);
	}
	check(&w);
	for (size_t i = 0; i < w.access.num; i++)
		assert_true(ebb_access_is_settled(&w.access.all[i]));
	assert_true(w.has_export[WINNER]);
	assert_int_equal(w.has_export[LOSER], !w.access.all[LOSER].is_fenced);
}

static void walk(struct world *w, unsigned int depth)
{
	num_worlds++;
	check(w);
	check_ends(*w);
	if (!depth)
		return;
	for (unsigned int what = 0; what <= 12; what++) {
		struct world next = *w;

		if (happen(&next, what))
			walk(&next, depth - 1);
	}
}

static void test_every_order(void **state)
{
	struct world w = { 0 };

	(void)state;
	attach(&w.access, "one", 1);
	attach(&w.access, "two", 2);
	w.file = w.access;
	start_daemon(&w);
	walk(&w, 10);
	assert_true(num_worlds > 100000);
	assert_true(num_answered > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_first_wins),
		cmocka_unit_test(test_detach),
		cmocka_unit_test(test_not_removed),
		cmocka_unit_test(test_every_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
