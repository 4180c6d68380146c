/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the disk below a folder can do, measured right before a run: the bound of the log. */
#ifndef BENCH_DISK_PROBE_H
#define BENCH_DISK_PROBE_H

#include <stdbool.h>

struct disk_probe {
	bool is_direct;		/* around the page cache; if not, figures are of memory and disk */
	double write_mb_per_s;	/* 128 MiB one after the other, 1 MiB at a time; 10^6 bytes */
	double sync_p50_us, sync_p99_us;	/* of 200 writes of 4 KiB, each synced */
};

/*
 * Writes to a nameless file in dir: some tenths of a second, and tens of seconds on a busy machine.
 * Errors: those of files, -ENOMEM.
 */
int disk_probe_run(const char *dir, struct disk_probe *ret_probe);

#endif
