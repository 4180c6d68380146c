/* SPDX-License-Identifier: GPL-2.0-or-later */
/* secret_file.h - the secret that two programs have in common, in a file of its owner's only. */
#ifndef OLTP_AUTH_SECRET_FILE_H
#define OLTP_AUTH_SECRET_FILE_H

#include <stddef.h>
#include <stdint.h>

#define SECRET_BYTES_MIN	16u
#define SECRET_BYTES_MAX	512u

struct secret {
	uint8_t bytes[SECRET_BYTES_MAX + 3];
	size_t n;		/* 0: there is none */
};

/*
 * All bytes of the file but line ends behind the last one. Errors: -EPERM (not a regular file of
 * this user or root, or others than its owner may read or write it), -ENODATA (fewer than
 * SECRET_BYTES_MIN bytes), -E2BIG (more than the maximum), those of open and read.
 */
int secret_file_read(const char *path, struct secret *ret_secret);

/* Text for an error of secret_file_read. */
const char *secret_file_strerror(int rc);

#endif
