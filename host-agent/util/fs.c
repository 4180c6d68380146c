/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small files and folders. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "util/fs.h"

int ebb_fs_write(const char *path, const char *text)
{
	size_t len = strlen(text);
	ssize_t n;
	int fd, rc = 0;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		rc = -errno;
	else if ((size_t)n != len)
		rc = -EIO;
	close(fd);
	return rc;
}

static int read_fd(int fd, char *buf, size_t size, size_t *ret_len)
{
	size_t len = 0;

	for (;;) {
		ssize_t n = read(fd, buf + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += n;
		if (len == size)
			return -EFBIG;
	}
	buf[len] = '\0';
	*ret_len = len;
	return 0;
}

int ebb_fs_read(const char *path, char *buf, size_t size, size_t *ret_len)
{
	size_t len = 0;
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = read_fd(fd, buf, size, &len);
	close(fd);
	if (rc == 0 && ret_len)
		*ret_len = len;
	return rc;
}

int ebb_fs_read_all(const char *path, size_t max, char **ret_text)
{
	size_t size = 4096;
	char *buf = NULL;
	int rc;

	/* Files in /proc have no size to ask for, and reading must start anew to be consistent. */
	do {
		free(buf);
		buf = malloc(size);
		if (!buf)
			return -ENOMEM;
		rc = ebb_fs_read(path, buf, size, NULL);
		size *= 4;
	} while (rc == -EFBIG && size <= max * 4);
	if (rc < 0) {
		free(buf);
		return rc;
	}
	*ret_text = buf;
	return 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		const ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			len -= n;
		}
	}
	return 0;
}

static int write_synced(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode), rc;

	if (fd < 0)
		return -errno;
	rc = write_all(fd, text, strlen(text));
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* A name in a folder is on disk when the folder is. */
static int sync_folder_of(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int fd, rc = 0;

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path + 1), path);
	else
		strcpy(folder, ".");
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int ebb_fs_replace(const char *path, const char *text, mode_t mode)
{
	char fresh[PATH_MAX];
	int rc;

	if ((size_t)snprintf(fresh, sizeof(fresh), "%s.new", path) >= sizeof(fresh))
		return -ENAMETOOLONG;
	rc = write_synced(fresh, text, mode);
	if (rc == 0 && rename(fresh, path) < 0)
		rc = -errno;
	if (rc < 0) {
		/* On a full disk it would take the room that the next try needs. */
		unlink(fresh);
		return rc;
	}
	return sync_folder_of(path);
}

int ebb_fs_mkdirs(const char *path, mode_t mode)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, len + 1);
	for (char *p = part + 1; ; p++) {
		bool end = *p == '\0';

		if (*p != '/' && !end)
			continue;
		*p = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return -errno;
		if (end)
			return 0;
		*p = '/';
	}
}

int ebb_fs_for_each_folder(const char *path, int (*fn)(void *ctx, const char *path), void *ctx)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int rc = 0;

	if (!dir)
		return -errno;
	while (rc == 0 && (e = readdir(dir))) {
		char child[PATH_MAX];
		struct stat st;

		if (e->d_name[0] == '.' || (size_t)snprintf(child, sizeof(child), "%s/%s", path,
							    e->d_name) >= sizeof(child))
			continue;
		if (stat(child, &st) == 0 && S_ISDIR(st.st_mode))
			rc = fn(ctx, child);
	}
	closedir(dir);
	return rc;
}

void ebb_fs_fill_std(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}
