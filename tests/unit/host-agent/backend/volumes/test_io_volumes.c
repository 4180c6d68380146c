/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client of ebb-volumed, against a server that does whatever the test wants. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "backend/volumes/volume-conn.h"
#include "tests/unit/host-agent/backend/volumes/volumes_rig.h"
#include "util/clock.h"

static void test_promises_are_told(void **state)
{
	struct volumes_rig *f = *state;

	rig_serve(f);
	rig_begin(f);
	rig_bring_up(f);
	rig_submit(f, 5, "db1", (struct ebb_sla_io){
		.reserve_iops = 300, .max_bytes = 1000000000000, .weight = 7, .penalty = 9 });
	rig_submit(f, 6, "db2", (struct ebb_sla_io){
		.reserve_bytes = 1, .max_iops = 2, .weight = 1 });
	rig_asked(f, "{\"cmd\":\"volume-set\",\"volume\":\"db1\",\"reserve_iops\":300,"
		 "\"reserve_bytes\":null,\"max_iops\":null,\"max_bytes\":1000000000000,"
		 "\"weight\":7,\"penalty\":9,\"owner\":\"me\"}\n");
	rig_expect_nothing(f, 20 * MSEC);
	rig_answer(f, "{\"ok\":true,\"volume\":{}}\n");
	rig_expect_done(f, 5, 0, "");
	rig_asked(f, "\"volume\":\"db2\",\"reserve_iops\":null,\"reserve_bytes\":1,\"max_iops\":2,"
		 "\"max_bytes\":null,\"weight\":1,\"penalty\":0,\"owner\":null}\n");
	rig_answer(f, OK);
	rig_expect_done(f, 6, 0, "");
	rig_expect_nothing(f, 20 * MSEC);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *code;
		int err;
	} all[] = {
		{ "no-such-volume", -ENOENT }, { "overbooked", -EDQUOT }, { "denied", -EACCES },
		{ "no-answer", -ETIMEDOUT },
		{ "bad-value", -EINVAL }, { "something-new", -EINVAL },
		/* In force all the same. */
		{ "not-saved", 0 },
	};
	struct volumes_rig *f = *state;
	char text[256];

	rig_serve(f);
	rig_begin(f);
	rig_bring_up(f);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		rig_submit(f, i + 1, "x", (struct ebb_sla_io){ .weight = 1 });
		rig_asked(f, "volume-set");
		snprintf(text, sizeof(text), "{\"ok\":false,\"error\":{\"code\":\"%s\","
			 "\"message\":\"words %zu\"}}\n", all[i].code, i);
		rig_answer(f, text);
		snprintf(text, sizeof(text), "words %zu", i);
		rig_expect_done(f, i + 1, all[i].err, text);
	}
	rig_expect_nothing(f, 20 * MSEC);
}

/* Which promises agents have set, in parts; a name that no volume can have is left out. */
static void test_promises_of_earlier_agents(void **state)
{
	struct volumes_rig *f = *state;

	rig_serve(f);
	rig_begin(f);
	rig_greet(f);
	rig_asked(f, ASKED_OWNED(0));
	rig_answer(f, "{\"ok\":true,\"server\":{},\"volumes\":[{\"id\":2,\"name\":\"v2\"},"
		  "{\"id\":4,\"name\":\"/v4\"},7,{\"id\":6}],\"more\":true}\n");
	rig_asked(f, ASKED_OWNED(6));
	assert_int_equal(f->num_facts, 0);
	rig_answer(f, "{\"ok\":true,\"server\":{},\"volumes\":[{\"id\":9,\"name\":\"v5\"}],"
		  "\"more\":true}\n");
	rig_asked(f, ASKED_OWNED(9));
	rig_answer(f, "{\"ok\":true,\"server\":{},\"volumes\":[],\"more\":false}\n");
	rig_expect(f, EBB_FACT_VOLUMES_UP, "");
	assert_string_equal(f->facts[f->num_read - 1].text, "v2 v5 ");
	/* What came of a list that was cut off is forgotten. */
	rig_expect(f, EBB_FACT_VOLUMES_SERVER, "");
	rig_hang_up(f);
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "");
	for (int i = 0; i < 2; i++) {
		rig_greet(f);
		rig_asked(f, ASKED_OWNED(0));
		rig_answer(f, "{\"ok\":true,\"server\":{},\"volumes\":[{\"id\":2,\"name\":\"v2\"}],"
			  "\"more\":true}\n");
		rig_asked(f, ASKED_OWNED(2));
		/* A part that leads no further is no answer. */
		rig_answer(f, "{\"ok\":true,\"server\":{},\"volumes\":[],\"more\":true}\n");
		while (recv(f->fd, &(char){ 0 }, 1, MSG_DONTWAIT) != 0)
			rig_pump(f);
		rig_hang_up(f);
	}
	rig_bring_up(f);
}

