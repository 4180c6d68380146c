/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disk in memory for the engine's log: it can lose power, fail, and write short.
 *
 * What was written is on disk once it was synced. Before that each sector of 512 bytes by itself
 * may be on disk or not when power is lost, and so each name that was made, changed or removed
 * since the folder was synced, in whatever order: a file that was renamed later may have its new
 * name, and one that was renamed before still the old one. A file's length is as its data.
 */
#ifndef LOG_FAULTS_H
#define LOG_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/io/io_files.h"

#define FAULT_NEVER	UINT64_MAX

struct fault_disk;

extern const struct io_ops fault_disk_ops;

struct fault_disk *fault_disk_create(uint64_t seed);
void fault_disk_destroy(struct fault_disk *disk);

/*
 * Power is lost in the midst of that call of a hook: it and all later ones fail. The first one is
 * number 0; close and lock are not counted. Also while threads use the disk: if that many were
 * made already, the next one.
 */
void fault_disk_lose_power_at(struct fault_disk *disk, uint64_t call);

/* Nothing more can be written, and what was is on disk. Also while threads use the disk. */
void fault_disk_cut_off(struct fault_disk *disk);

/* From that call on, n of them fail with rc. */
void fault_disk_fail_at(struct fault_disk *disk, uint64_t call, uint64_t n, int rc);

/* That call, if it writes, writes only a part, and says so. */
void fault_disk_short_at(struct fault_disk *disk, uint64_t call);

/* Bytes that fit, more is ENOSPC; 0: no bound. */
void fault_disk_set_room(struct fault_disk *disk, uint64_t bytes);

/*
 * After the loss of power, or a crash without one: all that was written is there then, but what was
 * not synced may still go when power is lost later.
 */
void fault_disk_restart(struct fault_disk *disk, bool lost_power);

/* Goes back to none of the above and counts from 0. */
void fault_disk_calm(struct fault_disk *disk);

/* Has power been lost? */
bool fault_disk_is_dead(struct fault_disk *disk);

/* Files whose names begin so, without those that have a suffix. */
uint32_t fault_disk_count(struct fault_disk *disk, const char *prefix);

/* Flips bits of the file with that number among those, in order. */
void fault_disk_damage(struct fault_disk *disk, const char *prefix, uint32_t nth, uint64_t offset);

/* Removes it. */
void fault_disk_remove(struct fault_disk *disk, const char *prefix, uint32_t nth);

/* Not 0: the calling thread is in a hook, where allocations must not fail. */
extern _Thread_local uint32_t fault_disk_inside;

/* A copy of all that is there, as if it had been synced. Also while threads use the disk. */
struct fault_disk *fault_disk_copy(struct fault_disk *disk, uint64_t seed);

#endif
