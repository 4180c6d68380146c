/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: what ebb-placed reads: ebbd's answers, Pacemaker's tools, traces, measured moves. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "placed/calibrate.h"
#include "placed/child.h"
#include "placed/model.h"
#include "placed/pacemaker.h"
#include "placed/pconf.h"
#include "placed/record.h"
#include "placed/report.h"
#include "placed/traces.h"
#include "util/fs.h"

static bool complains(const json_t *complaints, const char *text)
{
	const json_t *line;
	size_t i;

	json_array_foreach(complaints, i, line)
		if (strstr(json_string_value(line), text))
			return true;
	return false;
}

/* ---- Pacemaker ---------------------------------------------------------------- */

#define NODE(name, more) \
	"<node name=\"" name "\" online=\"true\" standby=\"false\" standby_onfail=\"false\" " \
	"maintenance=\"false\" pending=\"false\" unclean=\"" more "\" shutdown=\"false\" " \
	"type=\"member\"/>"
#define RUNS(id, host, role, more) \
	"<resource id=\"" id "\" role=\"" role "\" orphaned=\"false\" blocked=\"false\" " \
	"managed=\"true\" failed=\"false\" nodes_running_on=\"1\"" more "><node name=\"" host \
	"\" id=\"1\"/></resource>"

static const char mon[] =
	"<pacemaker-result><summary><current_dc present=\"true\" with_quorum=\"true\"/></summary>"
	"<nodes>" NODE("h1", "false") NODE("h2", "true") "</nodes><resources>"
	RUNS("db1", "h1", "Started", "") "<group id=\"g\">"
	RUNS("db2", "h1", "Started", " pending=\"Migrating\"") "</group>"
	RUNS("other", "h1", "Started", "") "</resources></pacemaker-result>";

static const char cib[] =
	"<cib><configuration><crm_config><cluster_property_set><nvpair name=\"placement-strategy\" "
	"value=\"utilization\"/></cluster_property_set></crm_config><nodes><node uname=\"h1\">"
	"<utilization><nvpair name=\"ebb-cpu\" value=\"4000\"/></utilization></node>"
	"<node uname=\"h2\"/></nodes><resources>"
	"<primitive id=\"db1\" type=\"VirtualDomain\"><meta_attributes>"
	"<nvpair name=\"resource-stickiness\" value=\"50\"/>"
	"<nvpair name=\"allow-migrate\" value=\"true\"/>"
	"<nvpair name=\"ebb-class\" value=\"oltp\"/></meta_attributes></primitive>"
	"<group id=\"g\"><primitive id=\"db2\" type=\"VirtualDomain\"/></group>"
	"<primitive id=\"other\" type=\"Dummy\"/></resources><constraints>"
	"<rsc_location rsc=\"db1\"><rule score-attribute=\"ebb-score-db1\"/></rsc_location>"
	"<rsc_location rsc=\"db2\"><rule score=\"5\"/></rsc_location></constraints></configuration>"
	"<status><node_state uname=\"h1\"><transient_attributes><instance_attributes>"
	"<nvpair name=\"ebb-score-db1\" value=\"1000\"/>"
	"<nvpair name=\"ebb-score-db2\" value=\"1e9\"/></instance_attributes>"
	"</transient_attributes></node_state></status></cib>";

static const char facts[] =
	"<pacemaker-result><attribute name=\"ebb-facts\" host=\"h1\" value=\"{&quot;v&quot;:1,"
	"&quot;cap&quot;:[4000,2048,0],&quot;ready&quot;:true,&quot;vms&quot;:{&quot;db1&quot;:"
	"{&quot;c&quot;:&quot;spot&quot;,&quot;a&quot;:600,&quot;u&quot;:[1,2,3],&quot;p&quot;:"
	"[4,5,6],&quot;f&quot;:[7,8,9]}}}\"/><attribute name=\"ebb-facts\" host=\"h2\" "
	"value=\"{\"/></pacemaker-result>";