/* Told once, however often it is tried; what is to be done meanwhile ends at once. */
static void test_no_server(void **state)
{
	struct volumes_rig *f = *state;

	rig_begin(f);
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "sock: No such file or directory");
	rig_submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	rig_expect_done(f, 5, -ENOTCONN, "");
	rig_expect_nothing(f, 200 * MSEC);
	rig_serve(f);
	rig_bring_up(f);
	rig_submit(f, 6, "x", (struct ebb_sla_io){ .weight = 1 });
	rig_asked(f, "volume-set");
	rig_answer(f, OK);
	rig_expect_done(f, 6, 0, "");
}

static void test_restart(void **state)
{
	struct volumes_rig *f = *state;

	rig_serve(f);
	rig_begin(f);
	rig_bring_up(f);
	rig_submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	rig_submit(f, 6, "y", (struct ebb_sla_io){ .weight = 1 });
	rig_asked(f, "\"x\"");
	/* Half of an answer, which must not become the beginning of the next one. */
	rig_answer(f, "{\"ok\":tr");
	rig_pump(f);
	rig_stop(f);
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "has closed the connection");
	rig_expect_done(f, 5, -ENOTCONN, "closed");
	rig_expect_done(f, 6, -ENOTCONN, "closed");
	rig_serve(f);
	rig_bring_up(f);
	rig_submit(f, 7, "x", (struct ebb_sla_io){ .weight = 1 });
	rig_asked(f, "\"x\"");
	rig_answer(f, OK);
	rig_expect_done(f, 7, 0, "");
}

static void test_rubbish(void **state)
{
	static const char *const all[] = {
		"rubbish\n", "\n", "[]\n", "{}\n", "{\"ok\":1}\n", "{\"ok\":false}\n", "\"ok\"\n",
		"{\"ok\":false,\"error\":\"no\"}\n", "{\"ok\":false,\"error\":{\"code\":\"x\"}}\n",
		"{\"ok\":true}}\n", "{\"ok\":true,\n", "\xff\xfe\n",
	};
	struct volumes_rig *f = *state;

	rig_serve(f);
	rig_begin(f);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		/* Instead of a greeting, which nobody hears of but for the first time ... */
		rig_let_in(f);
		rig_asked(f, "claim");
		rig_answer(f, all[i]);
		if (i == 0)
			rig_expect(f, EBB_FACT_VOLUMES_LOST, "no volume server");
		rig_hang_up(f);
		rig_greet(f);
		rig_asked(f, "volumes");
		rig_answer(f, all[i]);
		rig_hang_up(f);
		/* ... and instead of an answer. */
		rig_bring_up(f);
		rig_submit(f, i + 1, "x", (struct ebb_sla_io){ .weight = 1 });
		rig_asked(f, "volume-set");
		rig_answer(f, all[i]);
		rig_expect(f, EBB_FACT_VOLUMES_LOST, "no volume server");
		rig_expect_done(f, i + 1, -ENOTCONN, "");
		rig_hang_up(f);
	}
	/* An answer that nobody has asked for. */
	rig_bring_up(f);
	rig_answer(f, OK);
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "no volume server");
}

static void test_answer_in_pieces(void **state)
{
	struct volumes_rig *f = *state;

	rig_serve(f);
	rig_begin(f);
	rig_greet(f);
	rig_asked(f, "volumes");
	for (const char *c = SERVER; *c; c++) {
		const char piece[] = { *c, '\0' };

		assert_int_equal(f->num_facts, 0);
		rig_answer(f, piece);
		rig_pump(f);
	}
	rig_expect(f, EBB_FACT_VOLUMES_UP, "");
}

