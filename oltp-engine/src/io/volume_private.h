/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What volume.c (opening, the books on disk) and volume_files.c (hooks) share.
 *
 * Locks: commit_lock, held while the books are written, before lock.
 */
#ifndef OLTP_VOLUME_PRIVATE_H
#define OLTP_VOLUME_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "volume.h"
#include "volume_table.h"

#define VOLUME_FDS_MAX	256u

/* What open(2) calls an open file description. */
struct volume_handle {
	bool is_used;
	bool is_folder, has_lock;	/* the volume itself was opened */
	bool can_write;
	struct volume_file *file;	/* NULL: of the folder */
};

struct volume {
	struct io_files io;	/* of what the volume is in */
	int fd;
	bool is_owner;
	_Atomic bool is_stale;	/* another owner was seen */
	pthread_mutex_t commit_lock;	/* the next four */
	struct volume_super super;	/* as it was written last */
	uint8_t *image;		/* of a copy; aligned */
	uint8_t *header;	/* a block to read superblocks to; aligned */
	unsigned int first;	/* the copy to write first: the other one is whole */
	pthread_mutex_t lock;	/* everything below */
	struct volume_table table;
	uint64_t durable;	/* table.version that is on disk */
	bool is_locked;		/* an engine holds the folder's lock */
	struct volume_handle handles[VOLUME_FDS_MAX];
};

/* volume.c */

enum volume_super_kind {
	VOLUME_SUPER_NONE,	/* no superblock of a volume */
	VOLUME_SUPER_DAMAGED,
	VOLUME_SUPER_FOREIGN,	/* of another version */
	VOLUME_SUPER_GOOD,
};

uint32_t volume_super_crc(const struct volume_super *super);
enum volume_super_kind volume_super_look(const struct volume_super *super);

/* Reads all of it; -EIO: there is less. */
int volume_read_at(const struct io_files *io, int fd, void *buffer, size_t bytes, uint64_t offset);

/* For this process alone. Returns a descriptor; -EBUSY: another one has it, or it is mounted. */
int volume_open_to_write(const struct io_files *io, const char *path);

/*
 * Both copies of the books have the changes up to that version of the table. Errors: -ESTALE,
 * -EUCLEAN (the books on disk are gone), those of the device.
 */
int volume_commit(struct volume *volume, uint64_t version);

#endif
