// SPDX-License-Identifier: GPL-2.0-or-later
/* What VMs are charged for when the agent is killed: from the core to the file and back. */
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/agent.h"
#include "daemon/dryrun.h"
#include "backend/real/hosttopo.h"
#include "tests/unit/host-agent/core/core_script.h"
#include "tests/unit/host-agent/daemon/history_rig.h"
#include "util/clock.h"
#include "util/heap.h"
#include "util/log.h"

/* As the default; cores of the VM at most. */
#define PERIOD		SEC(1)
#define MOST_CORES	4
/* Generous: less than the minute in which nothing came once. */
#define WAIT_USEC	SEC(50)

static const uint8_t uuid_of_a[16] = { 'a' };

/* ---- with a clock of our own ---- */

/* Returns what its one core, which is reserved, counts by then. */
static uint64_t begin(struct script *s)
{
	uint64_t reserved = 0;
	struct ebb_sla sla = script_sla("1/4");

	script_init(s, 1, 8, 1, false);
	script_finish(s);
	s->can_lend = true;
	s->cfg.charge_usec = PERIOD;
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	assert_non_null(s->state);
	script_loaded(s);
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_running(s, 'a', 7), 0);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_settle(s);
	ebb_state_charge_all(s->state, s->now);
	while (script_find_record(s, 'a', EBB_EVENT_CHARGE))
		reserved = s->record.charge[EBB_CLASS_RESERVED].core_usec;
	return reserved;
}

/* As the daemon does after each round. */
static void keep(struct script *s, struct ebb_history_db *db)
{
	script_expect_nothing(s);
	while (script_find_record(s, 'a', EBB_EVENT_CHARGE)) {
		const struct ebb_history_entry e = {
			.ts = (double)s->record.at / EBB_USEC_PER_SEC, .record = s->record,
		};

		assert_int_equal(ebb_history_db_insert(db, &e, 1, NULL), 0);
	}
}

struct account {
	struct script *script;
	struct ebb_history_db *db;
	uint64_t reserved, spot;	/* truly held */
	uint32_t cores;			/* held now, of which one is reserved */
};

static void pass(struct account *a, usec_t usec)
{
	a->reserved += usec;
	a->spot += (a->cores - 1) * usec;
	a->script->now += usec;
	keep(a->script, a->db);
}

/* Wherever the agent is killed, it has not told of a second at most, and of nothing too much. */
static void check(const struct account *a)
{
	const uint64_t reserved = history_charged("a", "reserved_core_s");
	const uint64_t spot = history_charged("a", "spot_core_s");

	assert_in_range(reserved, a->reserved > PERIOD ? a->reserved - PERIOD : 0, a->reserved);
	assert_in_range(spot, a->spot > MOST_CORES * PERIOD ? a->spot - MOST_CORES * PERIOD : 0,
			a->spot);
}

static void live(struct account *a)
{
	struct script *s = a->script;

	pass(a, MSEC(300));
	check(a);
	assert_int_equal(script_add(s, 'a', 7, 3, 0, false), 0);
	script_expect(s, "plug a 1", "plug a 2", "plug a 3");
	for (uint16_t i = 1; i <= 3; i++)
		script_done(s, EBB_ACTION_PLUG, 'a', i, 0);
	script_expect(s, "place a 1 @1", "place a 2 @2", "place a 3 @3");
	for (uint16_t i = 1; i <= 3; i++)
		script_done(s, EBB_ACTION_PLACE, 'a', i, 0);
	script_expect(s, "response a 7 ack none [1,2,3]", "limits a 4/4");
	a->cores = 4;
	for (int i = 0; i < 30; i++) {
		pass(a, MSEC(170) + (usec_t)i * 977);
		check(a);
	}
	assert_int_equal(script_lend(s, 'a', 8, 3, false), 0);
	script_expect(s, "limits a 3/4", "home a 3 @0");
	script_done(s, EBB_ACTION_HOME, 'a', 3, 0);
	script_expect(s, "response a 8 ack none []");
	a->cores = 3;
	/* In another minute, which is another row. */
	for (int i = 0; i < 200; i++)
		pass(a, MSEC(431));
	check(a);
}

static void test_killed(void **state)
{
	struct script s;
	struct account a = { .script = &s, .db = history_open_db(), .cores = 1 };

	(void)state;
	a.reserved = begin(&s);
	live(&a);
	/* It ends here, without a word. */
	script_finish(&s);
	check(&a);
	assert_true(a.spot > SEC(100));
	ebb_history_db_close(a.db);
}

/* The last of the runs that the file knows of. */
static struct ebb_history_run last_run(void)
{
	struct ebb_history_db *db = history_open_db();
	struct ebb_history_run *runs, run = { .order = 0 };
	size_t num;

	ebb_history_db_runs(db, &runs, &num);
	if (num > 0)
		run = runs[num - 1];
	free(runs);
	ebb_history_db_close(db);
	return run;
}

/* Another agent finds the VM with three cores, as it was left. */
static void find_again(struct script *s, usec_t now, uint64_t order,
		       const struct ebb_history_run *run)
{
	struct ebb_sla sla = script_sla("1/4");

	script_init_loading(s, 1, 8, 1, false);
	script_finish(s);
	s->can_lend = true;
	s->cfg.charge_usec = PERIOD;
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	s->now = now;
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_found(s, 'a', order, s->now, "0@0 1@1 2@2 3@0"), 0);
	ebb_state_charge_resume(s->state, run->uuid, run->order, &run->charge);
	script_loaded(s);
	assert_int_equal(script_hello(s, 'a', true, true, 1, "1 2 3l"), 0);
	script_expect(s, "welcome a ack", "limits a 3/4");
}

