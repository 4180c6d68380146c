/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The SLA in a domain's metadata: what a good one means, and one test for every way to get it
 * wrong.
 */
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
#include "backend/real/disks.h"
#include "backend/real/metadata.h"
#include "model/sla-io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char good[] =
	"<domain type='kvm'><name>web</name>\n"
	"<metadata><app:x xmlns:app='urn:other'/><ebb:sla xmlns:ebb='urn:ebb:sla:1'>\n"
	"  <!-- a comment -->\n"
	"  <ebb:cpu class='reserved' priority='7' tier='park' plug='ahead' weight='250' "
	"deadline-ms='1500'>\n"
	"    <ebb:node id='0' startup='1' reserved='3' max='4' host='1'/>\n"
	"    <ebb:node id='1' startup='0' max='3'/>\n"
	"  </ebb:cpu></ebb:sla></metadata>\n"
	"<vcpu placement='static' current='1'>8</vcpu>\n"
	"<vcpus><vcpu id='0' enabled='yes' hotpluggable='no' order='1'/>"
	"<vcpu id='1' enabled='no' hotpluggable='yes'/><vcpu id='2' enabled='no' "
	"hotpluggable='yes'/>"
	"<vcpu id='3' enabled='no' hotpluggable='yes'/><vcpu id='4' enabled='no' "
	"hotpluggable='yes'/>"
	"<vcpu id='5' enabled='no' hotpluggable='yes'/><vcpu id='6' enabled='no' "
	"hotpluggable='yes'/>"
	"<vcpu id='7' enabled='no' hotpluggable='yes'/></vcpus>\n"
	"<cpu><numa><cell id='0' cpus='0-3' memory='1'/><cell id='1' cpus='4-6,7' "
	"memory='1'/></numa></cpu>\n"
	"</domain>";

/* The good XML with one text replaced by another; the caller frees. */
static char *with(const char *old, const char *new)
{
	const char *at = strstr(good, old);
	char *xml = malloc(sizeof(good) + strlen(new));

	if (!at)
		fail_msg("\"%s\" is not in the XML", old);
	sprintf(xml, "%.*s%s%s", (int)(at - good), good, new, at + strlen(old));
	return xml;
}

static void test_good(void **state)
{
	struct ebb_metadata m;

	(void)state;
	assert_int_equal(ebb_metadata_parse(good, 2, false, &m, NULL), 1);
	assert_int_equal(m.sla.class, EBB_CLASS_RESERVED);
	assert_int_equal(m.sla.priority, 7);
	assert_int_equal(m.sla.tier, VIRTIO_EBB_TIER_PARK);
	assert_true(m.sla.plug_ahead);
	assert_int_equal(m.sla.weight, 250);
	assert_int_equal(m.sla.deadline_ms, 1500);
	assert_int_equal(m.sla.num_nodes, 2);
	assert_int_equal(m.sla.nodes[0].startup, 1);
	assert_int_equal(m.sla.nodes[0].reserved, 3);
	assert_int_equal(m.sla.nodes[0].max, 4);
	assert_int_equal(m.sla.nodes[0].host_node, 1);
	assert_int_equal(m.sla.nodes[1].startup, 0);
	assert_int_equal(m.sla.nodes[1].reserved, 3);
	assert_int_equal(m.sla.nodes[1].max, 3);
	assert_int_equal(m.sla.nodes[1].host_node, 1);
	assert_int_equal(m.num_vcpus, 8);
	assert_int_equal(m.vcpus[3].node, 0);
	assert_int_equal(m.vcpus[4].node, 1);
	assert_int_equal(m.vcpus[7].node, 1);
	assert_true(m.vcpus[0].is_startup && m.is_enabled[0]);
	assert_false(m.vcpus[1].is_startup || m.is_enabled[1]);
}

static void test_defaults(void **state)
{
	static const char xml[] =
		"<domain><name>a</name><vcpu>2</vcpu><metadata><e:sla "
		"xmlns:e='urn:ebb:sla:1'><e:cpu>"
		"<e:node id='0' startup='2' max='2'/></e:cpu></e:sla></metadata></domain>";
	struct ebb_metadata m;

	(void)state;
	assert_int_equal(ebb_metadata_parse(xml, 1, false, &m, NULL), 1);
	assert_int_equal(m.sla.class, EBB_CLASS_RESERVED);
	assert_int_equal(m.sla.priority, 100);
	assert_int_equal(m.sla.tier, VIRTIO_EBB_TIER_ANY);
	assert_false(m.sla.plug_ahead);
	assert_int_equal(m.sla.weight, 100);
	assert_int_equal(m.sla.deadline_ms, 2000);
	assert_int_equal(m.sla.num_nodes, 1);
	assert_int_equal(m.sla.nodes[0].host_node, 0);
	assert_int_equal(m.num_vcpus, 2);
	assert_true(m.vcpus[0].is_startup && m.vcpus[1].is_startup);
}