static void test_silence(void **state)
{
	struct volumes_rig *f = *state;

	f->cfg.patience_usec = 150 * MSEC;
	rig_serve(f);
	rig_begin(f);
	rig_greet(f);
	rig_asked(f, "volumes");
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "does not answer");
	rig_hang_up(f);
	/* One that drips is no better. */
	rig_bring_up(f);
	rig_submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	rig_asked(f, "volume-set");
	for (int i = 0; i < 1000 && f->num_read == f->num_facts; i++) {
		send(f->fd, " ", 1, MSG_NOSIGNAL);
		rig_pump(f);
	}
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "does not answer");
	rig_expect_done(f, 5, -ENOTCONN, "does not answer");
	rig_hang_up(f);
	/* Nothing to answer: it may be silent. */
	rig_bring_up(f);
	rig_expect_nothing(f, 400 * MSEC);
}

static void test_answer_too_long(void **state)
{
	struct volumes_rig *f = *state;
	size_t sent = 0;
	char *data = malloc(1 << 20);

	memset(data, ' ', 1 << 20);
	f->cfg.patience_usec = HANG_USEC;
	rig_serve(f);
	rig_begin(f);
	rig_greet(f);
	rig_asked(f, "volumes");
	while (f->num_facts == 0 && sent < 2 * (size_t)EBB_VOLUME_MAX_ANSWER) {
		const ssize_t n = send(f->fd, data, 1 << 20, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		rig_pump(f);
	}
	free(data);
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "too long");
}

#define METERS \
	"{\"ok\":true,\"scheduler\":{\"interval-us\":500000},\"meters\":[{\"name\":\"v1\"," \
	"\"delay\":{\"mean-ns\":1,\"p50-ns\":2,\"p99-ns\":3,\"max-ns\":4}," \
	"\"counters\":{\"intervals\":1,\"violated-intervals\":2,\"charged\":3,\"early\":4," \
	"\"missed\":5,\"violated\":6,\"others-early\":7,\"others-promised\":8,\"slow\":9," \
	"\"overdue\":10},\"interval\":{\"taker\":\"v2\"}},{\"name\":7,\"interval\":null}]}\n"

/* Returns how often it was asked what the server is before. */
static int asked_after_readings(struct volumes_rig *f, const char *words)
{
	char line[1024];

	for (int num = 0;; num++) {
		rig_read_line(f, line, sizeof(line));
		if (strstr(line, words))
			return num;
		assert_non_null(strstr(line, "\"volumes\""));
		rig_answer(f, SERVER);
		rig_expect(f, EBB_FACT_VOLUMES_SERVER, "500");
	}
}

static void test_readings(void **state)
{
	static const struct ebb_volume_counters counters = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	struct volumes_rig *f = *state;

	f->cfg.meter_usec = 50 * MSEC;
	rig_serve(f);
	rig_begin(f);
	rig_bring_up(f);
	/* Nothing was set: the meters are nobody's business. */
	for (int i = 0; i < 2; i++) {
		rig_asked(f, ASKED_SERVER);
		rig_answer(f, SERVER);
		rig_expect(f, EBB_FACT_VOLUMES_SERVER, "500");
	}
	rig_submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	asked_after_readings(f, "volume-set");
	/* While it waits for an answer readings are due, of which only the first is asked for. */
	rig_expect_nothing(f, 300 * MSEC);
	rig_answer(f, OK);
	rig_expect_done(f, 5, 0, "");
	assert_in_range(asked_after_readings(f, "{\"cmd\":\"meters\",\"brief\":true}"), 1, 3);
	rig_answer(f, METERS);
	rig_expect(f, EBB_FACT_VOLUMES_METERS, "");
	assert_int_equal(f->meters.num, 2);
	assert_int_equal(f->meters.interval_usec, 500000);
	assert_true(f->meters.as_of > 0 && f->meters.as_of <= ebb_clock_mono_usec());
	assert_string_equal(f->readings[0].name, "v1");
	assert_string_equal(f->readings[0].taker, "v2");
	assert_memory_equal(&f->readings[0].count, &counters, sizeof(counters));
	assert_int_equal(f->readings[0].delay.p99_nsec, 3);
	assert_string_equal(f->readings[1].name, "");
	rig_asked(f, ASKED_SERVER);
	/* Rubbish. */
	rig_answer(f, OK);
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "no volume server");
	rig_hang_up(f);
	/* After a restart nothing is set. */
	rig_bring_up(f);
	rig_asked(f, ASKED_SERVER);
	rig_answer(f, SERVER);
	rig_expect(f, EBB_FACT_VOLUMES_SERVER, "");
	rig_asked(f, ASKED_SERVER);
}

