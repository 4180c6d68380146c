// SPDX-License-Identifier: GPL-2.0-or-later
/* See log_faults.h: the side of the tests. */
#include <stdlib.h>
#include <string.h>

#include "log_faults_disk.h"

struct fault_disk *fault_disk_create(uint64_t seed)
{
	struct fault_disk *disk = calloc(1, sizeof(*disk));

	pthread_mutex_init(&disk->lock, NULL);
	disk->rng = seed * 0x9e3779b97f4a7c15ull + 1;
	disk->self = calloc(1, sizeof(*disk->self));
	disk_inode_ref(disk->self);
	fault_disk_calm(disk);
	return disk;
}

static void folder_clear(struct folder *folder)
{
	while (folder->n)
		disk_name_remove(folder, folder->names[0].text);
}

void fault_disk_destroy(struct fault_disk *disk)
{
	disk_changes_settle(disk, true);
	folder_clear(&disk->now);
	folder_clear(&disk->disk);
	disk_inode_unref(disk->self);
	pthread_mutex_destroy(&disk->lock);
	free(disk);
}

void fault_disk_lose_power_at(struct fault_disk *disk, uint64_t number)
{
	pthread_mutex_lock(&disk->lock);
	disk->power_at = number;
	pthread_mutex_unlock(&disk->lock);
}

void fault_disk_cut_off(struct fault_disk *disk)
{
	pthread_mutex_lock(&disk->lock);
	disk->is_dead = true;
	for (uint32_t i = 0; i < disk->now.n; i++)
		disk_inode_settle(disk, disk->now.names[i].inode, true);
	disk_changes_settle(disk, true);
	pthread_mutex_unlock(&disk->lock);
}

void fault_disk_fail_at(struct fault_disk *disk, uint64_t number, uint64_t n, int rc)
{
	disk->fail_at = number;
	disk->fail_n = n;
	disk->fail_rc = rc;
}

void fault_disk_short_at(struct fault_disk *disk, uint64_t number)
{
	disk->short_at = number;
}

void fault_disk_set_room(struct fault_disk *disk, uint64_t bytes)
{
	disk->room = bytes;
}

static void calm(struct fault_disk *disk)
{
	disk->power_at = disk->fail_at = disk->short_at = FAULT_NEVER;
	disk->fail_n = 0;
	disk->fail_rc = 0;
	disk->calls = 0;
}

void fault_disk_calm(struct fault_disk *disk)
{
	pthread_mutex_lock(&disk->lock);
	calm(disk);
	pthread_mutex_unlock(&disk->lock);
}

bool fault_disk_is_dead(struct fault_disk *disk)
{
	bool is_dead;

	disk_enter(disk);
	is_dead = disk->is_dead;
	disk_leave(disk);
	return is_dead;
}

static void lose_power(struct fault_disk *disk)
{
	for (uint32_t i = 0; i < disk->now.n; i++)
		disk_inode_settle(disk, disk->now.names[i].inode, false);
	for (uint32_t i = 0; i < disk->disk.n; i++)
		disk_inode_settle(disk, disk->disk.names[i].inode, false);
	disk_changes_settle(disk, false);
	folder_clear(&disk->now);
	for (uint32_t i = 0; i < disk->disk.n; i++) {
		struct inode *inode = disk->disk.names[i].inode;

		disk_inode_forget(inode);
		disk_name_set(&disk->now, disk->disk.names[i].text, inode);
	}
}

void fault_disk_restart(struct fault_disk *disk, bool lost_power)
{
	pthread_mutex_lock(&disk->lock);
	if (lost_power)
		lose_power(disk);
	disk->is_dead = false;
	calm(disk);
	pthread_mutex_unlock(&disk->lock);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static bool is_named(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix)) && !strchr(text, '.');
}

static struct name *nth_name(struct fault_disk *disk, const char *prefix, uint32_t nth)
{
	qsort(disk->now.names, disk->now.n, sizeof(disk->now.names[0]), by_text);
	for (uint32_t i = 0; i < disk->now.n; i++) {
		if (is_named(disk->now.names[i].text, prefix) && !nth--)
			return &disk->now.names[i];
	}
	return NULL;
}

uint32_t fault_disk_count(struct fault_disk *disk, const char *prefix)
{
	uint32_t n = 0;

	disk_enter(disk);
	while (nth_name(disk, prefix, n))
		n++;
	disk_leave(disk);
	return n;
}

void fault_disk_damage(struct fault_disk *disk, const char *prefix, uint32_t nth, uint64_t offset)
{
	struct inode *inode;

	disk_enter(disk);
	inode = nth_name(disk, prefix, nth)->inode;
	inode->now[offset] ^= 0x55;
	inode->disk[offset] ^= 0x55;
	if (offset >= inode->written)
		inode->written = offset + 1;
	disk_leave(disk);
}

void fault_disk_remove(struct fault_disk *disk, const char *prefix, uint32_t nth)
{
	struct name *name = nth_name(disk, prefix, nth);

	disk_change_make(disk, name->inode, NULL);
	disk_changes_settle(disk, true);
}

struct fault_disk *fault_disk_copy(struct fault_disk *from, uint64_t seed)
{
	struct fault_disk *disk = fault_disk_create(seed);

	pthread_mutex_lock(&from->lock);
	for (uint32_t i = 0; i < from->now.n; i++) {
		const struct name *name = &from->now.names[i];
		struct inode *inode = calloc(1, sizeof(*inode));

		disk_inode_grow(inode, name->inode->room);
		/* The rest is zeros. */
		inode->written = name->inode->written;
		memcpy(inode->now, name->inode->now, inode->written);
		memcpy(inode->disk, name->inode->now, inode->written);
		inode->size_now = inode->size_disk = name->inode->size_now;
		disk_name_set(&disk->now, name->text, inode);
		disk_name_set(&disk->disk, name->text, inode);
	}
	pthread_mutex_unlock(&from->lock);
	return disk;
}