static void test_shared(void **state)
{
	char *xml = with("class='reserved'", "shared='yes'"), *out;
	struct ebb_metadata m;

	(void)state;
	assert_int_equal(ebb_metadata_parse(xml, 2, false, &m, NULL), 1);
	assert_true(m.sla.is_shared);
	assert_int_equal(ebb_metadata_format(&m.sla, &out), 0);
	assert_non_null(strstr(out, " shared='yes'"));
	free(out);
	free(xml);
	assert_int_equal(ebb_metadata_parse(good, 2, false, &m, NULL), 1);
	assert_false(m.sla.is_shared);
}

/* Written only if they are given, so that older agents read the SLA of a VM without promises. */
static void test_reserve(void **state)
{
	char *xml = with("class='reserved'", "reserve-percent='150' max-percent='180' penalty='0'");
	struct ebb_metadata m;
	char *out;

	(void)state;
	assert_int_equal(ebb_metadata_parse(xml, 2, false, &m, NULL), 1);
	assert_int_equal(m.sla.reserve_percent, 150);
	assert_int_equal(m.sla.max_percent, 180);
	assert_int_equal(m.sla.penalty, 0);
	assert_int_equal(ebb_metadata_format(&m.sla, &out), 0);
	assert_non_null(strstr(out, " reserve-percent='150' max-percent='180' penalty='0'"));
	free(out);
	free(xml);
	assert_int_equal(ebb_metadata_parse(good, 2, false, &m, NULL), 1);
	assert_int_equal(m.sla.reserve_percent, 0);
	assert_int_equal(m.sla.max_percent, 0);
	assert_int_equal(m.sla.penalty, 1);
	assert_int_equal(ebb_metadata_format(&m.sla, &out), 0);
	assert_null(strstr(out, "percent"));
	assert_null(strstr(out, "penalty"));
	free(out);
}

/* Class spot: nothing is reserved but the startup set. */
static void test_spot(void **state)
{
	char *xml = with("class='reserved' priority='7'", "class='spot'"), *at;
	struct ebb_metadata m;

	(void)state;
	at = strstr(xml, "reserved='3'");
	memset(at, ' ', strlen("reserved='3'"));
	assert_int_equal(ebb_metadata_parse(xml, 2, false, &m, NULL), 1);
	assert_int_equal(m.sla.class, EBB_CLASS_SPOT);
	assert_int_equal(m.sla.nodes[0].reserved, 1);
	assert_int_equal(m.sla.nodes[1].reserved, 0);
	memcpy(at, "reserved='1'", strlen("reserved='1'"));
	assert_int_equal(ebb_metadata_parse(xml, 2, false, &m, NULL), 1);
	assert_int_equal(m.sla.nodes[0].reserved, 1);
	free(xml);
}

static void test_no_sla(void **state)
{
	struct ebb_metadata m;
	char *xml = with("urn:ebb:sla:1", "urn:not-ours");

	(void)state;
	assert_int_equal(ebb_metadata_parse("<domain><name>a</name></domain>", 1, false, &m, NULL),
			 0);
	assert_int_equal(ebb_metadata_parse(xml, 2, false, &m, NULL), 0);
	free(xml);
}

/* A running instance has hotpluggable vCPUs enabled; they are not of the startup set. */
static void test_live(void **state)
{
	struct ebb_metadata m;
	char *xml = with("id='4' enabled='no'", "id='4' enabled='yes'");

	(void)state;
	assert_int_equal(ebb_metadata_parse(xml, 2, true, &m, NULL), 1);
	assert_true(m.is_enabled[4]);
	assert_false(m.vcpus[4].is_startup);
	free(xml);
}

