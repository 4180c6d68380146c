/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a program with a time limit and takes what it prints. */
#ifndef EBB_PLACED_CHILD_H
#define EBB_PLACED_CHILD_H

#include "util/err.h"

/*
 * Waits for the program, which is found by PATH; standard input is empty.  Returns its exit status,
 * 0 to 255, and sets *ret_output (the caller frees) to what it printed on standard output; with a
 * status but 0 err has what it printed on standard error.  -errno: it could not be run; -ETIMEDOUT:
 * it was killed after limit_ms; -EFBIG: it printed more than 64 MiB.
 */
int placed_child_run(const char *const *argv, unsigned limit_ms, char **ret_output,
		     struct ebb_err *err);

#endif
