/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration of the volume server: what is taken, what is refused, and with which words; and
 * the depth that calibration chooses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "volumed/knee.h"
#include "volumed/vconf.h"
#include "volumed/volview.h"

static char path[64];

static int load(struct ebb_vconf *c, const char *text, struct ebb_err *err)
{
	FILE *f = fopen(path, "w");
	int rc;

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	err->text[0] = '\0';
	ebb_vconf_default(c);
	rc = ebb_vconf_load(c, path, err);
	return rc < 0 ? rc : ebb_vconf_check(c, err);
}

static int set_up(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/ebb-test-volumed.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static void test_whole_file(void **state)
{
	struct ebb_vconf c;
	struct ebb_err err;

	(void)state;
	assert_int_equal(load(&c, "depth = 7\ncapacity_iops = 900\ndirect = no\n"
			      "[system]\nreserve_iops = 30\n"
			      "[volume db1]\ntenant = VM of db1\nfile = /x/db1.img\n"
			      "reserve_iops = 600\nmax_bytes = 1000000\n"
			      "[volume db2]\ntenant = t\nfile = /y\nformat = qcow2\nweight = 1\n"
			      "penalty = 0\n", &err), 0);
	assert_int_equal(c.depth, 7);
	assert_int_equal(c.system.reserve_iops, 30);
	assert_int_equal(c.system.weight, 100);
	assert_int_equal(c.capacity_iops, 900);
	assert_false(c.direct);
	assert_int_equal(c.num_volumes, 2);
	assert_string_equal(c.volumes[0].name, "db1");
	assert_string_equal(c.volumes[0].tenant, "VM of db1");
	assert_int_equal(c.volumes[0].reserve_iops, 600);
	assert_int_equal(c.volumes[0].reserve_bytes, EBB_VOLUME_NO_NUMBER);
	assert_int_equal(c.volumes[0].max_bytes, 1000000);
	assert_int_equal(c.volumes[0].weight, 100);
	assert_int_equal(c.volumes[0].penalty, 1);
	assert_string_equal(c.volumes[1].format, "qcow2");
	assert_int_equal(c.volumes[1].penalty, 0);
	ebb_vconf_finish(&c);
}

static void test_what_is_refused(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "depth = 0\n", ":1: depth=0: allowed: 1 to 4096, auto" },
		{ "depth = -1\n", "depth=-1: allowed" },
		{ "depth = 8 requests\n", "depth=8 requests: allowed" },
		{ "overbooking = lottery\n", "allowed: proportional, penalty" },
		{ "run_dir = here\n", "an absolute path is needed" },
		{ "colour = red\n", "unknown key \"colour\"; known are run_dir, " },
		{ "[disk a]\ntenant = t\n", "allowed: [system], [volume NAME]" },
		{ "[system]\nreserve_iops = 0\n", ":2: reserve_iops=0: allowed: 1 to" },
		{ "[system]\nfile = /a\n", "[system] has no file: only a promise" },
		{ "[system]\nmax_iops = 1\nreserve_iops = 2\n",
		  "volume system: max_iops is less than reserve_iops" },
		{ "[volume ../a]\ntenant = t\n", "is no name of a volume" },
		{ "[volume a]\ntenant = t\nfile = a.img\n", ":3: file=a.img: an absolute path" },
		{ "[volume a]\nreserve_iops = 0\n",
		  "reserve_iops=0: allowed: 1 to 10000000, none" },
		{ "[volume a]\nmax_bytes = -5\n", "max_bytes=-5: allowed: 1 to" },
		{ "[volume a]\nweight = none\n", "weight=none: allowed: 1 to 10000" },
		{ "[volume a]\nformat = vmdk\n", "allowed: raw, qcow2" },
		{ "[volume a]\ntenant = M\xfcller\n", "tenant=Mller: it is no UTF-8" },
		{ "[volume a]\nfile = /\xc3\n", "file=/: it is no UTF-8" },
		{ "[volume a]\ndepth = 3\n", "unknown key \"depth\"; known are tenant, " },
		{ "[volume a]\nfile = /a\n", "volume a has no tenant" },
		{ "[volume a]\ntenant = t\n", "volume a has no file" },
		{ "[volume a]\ntenant = t\nfile = /a\nreserve_iops = 2\nmax_iops = 1\n",
		  "max_iops is less than reserve_iops" },
	};
	char text[600], file[280];
	struct ebb_vconf c;
	struct ebb_err err;

	(void)state;
	memset(file, 'x', sizeof(file) - 1);
	file[sizeof(file) - 1] = '\0';
	snprintf(text, sizeof(text), "# a comment\n[volume a]\nfile = /%s\ntenant = t\n", file);
	assert_true(load(&c, text, &err) < 0);
	assert_non_null(strstr(err.text, ":3: the line has more than 198 bytes"));
	ebb_vconf_finish(&c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(load(&c, cases[i].text, &err) < 0);
		if (!strstr(err.text, cases[i].words))
			fail_msg("%s\nsays: %s\nnot: %s", cases[i].text, err.text,
				 cases[i].words);
		ebb_vconf_finish(&c);
	}
}