static void test_io(void **state)
{
	char *xml = with("</ebb:cpu>", "</ebb:cpu><ebb:io reserve-iops='200' weight='50'>"
			 "<ebb:volume name='data' reserve-iops='500' cold='yes'/>"
			 "<ebb:volume name='log' max-bytes='1000000000000'/></ebb:io>");
	struct ebb_metadata m;
	struct ebb_sla_io io;
	char *out;

	(void)state;
	assert_int_equal(ebb_metadata_parse(xml, 2, false, &m, NULL), 1);
	assert_int_equal(m.sla.io.reserve_iops, 200);
	ebb_sla_io_of(&m.sla, "data", &io);
	assert_int_equal(io.reserve_iops, 500);
	assert_int_equal(io.weight, 50);
	assert_int_equal(io.cold, EBB_COLD_YES);
	ebb_sla_io_of(&m.sla, "log", &io);
	assert_int_equal(io.cold, EBB_COLD_AUTO);
	assert_int_equal(io.reserve_iops, 200);
	assert_int_equal(io.max_bytes, 1000000000000);
	/* Written as it was read, so that what is not given goes on following the VM's value. */
	assert_int_equal(ebb_metadata_format(&m.sla, &out), 0);
	assert_non_null(strstr(out, "<io reserve-iops='200' weight='50'>"
			       "<volume name='data' reserve-iops='500' cold='yes'/>"
			       "<volume name='log' max-bytes='1000000000000'/></io></sla>"));
	free(out);
	free(xml);
	/* Older agents do not know the element. */
	assert_int_equal(ebb_metadata_parse(good, 2, false, &m, NULL), 1);
	assert_false(ebb_sla_has_io(&m.sla));
	assert_int_equal(ebb_metadata_format(&m.sla, &out), 0);
	assert_null(strstr(out, "<io"));
	free(out);
}

#define DISK(protocol, name, transport, socket) \
	"<disk type='network' device='disk'><driver name='qemu'/><source protocol='" protocol \
	"' name='" name "'><host transport='" transport "' socket='" socket "'/></source>" \
	"<target dev='vda'/></disk>"
#define OURS(name)	DISK("nbd", name, "unix", "/run/v/nbd.sock")

static void test_volumes(void **state)
{
	static const char xml[] =
		"<domain><devices><disk type='file'><source file='/x'/></disk>"
		OURS("data") DISK("nbd", "other", "unix", "/run/w/nbd.sock") "<interface/>"
		DISK("rbd", "ceph", "unix", "/run/v/nbd.sock") OURS("log") OURS("data")
		OURS("a b") "</devices></domain>";
	static const char many[] =
		"<domain><devices>" OURS("1") OURS("2") OURS("3") OURS("4") OURS("5") OURS("6")
		OURS("7") OURS("8") OURS("9") OURS("10") "</devices></domain>";
	struct ebb_vm_volumes v;

	(void)state;
	assert_int_equal(ebb_metadata_volumes(xml, "/run/v/nbd.sock", &v), 0);
	assert_int_equal(v.num, 2);
	assert_string_equal(v.names[0], "data");
	assert_string_equal(v.names[1], "log");
	assert_int_equal(ebb_metadata_volumes(good, "/run/v/nbd.sock", &v), 0);
	assert_int_equal(v.num, 0);
	assert_int_equal(ebb_metadata_volumes(many, "/run/v/nbd.sock", &v), 0);
	assert_int_equal(v.num, EBB_MAX_VOLUMES);
	assert_int_equal(v.num_more, 2);
	assert_int_equal(ebb_metadata_volumes("<domain>", "/run/v/nbd.sock", &v), -EINVAL);
}

static void test_disks(void **state)
{
	char path[] = "/tmp/ebb-disk-XXXXXX", xml[2048];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 3 << 20), 0);
	/* Of four: a CD, a disk elsewhere, one that is gone, one on a path that is none. */
	snprintf(xml, sizeof(xml),
		 "<domain><devices><disk type='file'><source file='%s'/></disk>"
		 "<disk type='block' device='disk'><source dev='%s'/><backingStore>"
		 "<source file='%s'/></backingStore></disk>"
		 "<disk type='file' device='cdrom'><source file='%s'/></disk>" OURS("data")
		 "<disk type='file'><source file='/nowhere/x'/></disk><disk type='volume'>"
		 "<source pool='p' file='x'/></disk><disk device='lun'><source dev='/dev/null'/>"
		 "</disk><disk/></devices></domain>", path, path, path, path);
	assert_int_equal(ebb_disks_size(xml), 6 << 20);
	assert_int_equal(ebb_disks_size(good), 0);
	assert_int_equal(ebb_disks_size("<domain>"), 0);
	close(fd);
	unlink(path);
}

