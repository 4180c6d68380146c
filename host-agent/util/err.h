/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An error that can be shown to a person: what was wrong, where, and what would be right. Functions
 * that take a struct ebb_err fill it when they return a negative errno, and never log by
 * themselves.
 */
#ifndef EBB_UTIL_ERR_H
#define EBB_UTIL_ERR_H

struct ebb_err {
	char text[1024]; /* one line, no newline at the end; "" when there was no error */
};

/* Fill err (which may be NULL) and return rc, so that it can end a function. */
int ebb_err_set(struct ebb_err *err, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