static void test_pacemaker(void **state)
{
	struct ebb_err err = { "" };
	json_t *complaints = json_array();
	json_t *all = placed_pacemaker_parse(mon, cib, facts, complaints, &err);
	struct placed_cluster c;
	const struct placed_vm *vm;

	(void)state;
	assert_non_null(all);
	assert_int_equal(json_array_size(complaints), 0);
	assert_int_equal(placed_cluster_read(all, &c, &err), 0);
	assert_true(c.has_quorum && c.is_quorum_known);
	assert_int_equal(c.num_hosts, 2);
	assert_true(c.hosts[0].is_online && c.hosts[0].is_ready);
	assert_int_equal((int)c.hosts[0].utilization[PLACE_CPU], 4000);
	/* An unclean host may run nothing, and its facts are not looked at. */
	assert_false(c.hosts[1].is_online);
	assert_int_equal(c.num_vms, 2);
	vm = &c.vms[placed_vm_find(&c, "db1")];
	assert_string_equal(vm->class, "oltp");
	assert_true(vm->is_settled && vm->can_migrate && vm->has_rule && !vm->is_busy);
	assert_int_equal(vm->started_on, 0);
	assert_int_equal(vm->host, 0);
	assert_int_equal(vm->age_s, 600);
	assert_int_equal(vm->stickiness, 50);
	assert_int_equal((int)vm->floor[PLACE_MEMORY], 8);
	assert_int_equal(vm->scores[0], 1000);
	assert_int_equal(vm->scores[1], PLACED_SCORE_NONE);
	vm = &c.vms[placed_vm_find(&c, "db2")];
	assert_true(vm->is_busy && !vm->is_settled && !vm->has_rule && !vm->can_migrate);
	assert_int_equal(vm->scores[0], PLACED_SCORE_LIE);
	assert_true(complains(c.complaints, "ebb-score-db2=1e9 is no number from 0 to 1000"));
	placed_cluster_finish(&c);
	json_decref(all);
	json_decref(complaints);
}

static void test_pacemaker_bad_output(void **state)
{
	struct ebb_err err = { "" };
	json_t *complaints = json_array(), *all;

	(void)state;
	assert_null(placed_pacemaker_parse("", cib, "", complaints, &err));
	assert_non_null(strstr(err.text, "crm_mon is no XML"));
	assert_null(placed_pacemaker_parse(mon, "<cib>", "", complaints, &err));
	assert_non_null(strstr(err.text, "cibadmin is no XML"));
	/* Without a coordinator nobody knows who has the quorum; without a strategy one is told. */
	all = placed_pacemaker_parse("<pacemaker-result><summary/></pacemaker-result>", "<cib/>",
				     "no xml", complaints, &err);
	assert_true(json_is_null(json_object_get(all, "quorum")));
	assert_true(complains(complaints, "placement-strategy"));
	assert_true(complains(complaints, "attrd_updater is no XML"));
	json_decref(all);
	json_decref(complaints);
}

static void test_pacemaker_failure(void **state)
{
	char text[64];

	(void)state;
	placed_pacemaker_failure("<pacemaker-result><status code=\"102\"><errors>"
				 "<error>error: Connection refused</error>"
				 "<error>crm_mon: Connection to cluster failed</error>"
				 "</errors></status></pacemaker-result>", text, sizeof(text));
	assert_string_equal(text, "crm_mon: Connection to cluster failed");
	placed_pacemaker_failure("<pacemaker-result/>", text, sizeof(text));
	assert_string_equal(text, "");
	placed_pacemaker_failure("no xml", text, sizeof(text));
	assert_string_equal(text, "");
}

/* ---- lies ---------------------------------------------------------------------- */

static void read_lie(const char *text, const char *complaint)
{
	struct ebb_err err = { "" };
	json_t *all = json_loads(text, 0, NULL);
	struct placed_cluster c;

	assert_non_null(all);
	assert_int_equal(placed_cluster_read(all, &c, &err), 0);
	assert_true(complains(c.complaints, complaint));
	placed_cluster_finish(&c);
	json_decref(all);
}

#define HOST(facts)	"{\"hosts\":{\"h1\":{\"online\":true,\"facts\":" facts "}}}"
#define WITH_VM(name, vm) \
	HOST("{\"v\":1,\"cap\":[1,1,0],\"vms\":{\"" name "\":" vm "}}")