static const struct {
	const char *old, *new;
	const char *error;
} bad[] = {
	{"</domain>", "", "domain ?: its XML is not well-formed"},
	{"<domain type='kvm'>", "<x/><domain>", "not well-formed"},
	{"</ebb:cpu>", "</ebb:cpu><ebb:io iops='1'/>",
	 "<ebb:io> has an unknown attribute \"iops\""},
	{"</ebb:cpu>", "</ebb:cpu><ebb:io><ebb:disk/></ebb:io>",
	 "<ebb:io> has an unknown element <disk>; allowed: <ebb:volume>"},
	{"</ebb:cpu>", "</ebb:cpu><ebb:io/><ebb:io/>", "<ebb:io> is there twice"},
	{"</ebb:cpu>", "</ebb:cpu><ebb:io reserve-iops='10000001'/>",
	 "<ebb:io> attribute reserve-iops=\"10000001\": allowed: 0 to 10000000"},
	{"</ebb:cpu>", "</ebb:cpu><ebb:io><ebb:volume weight='5'/></ebb:io>",
	 "<ebb:volume> attribute name=\"\": allowed: 1 to 40 letters"},
	{"</ebb:cpu>", "</ebb:cpu><ebb:io><ebb:volume name='a/b'/></ebb:io>",
	 "<ebb:volume> attribute name=\"a/b\": allowed: 1 to 40 letters"},
	{"</ebb:cpu>", "</ebb:cpu><ebb:io><ebb:volume name='d' weight='0'/></ebb:io>",
	 "<ebb:volume name=\"d\"> attribute weight=\"0\": allowed: 1 to 10000"},
	{"</ebb:cpu>", "</ebb:cpu><ebb:io><ebb:volume name='d'/><ebb:volume name='d'/></ebb:io>",
	 "<ebb:volume name=\"d\"> is there twice"},
	{"</ebb:cpu>", "</ebb:cpu><ebb:io max-iops='9'><ebb:volume name='d' reserve-iops='10'/>"
	 "</ebb:io>", "<ebb:io>: volume d reserve-iops is 10, which is more than max-iops, 9"},
	{"class='reserved'", "class='cheap'",
	 "<ebb:cpu> attribute class=\"cheap\": allowed: reserved, spot"},
	{"priority='7'", "priority='1001'",
	 "<ebb:cpu> attribute priority=\"1001\": allowed: 0 to 1000"},
	{"priority='7'", "priority='high'", "priority=\"high\": allowed: 0 to 1000"},
	{"tier='park'", "tier='force'",
	 "<ebb:cpu> attribute tier=\"force\": allowed: any, lend, park, unplug"},
	{"tier='park'", "tier=''", "<ebb:cpu> attribute tier=\"\""},
	{"plug='ahead'", "reserve-percent='-5'",
	 "<ebb:cpu> attribute reserve-percent=\"-5\": allowed: 0 to 51200"},
	{"plug='ahead'", "max-percent='50%'",
	 "<ebb:cpu> attribute max-percent=\"50%\": allowed: 0 to 51200"},
	{"plug='ahead'", "shared='maybe'",
	 "<ebb:cpu> attribute shared=\"maybe\": allowed: no, yes"},
	{"plug='ahead'", "plug='yes'",
	 "<ebb:cpu> attribute plug=\"yes\": allowed: demand, ahead"},
	{"reserved='3'", "reserved='0'",
	 "<ebb:node id=\"0\"> attribute reserved=\"0\": allowed: 1 to 4"},
	{"reserved='3'", "reserved='5'",
	 "<ebb:node id=\"0\"> attribute reserved=\"5\": allowed: 1 to 4"},
	{"class='reserved'", "class='spot'",
	 "<ebb:node id=\"0\"> attribute reserved=\"3\": allowed: 1 to 1"},
	{"weight='250'", "weight='0'", "<ebb:cpu> attribute weight=\"0\": allowed: 1 to 10000"},
	{"weight='250'", "weight='10001'", "weight=\"10001\": allowed: 1 to 10000"},
	{"weight='250'", "weight='-1'", "weight=\"-1\""},
	{"weight='250'", "weight='1e3'", "weight=\"1e3\""},
	{"weight='250'", "weight=''", "weight=\"\""},
	{"weight='250'", "weight='99999999999999999999'", "weight=\"99999999999999999999\""},
	{"deadline-ms='1500'", "deadline-ms='9'", "deadline-ms=\"9\": allowed: 10 to 600000"},
	{"deadline-ms='1500'", "deadline-ms='600001'",
	 "deadline-ms=\"600001\": allowed: 10 to 600000"},
	{"weight='250'", "wait='1'", "<ebb:cpu> has an unknown attribute \"wait\""},
	{"weight='250'", "ebb:weight='1'", "<ebb:cpu> has an unknown attribute \"weight\""},
	{"host='1'", "hots='1'", "<ebb:node> has an unknown attribute \"hots\""},
	{"<ebb:sla xmlns", "<ebb:sla v='2' xmlns", "<ebb:sla> has an unknown attribute \"v\""},
	{"<ebb:cpu class", "<ebb:gpu/><ebb:cpu class",
	 "<ebb:sla> has an unknown element <gpu>; allowed: <ebb:cpu>, <ebb:memory>, <ebb:io>"},
	{"<ebb:cpu class", "<ebb:cpu/><ebb:cpu class", "<ebb:cpu> is there twice"},
	{"<ebb:node id='1'", "<ebb:core/><ebb:node id='1'",
	 "<ebb:cpu> has an unknown element <core>"},
	{"<ebb:node id='1'", "<node/><ebb:node id='1'", "<ebb:cpu> has an unknown element <node>"},
	{"<ebb:node id='1'", "two<ebb:node id='1'", "<ebb:cpu> contains text"},
	{"max='3'/>", "max='3'><x/></ebb:node>",
	 "<ebb:node> has an unknown element <x>; allowed: none"},
	{"<ebb:sla xmlns", "<ebb:sla xmlns:ebb='urn:ebb:sla:1'/><ebb:sla xmlns",
	 "<ebb:sla> is there twice"},
	{"<metadata>", "<metadata/><metadata>", "<metadata> is there twice"},
	{"id='1' startup='0' max='3'", "id='2' startup='0' max='3'",
	 "<ebb:node> attribute id=\"2\": allowed: 0 to 1"},
	{"id='1' startup='0' max='3'", "id='0' startup='0' max='3'",
	 "<ebb:node id=\"0\"> is there twice"},
	{"<ebb:node id='1' startup='0' max='3'/>", "",
	 "has no <ebb:node id=\"1\">; the domain has cells 0 to 1"},
	{"id='1' startup='0' max='3'", "startup='0' max='3'", "<ebb:node> has no attribute id"},
	{"id='1' startup='0' max='3'", "id='1' max='3'",
	 "<ebb:node id=\"1\"> has no attribute startup"},
	{"id='1' startup='0' max='3'", "id='1' startup='0'",
	 "<ebb:node id=\"1\"> has no attribute max"},
	{"max='4'", "max='5'", "<ebb:node id=\"0\"> attribute max=\"5\": allowed: 0 to 4"},
	{"startup='1' reserved='3' max='4'", "startup='5' max='4'",
	 "startup=\"5\": allowed: 0 to 4"},
	{"startup='1' reserved='3' max='4'", "startup='2' max='4'",
	 "<ebb:node id=\"0\"> attribute startup=\"2\": the definition enables 1 vCPUs in this "
	 "cell"},
	{"id='2' enabled='no' hotpluggable='yes'", "id='2' enabled='yes' hotpluggable='no'",
	 "attribute startup=\"1\": the definition enables 2 vCPUs"},
	{"id='2' enabled='no' hotpluggable='yes'", "id='2' enabled='yes' hotpluggable='yes'",
	 "<vcpu id=\"2\" hotpluggable=\"yes\">: a vCPU that is enabled"},
	{"host='1'", "host='2'", "<ebb:node id=\"0\"> attribute host=\"2\": allowed: 0 to 1"},
	{">8</vcpu>", ">513</vcpu>", "<vcpu> is 513: allowed: 1 to 512"},
	{">8</vcpu>", ">x</vcpu>", "<vcpu> is 0"},
	{"<vcpu placement='static' current='1'>8</vcpu>", "", "it has no <vcpu> element"},
	{"current='1'", "current='9'", "<vcpu> attribute current=\"9\": allowed: 1 to 8"},
	{"<vcpu id='7'", "<vcpu id='8'", "<vcpus><vcpu> attribute id=\"8\": allowed: 0 to 7"},
	{"cpus='4-6,7'", "cpus='4-8'", "<cell id=\"1\"> attribute cpus=\"4-8\""},
	{"cpus='4-6,7'", "cpus='7-4'", "cpus=\"7-4\""},
	{"cpus='4-6,7'", "cpus='4-6,^7'", "cpus=\"4-6,^7\""},
	{"cpus='4-6,7'", "cpus='4-6'", "vCPU 7 is in no <cell>"},
	{"<cell id='1'", "<cell id='16'", "<cell> attribute id=\"16\": allowed: 0 to 15"},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ebb_metadata m = { .num_vcpus = 77 };
		struct ebb_err err = { "" };
		char *xml = with(bad[i].old, bad[i].new);
		int rc = ebb_metadata_parse(xml, 2, false, &m, &err);

		free(xml);
		if (rc != -EINVAL)
			fail_msg("case %zu (%s) returned %d", i, bad[i].error, rc);
		if (!strstr(err.text, bad[i].error) || strncmp(err.text, "domain ", 7) != 0)
			fail_msg("case %zu: \"%s\" is not in \"%s\"", i, bad[i].error, err.text);
		if (i > 1 && !strstr(err.text, "domain web: "))
			fail_msg("case %zu does not name the domain: \"%s\"", i, err.text);
		assert_int_equal(m.num_vcpus, 77);
	}
}

