/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of the volume server: damaged files, a full disk. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include "util/fs.h"
#include "volumed/server.h"
#include "volumed/vstate.h"

#define SHARED	"{\"name\": \"s\", \"tenant\": \"t\", \"file\": \"/x\", \"shared\": \"yes\"}"

struct fixture {
	struct ebb_vconf conf;
	struct ebb_server server;
	char path[EBB_VCONF_VALUE_SIZE + 32];
	struct ebb_err err;
};

static struct fixture f;

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	ebb_vconf_default(&f.conf);
	f.server.conf = &f.conf;
	strcpy(f.conf.state_dir, "/tmp/ebb-test-vstate.XXXXXX");
	if (!mkdtemp(f.conf.state_dir))
		return -1;
	snprintf(f.path, sizeof(f.path), "%s/volumes.json", f.conf.state_dir);
	return 0;
}

static void drop_all(void)
{
	while (f.server.volumes)
		ebb_server_drop(&f.server, f.server.volumes);
}

static int tear_down(void **state)
{
	(void)state;
	drop_all();
	unlink(f.path);
	return rmdir(f.conf.state_dir);
}

static void add(const char *name)
{
	struct ebb_volspec spec;

	assert_int_equal(ebb_volspec_init(&spec, name, NULL), 0);
	assert_int_equal(ebb_volspec_set(&spec, "tenant", "t", NULL), 0);
	assert_int_equal(ebb_volspec_set(&spec, "file", "/x", NULL), 0);
	assert_int_equal(ebb_volspec_set(&spec, "reserve_iops", "7", NULL), 0);
	assert_non_null(ebb_server_append(&f.server, &spec));
}

static void test_there_and_back(void **state)
{
	(void)state;
	add("a");
	f.server.capacity = (struct ebb_capacity){ .iops = 5, .bytes = 6, .depth = 7,
						   .latency_us = 8 };
	assert_int_equal(ebb_vstate_save(&f.server, &f.err), 0);
	drop_all();
	memset(&f.server.capacity, 0, sizeof(f.server.capacity));
	assert_int_equal(ebb_vstate_load(&f.server, &f.err), 0);
	assert_int_equal(ebb_server_find(&f.server, "a")->spec.reserve_iops, 7);
	assert_int_equal(f.server.capacity.iops, 5);
	assert_int_equal(f.server.capacity.bytes, 6);
	assert_int_equal(f.server.capacity.depth, 7);
	assert_int_equal(f.server.capacity.latency_us, 8);
}

/* Who set a promise, or nobody in a file that an earlier version has written. */
static void test_owner(void **state)
{
	struct ebb_volume *a;

	(void)state;
	add("a");
	add("b");
	a = ebb_server_find(&f.server, "a");
	assert_int_equal(ebb_volspec_set_owner(&a->spec, "ebbd", NULL), 0);
	assert_int_equal(ebb_vstate_save(&f.server, &f.err), 0);
	drop_all();
	assert_int_equal(ebb_vstate_load(&f.server, &f.err), 0);
	assert_string_equal(ebb_server_find(&f.server, "a")->spec.owner, "ebbd");
	assert_string_equal(ebb_server_find(&f.server, "b")->spec.owner, "");
	drop_all();
	assert_int_equal(ebb_fs_replace(f.path, "{\"volumes\": [{\"name\": \"a\", \"tenant\": "
			 "\"t\", \"file\": \"/x\", \"format\": \"raw\", "
			 "\"reserve_iops\": 7, "
			 "\"reserve_bytes\": null, \"max_iops\": null, \"max_bytes\": null, "
			 "\"weight\": 100, \"penalty\": 1}]}", 0600), 0);
	assert_int_equal(ebb_vstate_load(&f.server, &f.err), 0);
	assert_int_equal(ebb_server_find(&f.server, "a")->spec.reserve_iops, 7);
	assert_string_equal(ebb_server_find(&f.server, "a")->spec.owner, "");
}

