// SPDX-License-Identifier: GPL-2.0-or-later
/* Fencing at ebb-volumed, with a server that answers from a script. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/server/fence/volumed.h"

#define STEPS		2u
#define SHOW		"{\"cmd\":\"attachments\",\"volume\":\"v\"}\n"
#define FENCE(n)	"{\"cmd\":\"fence\",\"volume\":\"v\",\"attachment\":\"b\",\"by\":\"a\"," \
			"\"generation\":" n "}\n"
#define ONE(name, state) "{\"name\":\"" name "\",\"state\":\"" state "\"}"
#define ACCESS(n, list)	"{\"ok\":true,\"access\":{\"name\":\"v\",\"generation\":" n \
			",\"attachments\":[" list "]}}\n"
#define BOTH(n, a, b)	ACCESS(n, ONE("a", a) "," ONE("b", b))
#define REFUSED(code)	"{\"ok\":false,\"error\":{\"code\":\"" code "\",\"message\":\"m\"}}\n"

/* A request that must come, and its answer; NULL: no more; "": it is not answered. */
struct step {
	const char *request, *answer;
};

static struct {
	char path[64];
	int fd;
	const struct step *steps;
	uint32_t n;		/* that came */
	bool is_wrong;
} played;

static void *serve(void *ctx)
{
	char line[1024];

	(void)ctx;
	for (const struct step *s = played.steps; s < played.steps + STEPS && s->request; s++) {
		int fd = accept(played.fd, NULL, NULL);
		ssize_t n = recv(fd, line, sizeof(line) - 1, 0);
		size_t half = strlen(s->answer) / 2;

		line[n > 0 ? n : 0] = '\0';
		played.is_wrong |= strcmp(line, s->request) != 0;
		played.n++;
		/* In two parts. */
		send(fd, s->answer, half, MSG_NOSIGNAL);
		usleep(1000);
		send(fd, s->answer + half, strlen(s->answer) - half, MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

static enum move_fence call(bool fences, const struct step *steps)
{
	struct fence_volumed f = { played.path, "v", "a", "b", NULL };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	enum move_fence rc;
	uint32_t n = 0;
	pthread_t thread;

	snprintf(played.path, sizeof(played.path), "/tmp/move-fence-%d", getpid());
	strcpy(address.sun_path, played.path);
	played.fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(played.fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(played.fd, 4), 0);
	played.steps = steps;
	played.n = 0;
	played.is_wrong = false;
	pthread_create(&thread, NULL, serve, NULL);
	rc = fences ? fence_volumed_ops.fence(&f) : fence_volumed_ops.is_fenced(&f);
	pthread_join(thread, NULL);
	close(played.fd);
	unlink(played.path);
	while (n < STEPS && steps[n].request)
		n++;
	assert_int_equal(played.n, n);
	assert_false(played.is_wrong);
	return rc;
}

static enum move_fence show(const char *answer)
{
	return call(false, (struct step[STEPS]){ { SHOW, answer } });
}

static void test_is_fenced(void **state)
{
	(void)state;
	assert_int_equal(show(BOTH("3", "open", "open")), MOVE_FENCE_NONE);
	assert_int_equal(show(BOTH("3", "open", "fenced")), MOVE_FENCE_WON);
	assert_int_equal(show(BOTH("3", "open", "fencing")), MOVE_FENCE_LATER);
	assert_int_equal(show(BOTH("3", "fencing", "open")), MOVE_FENCE_LOST);
	assert_int_equal(show(BOTH("3", "fenced", "open")), MOVE_FENCE_LOST);
	/* Fenced and detached. */
	assert_int_equal(show(ACCESS("3", ONE("b", "open"))), MOVE_FENCE_LOST);
	assert_int_equal(show(ACCESS("3", ONE("a", "open"))), MOVE_FENCE_NONE);
	assert_int_equal(show(REFUSED("no-such-volume")), MOVE_FENCE_LATER);
	assert_int_equal(show("{\"ok\":true}\n"), MOVE_FENCE_LATER);
	assert_int_equal(show("no\n"), MOVE_FENCE_LATER);
	assert_int_equal(show("{\"ok\":true"), MOVE_FENCE_LATER);
	assert_int_equal(show(""), MOVE_FENCE_LATER);
}

static enum move_fence fence(const char *shown, const char *answer)
{
	return call(true, (struct step[STEPS]){ { SHOW, shown }, { FENCE("3"), answer } });
}

static void test_fence(void **state)
{
	const char *open = BOTH("3", "open", "open");

	(void)state;
	assert_int_equal(fence(open, BOTH("4", "open", "fenced")), MOVE_FENCE_WON);
	assert_int_equal(fence(open, REFUSED("fenced")), MOVE_FENCE_LOST);
	assert_int_equal(fence(open, REFUSED("stale")), MOVE_FENCE_LATER);
	assert_int_equal(fence(open, REFUSED("no-answer")), MOVE_FENCE_LATER);
	assert_int_equal(fence(open, REFUSED("no-such-attachment")), MOVE_FENCE_LATER);
	assert_int_equal(fence(open, ""), MOVE_FENCE_LATER);
	/* It says that it has done it, and shows that it has not. */
	assert_int_equal(fence(open, open), MOVE_FENCE_LATER);
	/* One whose answer was lost is asked for again, and waited for. */
	assert_int_equal(fence(BOTH("3", "open", "fencing"), BOTH("4", "open", "fenced")),
			 MOVE_FENCE_WON);
	/* Nothing is to be fenced any more. */
	assert_int_equal(call(true, (struct step[STEPS]){ { SHOW, BOTH("3", "open", "fenced") } }),
			 MOVE_FENCE_WON);
	assert_int_equal(call(true, (struct step[STEPS]){ { SHOW, BOTH("3", "fenced", "open") } }),
			 MOVE_FENCE_LOST);
	assert_int_equal(call(true, (struct step[STEPS]){ { SHOW, "{\"ok\":true}\n" } }),
			 MOVE_FENCE_LATER);
}

static void test_no_server(void **state)
{
	struct fence_volumed f = { "/nowhere/socket", "v", "a", "b", NULL };

	(void)state;
	assert_int_equal(fence_volumed_ops.is_fenced(&f), MOVE_FENCE_LATER);
	assert_int_equal(fence_volumed_ops.fence(&f), MOVE_FENCE_LATER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_fenced),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_no_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