static void test_command_line(void **state)
{
	struct ebb_vconf c;
	struct ebb_err err = { "" };

	(void)state;
	ebb_vconf_default(&c);
	assert_int_equal(ebb_vconf_set(&c, "capacity_iops=5", &err), 0);
	assert_int_equal(ebb_vconf_set(&c, "socket_group=", &err), 0);
	assert_int_equal(c.capacity_iops, 5);
	assert_int_equal(ebb_vconf_set(&c, "capacity_iops=auto", &err), 0);
	assert_int_equal(c.capacity_iops, 0);
	assert_true(ebb_vconf_set(&c, "depth", &err) < 0);
	assert_true(ebb_vconf_set(&c, "=3", &err) < 0);
	ebb_vconf_finish(&c);
}

static void test_none_takes_back(void **state)
{
	struct ebb_volspec v;
	struct ebb_err err;

	(void)state;
	assert_int_equal(ebb_volspec_init(&v, "a", &err), 0);
	assert_int_equal(ebb_volspec_set(&v, "reserve_iops", "5", &err), 0);
	assert_int_equal(ebb_volspec_set(&v, "reserve_iops", "none", &err), 0);
	assert_int_equal(v.reserve_iops, EBB_VOLUME_NO_NUMBER);
	/* What is refused changes nothing. */
	assert_int_equal(ebb_volspec_set(&v, "weight", "7", &err), 0);
	assert_true(ebb_volspec_set(&v, "weight", "+8", &err) < 0);
	assert_int_equal(v.weight, 7);
	assert_true(ebb_volspec_init(&v, "a-name-of-forty-one-characters-is-too-long", &err) < 0);
	assert_true(ebb_volspec_init(&v, "", &err) < 0);
}

/* The least depth with nearly all of what the disk can do; measured values jump a little. */
static void test_knee(void **state)
{
	const struct ebb_knee_point disk[] = {
		{ 1, 1000, 1000, 0 }, { 2, 1990, 1005, 0 }, { 4, 3900, 1020, 0 },
		{ 8, 4800, 1660, 0 }, { 16, 4790, 3340, 0 }, { 32, 4810, 6650, 0 },
	};
	const struct ebb_knee_point flat[] = { { 1, 100, 10000, 0 }, { 2, 101, 20000, 0 } };

	(void)state;
	assert_int_equal(ebb_knee_find(disk, 6), 3);
	assert_int_equal(ebb_knee_find(disk, 3), 2);
	assert_int_equal(ebb_knee_find(flat, 2), 0);
	assert_int_equal(ebb_knee_find(flat, 1), 0);
}

/* Without a reservation or maximum there is a null; a penalty of 0 stays a number. */
static void test_view(void **state)
{
	struct ebb_volspec spec;
	struct ebb_err err;
	json_t *o;

	(void)state;
	assert_int_equal(ebb_volspec_init(&spec, "db1", &err), 0);
	assert_int_equal(ebb_volspec_set(&spec, "reserve_iops", "600", &err), 0);
	assert_int_equal(ebb_volspec_set(&spec, "penalty", "0", &err), 0);
	o = ebb_volview_spec(&spec);
	assert_string_equal(json_string_value(json_object_get(o, "name")), "db1");
	assert_int_equal(json_integer_value(json_object_get(o, "reserve_iops")), 600);
	assert_true(json_is_null(json_object_get(o, "max_bytes")));
	assert_true(json_is_integer(json_object_get(o, "penalty")));
	assert_int_equal(json_integer_value(json_object_get(o, "weight")), 100);
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_file),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_none_takes_back),
		cmocka_unit_test(test_knee),
		cmocka_unit_test(test_view),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