static void test_lies(void **state)
{
	struct ebb_err err = { "" };
	struct placed_cluster c;
	json_t *none = json_object();

	(void)state;
	read_lie(HOST("\"?\""), "host h1: its facts make no sense");
	/* 2^32 + 1 is not 1. */
	read_lie(HOST("{\"v\":4294967297,\"cap\":[1,1,0]}"), "h1: its facts make no sense");
	read_lie(HOST("{\"v\":0,\"cap\":[1,1,0]}"), "h1: its facts make no sense");
	read_lie(HOST("{\"v\":7}"), "speaks version 7, this one 1");
	read_lie(HOST("{\"v\":1,\"cap\":[1,-1,0]}"), "the capacity that it tells makes no sense");
	read_lie(HOST("{\"v\":1,\"cap\":[1,1e300,0]}"), "the capacity");
	read_lie(WITH_VM("a b", "{}"), "no name that Pacemaker's resources can have");
	read_lie(WITH_VM("a", "{}"), "VM a: what host h1 tells of it makes no sense (its class)");
	read_lie(WITH_VM("a", "{\"c\":\"x\",\"a\":-1}"), "(its age)");
	read_lie(WITH_VM("a", "{\"c\":\"x\",\"a\":1,\"u\":[1,2]}"), "(an amount of it)");
	read_lie("{\"hosts\":{\"h1\":{\"online\":true,\"scores\":{\"x\":\"5\"}}}}",
		 "about a VM that does not exist");
	assert_int_equal(placed_cluster_read(none, &c, &err), -EINVAL);
	json_decref(none);
}

/* Of VMs that several hosts claim the one counts on which Pacemaker has it. */
static void test_whose_word_counts(void **state)
{
#define CLAIM(cpu)	"\"facts\":{\"v\":1,\"cap\":[1,1,0],\"vms\":{\"a\":{\"c\":\"x\"," \
			"\"a\":" cpu ",\"u\":[" cpu ",0,0],\"p\":[0,0,0],\"f\":[" cpu ",0,0]}}}"
	static const struct {
		const char *home, *claims[3];	/* of h1 to h3 */
		int host, other, age;		/* -1: nothing is believed */
	} cases[] = {
		{ "h2", { CLAIM("9"), CLAIM("2"), "" }, 0, 1, 2 },
		{ "h2", { "", CLAIM("2"), CLAIM("9") }, 1, 2, 2 },
		{ "h3", { CLAIM("9"), CLAIM("8"), CLAIM("3") }, 0, 2, 3 },
		/* The host itself tells nothing of it. */
		{ "h2", { CLAIM("9"), "", "" }, 0, -1, -1 },
		/* Pacemaker has it nowhere: the first one. */
		{ NULL, { CLAIM("1"), CLAIM("9"), "" }, 0, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *all = json_pack("{s:{}, s:{s:{s:s*, s:{s:i}}}}", "hosts", "resources", "a",
					"host", cases[i].home, "utilization", "ebb-cpu", 7);
		struct ebb_err err = { "" };
		struct placed_cluster c;

		for (int h = 0; h < 3; h++) {
			const char *claim = cases[i].claims[h];
			char name[] = "h1", text[512];

			name[1] = (char)('1' + h);
			snprintf(text, sizeof(text), "{\"online\":true%s%s}", *claim ? "," : "",
				 claim);
			json_object_set_new(json_object_get(all, "hosts"), name,
					    json_loads(text, 0, NULL));
		}
		assert_int_equal(placed_cluster_read(all, &c, &err), 0);
		assert_int_equal(c.vms[0].host, cases[i].host);
		assert_int_equal(c.vms[0].other_host, cases[i].other);
		assert_int_equal(c.vms[0].is_known, cases[i].age >= 0);
		if (cases[i].age >= 0)
			assert_int_equal(c.vms[0].age_s, cases[i].age);
		/* The floor that Pacemaker was told is better than a lie. */
		assert_int_equal((int)c.vms[0].floor[PLACE_CPU], cases[i].age >= 0 ?
				 cases[i].age : 7);
		placed_cluster_finish(&c);
		json_decref(all);
	}
}

/* A host that tells of any number of VMs keeps nobody from reading the rest. */
static void test_flood(void **state)
{
	json_t *vms = json_object(), *resources = json_object(), *all;
	struct ebb_err err = { "" };
	struct placed_cluster c;
	char name[PLACED_NAME_SIZE];

	(void)state;
	for (int i = 0; i < 3 * PLACED_MAX_VMS; i++) {
		snprintf(name, sizeof(name), "%s%d", i % 3 ? "ghost" : "no name", i);
		json_object_set_new(vms, name, json_object());
	}
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "vm%d", i);
		json_object_set_new(resources, name, json_object());
		json_object_set_new(vms, name, json_object());
	}
	all = json_pack("{s:{s:{s:b, s:{s:i, s:[iii], s:o}}}, s:o}", "hosts", "h1", "online", 1,
			"facts", "v", PLACED_VERSION, "cap", 1, 1, 0, "vms", vms, "resources",
			resources);
	assert_int_equal(placed_cluster_read(all, &c, &err), 0);
	assert_true(json_array_size(c.complaints) <= PLACED_MAX_COMPLAINTS);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "vm%d", i);
		assert_true(c.vms[placed_vm_find(&c, name)].is_resource);
		assert_int_equal(c.vms[placed_vm_find(&c, name)].host, 0);
	}
	placed_cluster_finish(&c);
	json_decref(all);
}