/* host is the cell's id when it is not given: that must exist, too. */
static void test_default_host_node(void **state)
{
	struct ebb_metadata m;
	struct ebb_err err = { "" };
	char *xml = with("host='1'", "host='0'");

	(void)state;
	assert_int_equal(ebb_metadata_parse(xml, 1, false, &m, &err), -EINVAL);
	assert_non_null(strstr(
		err.text,
		"<ebb:node id=\"1\"> attribute host=\"\" (not given, the id): allowed: 0 to 0"));
	free(xml);
}

/* ---- memory ---- */

static const char good_mem[] =
	"<domain><name>web</name><maxMemory slots='4' unit='KiB'>8388608</maxMemory>\n"
	"<memory unit='KiB'>4194304</memory>\n"
	"<metadata><ebb:sla xmlns:ebb='urn:ebb:sla:1'>\n"
	"  <ebb:cpu><ebb:node id='0' startup='1' max='1'/>"
	"<ebb:node id='1' startup='1' max='1' host='0'/></ebb:cpu>\n"
	"  <ebb:memory weight='300' deadline-ms='500'>\n"
	"    <ebb:node id='1' min-mib='64' max-mib='1024'/>\n"
	"  </ebb:memory></ebb:sla></metadata>\n"
	"<vcpu>2</vcpu><cpu><numa><cell id='0' cpus='0' memory='524288' unit='KiB'/>"
	"<cell id='1' cpus='1' memory='262144' unit='KiB'/></numa></cpu>\n"
	"<devices>"
	"<memory model='dimm'><target><size unit='KiB'>131072</size><node>0</node></target>"
	"</memory>\n"
	"<memory model='virtio-mem'><target><size unit='KiB'>2097152</size><node>0</node>"
	"<block unit='KiB'>2048</block><requested unit='KiB'>0</requested></target></memory>\n"
	"<memory model='virtio-mem'><target><size unit='KiB'>1048576</size><node>1</node>"
	"<block unit='KiB'>2048</block><requested unit='KiB'>0</requested>"
	"<current unit='KiB'>0</current></target><alias name='ua-ebb-pool1'/></memory>\n"
	"</devices></domain>";

