/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: whatever XML a domain has, its SLA is either refused with a text or keeps all
 * rules.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/metadata.h"

#define REQUIRE(cond)	do { if (!(cond)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ebb_metadata *m, uint16_t num_host_nodes)
{
	const struct ebb_sla *s = &m->sla;

	REQUIRE(s->class < EBB_CLASS_MAX);
	REQUIRE(s->priority <= EBB_PRIORITY_MAX && s->tier < VIRTIO_EBB_TIER_MAX);
	REQUIRE(s->weight >= EBB_WEIGHT_MIN && s->weight <= EBB_WEIGHT_MAX);
	REQUIRE(s->deadline_ms >= EBB_DEADLINE_MS_MIN && s->deadline_ms <= EBB_DEADLINE_MS_MAX);
	REQUIRE(s->mem_weight >= EBB_WEIGHT_MIN && s->mem_weight <= EBB_WEIGHT_MAX);
	REQUIRE(s->mem_deadline_ms >= EBB_DEADLINE_MS_MIN &&
		s->mem_deadline_ms <= EBB_DEADLINE_MS_MAX);
	REQUIRE(s->num_nodes >= 1 && s->num_nodes <= EBB_MAX_GUEST_NODES);
	REQUIRE(m->num_vcpus >= 1 && m->num_vcpus <= EBB_MAX_VCPUS);
	for (uint16_t i = 0; i < m->num_vcpus; i++)
		REQUIRE(m->vcpus[i].node < s->num_nodes);
	for (uint16_t g = 0; g < s->num_nodes; g++) {
		uint16_t all = 0, startup = 0;

		for (uint16_t i = 0; i < m->num_vcpus; i++) {
			all += m->vcpus[i].node == g;
			startup += m->vcpus[i].node == g && m->vcpus[i].is_startup;
		}
		REQUIRE(s->nodes[g].startup == startup && s->nodes[g].max <= all);
		REQUIRE(s->nodes[g].startup <= s->nodes[g].reserved);
		REQUIRE(s->nodes[g].reserved <= s->nodes[g].max);
		REQUIRE(s->class != EBB_CLASS_SPOT ||
			s->nodes[g].reserved == s->nodes[g].startup);
		REQUIRE(s->nodes[g].host_node < num_host_nodes);
		REQUIRE(s->nodes[g].mem_min <= s->nodes[g].mem_max);
		REQUIRE(s->nodes[g].mem_max <= m->pool_blocks[g]);
		REQUIRE(m->mem_blocks[g] <= m->pool_blocks[g]);
		REQUIRE(m->pool_blocks[g] <= EBB_MAX_POOL_MIB / EBB_BLOCK_MIB);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ebb_metadata m;
	struct ebb_err err = { "" };
	uint16_t nodes;
	char *xml;
	char *pool;
	int rc;

	if (size < 1)
		return 0;
	nodes = data[0] % EBB_MAX_NODES + 1;
	xml = strndup((const char *)data + 1, size - 1);
	REQUIRE(xml);
	rc = ebb_metadata_pool_xml(xml, data[0] % 2, 64 << 20, &pool);
	REQUIRE(rc == 0 || rc == 1 || rc == -ENOENT);
	if (rc == 1)
		free(pool);
	rc = ebb_metadata_parse(xml, nodes, data[0] & 0x80, &m, &err);
	free(xml);
	REQUIRE(rc == 0 || rc == 1 || (rc == -EINVAL && err.text[0]));
	if (rc == 1)
		check(&m, nodes);
	return 0;
}
