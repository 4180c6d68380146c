// SPDX-License-Identifier: GPL-2.0-or-later
/* VMs by name and by UUID: long names, names that are equal, and names that are no ASCII. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backend/real/watch.h"
#include "model/sla.h"
#include "tests/unit/host-agent/daemon/ctl_rig.h"
#include "util/clock.h"
#include "util/text.h"

/* As long as a name may be. */
#define LONGEST	255
#define UUID_1	"01000000-0000-0000-0000-000000000000"
#define UUID_2	"02000000-0000-0000-0000-000000000000"

static int setup(void **state)
{
	return ctl_rig_setup(state, false);
}

/* As libvirt tells it; error "": with a valid SLA.  The VM does not run. */
static void define(struct ctl_rig *f, uint8_t uuid, const char *name, const char *error)
{
	struct ebb_watch watch = { .uuid = { uuid } };
	struct ebb_sink sink = ebb_agent_sink(&f->agent);
	struct ebb_look *look = calloc(1, sizeof(*look));
	struct ebb_metadata *m = &look->domain.metadata;

	assert_non_null(look);
	assert_true(strlen(name) < sizeof(look->domain.name));
	look->domain.exists = true;
	strcpy(look->domain.name, name);
	look->domain.sla = error[0] ? -EINVAL : 1;
	snprintf(look->domain.error.text, sizeof(look->domain.error.text), "%s", error);
	m->num_vcpus = 2;
	m->vcpus[0].is_startup = true;
	ebb_sla_default(&m->sla);
	m->sla.class = EBB_CLASS_SPOT;
	m->sla.deadline_ms = m->sla.mem_deadline_ms = 300;
	m->sla.num_nodes = 1;
	m->sla.nodes[0] = (struct ebb_sla_node){ .startup = 1, .reserved = 1, .max = 2 };
	assert_int_equal(ebb_watch_apply(&watch, look, ebb_clock_mono_usec(), &sink),
			 EBB_WATCH_KEEP);
	free(look);
}

static json_t *ask_about(struct ctl_rig *f, const char *cmd, const char *vm)
{
	char request[1024];

	snprintf(request, sizeof(request), "{\"cmd\":\"%s\",\"vm\":\"%s\"}", cmd, vm);
	return ctl_ask_good(f, request);
}

/* What `vms` says of the one VM that `vm` stands for. */
static void expect_vm(struct ctl_rig *f, const char *vm, const char *name, const char *uuid)
{
	json_t *answer = ask_about(f, "vms", vm);
	json_t *row = json_array_get(json_object_get(answer, "vms"), 0);

	assert_string_equal(ctl_text(row, "name"), name);
	assert_string_equal(ctl_text(row, "uuid"), uuid);
	json_decref(answer);
}

/* A name of `bytes` x, then the rest. */
static const char *name_of(char *buf, size_t bytes, const char *rest)
{
	memset(buf, 'x', bytes);
	strcpy(buf + bytes, rest);
	return buf;
}

static void test_same_beginning(void **state)
{
	char one[300], two[300], three[300];

	define(*state, 1, name_of(one, 63, "1"), "");
	define(*state, 2, name_of(two, 63, "2"), "");
	define(*state, 3, name_of(three, LONGEST, ""), "");
	expect_vm(*state, one, one, UUID_1);
	expect_vm(*state, two, two, UUID_2);
	expect_vm(*state, UUID_1, one, UUID_1);
	expect_vm(*state, UUID_2, two, UUID_2);
	expect_vm(*state, three, three, "03000000-0000-0000-0000-000000000000");
	/* Nor is the beginning of a name a name. */
	ctl_expect_refused(*state, "{\"cmd\":\"explain\",\"vm\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}", "no-such-vm", "there is no VM");
}

/* Wherever a limit is: no text ends within a character, for then it is no JSON and left out. */
static void test_no_ascii(void **state)
{
	struct ctl_rig *f = *state;
	char name[300], error[300];
	json_t *answer, *row;
	size_t i;

	for (size_t bytes = 56; bytes < 66; bytes++) {
		name_of(name, bytes, "\xf0\x9f\x90\x98y");
		define(f, 1, name, "");
		expect_vm(f, name, name, UUID_1);
	}
	for (size_t bytes = 180; bytes < 200; bytes++) {
		name_of(error, bytes, "\xc3\xa9\xf0\x9f\x90\x98 is not allowed");
		define(f, 2, "wrong", error);
		expect_vm(f, "wrong", "wrong", UUID_2);
		answer = ask_about(f, "explain", "wrong");
		assert_int_equal(json_array_size(json_object_get(
			json_object_get(answer, "explain"), "lines")), 1);
		json_decref(answer);
	}
	answer = ctl_ask_good(f, "{\"cmd\":\"history\",\"event\":\"error\",\"limit\":1000}");
	assert_true(json_array_size(json_object_get(answer, "history")) >= 11);
	json_array_foreach(json_object_get(answer, "history"), i, row) {
		assert_string_equal(ctl_text(row, "vm"), "wrong");
		assert_non_null(strstr(ctl_text(row, "reason"), "xxx"));
	}
	json_decref(answer);
}

