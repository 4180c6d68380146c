/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The volume of a run, if it has one. */
#ifndef BENCH_VOLUME_H
#define BENCH_VOLUME_H

#include "options_log.h"

/* Before the engine is opened: makes the volume if that is asked for. Says on stderr why not. */
int bench_volume_format(const struct bench_log_options *options);

/* Text for an error of opening the engine, with a volume or without. Never NULL. */
const char *bench_volume_strerror(const struct bench_log_options *options, int rc);

#endif
