// SPDX-License-Identifier: GPL-2.0-or-later
/* See sla.h. */
#include "model/level.h"
#include "model/sla.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *class_name(uint32_t value)
{
	return ebb_class_name((enum ebb_class)value);
}

static const char *tier_name(uint32_t value)
{
	return ebb_tier_name((uint16_t)value);
}

static const char *plug_name(uint32_t value)
{
	return value ? "ahead" : "demand";
}

static const char *yes_no(uint32_t value)
{
	return value ? "yes" : "no";
}

static const char *cold_name(uint32_t value)
{
	static const char *const names[EBB_COLD_MAX] = {
		[EBB_COLD_AUTO] = "auto", [EBB_COLD_NO] = "no", [EBB_COLD_YES] = "yes",
	};

	return value < EBB_COLD_MAX ? names[value] : "?";
}

#define FIELD(f)	.offset = offsetof(struct ebb_sla, f), \
			.size = sizeof(((struct ebb_sla *)NULL)->f)
#define CPU(key, field)	.name = key, .json = field, .attribute = key, .what = key
#define MEM(key, field)	.name = "mem." key, .json = field, .attribute = key, \
			.what = "memory " key, .part = EBB_SLA_MEM
#define IO(key, field, bit) \
			.name = "io." key, .json = field, .attribute = key, \
			.what = "I/O " key, .part = EBB_SLA_IO, .given = 1u << (bit)
#define RANGE(NAME)	.min = EBB_##NAME##_MIN, .max = EBB_##NAME##_MAX, \
			.missing = EBB_##NAME##_DEFAULT

static const struct ebb_sla_key keys[] = {
	{ CPU("class", "class"), FIELD(class), .value_name = class_name, .max = EBB_CLASS_MAX - 1,
	  .missing = EBB_CLASS_RESERVED, .is_replayed = true },
	{ CPU("priority", "priority"), FIELD(priority), .max = EBB_PRIORITY_MAX,
	  .missing = EBB_PRIORITY_DEFAULT, .is_replayed = true },
	{ CPU("tier", "tier"), FIELD(tier), .value_name = tier_name,
	  .max = VIRTIO_EBB_TIER_MAX - 1, .missing = VIRTIO_EBB_TIER_ANY, .is_replayed = true },
	{ CPU("plug", "plug"), FIELD(plug_ahead), .value_name = plug_name, .max = 1,
	  .is_replayed = true },
	{ CPU("shared", "shared"), FIELD(is_shared), .value_name = yes_no, .max = 1,
	  .is_boolean = true, .is_omitted = true },
	{ CPU("reserve-percent", "reserve_percent"), FIELD(reserve_percent), RANGE(CPU_PERCENT),
	  .is_omitted = true },
	{ CPU("max-percent", "max_percent"), FIELD(max_percent), RANGE(CPU_PERCENT),
	  .is_omitted = true },
	{ CPU("penalty", "penalty"), FIELD(penalty), RANGE(PENALTY), .is_omitted = true },
	{ CPU("weight", "weight"), FIELD(weight), RANGE(WEIGHT), .is_replayed = true },
	{ CPU("deadline-ms", "deadline_ms"), FIELD(deadline_ms), RANGE(DEADLINE_MS),
	  .is_replayed = true },
	{ MEM("weight", "mem_weight"), FIELD(mem_weight), RANGE(WEIGHT) },
	{ MEM("deadline-ms", "mem_sla_deadline_ms"), FIELD(mem_deadline_ms), RANGE(DEADLINE_MS) },
	{ CPU("reserve-mem", "reserve_mem_mib"), .part = EBB_SLA_MEM, FIELD(reserve_mem_mib),
	  RANGE(RESERVE_MEM), .is_omitted = true },
	{ IO("reserve-iops", "io_reserve_iops", 0), FIELD(io.reserve_iops), RANGE(IOPS),
	  .is_omitted = true },
	{ IO("reserve-bytes", "io_reserve_bytes", 1), FIELD(io.reserve_bytes), RANGE(IO_BYTES),
	  .is_omitted = true },
	{ IO("max-iops", "io_max_iops", 2), FIELD(io.max_iops), RANGE(IOPS), .is_omitted = true },
	{ IO("max-bytes", "io_max_bytes", 3), FIELD(io.max_bytes), RANGE(IO_BYTES),
	  .is_omitted = true },
	{ IO("weight", "io_weight", 4), FIELD(io.weight), RANGE(WEIGHT), .is_omitted = true },
	{ IO("penalty", "io_penalty", 5), FIELD(io.penalty), RANGE(PENALTY), .is_omitted = true },
	{ IO("cold", "io_cold", 6), FIELD(io.cold), .value_name = cold_name,
	  .max = EBB_COLD_MAX - 1, .missing = EBB_COLD_AUTO, .is_omitted = true },
};

#define NUM_KEYS	(sizeof(keys) / sizeof(keys[0]))

const struct ebb_sla_key *ebb_sla_key_at(size_t i)
{
	return i < NUM_KEYS ? &keys[i] : NULL;
}

