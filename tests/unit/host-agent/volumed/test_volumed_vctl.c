/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests on the control socket of ebb-volumed, with a storage daemon that the test plays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"
#include "volumed/attach.h"
#include "volumed/vctl.h"
#include "volumed/vstate.h"

#define HANG_USEC	60000000

struct fixture {
	sd_event *event;
	struct ebb_vconf conf;
	struct ebb_server server;
	struct ebb_vctl vctl;
	struct ebb_ctl *ctl;
	struct ebb_qmp *qmp;		/* NULL: the storage daemon has died */
	int daemon;			/* its end of the connection */
	char path[EBB_VCONF_VALUE_SIZE + 32], state_path[EBB_VCONF_VALUE_SIZE + 32];
	char line[65536];		/* the last one that was read */
};

static struct fixture f;

static void on_lost(void *ctx)
{
	(void)ctx;
}

static struct ebb_volume *add(const char *name)
{
	struct ebb_volspec spec;
	struct ebb_volume *v;

	assert_int_equal(ebb_volspec_init(&spec, name, NULL), 0);
	strcpy(spec.tenant, "t");
	strcpy(spec.file, "/x");
	v = ebb_server_append(&f.server, &spec);
	assert_non_null(v);
	v->state = EBB_VOLUME_SERVED;
	return v;
}

static int set_up(void **state)
{
	struct ebb_ctl_config ctl = { .path = f.path, .group = (gid_t)-1, .idle_usec = HANG_USEC,
				      .handle = ebb_vctl_handle, .ctx = &f.vctl };
	struct ebb_qmp_config qmp = { .lost = on_lost };
	struct ebb_err err;
	int fds[2];

	(void)state;
	memset(&f, 0, sizeof(f));
	ebb_log_set_level(LOG_ERR);
	ebb_vconf_default(&f.conf);
	strcpy(f.conf.state_dir, "/tmp/ebb-test-vctl.XXXXXX");
	if (!mkdtemp(f.conf.state_dir) || sd_event_new(&f.event) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	snprintf(f.path, sizeof(f.path), "%s/control.sock", f.conf.state_dir);
	snprintf(f.state_path, sizeof(f.state_path), "%s/volumes.json", f.conf.state_dir);
	qmp.fd = fds[0];
	f.daemon = fds[1];
	f.server.conf = &f.conf;
	f.server.event = f.event;
	f.server.depth = 1;
	f.server.patience_usec = HANG_USEC;
	f.server.overbooking = "proportional";
	f.vctl.server = &f.server;
	if (ebb_qmp_create(f.event, &qmp, &f.qmp) < 0 ||
	    ebb_ctl_create(f.event, &ctl, &f.ctl, &err) < 0)
		return -1;
	f.server.qmp = f.qmp;
	add("a");
	add("b");
	return 0;
}

static void die(void)
{
	f.server.qmp = NULL;
	ebb_qmp_destroy(f.qmp);
	f.qmp = NULL;
}

static int tear_down(void **state)
{
	(void)state;
	ebb_ctl_destroy(f.ctl);
	die();
	while (f.server.volumes)
		ebb_server_drop(&f.server, f.server.volumes);
	json_decref(f.server.scheduler);
	assert_null(f.vctl.waiting);
	close(f.daemon);
	sd_event_unref(f.event);
	unlink(f.state_path);
	return rmdir(f.conf.state_dir);
}

/* ---- both ends ----------------------------------------------------------------- */

static void run(void)
{
	while (sd_event_run(f.event, 1000) > 0)
		;
}

static void ask_again(int fd, const char *line)
{
	assert_int_equal(send(fd, line, strlen(line), 0), strlen(line));
	assert_int_equal(send(fd, "\n", 1, 0), 1);
	run();
}

/* Sends one request; returns the connection on which the answer will come. */
static int ask(const char *line)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, f.path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ask_again(fd, line);
	return fd;
}