/* A server that hangs up at once is not asked all the time. */
static void test_pauses(void **state)
{
	struct volumes_rig *f = *state;
	usec_t begin_at, until;
	int num = 0;

	rig_serve(f);
	rig_begin(f);
	begin_at = ebb_clock_mono_usec();
	until = begin_at + 500 * MSEC;
	while (ebb_clock_mono_usec() < until) {
		const int fd = accept(f->listen_fd, NULL, NULL);

		if (fd >= 0)
			close(fd);
		num += fd >= 0;
		rig_pump(f);
	}
	/* 20, 40, 80, 80, ... ms; a machine that is busy only makes it fewer. */
	assert_in_range(num, 2, 9);
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "");
	rig_bring_up(f);
}

static void test_server_is_full(void **state)
{
	struct volumes_rig *f = *state;

	rig_serve(f);
	rig_begin(f);
	rig_let_in(f);
	rig_asked(f, "claim");
	rig_answer(f, "{\"ok\":false,\"error\":{\"code\":\"too-many-clients\","
		  "\"message\":\"full\"}}\n");
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "full");
}

/* The other one is told of, once, and this one takes its turn when it has ended. */
static void test_another_agent(void **state)
{
	struct volumes_rig *f = *state;

	rig_serve(f);
	rig_begin(f);
	for (int i = 0; i < 3; i++) {
		rig_let_in(f);
		rig_asked(f, ASKED_CLAIM);
		rig_answer(f, "{\"ok\":false,\"error\":{\"code\":\"owner-in-use\","
			  "\"message\":\"another one is me\"}}\n");
		if (i == 0)
			rig_expect(f, EBB_FACT_VOLUMES_LOST, "another one is me");
		rig_expect_nothing(f, 0);
		rig_hang_up(f);
	}
	rig_bring_up(f);
	/* An agent that may change nothing can still read. */
	rig_hang_up(f);
	rig_expect(f, EBB_FACT_VOLUMES_LOST, "");
	rig_let_in(f);
	rig_asked(f, ASKED_CLAIM);
	rig_answer(f, "{\"ok\":false,\"error\":{\"code\":\"denied\",\"message\":\"no\"}}\n");
	rig_asked(f, ASKED_OWNED(0));
	rig_answer(f, SERVER);
	rig_expect(f, EBB_FACT_VOLUMES_UP, "");
}

static void test_in_front_of_another_backend(void **state)
{
	const struct ebb_action plug = { .type = EBB_ACTION_PLUG, .id = 3 };
	struct volumes_rig *f = *state;

	rig_begin(f);
	f->backend.ops->submit(f->backend.be, 77, &plug);
	assert_int_equal(f->num_inner, 1);
	assert_string_equal(f->backend.ops->name, "inner");
	assert_null(f->backend.ops->next);
	assert_null(f->backend.ops->run);
	f->backend.ops->destroy(f->backend.be);
	f->backend.ops->destroy(NULL);
	assert_int_equal(f->num_inner, 101);
}

static void test_path_too_long(void **state)
{
	struct volumes_rig *f = *state;
	char path[200];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	f->cfg.path = path;
	assert_int_equal(ebb_volumes_create(f->event, &f->cfg, &f->volumes), -ENAMETOOLONG);
}

/* With requests that are open, nothing is reported any more. */
static void test_end(void **state)
{
	struct volumes_rig *f = *state;

	rig_serve(f);
	rig_begin(f);
	rig_bring_up(f);
	rig_submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	rig_submit(f, 6, "y", (struct ebb_sla_io){ .weight = 1 });
	rig_asked(f, "\"x\"");
	ebb_volumes_destroy(f->volumes);
	f->volumes = NULL;
	rig_expect_nothing(f, 20 * MSEC);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_promises_are_told),
		TEST(test_refusals),
		TEST(test_promises_of_earlier_agents),
		TEST(test_no_server),
		TEST(test_restart),
		TEST(test_rubbish),
		TEST(test_answer_in_pieces),
		TEST(test_silence),
		TEST(test_answer_too_long),
		TEST(test_readings),
		TEST(test_pauses),
		TEST(test_server_is_full),
		TEST(test_another_agent),
		TEST(test_in_front_of_another_backend),
		TEST(test_path_too_long),
		TEST(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