/* The time in which there was no agent counts with what was found: to the microsecond. */
static void test_resumed(void **state)
{
	struct script s;
	struct account a = { .script = &s, .db = history_open_db(), .cores = 1 };
	struct ebb_history_run run;
	usec_t now;

	(void)state;
	a.reserved = begin(&s);
	live(&a);
	now = s.now + SEC(42) + 17;
	script_finish(&s);
	ebb_history_db_close(a.db);

	run = last_run();
	assert_memory_equal(run.uuid, uuid_of_a, 16);
	assert_int_equal(run.order, 7);
	assert_in_range(run.charge.at, s.now - PERIOD, s.now);
	a.db = history_open_db();
	a.reserved += SEC(42) + 17;
	a.spot += 2 * (SEC(42) + 17);
	find_again(&s, now, 7, &run);
	for (int i = 0; i < 10; i++)
		pass(&a, MSEC(333));
	check(&a);
	ebb_state_charge_all(s.state, s.now);
	keep(&s, a.db);
	assert_int_equal(history_charged("a", "reserved_core_s"), a.reserved);
	assert_int_equal(history_charged("a", "spot_core_s"), a.spot);
	script_finish(&s);
	ebb_history_db_close(a.db);
}

/* It was started anew meanwhile: nobody knows when, and from now on counts. */
static void test_other_run(void **state)
{
	struct script s;
	struct account a = { .script = &s, .db = history_open_db(), .cores = 1 };
	struct ebb_history_run run;
	uint64_t before;

	(void)state;
	a.reserved = begin(&s);
	live(&a);
	script_finish(&s);
	run = last_run();
	before = history_charged("a", "reserved_core_s");
	find_again(&s, s.now + SEC(42), 8, &run);
	pass(&a, SEC(2));
	ebb_state_charge_all(s.state, s.now);
	keep(&s, a.db);
	assert_int_equal(history_charged("a", "reserved_core_s") - before, SEC(2));
	/* Nor is the time of a monotonic clock good for another boot of the host. */
	assert_int_equal(last_run().order, 8);
	ebb_history_db_close(a.db);
	{
		sqlite3 *sql;

		assert_int_equal(sqlite3_open(history_path, &sql), SQLITE_OK);
		assert_int_equal(sqlite3_exec(sql, "UPDATE charges SET boot = 'another'", NULL,
					      NULL, NULL), SQLITE_OK);
		sqlite3_close(sql);
	}
	assert_int_equal(last_run().order, 0);
	script_finish(&s);
}

/* ---- a process that is killed ---- */

/* ebbd as far as it matters: the agent, simulated VMs, the history in a file. */
static void be_agent(void)
{
	const struct ebb_emuspec spec = { 2, 2, 1, 250, 10 };
	static struct ebb_agent agent;
	static struct ebb_host host;
	struct ebb_workers *workers;
	struct ebb_dryrun *dryrun;
	struct ebb_state_config cfg;
	struct ebb_err err = { "" };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ebb_log_set_level(LOG_ERR);
	ebb_state_config_default(&cfg);
	cfg.alloc = (struct ebb_alloc){ .alloc = ebb_heap_alloc, .free = ebb_heap_free };
	if (ebb_hosttopo_emulated(&spec, &host, &err) < 0)
		_exit(1);
	agent.state = ebb_state_create(&cfg, &host, &ebb_policy_fair);
	if (!agent.state || sd_event_new(&agent.event) < 0 ||
	    ebb_workers_create(agent.event, 2, &workers) < 0 ||
	    ebb_history_open(history_path, 1000, workers, agent.event, &agent.history, &err) < 0 ||
	    ebb_agent_init(&agent) < 0 || ebb_dryrun_create(&agent, &host, 1, &dryrun) < 0)
		_exit(2);
	agent.backend = ebb_dryrun_backend(dryrun);
	if (ebb_dryrun_begin(dryrun) < 0)
		_exit(3);
	sd_event_loop(agent.event);
	_exit(4);
}

/* A column of what the file says now of all VMs, without being in the way; 0: nothing yet. */
static uint64_t peek(const char *column)
{
	char text[96];
	sqlite3_stmt *s = NULL;
	sqlite3 *sql = NULL;
	uint64_t value = 0;

	snprintf(text, sizeof(text), "SELECT %s FROM charges", column);
	if (sqlite3_open_v2(history_path, &sql, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(sql, text, -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		value = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(sql);
	return value;
}

static void test_kill(void **state)
{
	const usec_t begun = ebb_clock_mono_usec();
	uint64_t until = 0, seen;
	int status = 0, news = 0;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		be_agent();
	/* What it holds is in the file while it runs, again and again. */
	while (news < 3 && ebb_clock_mono_usec() - begun < WAIT_USEC) {
		const uint64_t now = peek("max(until_usec)");

		news += now > until;
		until = now > until ? now : until;
		usleep(50000);
	}
	/* There is a row for each minute, with all until then. */
	seen = peek("max(reserved_core_usec)");
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(news, 3);
	assert_true(seen > 0);
	/* The next agent reads it all; the VM can not have held more than all four cores. */
	assert_true(history_charged("simulated-1", "reserved_core_s") >= seen);
	assert_in_range(last_run().charge.at, until, ebb_clock_mono_usec());
	assert_true(history_charged("simulated-1", "reserved_core_s") <=
		    MOST_CORES * (last_run().charge.at - begun));
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(test_##name, history_folder_make, history_folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(killed), TEST(resumed), TEST(other_run), TEST(kill),
	};

	return cmocka_run_group_tests_name("charges of an agent that is killed", tests, NULL, NULL);
}
