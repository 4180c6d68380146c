/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of the log, a part of struct bench_options. */
#ifndef BENCH_OPTIONS_LOG_H
#define BENCH_OPTIONS_LOG_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

struct bench_log_options {
	enum oltp_durability durability;
	const char *dir;	/* NULL: none was given */
	const char *volume;	/* NULL: none was given; without this and dir durability is off */
	bool volume_format;	/* make it first */
	bool is_forced;		/* whatever is there */
	uint32_t group_us;	/* 0: the engine's default */
	uint32_t checkpoint_mib;	/* 0: the engine's default */
	uint32_t checkpoint_mib_s;	/* 0: the engine's choice */
	bool recover;
	bool is_lazy;		/* struct oltp_recover_config */
	bool no_disk_probe;	/* the disk is not measured before the engine opens */
};

/* A child of bench_argp; its input is a struct bench_log_options. */
extern const struct argp bench_log_argp;

/* The folder or the volume; NULL: neither. */
const char *bench_log_place(const struct bench_log_options *options);

void bench_log_configure(const struct bench_log_options *options, struct oltp_config *config);

#endif
