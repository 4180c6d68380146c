/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a recorded history goes: a file or a pipe. */
#ifndef OLTP_CHECK_RECORD_OUTPUT_H
#define OLTP_CHECK_RECORD_OUTPUT_H

#include <pthread.h>
#include <stddef.h>

struct record_output {
	pthread_mutex_t lock;
	int fd;
};

/* The first line of a history. 0 or -errno. */
int record_output_begin(int fd);

/*
 * For a struct record_sink with a struct record_output. One thread at a time, or lines would mix: a
 * pipe takes much in several pieces.
 */
int record_output_write(void *ctx, const char *text, size_t bytes);

#endif
