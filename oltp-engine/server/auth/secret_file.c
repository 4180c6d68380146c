// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/auth/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != geteuid()) || st.st_mode & 077)
		return -EPERM;
	return 0;
}

static int read_all(int fd, struct secret *secret)
{
	while (secret->n < sizeof(secret->bytes)) {
		ssize_t n = read(fd, secret->bytes + secret->n, sizeof(secret->bytes) - secret->n);

		if (n < 0)
			return -errno;
		if (!n)
			break;
		secret->n += (size_t)n;
	}
	while (secret->n > 0 && (secret->bytes[secret->n - 1] == '\n' ||
				 secret->bytes[secret->n - 1] == '\r'))
		secret->n--;
	if (secret->n < SECRET_BYTES_MIN)
		return -ENODATA;
	return secret->n > SECRET_BYTES_MAX ? -E2BIG : 0;
}

int secret_file_read(const char *path, struct secret *ret_secret)
{
	struct secret secret = { .n = 0 };
	/* A pipe would make it wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return -errno;
	rc = check(fd) ?: read_all(fd, &secret);
	close(fd);
	if (!rc)
		*ret_secret = secret;
	return rc;
}

const char *secret_file_strerror(int rc)
{
	switch (rc) {
	case -EPERM:
		return "must be a regular file of this user or root, of mode 0600";
	case -ENODATA:
		return "shorter than 16 bytes";
	case -E2BIG:
		return "longer than 512 bytes";
	default:
		return strerror(-rc);
	}
}