const struct ebb_sla_key *ebb_sla_key_find(const char *name)
{
	for (size_t i = 0; i < NUM_KEYS; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

uint64_t ebb_sla_load(const void *at, const struct ebb_sla_key *key)
{
	uint64_t large;
	uint32_t wide;
	uint16_t half;
	uint8_t byte;

	switch (key->size) {
	case sizeof(byte):
		memcpy(&byte, at, sizeof(byte));
		return byte;
	case sizeof(half):
		memcpy(&half, at, sizeof(half));
		return half;
	case sizeof(wide):
		memcpy(&wide, at, sizeof(wide));
		return wide;
	default:
		memcpy(&large, at, sizeof(large));
		return large;
	}
}

void ebb_sla_store(void *at, const struct ebb_sla_key *key, uint64_t value)
{
	const uint32_t wide = (uint32_t)value;
	const uint16_t half = (uint16_t)value;
	const uint8_t byte = (uint8_t)value;

	switch (key->size) {
	case sizeof(byte):
		memcpy(at, &byte, sizeof(byte));
		break;
	case sizeof(half):
		memcpy(at, &half, sizeof(half));
		break;
	case sizeof(wide):
		memcpy(at, &wide, sizeof(wide));
		break;
	default:
		memcpy(at, &value, sizeof(value));
	}
}

uint64_t ebb_sla_get(const struct ebb_sla *sla, const struct ebb_sla_key *key)
{
	return ebb_sla_load((const char *)sla + key->offset, key);
}

void ebb_sla_put(struct ebb_sla *sla, const struct ebb_sla_key *key, uint64_t value)
{
	ebb_sla_store((char *)sla + key->offset, key, value);
}

/* Digits only, since no attribute is negative.  No attribute exceeds EBB_IO_BYTES_MAX. */
static int number(const char *text, uint64_t *ret)
{
	uint64_t value = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > EBB_IO_BYTES_MAX)
			return -EINVAL;
	}
	*ret = value;
	return 0;
}

int ebb_sla_value(const struct ebb_sla_key *key, const char *text, uint64_t *ret_value)
{
	uint64_t value;

	if (key->value_name) {
		for (value = key->min; value <= key->max; value++)
			if (strcmp(key->value_name((uint32_t)value), text) == 0)
				break;
	} else if (number(text, &value) < 0) {
		return -EINVAL;
	}
	if (value < key->min || value > key->max)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

void ebb_sla_allowed(const struct ebb_sla_key *key, char *ret_text)
{
	size_t len = 0;

	if (!key->value_name) {
		snprintf(ret_text, EBB_TEXT_SIZE, "%llu to %llu", (unsigned long long)key->min,
			 (unsigned long long)key->max);
		return;
	}
	for (uint64_t value = key->min; value <= key->max && len < EBB_TEXT_SIZE; value++)
		len += (size_t)snprintf(ret_text + len, EBB_TEXT_SIZE - len, "%s%s",
					value > key->min ? ", " : "",
					key->value_name((uint32_t)value));
}

const char *ebb_sla_value_text(const struct ebb_sla_key *key, uint64_t value, char *buf)
{
	if (key->value_name)
		return key->value_name((uint32_t)value);
	snprintf(buf, 16, "%llu", (unsigned long long)value);
	return buf;
}

void ebb_sla_default(struct ebb_sla *ret_sla)
{
	memset(ret_sla, 0, sizeof(*ret_sla));
	for (size_t i = 0; i < NUM_KEYS; i++)
		ebb_sla_put(ret_sla, &keys[i], keys[i].missing);
}

const struct ebb_sla_key *ebb_sla_out_of_range(const struct ebb_sla *sla, enum ebb_sla_part part)
{
	for (size_t i = 0; i < NUM_KEYS; i++) {
		const uint64_t value = ebb_sla_get(sla, &keys[i]);

		if (keys[i].part == part && (value < keys[i].min || value > keys[i].max))
			return &keys[i];
	}
	return NULL;
}

/* ---- promises of memory --------------------------------------------------- */

uint32_t ebb_sla_promised_blocks(const struct ebb_sla *sla, uint16_t g)
{
	struct ebb_level_part nodes[EBB_MAX_GUEST_NODES] = { 0 };

	if (sla->reserve_mem_mib == 0)
		return 0;
	for (uint16_t i = 0; i < sla->num_nodes; i++)
		nodes[i].high = nodes[i].weight = sla->nodes[i].mem_max - sla->nodes[i].mem_min;
	ebb_level_fill(nodes, sla->num_nodes,
		       (sla->reserve_mem_mib + EBB_BLOCK_MIB - 1) / EBB_BLOCK_MIB);
	return nodes[g].value;
}

/* ---- for the history ----------------------------------------------------- */

void ebb_sla_print(const struct ebb_sla *sla, char *ret_text)
{
	size_t len = 0;
	char buf[16];

	for (size_t i = 0; i < NUM_KEYS; i++)
		if (keys[i].is_replayed)
			len += (size_t)snprintf(ret_text + len, EBB_SLA_TEXT_SIZE - len, "%s=%s ",
						keys[i].name,
						ebb_sla_value_text(&keys[i],
								   ebb_sla_get(sla, &keys[i]),
								   buf));
	len += (size_t)snprintf(ret_text + len, EBB_SLA_TEXT_SIZE - len, "nodes=");
	for (uint16_t g = 0; g < sla->num_nodes; g++) {
		const struct ebb_sla_node *n = &sla->nodes[g];

		len += (size_t)snprintf(ret_text + len, EBB_SLA_TEXT_SIZE - len, "%s%u/%u/%u@%u",
					g ? "," : "", n->startup, n->reserved, n->max,
					n->host_node);
	}
}
