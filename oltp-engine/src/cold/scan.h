/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef OLTP_SCAN_H
#define OLTP_SCAN_H

#include <stdint.h>

#include "oltp.h"

/*
 * As oltp_table_scan. pause (NULL: none) is called again and again in between, with no record
 * locked and no epoch announced: for what takes long. Non-zero ends the walk, as with fn.
 */
int table_scan(struct oltp_table *table,
	       int (*fn)(void *ctx, uint64_t key, const void *record), int (*pause)(void *ctx),
	       void *ctx);

#endif
