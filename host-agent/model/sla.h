/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of those attributes of an SLA that have one value for the whole VM.  Metadata, `ebbctl
 * set`, views, history and replay, defaults and range checks use it, so that a new attribute is a
 * field of struct ebb_sla and a row of the table.
 */
#ifndef EBB_MODEL_SLA_H
#define EBB_MODEL_SLA_H

#include <stddef.h>

#include "model/types.h"

/* The element of the metadata that has the attribute. */
enum ebb_sla_part {
	EBB_SLA_CPU,			/* <ebb:cpu> */
	EBB_SLA_MEM,			/* <ebb:memory> */
	EBB_SLA_IO,			/* <ebb:io>; also of each <ebb:volume> (model/sla-io.h) */
	EBB_SLA_PARTS,
};

struct ebb_sla_key {
	const char *name;		/* in "set" and messages: "weight", "mem.weight" */
	const char *json;		/* field of views and of the answer to "set" */
	const char *attribute;		/* in the metadata */
	const char *what;		/* in messages about a whole SLA: "memory weight" */
	enum ebb_sla_part part;
	uint8_t given;			/* EBB_SLA_IO: its bit in ebb_sla_volume.given */
	bool is_replayed;		/* part of ebb_sla_print() */
	bool is_boolean;		/* 0 or 1: "no" or "yes"; true or false in JSON */
	/* Not written into the metadata if its value is `missing`: older agents do not know it. */
	bool is_omitted;
	/* A choice: the names of the values 0, 1, ...; NULL: a number. */
	const char *(*value_name)(uint32_t value);
	uint64_t min, max, missing;	/* missing: the value where an SLA does not give one */
	uint16_t offset, size;		/* of the field in struct ebb_sla */
};

/* By index, NULL beyond the last; by name, NULL for an unknown one. */
const struct ebb_sla_key *ebb_sla_key_at(size_t i);
const struct ebb_sla_key *ebb_sla_key_find(const char *name);

uint64_t ebb_sla_get(const struct ebb_sla *sla, const struct ebb_sla_key *key);
/* value: key->min to key->max. */
void ebb_sla_put(struct ebb_sla *sla, const struct ebb_sla_key *key, uint64_t value);

/* From text.  -EINVAL: no number, no such name, or out of range. */
int ebb_sla_value(const struct ebb_sla_key *key, const char *text, uint64_t *ret_value);
/* The allowed values: "10 to 600000" or "any, lend, park, unplug"; EBB_TEXT_SIZE bytes. */
void ebb_sla_allowed(const struct ebb_sla_key *key, char *ret_text);
/* The value as text, in buf (16 bytes) if it is a number. */
const char *ebb_sla_value_text(const struct ebb_sla_key *key, uint64_t value, char *buf);

/* Sets all attributes of the table to their `missing` values, and everything else to 0. */
void ebb_sla_default(struct ebb_sla *ret_sla);

/*
 * Guest node g's part of reserve-mem, in blocks: in proportion to what each node may have beyond
 * its minimum.  Of a valid SLA they are reserve-mem together, rounded up to a block.
 */
uint32_t ebb_sla_promised_blocks(const struct ebb_sla *sla, uint16_t g);

/* The first attribute of the part that is out of range, or NULL. */
const struct ebb_sla_key *ebb_sla_out_of_range(const struct ebb_sla *sla, enum ebb_sla_part part);

/* ---- for model/sla-io.c: the value at an offset, as wide as key->size ------- */

uint64_t ebb_sla_load(const void *at, const struct ebb_sla_key *key);
void ebb_sla_store(void *at, const struct ebb_sla_key *key, uint64_t value);

#endif /* EBB_MODEL_SLA_H */
