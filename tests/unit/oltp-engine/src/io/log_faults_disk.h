/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What log_faults.h promises, from the inside: files, names, and what of them is on disk. */
#ifndef LOG_FAULTS_DISK_H
#define LOG_FAULTS_DISK_H

#include <pthread.h>

#include "log_faults.h"

#define SECTOR		512u
#define NAMES_MAX	256u
#define NAME_BYTES	64u
#define FDS_MAX		256u
#define PENDING_MAX	1024u
#define FD_FIRST	100000

/* What is in a file now, and what of it is on disk for sure. */
struct inode {
	uint8_t *now, *disk;
	uint64_t room;		/* of both; zeros behind the end */
	uint64_t size_now, size_disk;
	uint64_t written;	/* behind so many bytes nothing was ever written */
	bool *dirty;		/* by sector */
	uint64_t dirty_from, dirty_to;	/* sectors outside of it are not dirty */
	uint32_t refs;		/* names, on disk or not, descriptors and pending changes */
	bool is_locked;
};

struct name {
	char text[NAME_BYTES];
	struct inode *inode;
};

struct folder {
	struct name names[NAMES_MAX];
	uint32_t n;
};

/* A change of the folder that is not on disk yet: whatever name the file had, it has another. */
struct change {
	char to[NAME_BYTES];	/* "": none */
	struct inode *inode;
};

struct descriptor {
	struct inode *inode;	/* NULL: free */
	bool has_lock;
};

struct fault_disk {
	pthread_mutex_t lock;
	uint64_t rng;
	uint64_t calls;
	uint64_t power_at, fail_at, fail_n, short_at;
	int fail_rc;
	uint64_t room;
	bool is_dead;
	struct inode *self;	/* for the lock on the folder */
	struct folder now, disk;
	struct change changes[PENDING_MAX];
	uint32_t n_changes;
	struct descriptor fds[FDS_MAX];
};

uint64_t disk_draw(struct fault_disk *disk, uint64_t below);

struct inode *disk_inode_ref(struct inode *inode);
void disk_inode_unref(struct inode *inode);
void disk_inode_grow(struct inode *inode, uint64_t bytes);
void disk_inode_write(struct inode *inode, const void *data, uint64_t bytes, uint64_t offset);
void disk_inode_truncate(struct inode *inode);

/* all: everything is on disk; else a sector here, a sector there. */
void disk_inode_settle(struct fault_disk *disk, struct inode *inode, bool all);

/* After it was settled for a loss of power: nothing else is there any more. */
void disk_inode_forget(struct inode *inode);

struct name *disk_name_find(struct folder *folder, const char *text);
void disk_name_remove(struct folder *folder, const char *text);

/* What the name was of before is gone. */
void disk_name_set(struct folder *folder, const char *text, struct inode *inode);

/* The file's name changes in the folder as it is now; to: NULL for none. */
void disk_change_make(struct fault_disk *disk, struct inode *inode, const char *to);

/* all: every change is on disk; else one here, one there. */
void disk_changes_settle(struct fault_disk *disk, bool all);

/* Around all that a hook does. */
void disk_enter(struct fault_disk *disk);
void disk_leave(struct fault_disk *disk);

#endif