/* While one is being renamed, say: nobody can know which is meant. */
static void test_ambiguous(void **state)
{
	define(*state, 1, "web", "");
	define(*state, 2, "web", "");
	ctl_expect_refused(*state, "{\"cmd\":\"explain\",\"vm\":\"web\"}", "ambiguous-vm",
			   "2 VMs are called \"web\"");
	ctl_expect_refused(*state, "{\"cmd\":\"set\",\"vm\":\"web\",\"values\":{\"weight\":7}}",
			   "ambiguous-vm", "2 VMs are called \"web\"");
	ctl_expect_refused(*state, "{\"cmd\":\"history\",\"vm\":\"web\"}", "ambiguous-vm",
			   "2 VMs are called \"web\"");
	expect_vm(*state, UUID_1, "web", UUID_1);
	expect_vm(*state, UUID_2, "web", UUID_2);
	/* A UUID means the VM that has it, also if another is called so. */
	define(*state, 3, UUID_2, "");
	expect_vm(*state, UUID_2, "web", UUID_2);
}

static size_t num_rows(struct ctl_rig *f, const char *vm)
{
	json_t *answer = ask_about(f, "history", vm);
	const size_t num = json_array_size(json_object_get(answer, "history"));

	json_decref(answer);
	return num;
}

static void test_history(void **state)
{
	char one[300], two[300];
	json_t *answer;

	define(*state, 1, name_of(one, 63, "1"), "");
	define(*state, 2, name_of(two, 63, "2"), "");
	assert_int_equal(num_rows(*state, one), 1);
	assert_int_equal(num_rows(*state, two), 1);
	assert_int_equal(num_rows(*state, UUID_1), 1);
	/* Another name, the same VM. */
	define(*state, 1, "web", "wrong");
	assert_int_equal(num_rows(*state, "web"), 2);
	assert_int_equal(num_rows(*state, UUID_1), 2);
	/* Its old name finds what happened under it. */
	assert_int_equal(num_rows(*state, one), 1);
	answer = ask_about(*state, "history", "web");
	assert_string_equal(ctl_text(json_array_get(json_object_get(answer, "history"), 0), "uuid"),
			    UUID_1);
	json_decref(answer);
	assert_int_equal(num_rows(*state, "gone"), 0);
	{
		char request[600], longer[300];

		snprintf(request, sizeof(request), "{\"cmd\":\"history\",\"vm\":\"%s\"}",
			 name_of(longer, LONGEST + 1, ""));
		ctl_expect_refused(*state, request, "bad-request", "no name has more than 255");
	}
}

static void expect_clean(const char *text, const char *expected)
{
	char buf[64];

	strcpy(buf, text);
	ebb_text_clean(buf);
	assert_string_equal(buf, expected);
}

static void test_text(void **state)
{
	static const char *const whole[] = {
		"", "web", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\x98", "\xf4\x8f\xbf\xbf",
	};
	static const char *const wrong[] = {
		"\x80", "\xc3", "\xc3\xc3", "\xe2\x82", "\xf0\x9f\x90", "\xff", "\xc0\x80",
		"\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80",
	};
	char buf[8], text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		expect_clean(whole[i], whole[i]);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "a%sb", wrong[i]);
		expect_clean(text, "ab");
		expect_clean(wrong[i], "");
	}
	ebb_text_copy(buf, sizeof(buf), "123456\xc3\xa9");
	assert_string_equal(buf, "123456");
	ebb_text_copy(buf, sizeof(buf), "12345\xc3\xa9");
	assert_string_equal(buf, "12345\xc3\xa9");
	/* Characters count, not bytes; the middle is left out. */
	assert_string_equal(ebb_text_label("\xc3\xa9\xc3\xa9\xc3\xa9" "456789", 9).text,
			    "\xc3\xa9\xc3\xa9\xc3\xa9" "456789");
	assert_string_equal(ebb_text_label("\xc3\xa9" "23456789\xc3\xa9", 9).text,
			    "\xc3\xa9" "23...89\xc3\xa9");
	assert_string_equal(ebb_text_label("", 9).text, "");
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, ctl_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(same_beginning), TEST(no_ascii), TEST(ambiguous), TEST(history), TEST(text),
	};

	return cmocka_run_group_tests_name("names of VMs", tests, NULL, NULL);
}
