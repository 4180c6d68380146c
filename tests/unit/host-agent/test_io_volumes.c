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
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "backend/volumes/volume-conn.h"
#include "backend/volumes/volumes.h"
#include "util/clock.h"
#include "util/log.h"

#define HANG_USEC	(60 * EBB_USEC_PER_SEC)
#define MSEC		EBB_USEC_PER_MSEC
#define MAX_FACTS	64
#define OK		"{\"ok\":true}\n"
/* What the server is. */
#define SERVER		"{\"ok\":true,\"server\":{\"capacity_iops\":500,\"capacity_bytes\":0," \
			"\"promised_iops\":-7,\"promised_bytes\":9,\"allow_overbooking\":true}," \
			"\"volumes\":[{\"name\":\"v1\"},{\"name\":\"v2\"}]}\n"

struct seen {
	enum ebb_fact_type type;
	uint64_t id;
	int err;
	char text[EBB_TEXT_SIZE];
};

struct fixture {
	sd_event *event;
	struct ebb_volumes_config cfg;
	struct ebb_volumes *volumes;
	struct ebb_backend backend;
	char folder[64], path[96];
	int listen_fd, fd;		/* -1: none */
	struct seen facts[MAX_FACTS];
	size_t num_facts, num_read;
	struct ebb_fact_volumes_meters meters;
	struct ebb_volume_reading readings[2];
	unsigned int num_inner;
	bool is_submitting;
};

/* ---- the agent's end ---------------------------------------------------------- */

static int take_fact(void *ctx, usec_t now, const struct ebb_fact *fact)
{
	struct fixture *f = ctx;
	struct seen *seen = &f->facts[f->num_facts++];

	assert_true(now > 0);
	assert_false(f->is_submitting);
	assert_true(f->num_facts < MAX_FACTS);
	*seen = (struct seen){ .type = fact->type };
	if (fact->type == EBB_FACT_ACTION_DONE) {
		assert_int_equal(fact->u.action_done.type, EBB_ACTION_VOLUME);
		seen->id = fact->u.action_done.id;
		seen->err = fact->u.action_done.err;
		snprintf(seen->text, sizeof(seen->text), "%s",
			 fact->u.action_done.text ? fact->u.action_done.text : "");
	} else if (fact->type == EBB_FACT_VOLUMES_SERVER) {
		const struct ebb_volume_server *s = &fact->u.volumes_server;

		snprintf(seen->text, sizeof(seen->text), "%u %u %u %u %d",
			 (unsigned)s->capacity_iops, (unsigned)s->capacity_bytes,
			 (unsigned)s->promised_iops, (unsigned)s->promised_bytes,
			 s->allow_overbooking);
	} else if (fact->type == EBB_FACT_VOLUMES_UP) {
		for (uint32_t i = 0; i < fact->u.volumes_up.num; i++)
			snprintf(seen->text + strlen(seen->text),
				 sizeof(seen->text) - strlen(seen->text), "%s ",
				 fact->u.volumes_up.owned[i]);
	} else if (fact->type == EBB_FACT_VOLUMES_METERS) {
		f->meters = fact->u.volumes_meters;
		for (uint32_t i = 0; i < f->meters.num && i < 2; i++)
			f->readings[i] = f->meters.volumes[i];
	} else if (fact->type == EBB_FACT_VOLUMES_LOST) {
		memcpy(seen->text, fact->u.volumes_lost.text, sizeof(seen->text));
	}
	return 0;
}

static void inner_submit(void *be, usec_t now, const struct ebb_action *action)
{
	struct fixture *f = be;

	assert_int_equal(now, 77);
	assert_int_equal(action->type, EBB_ACTION_PLUG);
	f->num_inner++;
}

static void inner_destroy(void *be)
{
	((struct fixture *)be)->num_inner += 100;
}

static const struct ebb_backend_ops inner_ops = {
	.name = "inner", .submit = inner_submit, .destroy = inner_destroy,
};

static void begin(struct fixture *f)
{
	assert_int_equal(ebb_volumes_create(f->event, &f->cfg, &f->volumes), 0);
	f->backend = ebb_volumes_backend(f->volumes);
}

static void submit(struct fixture *f, uint64_t id, const char *name, struct ebb_sla_io io)
{
	struct ebb_action a = {
		.type = EBB_ACTION_VOLUME, .id = id,
		.u.volume = { .io = io, .is_owned = io.reserve_iops > 0 },
	};

	strcpy(a.u.volume.name, name);
	f->is_submitting = true;
	f->backend.ops->submit(f->backend.be, 1, &a);
	f->is_submitting = false;
}

