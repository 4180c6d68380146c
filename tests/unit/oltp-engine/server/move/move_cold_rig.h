/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two nodes of move_rig.h, of which the source has most values on disk. */
#ifndef MOVE_COLD_RIG_H
#define MOVE_COLD_RIG_H

#include "move_rig.h"
#include "oltp-engine/src/cold/cold.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define MOVE_COLD_BITS		4u
#define MOVE_COLD_UNITS		(1u << MOVE_COLD_BITS)
#define MOVE_COLD_KEYS		9600u
#define MOVE_COLD_FIELDS	300u	/* of one hash */
#define MOVE_COLD_LIMIT		(12 * MIB)

/* Of the value of a key, or field. */
uint32_t move_cold_bytes(uint32_t key);

/*
 * " NAME VALUE" for move_client_do: the key (type k) or the field (f) of that number, and its value
 * of a version, which no other key has. Returns its length, at most MOVE_COLD_WORDS.
 */
#define MOVE_COLD_WORDS	48u
int move_cold_words(char to[MOVE_COLD_WORDS], char type, uint32_t number, uint32_t version);

/* The client finds that value. */
void move_cold_expect(struct move_client *client, char type, uint32_t number, uint32_t version);

/* Cold records in a folder, and logs on disks that fail. hook: of reads and writes; or NULL. */
void move_cold_open(struct move_rig *rig, const struct io_hook *hook);

struct move_cold_volumes {
	char paths[2][128];
	struct power_file *power[2];	/* NULL: they lose no power */
};

/*
 * All in a volume for each node, which the other one reads; peer_volume: what the target reads
 * instead of the source's; NULL: that one.
 */
void move_cold_open_volumes(struct move_rig *rig, struct move_cold_volumes *volumes,
			    const char *peer_volume);
/*
 * The same with volumes that lose power, each by dice of its own; cold_bytes_max: of the source's
 * cold records, 0: no bound.
 */
void move_cold_open_power(struct move_rig *rig, struct move_cold_volumes *volumes, uint64_t seed,
			  uint64_t cold_bytes_max);
void move_cold_remove_volumes(struct move_cold_volumes *volumes);

/* Units may go; then all are at the target. */
void move_cold_share(struct move_rig *rig);
void move_cold_finish(struct move_rig *rig);

struct move_stats move_cold_stats(struct move_rig *rig, uint32_t node);

/* All keys and fields are there, each with its value; versions: of the keys; NULL: all 0. */
void move_cold_check_versions(struct move_rig *rig, uint32_t node, const uint32_t *versions);
void move_cold_check(struct move_rig *rig, uint32_t node);

#endif
