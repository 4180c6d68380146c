// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A volume's books on disk, and its owner: see volume_format.h, V1 to V3. The books are short and
 * change seldom, when a segment of the log begins or a checkpoint ends, so that each change writes
 * all of them. Files of the volume: volume_files.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/base/clock.h"
#include "volume_private.h"

/* A reader that meets both copies torn looks again: an owner writes one after the other. */
#define READ_TRIES	20u
#define READ_PAUSE_NS	5000000ull

uint32_t volume_super_crc(const struct volume_super *super)
{
	return crc32c_without(super, sizeof(*super), offsetof(struct volume_super, crc32c));
}

enum volume_super_kind volume_super_look(const struct volume_super *super)
{
	if (memcmp(super->magic, VOLUME_MAGIC, VOLUME_MAGIC_BYTES))
		return VOLUME_SUPER_NONE;
	if (super->crc32c != volume_super_crc(super))
		return VOLUME_SUPER_DAMAGED;
	return super->version == VOLUME_VERSION ? VOLUME_SUPER_GOOD : VOLUME_SUPER_FOREIGN;
}

static bool geometry_is_good(const struct volume_super *super)
{
	const uint32_t unit = super->unit_bytes;

	return unit >= VOLUME_UNIT_BYTES_MIN && unit <= VOLUME_UNIT_BYTES_MAX &&
	       !(unit & (unit - 1)) && super->bytes >= VOLUME_BYTES_MIN &&
	       (super->bytes - VOLUME_DATA_FROM) / unit <= VOLUME_UNITS_MAX &&
	       super->n_files <= VOLUME_FILES_MAX && super->n_extents <= VOLUME_EXTENTS_MAX;
}

/* What a copy says, and whether all of it is whole. */
static enum volume_super_kind copy_look(const uint8_t *image, struct volume_super *ret_super)
{
	enum volume_super_kind kind;
	size_t bytes;

	memcpy(ret_super, image, sizeof(*ret_super));
	kind = volume_super_look(ret_super);
	if (kind != VOLUME_SUPER_GOOD)
		return kind;
	bytes = ret_super->n_files * sizeof(struct volume_entry) +
		ret_super->n_extents * sizeof(struct volume_extent);
	return geometry_is_good(ret_super) &&
	       ret_super->table_crc32c == crc32c(0, image + VOLUME_BLOCK_BYTES, bytes) ?
		       VOLUME_SUPER_GOOD : VOLUME_SUPER_DAMAGED;
}

int volume_read_at(const struct io_files *io, int fd, void *buffer, size_t bytes,
		   uint64_t offset)
{
	ssize_t n = io_pread(io, fd, buffer, bytes, offset);

	if (n < 0)
		return (int)n;
	return (size_t)n == bytes ? 0 : -EIO;
}

/*
 * Takes over what the better copy on disk says; volume->image has it. A copy that cannot be read
 * counts as damaged.
 */
static int books_read(struct volume *volume)
{
	enum volume_super_kind kinds[2];
	struct volume_super supers[2];
	unsigned int best;
	int rc[2];

	for (unsigned int i = 0; i < 2; i++) {
		rc[i] = volume_read_at(&volume->io, volume->fd, volume->image, VOLUME_COPY_BYTES,
				i * (uint64_t)VOLUME_COPY_BYTES);
		kinds[i] = rc[i] ? VOLUME_SUPER_DAMAGED : copy_look(volume->image, &supers[i]);
	}
	if (kinds[0] == VOLUME_SUPER_FOREIGN || kinds[1] == VOLUME_SUPER_FOREIGN)
		return -EPROTONOSUPPORT;
	if (kinds[0] != VOLUME_SUPER_GOOD && kinds[1] != VOLUME_SUPER_GOOD) {
		if (rc[0] || rc[1])
			return rc[0] ?: rc[1];
		return kinds[0] == VOLUME_SUPER_NONE && kinds[1] == VOLUME_SUPER_NONE ?
			       -EMEDIUMTYPE : -EUCLEAN;
	}
	best = kinds[1] == VOLUME_SUPER_GOOD &&
	       (kinds[0] != VOLUME_SUPER_GOOD || supers[1].sequence > supers[0].sequence);
	/* An owner may have begun to write it since. */
	rc[0] = volume_read_at(&volume->io, volume->fd, volume->image, VOLUME_COPY_BYTES,
			best * (uint64_t)VOLUME_COPY_BYTES);
	if (rc[0])
		return rc[0];
	if (copy_look(volume->image, &volume->super) != VOLUME_SUPER_GOOD)
		return -EUCLEAN;
	volume->first = !best;
	return 0;
}