/* A fence stands after a restart; what an earlier storage daemon had may be under way. */
static void test_access(void **state)
{
	struct ebb_volume *a;

	(void)state;
	add("a");
	a = ebb_server_find(&f.server, "a");
	a->spec.is_shared = true;
	assert_int_equal(ebb_access_attach(&a->access, "one", 1, 7), 0);
	assert_int_equal(ebb_access_attach(&a->access, "two", 2, 8), 0);
	assert_int_equal(ebb_access_fence(&a->access, "one", "two", 8, 9), 0);
	f.server.generation = 9;
	assert_int_equal(ebb_vstate_save(&f.server, &f.err), 0);
	drop_all();
	f.server.generation = 0;
	assert_int_equal(ebb_vstate_load(&f.server, &f.err), 0);
	a = ebb_server_find(&f.server, "a");
	assert_true(a->spec.is_shared);
	assert_int_equal(f.server.generation, 9);
	assert_int_equal(a->access.generation, 9);
	assert_int_equal(a->access.num, 2);
	assert_true(a->access.all[0].is_fenced);
	assert_string_equal(a->access.all[0].fenced_by, "two");
	assert_int_equal(a->access.all[0].export, EBB_ACCESS_LOST);
	assert_false(a->access.all[1].is_fenced);
	assert_true(a->access.all[0].id != a->access.all[1].id);
	/* One that is being detached is not there any more after a restart. */
	assert_int_equal(ebb_access_detach(&a->access, "two", 10), 0);
	f.server.generation = 10;
	assert_int_equal(ebb_vstate_save(&f.server, &f.err), 0);
	drop_all();
	assert_int_equal(ebb_vstate_load(&f.server, &f.err), 0);
	assert_int_equal(ebb_server_find(&f.server, "a")->access.num, 1);
}

static void test_damaged(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", "no JSON object" },
		{ "[]", "no JSON object" },
		{ "{\"volumes\": {\"a\": 1}}", "\"volumes\" is no array" },
		{ "{\"volumes\": [1]}", "a volume has no name" },
		{ "{\"access\": []}", "\"access\" is no object" },
		{ "{\"generation\": -1}", "a generation is no whole number" },
		{ "{\"volumes\": [" SHARED "], \"access\": {\"s\": {\"generation\": 1}}}",
		  "a generation that was not given" },
		{ "{\"generation\": 1, \"volumes\": [" SHARED "], \"access\": {\"s\": "
		  "{\"generation\": 1, \"attachments\": [{\"name\": \"one\", "
		  "\"fenced_by\": \"\"}]}}}",
		  "an attachment makes no sense" },
		{ "{\"volumes\": [{\"name\": \"../a\"}]}", "is no name of a volume" },
		{ "{\"volumes\": [{\"name\": \"a\"}]}", "volume a has no tenant" },
		{ "{\"volumes\": [{\"name\": \"a\", \"weight\": -1}]}", "weight=-1: allowed" },
		{ "{\"volumes\": [{\"name\": \"a\", \"owner\": \"\"}]}", "owner: allowed" },
		{ "{\"capacity\": 7}", "\"capacity\" is no object" },
		{ "{\"capacity\": {\"iops\": -1}}", "iops of \"capacity\": allowed: 0 to" },
		{ "{\"capacity\": {\"bytes\": 1.5}}", "bytes of \"capacity\": allowed: 0 to" },
		{ "{\"capacity\": {\"depth\": 4097}}",
		  "depth of \"capacity\": allowed: 0 to 4096" },
		{ "{\"capacity\": {\"latency_us\": \"1\"}}", "latency_us of \"capacity\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ebb_fs_replace(f.path, cases[i].text, 0600), 0);
		assert_int_equal(ebb_vstate_load(&f.server, &f.err), -EBADMSG);
		if (!strstr(f.err.text, cases[i].words) || !strstr(f.err.text, f.path))
			fail_msg("%s\nsays: %s\nnot: %s", cases[i].text, f.err.text,
				 cases[i].words);
		drop_all();
	}
}

static void test_none(void **state)
{
	(void)state;
	assert_int_equal(ebb_vstate_load(&f.server, &f.err), 0);
	assert_int_equal(f.server.num_volumes, 0);
}

/* A file that takes a part of what is written, and then no more, as on a full disk. */
static void test_full_disk(void **state)
{
	struct rlimit old, small;
	char *before, *after, fresh[sizeof(f.path) + 8], name[16];
	int rc;

	(void)state;
	add("a");
	assert_int_equal(ebb_vstate_save(&f.server, &f.err), 0);
	assert_int_equal(ebb_fs_read_all(f.path, 1 << 20, &before), 0);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "b%d", i);
		add(name);
	}
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){ .rlim_cur = 4096, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	rc = ebb_vstate_save(&f.server, &f.err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	/* It says what is wrong, and the state of before is there. */
	assert_int_equal(rc, -EFBIG);
	assert_non_null(strstr(f.err.text, strerror(EFBIG)));
	assert_int_equal(ebb_fs_read_all(f.path, 1 << 20, &after), 0);
	assert_string_equal(after, before);
	snprintf(fresh, sizeof(fresh), "%s.new", f.path);
	assert_int_equal(access(fresh, F_OK), -1);
	free(before);
	free(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_there_and_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_owner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_access, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
