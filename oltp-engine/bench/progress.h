/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One line on a terminal that says how far something is that takes long. It comes after two
 * seconds, is written anew twice a second, and is gone when the thing is done.
 */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "workload.h"

struct progress;

/*
 * what: "loading". of: read now and then by another thread until progress_stop; NULL: only the time
 * is told. out NULL: nothing is written. Without memory or threads there is no line, and NULL.
 */
struct progress *progress_start(FILE *out, const char *what, const struct bench_progress *of);

/* Takes the line away. Accepts NULL. */
void progress_stop(struct progress *progress);

/* Standard error, if it is a terminal that can erase a line and is_quiet is false; else NULL. */
FILE *progress_terminal(bool is_quiet);

/* Puts text, without newline, in the place of the line; "": takes it away. out may be NULL. */
void progress_put(FILE *out, const char *text);

/* The line as such, at most bytes with the 0. of may be NULL. */
void progress_format(char *ret_text, size_t bytes, const char *what,
		     const struct bench_progress *of, double seconds);

#endif