static bool has_line(int fd)
{
	char byte;

	run();
	return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

/* The next line from one of the ends is in f.line then, without its newline. */
static void read_line(int fd)
{
	const uint64_t until = ebb_clock_mono_usec() + HANG_USEC;
	size_t len = 0;

	while ((!len || f.line[len - 1] != '\n') && ebb_clock_mono_usec() < until) {
		run();
		if (recv(fd, f.line + len, 1, MSG_DONTWAIT) == 1)
			len++;
	}
	assert_true(len > 0 && f.line[len - 1] == '\n');
	f.line[len - 1] = '\0';
}

static void expect(int fd, const char *words)
{
	read_line(fd);
	if (!strstr(f.line, words))
		fail_msg("\"%s\" is not in %s", words, f.line);
}

static void answered(int fd, const char *words)
{
	expect(fd, words);
	close(fd);
}

static void say(const char *text)
{
	assert_int_equal(send(f.daemon, text, strlen(text), 0), strlen(text));
	run();
}

#define TAKE()		say("{\"return\": {}}\n")
#define REFUSE()	say("{\"error\": {\"class\": \"GenericError\", \"desc\": \"no way\"}}\n")

/* The promise of a volume in the state file. */
static json_int_t saved(const char *name, const char *key)
{
	json_t *state, *volume;
	json_int_t number = -1;
	char *text = NULL;
	size_t i;

	assert_int_equal(ebb_fs_read_all(f.state_path, 1 << 20, &text), 0);
	state = json_loads(text, 0, NULL);
	json_array_foreach(json_object_get(state, "volumes"), i, volume)
		if (strcmp(json_string_value(json_object_get(volume, "name")), name) == 0)
			number = json_integer_value(json_object_get(volume, key));
	json_decref(state);
	free(text);
	return number;
}

#define SET(volume, values)	\
	ask("{\"cmd\":\"volume-set\",\"volume\":\"" volume "\"," values "}")

/* ---- lists ------------------------------------------------------------------------ */

/* The answer, without the server's state, which comes first. */
static const char *listed(const char *line)
{
	const int fd = ask(line);

	answered(fd, "\"ok\":true,\"server\":{");
	return strstr(f.line, "\"volumes\":");
}

static void test_lists(void **state)
{
	(void)state;
	add("c");
	strcpy(ebb_server_find(&f.server, "a")->spec.owner, "me");
	strcpy(ebb_server_find(&f.server, "c")->spec.owner, "me");
	assert_non_null(strstr(listed("{\"cmd\":\"volumes\"}"), "\"weight\":100"));
	assert_string_equal(listed("{\"cmd\":\"volumes\",\"most\":0}"),
			    "\"volumes\":[],\"more\":true}");
	assert_string_equal(listed("{\"cmd\":\"volumes\",\"brief\":true,\"most\":2}"),
			    "\"volumes\":[{\"id\":1,\"name\":\"a\"},{\"id\":2,\"name\":\"b\"}],"
			    "\"more\":true}");
	/* One that the client has seen may have been removed meanwhile. */
	ebb_server_drop(&f.server, ebb_server_find(&f.server, "b"));
	assert_string_equal(listed("{\"cmd\":\"volumes\",\"brief\":true,\"after\":2,\"most\":1}"),
			    "\"volumes\":[{\"id\":3,\"name\":\"c\"}],\"more\":false}");
	assert_string_equal(listed("{\"cmd\":\"volumes\",\"brief\":true,\"owner\":\"me\","
				   "\"most\":1}"),
			    "\"volumes\":[{\"id\":1,\"name\":\"a\"}],\"more\":true}");
	assert_string_equal(listed("{\"cmd\":\"volumes\",\"owner\":\"you\"}"),
			    "\"volumes\":[],\"more\":false}");
	answered(ask("{\"cmd\":\"volumes\",\"most\":-1}"), "bad-request");
	answered(ask("{\"cmd\":\"volumes\",\"after\":\"a\"}"), "bad-request");
	answered(ask("{\"cmd\":\"volumes\",\"owner\":7}"), "bad-request");
	answered(ask("{\"cmd\":\"volumes\",\"brief\":1}"), "bad-request");
}

/* ---- owners ----------------------------------------------------------------------- */

#define CLAIM(owner)	"{\"cmd\":\"claim\",\"owner\":\"" owner "\"}"

static void test_claims(void **state)
{
	int one, two, three, more[EBB_CTL_MAX_CLIENTS - 3];

	(void)state;
	one = ask(CLAIM("me"));
	expect(one, "\"ok\":true");
	two = ask(CLAIM("me"));
	expect(two, "\"owner-in-use\"");
	/* That one goes on, under another name or none. */
	ask_again(two, CLAIM("you"));
	expect(two, "\"ok\":true");
	answered(ask(CLAIM("you")), "\"owner-in-use\"");
	/* A claim ends with its connection, and with the next claim of the same connection. */
	close(one);
	three = ask(CLAIM("me"));
	expect(three, "\"ok\":true");
	ask_again(three, CLAIM("them"));
	expect(three, "\"ok\":true");
	one = ask(CLAIM("me"));
	expect(one, "\"ok\":true");
	/* As many as may connect. */
	for (size_t i = 0; i < EBB_CTL_MAX_CLIENTS - 3; i++) {
		char line[64];

		snprintf(line, sizeof(line), CLAIM("x%zu"), i);
		more[i] = ask(line);
		expect(more[i], "\"ok\":true");
	}
	ask_again(more[0], CLAIM("x1"));
	expect(more[0], "\"owner-in-use\"");
	for (size_t i = 0; i < EBB_CTL_MAX_CLIENTS - 3; i++)
		close(more[i]);
	close(one);
	close(two);
	close(three);
	run();
	answered(ask(CLAIM("")), "\"bad-request\"");
	answered(ask("{\"cmd\":\"claim\"}"), "\"bad-request\"");
}

/* ---- changes at once ------------------------------------------------------------ */

/* The second one changes what came out of the first one, which was refused. */
static void test_two_of_one_volume(void **state)
{
	const int first = SET("a", "\"reserve_iops\":100");
	const int second = SET("a", "\"weight\":7");

	(void)state;
	expect(f.daemon, "\"reserve-iops\":100,");
	assert_false(has_line(f.daemon));
	assert_false(has_line(first));
	REFUSE();
	answered(first, "no way");
	expect(f.daemon, "\"reserve-iops\":0,");
	assert_non_null(strstr(f.line, "\"weight\":7"));
	assert_false(has_line(second));
	TAKE();
	answered(second, "\"weight\":7");
	assert_int_equal(saved("a", "reserve_iops"), 0);
	assert_int_equal(saved("a", "weight"), 7);
}

static void test_second_is_refused(void **state)
{
	const int first = SET("a", "\"reserve_iops\":100");
	const int second = SET("a", "\"reserve_iops\":200,\"weight\":7");
	const int third = SET("a", "\"penalty\":3");

	(void)state;
	expect(f.daemon, "\"reserve-iops\":100,");
	TAKE();
	answered(first, "\"reserve_iops\":100");
	assert_int_equal(saved("a", "reserve_iops"), 100);
	expect(f.daemon, "\"reserve-iops\":200,");
	REFUSE();
	answered(second, "no way");
	expect(f.daemon, "\"reserve-iops\":100,");
	TAKE();
	answered(third, "\"reserve_iops\":100");
	assert_int_equal(saved("a", "reserve_iops"), 100);
	assert_int_equal(saved("a", "weight"), 100);
	assert_int_equal(saved("a", "penalty"), 3);
}

/* What is not in force yet is not saved, whoever else saves meanwhile. */
static void test_two_volumes(void **state)
{
	const int a = SET("a", "\"reserve_iops\":100");
	const int b = SET("b", "\"reserve_iops\":200");

	(void)state;
	expect(f.daemon, "\"reserve-iops\":100,");
	expect(f.daemon, "\"reserve-iops\":200,");
	TAKE();
	answered(a, "\"reserve_iops\":100");
	assert_int_equal(saved("a", "reserve_iops"), 100);
	assert_int_equal(saved("b", "reserve_iops"), 0);
	TAKE();
	answered(b, "\"reserve_iops\":200");
	assert_int_equal(saved("a", "reserve_iops"), 100);
	assert_int_equal(saved("b", "reserve_iops"), 200);
}

/* While a promise changes, neither the old one nor the new one is free for others. */
static void test_admission(void **state)
{
	int a, b;

	(void)state;
	f.conf.capacity_iops = 300;
	a = SET("a", "\"reserve_iops\":200");
	b = SET("b", "\"reserve_iops\":101");
	answered(b, "\"overbooked\"");
	expect(f.daemon, "\"reserve-iops\":200,");
	TAKE();
	answered(a, "\"reserve_iops\":200");
	a = SET("a", "\"reserve_iops\":null");
	b = SET("b", "\"reserve_iops\":101");
	answered(b, "\"overbooked\"");
	expect(f.daemon, "\"reserve-iops\":0,");
	TAKE();
	answered(a, "\"reserve_iops\":null");
	b = SET("b", "\"reserve_iops\":300");
	expect(f.daemon, "\"reserve-iops\":300,");
	TAKE();
	answered(b, "\"reserve_iops\":300");
}

/* Its name is another volume's when the answers come. */
#define ATTACH(command, more) \
	ask("{\"cmd\":\"" command "\",\"volume\":\"shared\",\"attachment\":\"one\"" more "}")

static struct ebb_volume *add_shared(void)
{
	struct ebb_volume *v = add("shared");

	v->spec.is_shared = true;
	return v;
}

/* A fence counts when the export is gone, not when the daemon fails to remove it. */
static void test_fence_is_not_carried_out(void **state)
{
	struct ebb_volume *v = add_shared();
	const int one = ATTACH("attach", "");
	int fence;

	(void)state;
	expect(f.daemon, "block-export-add");
	TAKE();
	answered(one, "\"state\":\"open\"");
	fence = ATTACH("fence", ",\"generation\":1");
	expect(f.daemon, "block-export-del");
	REFUSE();
	assert_false(has_line(fence));
	assert_false(ebb_access_is_settled(&v->access.all[0]));
	/* The next look, in seconds, tells it again. */
	ebb_attach_advance(&f.server, v);
	expect(f.daemon, "block-export-del");
	TAKE();
	assert_false(has_line(fence));
	ebb_attach_removed(&f.server, v, v->access.all[0].id);
	answered(fence, "\"state\":\"fenced\"");
}

/* One that is to go before it is made, and then is not made, is gone. */
static void test_detached_before_it_is_made(void **state)
{
	const struct ebb_volume *v = add_shared();
	const int one = ATTACH("attach", ""), detach = ATTACH("detach", "");

	(void)state;
	expect(f.daemon, "block-export-add");
	expect(f.daemon, "block-export-del");
	REFUSE();
	assert_int_equal(v->access.num, 0);
	answered(detach, "\"attachments\":[]");
	answered(one, "\"attachments\":[]");
	REFUSE();
}

static void test_removed_meanwhile(void **state)
{
	const int first = SET("a", "\"reserve_iops\":100");
	const int second = SET("a", "\"reserve_iops\":200");

	(void)state;
	ebb_server_drop(&f.server, ebb_server_find(&f.server, "a"));
	add("a")->spec.reserve_iops = 5;
	expect(f.daemon, "\"reserve-iops\":100,");
	REFUSE();
	answered(first, "no way");
	answered(second, "\"no-such-volume\"");
	assert_int_equal(ebb_server_find(&f.server, "a")->spec.reserve_iops, 5);
}

/* The next storage daemon gets what the clients wanted. */
static void test_storage_daemon_dies(void **state)
{
	const int first = SET("a", "\"reserve_iops\":100");
	const int second = SET("a", "\"weight\":7");

	(void)state;
	die();
	answered(first, "\"reserve_iops\":100");
	answered(second, "\"weight\":7");
	assert_int_equal(saved("a", "reserve_iops"), 100);
	assert_int_equal(saved("a", "weight"), 7);
	assert_null(ebb_server_find(&f.server, "a")->before);
}

/* ---- removal ---------------------------------------------------------------------- */

/* Its clients go first, so that none of them hears of requests that are given up. */
static void test_removal(void **state)
{
	const int fd = ask("{\"cmd\":\"volume-remove\",\"volume\":\"a\"}");

	(void)state;
	expect(f.daemon, "block-export-del");
	assert_non_null(strstr(f.line, "\"mode\":\"hard\""));
	expect(f.daemon, "{\"execute\":\"ebb-volume-cancel\",\"arguments\":{\"volume\":\"a\"}}");
	answered(fd, "\"ok\":true");
	TAKE();
	TAKE();
}

/* ---- a storage daemon that hangs ------------------------------------------------ */

static void wait_for_hang(void)
{
	while (!ebb_server_hangs(&f.server))
		run();
}

static void test_hangs(void **state)
{
	int first, second, other, meters;

	(void)state;
	f.server.patience_usec = 1000000;
	first = SET("a", "\"reserve_iops\":100");
	second = SET("a", "\"weight\":7");
	meters = ask("{\"cmd\":\"meters\"}");
	expect(f.daemon, "\"reserve-iops\":100,");
	expect(f.daemon, "query-ebb-volumes");
	/* Each is answered in time; what has been told to the storage daemon goes on. */
	answered(first, "does not answer: the change is made when it does");
	answered(second, "nothing is changed");
	read_line(meters);
	assert_non_null(strstr(f.line, "\"error\":\"the storage daemon does not answer\""));
	assert_non_null(strstr(f.line, "{\"name\":\"b\""));
	close(meters);
	/* From now on nothing is begun, and nobody waits. */
	wait_for_hang();
	answered(SET("b", "\"reserve_iops\":200"), "nothing is changed");
	answered(ask("{\"cmd\":\"scheduler\",\"depth\":3}"), "\"no-answer\"");
	answered(ask("{\"cmd\":\"volume-remove\",\"volume\":\"b\"}"), "\"no-answer\"");
	answered(ask("{\"cmd\":\"volume-add\",\"volume\":\"c\",\"tenant\":\"t\","
		     "\"file\":\"/x\"}"), "\"no-answer\"");
	answered(ask("{\"cmd\":\"calibrate\",\"file\":\"/x\"}"), "\"no-answer\"");
	answered(ask("{\"cmd\":\"meters\",\"volume\":\"a\"}"), "does not answer");
	answered(ask("{\"cmd\":\"volumes\"}"), "\"up\":true,\"answers\":false");
	assert_false(has_line(f.daemon));
	/* It answers. */
	f.server.patience_usec = HANG_USEC;
	TAKE();
	say("{\"return\": {\"volumes\": []}}\n");
	answered(ask("{\"cmd\":\"volumes\"}"), "\"up\":true,\"answers\":true");
	assert_int_equal(ebb_server_find(&f.server, "a")->spec.reserve_iops, 100);
	assert_int_equal(saved("a", "reserve_iops"), 100);
	assert_int_equal(saved("a", "weight"), 100);
	other = SET("b", "\"reserve_iops\":200");
	expect(f.daemon, "\"reserve-iops\":200,");
	TAKE();
	answered(other, "\"reserve_iops\":200");
}

/* The client has been told that the change will be made; it is not, and the old promise holds. */
static void test_refused_late(void **state)
{
	int first;

	(void)state;
	f.server.patience_usec = 1000000;
	first = SET("a", "\"reserve_iops\":100");
	answered(first, "unless it refuses it");
	f.server.patience_usec = HANG_USEC;
	REFUSE();
	assert_int_equal(ebb_server_find(&f.server, "a")->spec.reserve_iops, 0);
	assert_int_equal(saved("a", "reserve_iops"), 0);
}

/* It answers, but takes long: that is no hang, as long as there are answers. */
static void test_slow(void **state)
{
	(void)state;
	f.server.patience_usec = 1000000;
	for (int i = 0; i < 8; i++) {
		close(SET("a", "\"weight\":7"));
		close(SET("b", "\"weight\":7"));
	}
	for (int i = 0; i < 8; i++) {
		usleep(200000);
		TAKE();
		assert_false(ebb_server_hangs(&f.server));
	}
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lists), TEST(claims), TEST(two_of_one_volume), TEST(second_is_refused),
		TEST(two_volumes), TEST(admission), TEST(removed_meanwhile),
		TEST(fence_is_not_carried_out), TEST(detached_before_it_is_made),
		TEST(storage_daemon_dies), TEST(removal), TEST(hangs), TEST(refused_late),
		TEST(slow),
	};

	return cmocka_run_group_tests_name("volumed/vctl", tests, NULL, NULL);
}
