/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A volume: the files of one engine as extents of one block device or regular file, so that another
 * machine that reaches the device can read them. See volume_format.h for what is on disk, and
 * oltp_volume.h for what programs may do to one.
 *
 * volume_ops do to these files what the hooks of io_files.h do to files of a folder. Of a path the
 * part behind the last '/' counts; a folder to be opened (O_DIRECTORY), synced or listed is the
 * volume, whatever its path. Differences:
 *
 *	- Names, lengths and extents change in memory, and all at once on disk: when a folder is
 *	  synced, and when a file is that has grown. A process that dies takes back what it changed
 *	  since; a file system keeps that if power is not lost.
 *	- Bytes that were never written are not zero.
 *	- -ESTALE: another owner has opened the volume. Nothing can be written from then on.
 *	- -EROFS: the volume was opened to be read.
 *
 * A device may still carry out what a former owner asked it to write. So before a volume changes
 * hands while its owner may live, the device must refuse that owner's writes.
 */
#ifndef OLTP_VOLUME_H
#define OLTP_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "io_files.h"
#include "oltp_volume.h"

struct volume;

extern const struct io_ops volume_ops;

/*
 * Opens the volume that is in the file at path of io (its class counts for the books), as its owner
 * or to be read. An owner writes a new generation before anything else; the one before it meets
 * -ESTALE. A reader sees the files as they were when it opened the volume, and their bytes as they
 * are. Errors: those of oltp_volume_list; owner: -EBUSY (another process of this machine owns it).
 */
int volume_open(const struct io_files *io, const char *path, bool is_owner,
		struct volume **ret_volume);

/* Writes the books, if it can; no file may be open. Accepts NULL. */
void volume_close(struct volume *volume);

/* As oltp_volume_format, in a file of io. */
int volume_format(const struct io_files *io, const char *path, bool is_forced);

/*
 * Reads the books on the device: do they still name this owner? Any thread. Errors: -ESTALE
 * (another owner has opened the volume), -EUCLEAN (the books are gone), those of the device.
 */
int volume_check_owner(struct volume *volume);

void volume_info_read(struct volume *volume, struct oltp_volume_info *ret_info);

/* Calls fn for each extent, file by file; fn must not call hooks. */
void volume_extents(struct volume *volume,
		    void (*fn)(void *ctx, const struct oltp_volume_extent *extent), void *ctx);

/*
 * The descriptor of the device, for requests that do not go through the hooks, and where a byte of
 * an open file (fd: of volume_ops.open) is on it; extents of VOLUME_UNIT_BYTES_MIN that begin at a
 * multiple of it lie there in one piece. Error: -ENXIO, the file has no such byte.
 */
int volume_device_fd(const struct volume *volume);
int volume_device_offset(struct volume *volume, int fd, uint64_t offset, uint64_t *ret_offset);

#endif
