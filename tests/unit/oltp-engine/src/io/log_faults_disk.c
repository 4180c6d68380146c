// SPDX-License-Identifier: GPL-2.0-or-later
/* See log_faults_disk.h. */
#include <stdlib.h>
#include <string.h>

#include "log_faults_disk.h"

uint64_t disk_draw(struct fault_disk *disk, uint64_t below)
{
	disk->rng ^= disk->rng << 13;
	disk->rng ^= disk->rng >> 7;
	disk->rng ^= disk->rng << 17;
	return disk->rng % below;
}

struct inode *disk_inode_ref(struct inode *inode)
{
	inode->refs++;
	return inode;
}

void disk_inode_unref(struct inode *inode)
{
	if (!inode || --inode->refs)
		return;
	free(inode->now);
	free(inode->disk);
	free(inode->dirty);
	free(inode);
}

/* Pages that are never written take no memory. */
static void *grow(void *old, uint64_t bytes, uint64_t room)
{
	void *new = calloc(1, room);

	if (bytes)
		memcpy(new, old, bytes);
	free(old);
	return new;
}

void disk_inode_grow(struct inode *inode, uint64_t bytes)
{
	uint64_t room = inode->room ? inode->room : 64 << 10;

	while (room < bytes)
		room *= 2;
	if (room == inode->room)
		return;
	inode->now = grow(inode->now, inode->room, room);
	inode->disk = grow(inode->disk, inode->room, room);
	inode->dirty = grow(inode->dirty, inode->room / SECTOR * sizeof(bool),
			    room / SECTOR * sizeof(bool));
	inode->room = room;
}

static void set_dirty(struct inode *inode, uint64_t from, uint64_t to)
{
	if (from == to)
		return;
	memset(inode->dirty + from, true, to - from);
	if (inode->dirty_from == inode->dirty_to)
		inode->dirty_from = from;
	if (inode->dirty_from > from)
		inode->dirty_from = from;
	if (inode->dirty_to < to)
		inode->dirty_to = to;
}

void disk_inode_write(struct inode *inode, const void *data, uint64_t bytes, uint64_t offset)
{
	disk_inode_grow(inode, offset + bytes);
	memcpy(inode->now + offset, data, bytes);
	if (offset + bytes > inode->written)
		inode->written = offset + bytes;
	if (bytes)
		set_dirty(inode, offset / SECTOR, (offset + bytes - 1) / SECTOR + 1);
	if (offset + bytes > inode->size_now)
		inode->size_now = offset + bytes;
}

void disk_inode_truncate(struct inode *inode)
{
	set_dirty(inode, 0, (inode->size_now + SECTOR - 1) / SECTOR);
	if (inode->size_now)
		memset(inode->now, 0, inode->size_now);
	inode->size_now = 0;
}

void disk_inode_settle(struct fault_disk *disk, struct inode *inode, bool all)
{
	uint64_t size = inode->size_now > inode->size_disk ? inode->size_now : inode->size_disk;

	if (all || disk_draw(disk, 2))
		inode->size_disk = inode->size_now;
	for (uint64_t s = inode->dirty_from; s < inode->dirty_to && s * SECTOR < size; s++) {
		if (!inode->dirty[s])
			continue;
		inode->dirty[s] = false;
		if (all || (s * SECTOR < inode->size_disk && disk_draw(disk, 2)))
			memcpy(inode->disk + s * SECTOR, inode->now + s * SECTOR, SECTOR);
	}
	if (all)
		inode->dirty_from = inode->dirty_to = 0;
}

void disk_inode_forget(struct inode *inode)
{
	uint64_t from = inode->dirty_from * SECTOR, to = inode->dirty_to * SECTOR;

	memcpy(inode->now + from, inode->disk + from, to - from);
	inode->dirty_from = inode->dirty_to = 0;
	inode->size_now = inode->size_disk;
	if (inode->size_now < inode->room)
		memset(inode->now + inode->size_now, 0, inode->room - inode->size_now);
}

struct name *disk_name_find(struct folder *folder, const char *text)
{
	for (uint32_t i = 0; i < folder->n; i++) {
		if (!strcmp(folder->names[i].text, text))
			return &folder->names[i];
	}
	return NULL;
}

void disk_name_remove(struct folder *folder, const char *text)
{
	struct name *name = disk_name_find(folder, text);

	if (!name)
		return;
	disk_inode_unref(name->inode);
	*name = folder->names[--folder->n];
}

void disk_name_set(struct folder *folder, const char *text, struct inode *inode)
{
	struct name *name;

	disk_inode_ref(inode);
	disk_name_remove(folder, text);
	if (folder->n == NAMES_MAX)
		abort();
	name = &folder->names[folder->n++];
	strcpy(name->text, text);
	name->inode = inode;
}

static struct name *name_of(struct folder *folder, const struct inode *inode)
{
	for (uint32_t i = 0; i < folder->n; i++) {
		if (folder->names[i].inode == inode)
			return &folder->names[i];
	}
	return NULL;
}

/* The change holds on to the file. */
static void change_apply(struct folder *folder, const struct change *change)
{
	struct name *name = name_of(folder, change->inode);

	if (name)
		disk_name_remove(folder, name->text);
	if (change->to[0])
		disk_name_set(folder, change->to, change->inode);
}

void disk_change_make(struct fault_disk *disk, struct inode *inode, const char *to)
{
	struct change *change;

	if (disk->n_changes == PENDING_MAX)
		abort();
	change = &disk->changes[disk->n_changes++];
	*change = (struct change){ .inode = disk_inode_ref(inode) };
	if (to)
		strcpy(change->to, to);
	change_apply(&disk->now, change);
}

void disk_changes_settle(struct fault_disk *disk, bool all)
{
	for (uint32_t i = 0; i < disk->n_changes; i++) {
		if (all || disk_draw(disk, 2))
			change_apply(&disk->disk, &disk->changes[i]);
		disk_inode_unref(disk->changes[i].inode);
	}
	disk->n_changes = 0;
}

_Thread_local uint32_t fault_disk_inside;

void disk_enter(struct fault_disk *disk)
{
	fault_disk_inside++;
	pthread_mutex_lock(&disk->lock);
}

void disk_leave(struct fault_disk *disk)
{
	pthread_mutex_unlock(&disk->lock);
	fault_disk_inside--;
}