static void test_score_values(void **state)
{
	char text[16];

	(void)state;
	assert_int_equal(placed_score_parse("0"), 0);
	assert_int_equal(placed_score_parse("1000"), 1000);
	assert_int_equal(placed_score_parse("-INFINITY"), PLACED_SCORE_NEVER);
	assert_int_equal(placed_score_parse(""), PLACED_SCORE_NONE);
	assert_int_equal(placed_score_parse("1001"), PLACED_SCORE_LIE);
	assert_int_equal(placed_score_parse("-1"), PLACED_SCORE_LIE);
	assert_int_equal(placed_score_parse("INFINITY"), PLACED_SCORE_LIE);
	assert_int_equal(placed_score_parse(" 5"), PLACED_SCORE_LIE);
	placed_score_format(PLACED_SCORE_NEVER, text);
	assert_string_equal(text, "-INFINITY");
}

/* ---- ebbd ---------------------------------------------------------------------- */

static json_t *report(struct placed_memory *m, const char *vms, uint64_t now_s, bool answers)
{
	json_t *host = json_loads("{\"host\":{\"libvirt\":\"up\",\"loaded\":true,\"nodes\":[{"
				  "\"capacity\":3,\"mem_capacity_bytes\":1073741824},{\"capacity\":"
				  "1,\"mem_capacity_bytes\":0}]}}", 0, NULL);
	json_t *list = json_loads(vms, 0, NULL), *complaints = json_array(), *facts_of_host;
	const struct placed_state state = { .moving = "" };

	assert_non_null(host);
	assert_non_null(list);
	facts_of_host = placed_report(answers ? host : NULL, list, NULL, &state, now_s, 0, 600, m,
				      complaints);
	json_decref(host);
	json_decref(list);
	json_decref(complaints);
	return facts_of_host;
}

#define EBBD_VM(cpu) \
	"{\"vms\":[{\"name\":\"a\",\"state\":\"running\",\"class\":\"spot\",\"nodes\":[{" \
	"\"floor\":1,\"reserved\":2}],\"cpus_held\":3,\"mem_held_bytes\":67108864," \
	"\"mem_floor_bytes\":33554432,\"promised_mem_mib\":16,\"disk_bytes\":2147483648," \
	"\"telemetry\":{" \
	"\"cpu_permille\":" cpu "},\"move\":" \
	"{\"text\":\"why\"}},{\"name\":\"b\",\"state\":\"stopped\"}]}"

static json_int_t amount(const json_t *all, const char *key, int r)
{
	const json_t *vm = json_object_get(json_object_get(all, "vms"), "a");

	return json_integer_value(json_array_get(json_object_get(vm, key), r));
}

