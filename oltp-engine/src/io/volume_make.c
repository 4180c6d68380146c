// SPDX-License-Identifier: GPL-2.0-or-later
/* Making a volume, and what programs may do to one: see oltp_volume.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "oltp-engine/src/base/checksum.h"
#include "volume_private.h"

/* The least unit with which the volume has no more than VOLUME_UNITS_MAX. */
static uint32_t unit_choose(uint64_t bytes)
{
	uint32_t unit = VOLUME_UNIT_BYTES_MIN;

	while (unit < VOLUME_UNIT_BYTES_MAX && bytes / unit > VOLUME_UNITS_MAX)
		unit *= 2;
	return unit;
}

/* image: as much as both copies. 0: it may be written over. */
static int look_for_something(const struct io_files *io, int fd, uint8_t *image)
{
	int rc = volume_read_at(io, fd, image, VOLUME_DATA_FROM, 0);

	for (unsigned int i = 0; !rc && i < 2; i++) {
		struct volume_super super;

		memcpy(&super, image + i * (size_t)VOLUME_COPY_BYTES, sizeof(super));
		if (volume_super_look(&super) != VOLUME_SUPER_NONE)
			rc = -EEXIST;
	}
	for (size_t i = 0; !rc && i < VOLUME_DATA_FROM; i++) {
		if (image[i])
			rc = -ENOTEMPTY;
	}
	return rc;
}

/*
 * First there is no volume any more, then there is a new one: no crash lets an older copy of the
 * books come back. image: as above.
 */
static int format(const struct io_files *io, int fd, uint64_t bytes, uint8_t *image)
{
	struct volume_super super = {
		.version = VOLUME_VERSION,
		.sequence = 1,
		.bytes = bytes,
		.unit_bytes = unit_choose(bytes),
		.table_crc32c = crc32c(0, NULL, 0),
	};
	int rc;

	memcpy(super.magic, VOLUME_MAGIC, VOLUME_MAGIC_BYTES);
	if (getrandom(super.uuid, sizeof(super.uuid), 0) != sizeof(super.uuid))
		return -EIO;
	super.crc32c = volume_super_crc(&super);
	memset(image, 0, VOLUME_DATA_FROM);
	rc = io_write_all(io, fd, image, VOLUME_DATA_FROM, 0) ?:
	     io->ops->fdatasync(io->ctx, fd);
	if (rc)
		return rc;
	memcpy(image, &super, sizeof(super));
	return io_write_all(io, fd, image, VOLUME_BLOCK_BYTES, 0) ?:
	       io_write_all(io, fd, image, VOLUME_BLOCK_BYTES, VOLUME_COPY_BYTES) ?:
	       io->ops->fdatasync(io->ctx, fd);
}

int volume_format(const struct io_files *io, const char *path, bool is_forced)
{
	uint8_t *image = aligned_alloc(VOLUME_BLOCK_BYTES, VOLUME_DATA_FROM);
	uint64_t bytes;
	int rc, fd;

	if (!image)
		return -ENOMEM;
	fd = volume_open_to_write(io, path);
	if (fd < 0) {
		free(image);
		return fd;
	}
	rc = io->ops->size(io->ctx, fd, &bytes);
	if (!rc && bytes < VOLUME_BYTES_MIN)
		rc = -ENOSPC;
	if (!rc && (bytes - VOLUME_DATA_FROM) / unit_choose(bytes) > VOLUME_UNITS_MAX)
		rc = -EFBIG;
	if (!rc && !is_forced)
		rc = look_for_something(io, fd, image);
	if (!rc)
		rc = format(io, fd, bytes, image);
	io->ops->close(io->ctx, fd);
	free(image);
	return rc;
}

int oltp_volume_format(const char *path, bool is_forced)
{
	struct io_files io = io_files_real(IO_LOG, NULL);

	return volume_format(&io, path, is_forced);
}

int oltp_volume_list(const char *path, struct oltp_volume_info *ret_info,
		     void (*fn)(void *ctx, const struct oltp_volume_extent *extent), void *ctx)
{
	struct io_files io = io_files_real(IO_LOG, NULL);
	struct volume *volume;
	int rc = volume_open(&io, path, false, &volume);

	if (rc)
		return rc;
	volume_info_read(volume, ret_info);
	if (fn)
		volume_extents(volume, fn, ctx);
	volume_close(volume);
	return 0;
}

const char *oltp_volume_strerror(int rc)
{
	switch (-rc) {
	case EMEDIUMTYPE:
		return "it holds no volume";
	case EPROTONOSUPPORT:
		return "it holds a volume of another version";
	case EUCLEAN:
		return "both copies of the volume's books are damaged";
	case ENXIO:
		return "it is shorter than the volume that it held";
	case ENOSPC:
		return "no space left, or shorter than 8 MiB";
	case EFBIG:
		return "it is longer than a volume can be";
	case EBUSY:
		return "it is mounted, or another process of this machine owns it";
	case ESTALE:
		return "another node owns the volume now";
	case EEXIST:
		return "it holds a volume already";
	case ENOTEMPTY:
		return "it does not begin with zeros, so it may hold something else";
	}
	return strerror(-rc);
}