static char *with_mem(const char *old, const char *new)
{
	const char *at = strstr(good_mem, old);
	char *xml = malloc(sizeof(good_mem) + strlen(new));

	if (!at)
		fail_msg("\"%s\" is not in the XML", old);
	sprintf(xml, "%.*s%s%s", (int)(at - good_mem), good_mem, new, at + strlen(old));
	return xml;
}

static void test_memory(void **state)
{
	struct ebb_metadata m;
	char *xml;

	(void)state;
	assert_int_equal(ebb_metadata_parse(good_mem, 1, false, &m, NULL), 1);
	assert_int_equal(m.sla.mem_weight, 300);
	assert_int_equal(m.sla.mem_deadline_ms, 500);
	assert_int_equal(m.sla.nodes[0].mem_max, 0);
	assert_int_equal(m.sla.nodes[1].mem_min, 32);
	assert_int_equal(m.sla.nodes[1].mem_max, 512);
	assert_int_equal(m.pool_blocks[0], 0);
	assert_int_equal(m.pool_blocks[1], 512);
	assert_true(m.sla.nodes[1].has_pool && !m.sla.nodes[0].has_pool);
	/* A virtio-mem device that is no pool counts as a DIMM does. */
	assert_int_equal(m.boot_bytes[0], (512ull + 128 + 2048) << 20);
	assert_int_equal(m.boot_bytes[1], 256ull << 20);
	/* While it runs: what is plugged or requested. */
	xml = with_mem("<requested unit='KiB'>0</requested><current unit='KiB'>0<",
		       "<requested unit='KiB'>65536</requested><current unit='KiB'>131072<");
	assert_int_equal(ebb_metadata_parse(xml, 1, true, &m, NULL), 1);
	assert_int_equal(m.mem_blocks[1], 64);
	free(xml);
	assert_int_equal(m.sla.reserve_mem_mib, 0);
	xml = with_mem("<ebb:memory ", "<ebb:memory reserve-mem='480' ");
	assert_int_equal(ebb_metadata_parse(xml, 1, false, &m, NULL), 1);
	assert_int_equal(m.sla.reserve_mem_mib, 480);
	free(xml);
	/* Without the element: no pool, and the defaults. */
	assert_int_equal(ebb_metadata_parse(good, 2, false, &m, NULL), 1);
	assert_int_equal(m.sla.mem_weight, 100);
	assert_int_equal(m.sla.mem_deadline_ms, 2000);
	assert_false(ebb_sla_has_mem(&m.sla));
}

