/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small files (cgroups, /proc) and folders. */
#ifndef EBB_UTIL_FS_H
#define EBB_UTIL_FS_H

#include <stddef.h>
#include <sys/types.h>

/* Write text in one write(2), as kernel interfaces want it.  -EIO when only a part was taken. */
int ebb_fs_write(const char *path, const char *text);

/* Read at most size - 1 bytes and end them with NUL; -EFBIG when there is more.  */
int ebb_fs_read(const char *path, char *buf, size_t size, size_t *ret_len);

/* Read a whole file into fresh memory (the caller frees); -EFBIG beyond max bytes. */
int ebb_fs_read_all(const char *path, size_t max, char **ret_text);

/*
 * Replaces a file by one with this text, so that after a crash of the host either the old or the
 * new one is there.  PATH.new is used meanwhile.  -errno: the old file is there, or a crash may
 * bring it back.
 */
int ebb_fs_replace(const char *path, const char *text, mode_t mode);

/* Create path and what is missing above it. */
int ebb_fs_mkdirs(const char *path, mode_t mode);

/* Call fn with the path of every folder directly in path; stops at an error of fn. */
int ebb_fs_for_each_folder(const char *path, int (*fn)(void *ctx, const char *path), void *ctx);

/*
 * Before anything else is opened: opens /dev/null for standard input, output and error where they
 * are closed.  A socket or file would get their numbers otherwise, and with them what is printed.
 * Printing there fails.
 */
void ebb_fs_fill_std(void);

#endif
