/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a request counts, and how long it takes of a rate: the arithmetic of promises of I/O. */
#ifndef EBB_VOLUMED_RATE_H
#define EBB_VOLUMED_RATE_H

#include <stdint.h>

#define EBB_RATE_NSEC		1000000000ull	/* in a second */
#define EBB_RATE_UNIT		65536u		/* bytes that count as one request */
#define EBB_RATE_MAX_REQUEST	(1ull << 31)	/* bytes */
#define EBB_RATE_MAX_IOPS	1000000000ull	/* units per second */
#define EBB_RATE_MAX_BYTES	1000000000000ull	/* per second */

/*
 * A request counts as one for each EBB_RATE_UNIT bytes that it begins.  One that moves no data (a
 * flush, a discard) has 0 bytes, and counts as one.
 */
static inline uint64_t ebb_rate_units(uint64_t bytes)
{
	return bytes ? (bytes + EBB_RATE_UNIT - 1) / EBB_RATE_UNIT : 1;
}

/*
 * Nanoseconds that a request takes of a rate in units per second and one in bytes per second (0: no
 * such rate), of both the longer.  The bounds above keep the products within 64 bits.
 *
 * A request that moves no data takes the time of EBB_RATE_UNIT bytes, also of a rate in bytes.
 * Otherwise a volume with only such a rate would get any number of flushes for nothing.
 */
static inline uint64_t ebb_rate_step(uint64_t iops, uint64_t bytes_per_sec, uint64_t bytes)
{
	const uint64_t by_iops = iops ? ebb_rate_units(bytes) * EBB_RATE_NSEC / iops : 0;
	const uint64_t charged = bytes ? bytes : EBB_RATE_UNIT;
	const uint64_t by_bytes = bytes_per_sec ? charged * EBB_RATE_NSEC / bytes_per_sec : 0;

	return by_iops > by_bytes ? by_iops : by_bytes;
}

#endif
