/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file of this machine that holds a volume and can lose power: what log_faults.h is in memory,
 * where other engines can read it. Each sector of 512 bytes that was written through the hooks
 * since the last sync may be as it was before, or not, once power was lost.
 *
 * An engine writes cold records to the device itself, around the hooks. They stay as they are: the
 * next owner of the volume looks at none of them.
 */
#ifndef POWER_FILE_H
#define POWER_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/io/io_files.h"

struct power_file;

/* Those that a volume needs; ctx: the struct power_file, whose file is the only one. */
extern const struct io_ops power_file_ops;

struct power_file *power_file_create(const char *path, uint64_t seed);
/* Accepts NULL. */
void power_file_destroy(struct power_file *file);

/*
 * Power is lost in the midst of the next call: if that writes, its data may be there. It and all
 * later ones fail. Any thread.
 */
void power_file_lose_power(struct power_file *file);

/* After that, or a crash without a loss of power; nobody may have the file open. */
void power_file_restart(struct power_file *file, bool lost_power);

/* Sectors that are again as they were before, of all losses of power. */
uint64_t power_file_taken_back(struct power_file *file);

#endif