static void pump(struct fixture *f)
{
	assert_true(sd_event_run(f->event, 5 * MSEC) >= 0);
}

/* The next fact that came. */
static const struct seen *next_fact(struct fixture *f)
{
	const usec_t until = ebb_clock_mono_usec() + HANG_USEC;

	while (f->num_read == f->num_facts && ebb_clock_mono_usec() < until)
		pump(f);
	assert_true(f->num_read < f->num_facts);
	return &f->facts[f->num_read++];
}

static void expect(struct fixture *f, enum ebb_fact_type type, const char *text)
{
	const struct seen *seen = next_fact(f);

	assert_string_equal(ebb_fact_name(seen->type), ebb_fact_name(type));
	if (!strstr(seen->text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, seen->text);
}

static void expect_done(struct fixture *f, uint64_t id, int err, const char *text)
{
	expect(f, EBB_FACT_ACTION_DONE, text);
	assert_int_equal(f->facts[f->num_read - 1].id, id);
	assert_int_equal(f->facts[f->num_read - 1].err, err);
}

static void expect_nothing(struct fixture *f, usec_t wait)
{
	const usec_t until = ebb_clock_mono_usec() + wait;

	do
		pump(f);
	while (ebb_clock_mono_usec() < until);
	assert_int_equal(f->num_read, f->num_facts);
}

/* ---- the server's end ----------------------------------------------------------- */

static void serve(struct fixture *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(addr.sun_path, f->path);
	f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(f->listen_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(f->listen_fd, 8), 0);
}

static void hang_up(struct fixture *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static void stop(struct fixture *f)
{
	hang_up(f);
	if (f->listen_fd >= 0)
		close(f->listen_fd);
	f->listen_fd = -1;
	unlink(f->path);
}

static void let_in(struct fixture *f)
{
	const usec_t until = ebb_clock_mono_usec() + HANG_USEC;

	assert_int_equal(f->fd, -1);
	while (f->fd < 0 && ebb_clock_mono_usec() < until) {
		pump(f);
		f->fd = accept(f->listen_fd, NULL, NULL);
	}
	assert_true(f->fd >= 0);
}

static void read_line(struct fixture *f, char *line, size_t size)
{
	const usec_t until = ebb_clock_mono_usec() + HANG_USEC;
	size_t len = 0;

	while ((len == 0 || line[len - 1] != '\n') && ebb_clock_mono_usec() < until) {
		ssize_t n;

		pump(f);
		n = recv(f->fd, line + len, size - len - 1, MSG_DONTWAIT);
		if (n > 0)
			len += (size_t)n;
	}
	assert_true(len > 0 && line[len - 1] == '\n');
	line[len] = '\0';
	/* One request at a time. */
	assert_ptr_equal(strchr(line, '\n'), line + len - 1);
}

static void asked(struct fixture *f, const char *words)
{
	char line[1024];

	read_line(f, line, sizeof(line));
	if (!strstr(line, words))
		fail_msg("\"%s\" is not in %s", words, line);
}

static void answer(struct fixture *f, const char *text)
{
	assert_int_equal(send(f->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void bring_up(struct fixture *f)
{
	let_in(f);
	asked(f, "{\"cmd\":\"volumes\"}");
	answer(f, SERVER);
	expect(f, EBB_FACT_VOLUMES_UP, "");
	assert_string_equal(f->facts[f->num_read - 1].text, "");
	expect(f, EBB_FACT_VOLUMES_SERVER, "500 0 0 9 1");
}

/* ---- the tests -------------------------------------------------------------------- */

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	ebb_log_set_level(LOG_ERR);
	strcpy(f->folder, "/tmp/test_io_volumes.XXXXXX");
	if (!mkdtemp(f->folder) || sd_event_new(&f->event) < 0)
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/sock", f->folder);
	f->listen_fd = f->fd = -1;
	ebb_volumes_config_default(&f->cfg);
	f->cfg.path = f->path;
	f->cfg.inner = (struct ebb_backend){ .ops = &inner_ops, .be = f };
	f->cfg.sink = (struct ebb_sink){ .ctx = f, .report = take_fact };
	f->cfg.retry_usec[0] = 20 * MSEC;
	f->cfg.retry_usec[1] = 80 * MSEC;
	/* Not in the way of tests of other things. */
	f->cfg.meter_usec = HANG_USEC;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ebb_volumes_destroy(f->volumes);
	stop(f);
	sd_event_unref(f->event);
	rmdir(f->folder);
	free(f);
	return 0;
}

static void test_promises_are_told(void **state)
{
	struct fixture *f = *state;

	serve(f);
	begin(f);
	bring_up(f);
	submit(f, 5, "db1", (struct ebb_sla_io){ .reserve_iops = 300, .max_bytes = 1000000000000,
						 .weight = 7, .penalty = 9 });
	submit(f, 6, "db2", (struct ebb_sla_io){ .reserve_bytes = 1, .max_iops = 2, .weight = 1 });
	asked(f, "{\"cmd\":\"volume-set\",\"volume\":\"db1\",\"reserve_iops\":300,"
		 "\"reserve_bytes\":null,\"max_iops\":null,\"max_bytes\":1000000000000,"
		 "\"weight\":7,\"penalty\":9,\"owner\":\"ebbd\"}\n");
	expect_nothing(f, 20 * MSEC);
	answer(f, "{\"ok\":true,\"volume\":{}}\n");
	expect_done(f, 5, 0, "");
	asked(f, "\"volume\":\"db2\",\"reserve_iops\":null,\"reserve_bytes\":1,\"max_iops\":2,"
		 "\"max_bytes\":null,\"weight\":1,\"penalty\":0,\"owner\":null}\n");
	answer(f, OK);
	expect_done(f, 6, 0, "");
	expect_nothing(f, 20 * MSEC);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *code;
		int err;
	} all[] = {
		{ "no-such-volume", -ENOENT }, { "overbooked", -EDQUOT }, { "denied", -EACCES },
		{ "bad-value", -EINVAL }, { "something-new", -EINVAL },
		/* In force all the same. */
		{ "not-saved", 0 },
	};
	struct fixture *f = *state;
	char text[256];

	serve(f);
	begin(f);
	bring_up(f);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		submit(f, i + 1, "x", (struct ebb_sla_io){ .weight = 1 });
		asked(f, "volume-set");
		snprintf(text, sizeof(text), "{\"ok\":false,\"error\":{\"code\":\"%s\","
			 "\"message\":\"words %zu\"}}\n", all[i].code, i);
		answer(f, text);
		snprintf(text, sizeof(text), "words %zu", i);
		expect_done(f, i + 1, all[i].err, text);
	}
	expect_nothing(f, 20 * MSEC);
}

/* Which promises agents have set; a name that can be none of a volume is no reason to hang up. */
static void test_promises_of_earlier_agents(void **state)
{
	struct fixture *f = *state;

	serve(f);
	begin(f);
	let_in(f);
	asked(f, "{\"cmd\":\"volumes\"}");
	answer(f, "{\"ok\":true,\"server\":{},\"volumes\":[{\"name\":\"v1\",\"owner\":null},"
		  "{\"name\":\"v2\",\"owner\":\"ebbd\"},{\"name\":\"v3\",\"owner\":\"me\"},"
		  "{\"name\":\"/v4\",\"owner\":\"ebbd\"},7,{\"owner\":\"ebbd\"},"
		  "{\"name\":\"v5\",\"owner\":\"ebbd\"}]}\n");
	expect(f, EBB_FACT_VOLUMES_UP, "");
	assert_string_equal(f->facts[f->num_read - 1].text, "v2 v5 ");
}

/* Told once, however often it is tried; what is to be done meanwhile ends at once. */
static void test_no_server(void **state)
{
	struct fixture *f = *state;

	begin(f);
	expect(f, EBB_FACT_VOLUMES_LOST, "sock: No such file or directory");
	submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	expect_done(f, 5, -ENOTCONN, "");
	expect_nothing(f, 200 * MSEC);
	serve(f);
	bring_up(f);
	submit(f, 6, "x", (struct ebb_sla_io){ .weight = 1 });
	asked(f, "volume-set");
	answer(f, OK);
	expect_done(f, 6, 0, "");
}

static void test_restart(void **state)
{
	struct fixture *f = *state;

	serve(f);
	begin(f);
	bring_up(f);
	submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	submit(f, 6, "y", (struct ebb_sla_io){ .weight = 1 });
	asked(f, "\"x\"");
	/* Half of an answer, which must not become the beginning of the next one. */
	answer(f, "{\"ok\":tr");
	pump(f);
	stop(f);
	expect(f, EBB_FACT_VOLUMES_LOST, "has closed the connection");
	expect_done(f, 5, -ENOTCONN, "closed");
	expect_done(f, 6, -ENOTCONN, "closed");
	serve(f);
	bring_up(f);
	submit(f, 7, "x", (struct ebb_sla_io){ .weight = 1 });
	asked(f, "\"x\"");
	answer(f, OK);
	expect_done(f, 7, 0, "");
}

static void test_rubbish(void **state)
{
	static const char *const all[] = {
		"rubbish\n", "\n", "[]\n", "{}\n", "{\"ok\":1}\n", "{\"ok\":false}\n", "\"ok\"\n",
		"{\"ok\":false,\"error\":\"no\"}\n", "{\"ok\":false,\"error\":{\"code\":\"x\"}}\n",
		"{\"ok\":true}}\n", "{\"ok\":true,\n", "\xff\xfe\n",
	};
	struct fixture *f = *state;

	serve(f);
	begin(f);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		/* Instead of a greeting, which nobody hears of but for the first time ... */
		let_in(f);
		asked(f, "volumes");
		answer(f, all[i]);
		if (i == 0)
			expect(f, EBB_FACT_VOLUMES_LOST, "no volume server");
		hang_up(f);
		/* ... and instead of an answer. */
		bring_up(f);
		submit(f, i + 1, "x", (struct ebb_sla_io){ .weight = 1 });
		asked(f, "volume-set");
		answer(f, all[i]);
		expect(f, EBB_FACT_VOLUMES_LOST, "no volume server");
		expect_done(f, i + 1, -ENOTCONN, "");
		hang_up(f);
	}
	/* An answer that nobody has asked for. */
	bring_up(f);
	answer(f, OK);
	expect(f, EBB_FACT_VOLUMES_LOST, "no volume server");
}

static void test_answer_in_pieces(void **state)
{
	struct fixture *f = *state;

	serve(f);
	begin(f);
	let_in(f);
	asked(f, "volumes");
	for (const char *c = SERVER; *c; c++) {
		const char piece[] = { *c, '\0' };

		assert_int_equal(f->num_facts, 0);
		answer(f, piece);
		pump(f);
	}
	expect(f, EBB_FACT_VOLUMES_UP, "");
}

static void test_silence(void **state)
{
	struct fixture *f = *state;

	f->cfg.patience_usec = 150 * MSEC;
	serve(f);
	begin(f);
	let_in(f);
	asked(f, "volumes");
	expect(f, EBB_FACT_VOLUMES_LOST, "does not answer");
	hang_up(f);
	/* One that drips is no better. */
	bring_up(f);
	submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	asked(f, "volume-set");
	for (int i = 0; i < 1000 && f->num_read == f->num_facts; i++) {
		send(f->fd, " ", 1, MSG_NOSIGNAL);
		pump(f);
	}
	expect(f, EBB_FACT_VOLUMES_LOST, "does not answer");
	expect_done(f, 5, -ENOTCONN, "does not answer");
	hang_up(f);
	/* Nothing to answer: it may be silent. */
	bring_up(f);
	expect_nothing(f, 400 * MSEC);
}

static void test_answer_too_long(void **state)
{
	struct fixture *f = *state;
	size_t sent = 0;
	char *data = malloc(1 << 20);

	memset(data, ' ', 1 << 20);
	f->cfg.patience_usec = HANG_USEC;
	serve(f);
	begin(f);
	let_in(f);
	asked(f, "volumes");
	while (f->num_facts == 0 && sent < 2 * (size_t)EBB_VOLUME_MAX_ANSWER) {
		const ssize_t n = send(f->fd, data, 1 << 20, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		pump(f);
	}
	free(data);
	expect(f, EBB_FACT_VOLUMES_LOST, "too long");
}

#define METERS \
	"{\"ok\":true,\"scheduler\":{\"interval-us\":500000},\"meters\":[{\"name\":\"v1\"," \
	"\"delay\":{\"mean-ns\":1,\"p50-ns\":2,\"p99-ns\":3,\"max-ns\":4}," \
	"\"counters\":{\"intervals\":1,\"violated-intervals\":2,\"charged\":3,\"early\":4," \
	"\"missed\":5,\"violated\":6,\"others-early\":7,\"others-promised\":8,\"slow\":9," \
	"\"overdue\":10},\"interval\":{\"taker\":\"v2\"}},{\"name\":7,\"interval\":null}]}\n"

/* Returns how often it was asked what the server is before. */
static int asked_after_readings(struct fixture *f, const char *words)
{
	char line[1024];

	for (int num = 0;; num++) {
		read_line(f, line, sizeof(line));
		if (strstr(line, words))
			return num;
		assert_non_null(strstr(line, "\"volumes\""));
		answer(f, SERVER);
		expect(f, EBB_FACT_VOLUMES_SERVER, "500");
	}
}

static void test_readings(void **state)
{
	static const struct ebb_volume_counters counters = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	struct fixture *f = *state;

	f->cfg.meter_usec = 50 * MSEC;
	serve(f);
	begin(f);
	bring_up(f);
	/* Nothing was set: the meters are nobody's business.  One volume stands for all. */
	for (int i = 0; i < 2; i++) {
		asked(f, "{\"cmd\":\"volumes\",\"volume\":\"v1\"}");
		answer(f, SERVER);
		expect(f, EBB_FACT_VOLUMES_SERVER, "500");
	}
	submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	asked_after_readings(f, "volume-set");
	/* While it waits for an answer readings are due, of which only the first is asked for. */
	expect_nothing(f, 300 * MSEC);
	answer(f, OK);
	expect_done(f, 5, 0, "");
	assert_in_range(asked_after_readings(f, "{\"cmd\":\"meters\",\"brief\":true}"), 1, 3);
	answer(f, METERS);
	expect(f, EBB_FACT_VOLUMES_METERS, "");
	assert_int_equal(f->meters.num, 2);
	assert_int_equal(f->meters.interval_usec, 500000);
	assert_true(f->meters.as_of > 0 && f->meters.as_of <= ebb_clock_mono_usec());
	assert_string_equal(f->readings[0].name, "v1");
	assert_string_equal(f->readings[0].taker, "v2");
	assert_memory_equal(&f->readings[0].count, &counters, sizeof(counters));
	assert_int_equal(f->readings[0].delay.p99_nsec, 3);
	assert_string_equal(f->readings[1].name, "");
	/* The volume is gone: next time all are asked for. */
	asked(f, "\"v1\"");
	answer(f, "{\"ok\":false,\"error\":{\"code\":\"no-such-volume\",\"message\":\"\"}}\n");
	asked(f, "meters");
	answer(f, METERS);
	expect(f, EBB_FACT_VOLUMES_METERS, "");
	asked(f, "{\"cmd\":\"volumes\"}");
	/* Rubbish. */
	answer(f, OK);
	expect(f, EBB_FACT_VOLUMES_LOST, "no volume server");
	hang_up(f);
	/* After a restart nothing is set. */
	bring_up(f);
	asked(f, "\"v1\"");
	answer(f, SERVER);
	expect(f, EBB_FACT_VOLUMES_SERVER, "");
	asked(f, "\"v1\"");
}

/* A server that hangs up at once is not asked all the time. */
static void test_pauses(void **state)
{
	struct fixture *f = *state;
	usec_t begin_at, until;
	int num = 0;

	serve(f);
	begin(f);
	begin_at = ebb_clock_mono_usec();
	until = begin_at + 500 * MSEC;
	while (ebb_clock_mono_usec() < until) {
		const int fd = accept(f->listen_fd, NULL, NULL);

		if (fd >= 0)
			close(fd);
		num += fd >= 0;
		pump(f);
	}
	/* 20, 40, 80, 80, ... ms; a machine that is busy only makes it fewer. */
	assert_in_range(num, 2, 9);
	expect(f, EBB_FACT_VOLUMES_LOST, "");
	bring_up(f);
}

static void test_server_is_full(void **state)
{
	struct fixture *f = *state;

	serve(f);
	begin(f);
	let_in(f);
	asked(f, "volumes");
	answer(f, "{\"ok\":false,\"error\":{\"code\":\"too-many-clients\","
		  "\"message\":\"full\"}}\n");
	expect(f, EBB_FACT_VOLUMES_LOST, "full");
}

static void test_in_front_of_another_backend(void **state)
{
	const struct ebb_action plug = { .type = EBB_ACTION_PLUG, .id = 3 };
	struct fixture *f = *state;

	begin(f);
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
	struct fixture *f = *state;
	char path[200];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	f->cfg.path = path;
	assert_int_equal(ebb_volumes_create(f->event, &f->cfg, &f->volumes), -ENAMETOOLONG);
}

/* With requests that are open, nothing is reported any more. */
static void test_end(void **state)
{
	struct fixture *f = *state;

	serve(f);
	begin(f);
	bring_up(f);
	submit(f, 5, "x", (struct ebb_sla_io){ .weight = 1 });
	submit(f, 6, "y", (struct ebb_sla_io){ .weight = 1 });
	asked(f, "\"x\"");
	ebb_volumes_destroy(f->volumes);
	f->volumes = NULL;
	expect_nothing(f, 20 * MSEC);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

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
		TEST(test_in_front_of_another_backend),
		TEST(test_path_too_long),
		TEST(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