static int books_load(struct volume *volume)
{
	uint64_t bytes;
	int rc = volume->io.ops->size(volume->io.ctx, volume->fd, &bytes);

	if (rc)
		return rc;
	if (bytes < VOLUME_BYTES_MIN)
		return -EMEDIUMTYPE;
	rc = books_read(volume);
	for (uint32_t i = 1; rc == -EUCLEAN && i < READ_TRIES; i++) {
		clock_sleep(READ_PAUSE_NS);
		rc = books_read(volume);
	}
	if (rc)
		return rc;
	if (volume->super.bytes > bytes)
		return -ENXIO;
	rc = volume_table_init(&volume->table, volume->super.bytes, volume->super.unit_bytes);
	if (!rc)
		rc = volume_table_decode(&volume->table, &volume->super, volume->image);
	volume->durable = volume->table.version;
	return rc;
}

/* V3. With commit_lock. */
static int owner_check(struct volume *volume)
{
	const struct volume_super *mine = &volume->super;
	bool has_mine = false;

	for (unsigned int i = 0; i < 2; i++) {
		struct volume_super found;
		int rc = volume_read_at(&volume->io, volume->fd, volume->header, VOLUME_BLOCK_BYTES,
				 i * (uint64_t)VOLUME_COPY_BYTES);

		if (rc)
			return rc;
		memcpy(&found, volume->header, sizeof(found));
		if (volume_super_look(&found) != VOLUME_SUPER_GOOD)
			continue;
		if (memcmp(found.uuid, mine->uuid, sizeof(mine->uuid)) ||
		    found.generation > mine->generation ||
		    (found.generation == mine->generation &&
		     memcmp(found.owner, mine->owner, sizeof(mine->owner)))) {
			atomic_store_explicit(&volume->is_stale, true, memory_order_relaxed);
			return -ESTALE;
		}
		has_mine |= found.generation == mine->generation;
	}
	return has_mine ? 0 : -EUCLEAN;
}

static int copy_write(struct volume *volume, unsigned int copy, uint32_t bytes)
{
	uint64_t offset = copy * (uint64_t)VOLUME_COPY_BYTES;
	const uint8_t *at = volume->image;
	int rc;

	pthread_mutex_lock(&volume->lock);
	volume_table_writing(&volume->table, copy);
	pthread_mutex_unlock(&volume->lock);
	rc = io_write_all(&volume->io, volume->fd, at, bytes, offset);
	if (!rc)
		rc = volume->io.ops->fdatasync(volume->io.ctx, volume->fd);
	if (rc)
		return rc;
	pthread_mutex_lock(&volume->lock);
	volume_table_written(&volume->table, copy);
	pthread_mutex_unlock(&volume->lock);
	return 0;
}

/* V1. With commit_lock. */
static int books_write(struct volume *volume)
{
	struct volume_super super = volume->super;
	unsigned int second;
	uint64_t version;
	uint32_t bytes;
	int rc;

	super.sequence++;
	pthread_mutex_lock(&volume->lock);
	bytes = volume_table_encode(&volume->table, &super, volume->image);
	version = volume->table.version;
	pthread_mutex_unlock(&volume->lock);
	super.crc32c = volume_super_crc(&super);
	memset(volume->image, 0, VOLUME_BLOCK_BYTES);
	memcpy(volume->image, &super, sizeof(super));
	/* Of a copy that may be torn now the sequence is not used again. */
	volume->super = super;
	rc = copy_write(volume, volume->first, bytes);
	if (rc)
		return rc;
	second = volume->first = !volume->first;
	rc = copy_write(volume, second, bytes);
	if (rc)
		return rc;
	pthread_mutex_lock(&volume->lock);
	volume->durable = version;
	pthread_mutex_unlock(&volume->lock);
	return 0;
}

int volume_check_owner(struct volume *volume)
{
	int rc;

	pthread_mutex_lock(&volume->commit_lock);
	rc = owner_check(volume);
	pthread_mutex_unlock(&volume->commit_lock);
	return rc;
}

int volume_commit(struct volume *volume, uint64_t version)
{
	bool is_durable;
	int rc = 0;

	pthread_mutex_lock(&volume->commit_lock);
	pthread_mutex_lock(&volume->lock);
	is_durable = volume->durable >= version;
	pthread_mutex_unlock(&volume->lock);
	if (!is_durable)
		rc = owner_check(volume) ?: books_write(volume);
	pthread_mutex_unlock(&volume->commit_lock);
	return rc;
}

/* V3. What a dead owner wrote may not have reached the disk: synced before it is relied upon. */
static int become_owner(struct volume *volume)
{
	int rc;

	volume->super.generation++;
	if (getrandom(volume->super.owner, sizeof(volume->super.owner), 0) !=
	    sizeof(volume->super.owner))
		return -EIO;
	rc = volume->io.ops->fdatasync(volume->io.ctx, volume->fd);
	if (rc)
		return rc;
	pthread_mutex_lock(&volume->commit_lock);
	rc = books_write(volume) ?: owner_check(volume);
	pthread_mutex_unlock(&volume->commit_lock);
	return rc;
}