static void test_report(void **state)
{
	struct placed_memory m = { 0 };
	json_t *all = report(&m, EBBD_VM("1800"), 1000000, true);
	const json_t *vm = json_object_get(json_object_get(all, "vms"), "a");

	(void)state;
	assert_int_equal(json_integer_value(json_array_get(json_object_get(all, "cap"), 0)), 4000);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(all, "cap"), 1)), 1024);
	assert_int_equal(json_object_size(json_object_get(all, "vms")), 1);
	assert_int_equal(amount(all, "u", PLACE_CPU), 1800);
	assert_int_equal(amount(all, "u", PLACE_DISK), 2048);
	assert_int_equal(amount(all, "f", PLACE_CPU), 2000);
	assert_int_equal(amount(all, "f", PLACE_MEMORY), 48);
	assert_string_equal(json_string_value(json_object_get(vm, "mv")), "why");
	assert_true(json_is_true(json_object_get(vm, "on")));
	json_decref(all);
	/* The most of a day stays for a day, and a VM that idles is inactive after a while. */
	all = report(&m, EBBD_VM("50"), 1000000 + 7200, true);
	assert_int_equal(amount(all, "u", PLACE_CPU), 50);
	assert_int_equal(amount(all, "p", PLACE_CPU), 1800);
	vm = json_object_get(json_object_get(all, "vms"), "a");
	assert_true(json_is_false(json_object_get(vm, "on")));
	assert_int_equal(json_integer_value(json_object_get(vm, "a")), 7200);
	json_decref(all);
	all = report(&m, EBBD_VM("50"), 1000000 + 100000, true);
	assert_int_equal(amount(all, "p", PLACE_CPU), 50);
	/* The most of all times stays. */
	assert_int_equal(amount(all, "m", PLACE_CPU), 1800);
	json_decref(all);
	/* A guest that says what can not be is no reason to send others away. */
	all = report(&m, EBBD_VM("4000000000"), 1000000 + 100000, true);
	assert_int_equal(amount(all, "u", PLACE_CPU), 3000);
	assert_int_equal(amount(all, "p", PLACE_CPU), 3000);
	json_decref(all);
	/* ebbd does not answer: what it said last, and not ready. */
	all = report(&m, EBBD_VM("50"), 1000000 + 100001, false);
	assert_int_equal(amount(all, "f", PLACE_CPU), 2000);
	assert_true(json_is_false(json_object_get(all, "ready")));
	json_decref(all);
	placed_memory_finish(&m);
}

/* What may be promised on shared cores counts as capacity: floors of VMs there are held to it. */
static void test_capacity_of_shared_cores(void **state)
{
	struct placed_memory m = { 0 };
	json_t *host = json_loads("{\"host\":{\"libvirt\":\"up\",\"loaded\":true,\"nodes\":[{"
				  "\"capacity\":2,\"mem_capacity_bytes\":0,\"promises\":{"
				  "\"most_percent\":590}},{\"capacity\":1,\"promises\":null}]}}",
				  0, NULL);
	json_t *vms = json_loads("{\"vms\":[]}", 0, NULL), *complaints = json_array(), *all;
	const struct placed_state s = { .moving = "" };

	(void)state;
	all = placed_report(host, vms, NULL, &s, 1000000, 0, 600, &m, complaints);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(all, "cap"), 0)), 8900);
	json_decref(all);
	json_decref(host);
	json_decref(vms);
	json_decref(complaints);
	placed_memory_finish(&m);
}

/* ---- files ---------------------------------------------------------------------- */

static void test_traces(void **state)
{
	char good[] = PLACED_TRACES_HEADER "\na,600,1,2,3\nb,600,1,2,3\na,600,4,5,6\n";
	char bad[] = PLACED_TRACES_HEADER "\na,600,1,2,3\na,600,,2,3\nb,600,1,-2,3\nc,600,1,2\n"
		     "d,0,1,2,3\ne,600,1,2,3\ne,300,1,2,3\n";
	char other[] = "vm,cpu\na,1\n";
	struct placed_traces t = { 0 };
	json_t *complaints = json_array();

	(void)state;
	assert_int_equal(placed_traces_add(&t, "good", good, complaints), 0);
	assert_int_equal(json_array_size(complaints), 0);
	assert_int_equal(t.num_traces, 2);
	assert_int_equal(t.traces[0].steps, 2);
	assert_int_equal((int)t.traces[0].demand[PLACE_N_RESOURCES + PLACE_CPU], 4);
	assert_int_equal(placed_traces_add(&t, "bad", bad, complaints), 0);
	assert_int_equal(placed_traces_add(&t, "other", other, complaints), 0);
	assert_int_equal(t.num_traces, 2);
	assert_int_equal(t.num_classes, 1);
	assert_true(complains(complaints, "class bad, line 3: a hole"));
	assert_true(complains(complaints, "line 4: an amount is negative"));
	assert_true(complains(complaints, "line 5: a number is missing"));
	assert_true(complains(complaints, "line 6: step_s is not"));
	assert_true(complains(complaints, "line 8: step_s is not 600"));
	assert_true(complains(complaints, "class other, line 1"));
	placed_traces_finish(&t);
	json_decref(complaints);
}

/* What is told of a VM that has come at step 1000. */
static json_t *recorded(uint64_t step)
{
	return json_pack("{s:s, s:I, s:[iii]}", "c", "x", "a",
			 (json_int_t)(step - 1000) * PLACED_RECORD_STEP_S, "u", 100, 64, 0);
}

