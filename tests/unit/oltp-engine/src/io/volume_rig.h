/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Volumes on a disk of log_faults.h, which holds one file, the device. */
#ifndef VOLUME_RIG_H
#define VOLUME_RIG_H

#include "log_faults.h"
#include "oltp-engine/src/io/volume.h"

#define VOLUME_DEVICE	"/disk/volume"

/* An empty volume on the shortest device that can be one, full of old bytes: to be copied. */
extern struct fault_disk *volume_empty;

/* Make and drop it: for cmocka_run_group_tests. */
int volume_rig_setup(void **state);
int volume_rig_teardown(void **state);

/* A device of that length, full of zeros or of what a disk was used for before. */
struct fault_disk *volume_rig_disk(uint64_t bytes, uint64_t seed, bool is_zero);

/* The disk's files; whatever is read or written there must be whole blocks. */
struct io_files volume_rig_files(struct fault_disk *disk);

int volume_rig_open(struct fault_disk *disk, bool is_owner, struct volume **ret_volume);

/* As open(2) of a file of the volume. */
int volume_rig_file(struct volume *volume, const char *name, int flags);

/* The file has that text, on disk; and it must have that text. */
void volume_rig_put(struct volume *volume, const char *name, const char *text);
void volume_rig_check(struct volume *volume, const char *name, const char *text);

#endif