static struct volume *volume_alloc(const struct io_files *io, bool is_owner)
{
	struct volume *volume = calloc(1, sizeof(*volume));

	if (!volume)
		return NULL;
	volume->io = *io;
	volume->fd = -1;
	volume->is_owner = is_owner;
	volume->image = aligned_alloc(VOLUME_BLOCK_BYTES, VOLUME_COPY_BYTES);
	volume->header = aligned_alloc(VOLUME_BLOCK_BYTES, VOLUME_BLOCK_BYTES);
	pthread_mutex_init(&volume->commit_lock, NULL);
	pthread_mutex_init(&volume->lock, NULL);
	return volume;
}

static void volume_free(struct volume *volume)
{
	if (volume->fd >= 0)
		volume->io.ops->close(volume->io.ctx, volume->fd);
	volume_table_finish(&volume->table);
	pthread_mutex_destroy(&volume->commit_lock);
	pthread_mutex_destroy(&volume->lock);
	free(volume->image);
	free(volume->header);
	free(volume);
}

/*
 * O_EXCL: a block device that is mounted, or a part of another one, is refused with -EBUSY; of a
 * regular file it says nothing.
 */
int volume_open_to_write(const struct io_files *io, const char *path)
{
	int fd = io_open_direct(io, path, O_RDWR | O_EXCL | O_CLOEXEC, 0), rc;

	if (fd < 0)
		return fd;
	rc = io->ops->lock(io->ctx, fd);
	if (!rc)
		return fd;
	io->ops->close(io->ctx, fd);
	return rc;
}

/* A loss of power is not to take back what a reader has seen of an owner that is gone. */
static int flush_before_reading(struct volume *volume)
{
	int rc = volume->io.ops->fdatasync(volume->io.ctx, volume->fd);

	/* What cannot be synced is no disk: the books will say so. */
	return rc == -EINVAL ? 0 : rc;
}

int volume_open(const struct io_files *io, const char *path, bool is_owner,
		struct volume **ret_volume)
{
	struct volume *volume = volume_alloc(io, is_owner);
	int rc = 0;

	if (!volume)
		return -ENOMEM;
	if (!volume->image || !volume->header)
		rc = -ENOMEM;
	if (!rc)
		volume->fd = is_owner ? volume_open_to_write(io, path) :
					io_open_direct(io, path, O_RDONLY | O_CLOEXEC, 0);
	if (!rc && volume->fd < 0)
		rc = volume->fd;
	if (!rc && !is_owner)
		rc = flush_before_reading(volume);
	if (!rc)
		rc = books_load(volume);
	if (!rc && is_owner)
		rc = become_owner(volume);
	if (rc) {
		volume_free(volume);
		return rc;
	}
	*ret_volume = volume;
	return 0;
}

void volume_close(struct volume *volume)
{
	if (!volume)
		return;
	if (volume->is_owner)
		volume_commit(volume, volume->table.version);
	volume_free(volume);
}

void volume_info_read(struct volume *volume, struct oltp_volume_info *ret_info)
{
	pthread_mutex_lock(&volume->commit_lock);
	*ret_info = (struct oltp_volume_info){
		.generation = volume->super.generation,
		.bytes = volume->super.bytes,
		.unit_bytes = volume->super.unit_bytes,
	};
	memcpy(ret_info->uuid, volume->super.uuid, sizeof(ret_info->uuid));
	pthread_mutex_unlock(&volume->commit_lock);
	pthread_mutex_lock(&volume->lock);
	ret_info->free_bytes = volume_table_free_bytes(&volume->table);
	for (const struct volume_file *file = volume->table.files; file; file = file->next) {
		ret_info->n_files += file->name[0] != 0;
		ret_info->n_extents += file->name[0] ? file->n_extents : 0;
	}
	pthread_mutex_unlock(&volume->lock);
}

static void file_extents(struct volume *volume, const struct volume_file *file,
			 void (*fn)(void *ctx, const struct oltp_volume_extent *extent), void *ctx)
{
	struct oltp_volume_extent extent = { .name = file->name, .file_bytes = file->bytes };

	if (!file->n_extents)
		fn(ctx, &extent);
	for (uint32_t i = 0; i < file->n_extents; i++) {
		uint64_t left;

		extent.bytes = (uint64_t)file->extents[i].n * volume->table.unit_bytes;
		extent.offset = volume_table_place(&volume->table, file, extent.file_offset, &left);
		fn(ctx, &extent);
		extent.file_offset += extent.bytes;
	}
}

void volume_extents(struct volume *volume,
		    void (*fn)(void *ctx, const struct oltp_volume_extent *extent), void *ctx)
{
	pthread_mutex_lock(&volume->lock);
	for (const struct volume_file *file = volume->table.files; file; file = file->next) {
		if (file->name[0])
			file_extents(volume, file, fn, ctx);
	}
	pthread_mutex_unlock(&volume->lock);
}