/* Two VMs whose long names begin alike are not taken for one. */
static void test_record(void **state)
{
	char folder[] = "/tmp/ebb-test-record.XXXXXX", path[64];
	json_t *complaints = json_array(), *told;
	struct placed_record r = { 0 };
	struct placed_traces t;
	struct ebb_err err = { "" };

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (uint64_t step = 1000; step < 1003; step++) {
		told = json_pack("{s:{s:o, s:o, s:o}}", "vms", "the-database-of-customer-1",
				 recorded(step), "the-database-of-customer-2", recorded(step),
				 "short", recorded(step));
		assert_int_equal(placed_record(&r, folder, told, "h1", step * PLACED_RECORD_STEP_S,
					       &err), 0);
		json_decref(told);
	}
	assert_int_equal(placed_traces_read(folder, &t, complaints, &err), 0);
	assert_int_equal(json_array_size(complaints), 0);
	assert_int_equal(t.num_traces, 3);
	for (uint32_t i = 0; i < t.num_traces; i++)
		assert_int_equal(t.traces[i].steps, 2);
	placed_traces_finish(&t);
	placed_record_finish(&r);
	json_decref(complaints);
	snprintf(path, sizeof(path), "%s/x.csv", folder);
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

static void test_calibrate(void **state)
{
	char path[] = "/tmp/test_placed_moves.XXXXXX", *text = NULL;
	const int fd = mkstemp(path);
	struct ebb_err err = { "" };
	size_t size;
	FILE *f = fdopen(fd, "w");

	(void)state;
	/* 1 + cost is memory, eight times as much (2 to the third) for an active VM. */
	fputs(PLACED_MOVES_HEADER "\n1,256,0,255\n1,256,1,2047\n1,1024,0,1023\n1,1024,1,8191\n"
	      "4,4096,0,4095\n16,4096,1,32767\n64,64,0,63\n256,64,1,511\n", f);
	fclose(f);
	f = open_memstream(&text, &size);
	assert_int_equal(placed_calibrate(path, f, &err), 0);
	fclose(f);
	assert_non_null(strstr(text, "move_cost_memory = 1\n"));
	assert_non_null(strstr(text, "move_cost_active = 3\n"));
	free(text);
	assert_int_equal(ebb_fs_write(path, PLACED_MOVES_HEADER "\n1,256,2,16\n"), 0);
	assert_int_equal(placed_calibrate(path, stdout, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":2: four numbers are needed"));
	f = fopen(path, "w");
	fputs(PLACED_MOVES_HEADER "\n1,256,1,16\n", f);
	fclose(f);
	assert_int_equal(placed_calibrate(path, stdout, &err), -ENODATA);
	unlink(path);
}

static void test_shipped_configuration(void **state)
{
	struct placed_conf c, ours;
	struct ebb_err err = { "" };

	(void)state;
	placed_conf_default(&c);
	ours = c;
	assert_int_equal(placed_conf_load(&c, "host-agent/systemd/ebb-placed.conf", &err), 0);
	assert_memory_equal(&c, &ours, sizeof(c));
	assert_int_equal(placed_conf_set(&c, "stickiness_low=300", &err), 0);
	assert_int_equal(placed_conf_check(&c, &err), -EINVAL);
	assert_int_equal(placed_conf_set(&c, "move_cost_disk=-1", &err), -EINVAL);
}

static void test_child(void **state)
{
	const char *const fails[] = { "sh", "-c", "echo out; echo why >&2; exit 3", NULL };
	const char *const hangs[] = { "sh", "-c", "sleep 1000 & wait", NULL };
	const char *const none[] = { "/nonexistent/tool", NULL };
	struct ebb_err err = { "" };
	char *out = NULL;

	(void)state;
	assert_int_equal(placed_child_run(fails, 60000, &out, &err), 3);
	assert_string_equal(out, "out\n");
	assert_string_equal(err.text, "sh: status 3: why");
	free(out);
	assert_int_equal(placed_child_run(hangs, 50, &out, &err), -ETIMEDOUT);
	assert_int_equal(placed_child_run(none, 1000, &out, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pacemaker), cmocka_unit_test(test_pacemaker_bad_output),
		cmocka_unit_test(test_pacemaker_failure),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_whose_word_counts), cmocka_unit_test(test_flood),
		cmocka_unit_test(test_score_values),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_capacity_of_shared_cores), cmocka_unit_test(test_traces),
		cmocka_unit_test(test_record), cmocka_unit_test(test_calibrate),
		cmocka_unit_test(test_shipped_configuration), cmocka_unit_test(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