static const struct {
	const char *old, *new;
	const char *error;
} bad_mem[] = {
	{"weight='300'", "weight='0'", "<ebb:memory> attribute weight=\"0\": allowed: 1 to 10000"},
	{"weight='300'", "class='spot'", "<ebb:memory> has an unknown attribute \"class\""},
	{"deadline-ms='500'", "deadline-ms='9'", "deadline-ms=\"9\": allowed: 10 to 600000"},
	{"<ebb:memory weight", "<ebb:memory/><ebb:memory weight", "<ebb:memory> is there twice"},
	{"<ebb:node id='1' min", "<ebb:cell/><ebb:node id='1' min",
	 "<ebb:memory> has an unknown element <cell>; allowed: <ebb:node>"},
	{"<ebb:node id='1' min", "x<ebb:node id='1' min", "<ebb:memory> contains text"},
	{"id='1' min-mib='64'", "id='1' min='64'", "<ebb:node> has an unknown attribute \"min\""},
	{"id='1' min-mib='64'", "id='2' min-mib='64'",
	 "<ebb:memory><ebb:node> attribute id=\"2\": allowed: 0 to 1"},
	{"id='1' min-mib='64'", "min-mib='64'", "<ebb:memory><ebb:node> has no attribute id"},
	{"max-mib='1024'/>", "max-mib='1024'/><ebb:node id='1' max-mib='2'/>",
	 "<ebb:memory><ebb:node id=\"1\"> is there twice"},
	{"max-mib='1024'", "max-mib='1026'",
	 "<ebb:memory><ebb:node id=\"1\"> attribute max-mib=\"1026\": allowed: 0 to 1024"},
	{"max-mib='1024'", "max-mib='1023'",
	 "<ebb:memory><ebb:node id=\"1\"> attribute max-mib=\"1023\": allowed: multiples of 2"},
	{"max-mib='1024'", "", "<ebb:memory><ebb:node id=\"1\"> has no attribute max-mib"},
	{"min-mib='64' max-mib='1024'", "min-mib='64' max-mib='62'",
	 "attribute min-mib=\"64\": allowed: 0 to 62"},
	{"min-mib='64'", "min-mib='63'", "attribute min-mib=\"63\": allowed: multiples of 2"},
	{"min-mib='64'", "min-mib='-2'", "attribute min-mib=\"-2\""},
	{"<node>1</node>", "<node>0</node>",
	 "<ebb:memory><ebb:node id=\"1\">: the cell has no <memory model=\"virtio-mem\"> device"},
	{"<size unit='KiB'>2097152</size><node>0</node>",
	 "<size unit='KiB'>2097152</size><node>1</node>",
	 "<ebb:memory><ebb:node id=\"1\">: the cell has two <memory model=\"virtio-mem\"> devices"},
	{"2048</block><requested unit='KiB'>0</requested><current",
	 "4096</block><requested unit='KiB'>0</requested><current",
	 "the virtio-mem device has blocks of 4096 KiB, allowed: 2048"},
	{"<requested unit='KiB'>0</requested><current",
	 "<requested unit='KiB'>2048</requested><current",
	 "the virtio-mem device has <requested> 2048 KiB, must be 0"},
	{"<size unit='KiB'>1048576<", "<size unit='KiB'>1024<",
	 "the virtio-mem device has 1 MiB, allowed: 2 to 16777216"},
	{"<size unit='KiB'>1048576<", "<size unit='MiB'>1024<",
	 "the cell has no <memory model=\"virtio-mem\"> device"},
	{"<size unit='KiB'>131072<", "<size unit='KiB'>many<",
	 "a <memory> device has no sizes in KiB"},
	{"131072</size><node>0<", "131072</size><node>7<",
	 "a <memory> device is on node 7, the domain has cells 0 to 1"},
	{"memory='524288'", "", "<cell id=\"0\"> has no attribute memory in KiB"},
	{"memory='524288'", "memory='99999999999999999999'",
	 "<cell id=\"0\"> has no attribute memory in KiB"},
};

static void test_bad_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_mem) / sizeof(bad_mem[0]); i++) {
		struct ebb_metadata m = { .num_vcpus = 77 };
		struct ebb_err err = { "" };
		char *xml = with_mem(bad_mem[i].old, bad_mem[i].new);
		int rc = ebb_metadata_parse(xml, 1, false, &m, &err);

		free(xml);
		if (rc != -EINVAL)
			fail_msg("case %zu (%s) returned %d", i, bad_mem[i].error, rc);
		if (!strstr(err.text, bad_mem[i].error) ||
		    strncmp(err.text, "domain web: ", 12) != 0)
			fail_msg("case %zu: \"%s\" is not in \"%s\"", i, bad_mem[i].error,
				 err.text);
		assert_int_equal(m.num_vcpus, 77);
	}
}

