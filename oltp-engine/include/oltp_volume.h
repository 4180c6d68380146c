/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Volumes: a block device, or a regular file of a fixed length, in which an engine keeps its log,
 * its checkpoints and its cold records (oltp_config.volume). Nodes that share the device can read
 * what one of them wrote. One of them at a time is the owner, which writes; see oltp_config.volume.
 */
#ifndef OLTP_VOLUME_PUBLIC_H
#define OLTP_VOLUME_PUBLIC_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Makes an empty volume of all of the device or file, which must be there. is_forced: whatever it
 * holds now. Errors: -EEXIST (a volume is there), -ENOTEMPTY (its first half MiB is not zero),
 * both only if not is_forced; -ENOSPC (shorter than 8 MiB), -EFBIG (longer than 256 TiB), -EBUSY
 * (mounted, or an engine on this machine owns it), -ENOMEM, those of files.
 */
int oltp_volume_format(const char *path, bool is_forced);

struct oltp_volume_info {
	uint8_t uuid[16];	/* random, made with the volume */
	uint64_t generation;	/* how often it was opened to be written */
	uint64_t bytes;		/* in all */
	uint64_t free_bytes;
	uint32_t unit_bytes;	/* extents are multiples of it */
	uint32_t n_files, n_extents;
};

/* Bytes from offset on of the device are bytes from file_offset on of the file. */
struct oltp_volume_extent {
	const char *name;
	uint64_t file_bytes;	/* length of the file */
	uint64_t file_offset;
	uint64_t offset;
	uint64_t bytes;		/* of the extent; 0: the file has none */
};

/*
 * Reads the books of a volume, at any time, also while an engine owns it. fn is called for each
 * extent, file by file, those of a file in their order; a file without extents counts as one of
 * no bytes. fn may be NULL. Errors: -EMEDIUMTYPE (no volume), -EPROTONOSUPPORT (of another
 * version), -EUCLEAN (both copies of the books are damaged), -ENXIO (the device is shorter than the
 * volume), -ENOMEM, those of files.
 */
int oltp_volume_list(const char *path, struct oltp_volume_info *ret_info,
		     void (*fn)(void *ctx, const struct oltp_volume_extent *extent), void *ctx);

/* Text for an error of these functions, or of opening an engine with a volume. Never NULL. */
const char *oltp_volume_strerror(int rc);

#endif