/* What libvirt gets when the requested size changes. */
static void test_pool_xml(void **state)
{
	char *pool = NULL;

	(void)state;
	assert_int_equal(ebb_metadata_pool_xml(good_mem, 1, 64 << 20, &pool), 1);
	assert_string_equal(pool, "<memory model=\"virtio-mem\"><target><size unit=\"KiB\">1048576"
				  "</size><node>1</node><block unit=\"KiB\">2048</block>"
				  "<requested unit=\"KiB\">65536</requested><current unit=\"KiB\">0"
				  "</current></target><alias name=\"ua-ebb-pool1\"/></memory>");
	free(pool);
	assert_int_equal(ebb_metadata_pool_xml(good_mem, 1, 0, &pool), 0);
	assert_int_equal(ebb_metadata_pool_xml(good_mem, 2, 0, &pool), -ENOENT);
	assert_int_equal(ebb_metadata_pool_xml("<domain>", 1, 0, &pool), -ENOENT);
}

/* What is written means what was read; a pool of which nothing is allowed stays one. */
static void test_format_memory(void **state)
{
	struct ebb_metadata a, b;
	char *sla, *xml;

	(void)state;
	assert_int_equal(ebb_metadata_parse(good_mem, 1, false, &a, NULL), 1);
	a.sla.nodes[1].mem_min = a.sla.nodes[1].mem_max = 0;
	assert_int_equal(ebb_metadata_format(&a.sla, &sla), 0);
	xml = malloc(sizeof(good_mem) + strlen(sla) + 64);
	sprintf(xml, "<domain><name>web</name><metadata><sla xmlns='urn:ebb:sla:1'>%s</metadata>%s",
		strstr(sla, "<cpu"), strstr(good_mem, "<vcpu>"));
	assert_int_equal(ebb_metadata_parse(xml, 1, false, &b, NULL), 1);
	assert_memory_equal(&a, &b, sizeof(a));
	free(sla);
	free(xml);
}

/* Truncated anywhere, it is refused and nothing is read beyond the end. */
static void test_truncated(void **state)
{
	struct ebb_metadata m;

	(void)state;
	for (size_t len = 0; len < sizeof(good) - 1; len++) {
		char *xml = strndup(good, len);

		assert_int_equal(ebb_metadata_parse(xml, 2, false, &m, NULL), -EINVAL);
		free(xml);
	}
}

/* What is written means what was read. */
static void test_format(void **state)
{
	struct ebb_metadata a, b;
	char *sla, *xml;

	(void)state;
	assert_int_equal(ebb_metadata_parse(good, 2, false, &a, NULL), 1);
	assert_int_equal(ebb_metadata_format(&a.sla, &sla), 0);
	/* As libvirt stores it: with the namespace on the outermost element. */
	xml = malloc(sizeof(good) + strlen(sla) + 64);
	sprintf(xml, "<domain><name>web</name><metadata><sla xmlns='urn:ebb:sla:1'>%s</metadata>%s",
		strstr(sla, "<cpu"), strstr(good, "<vcpu placement"));
	assert_int_equal(ebb_metadata_parse(xml, 2, false, &b, NULL), 1);
	assert_memory_equal(&a, &b, sizeof(a));
	free(sla);
	free(xml);
}

/* Bounded random input for the fuzz target: the good XML with some bytes changed or moved. */
static void test_random(void **state)
{
	unsigned int seed = 20200815;
	char xml[sizeof(good) + sizeof(good_mem)];

	(void)state;
	for (int i = 0; i < 8000; i++) {
		const char *from_xml = i % 2 ? good : good_mem;
		size_t len = strlen(from_xml);

		memcpy(xml, from_xml, len + 1);
		for (int change = rand_r(&seed) % 4; change >= 0; change--) {
			size_t to = rand_r(&seed) % len, from = rand_r(&seed) % len;

			if (rand_r(&seed) % 2)
				xml[to] = "0123456789<>/='- "[rand_r(&seed) % 17];
			else
				memmove(xml + to, xml + from, (len - (to > from ? to : from)) % 40);
		}
		assert_int_equal(LLVMFuzzerTestOneInput((uint8_t *)xml, len), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_io),
		cmocka_unit_test(test_volumes),
		cmocka_unit_test(test_disks),
		cmocka_unit_test(test_spot),
		cmocka_unit_test(test_no_sla),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_default_host_node),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_bad_memory),
		cmocka_unit_test(test_pool_xml),
		cmocka_unit_test(test_format_memory),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("io/metadata", tests, NULL, NULL);
}
