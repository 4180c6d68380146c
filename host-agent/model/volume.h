/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words for I/O: disks of VMs that are volumes of the volume server (ebb-volumed), and what is
 * promised to them.
 */
#ifndef EBB_MODEL_VOLUME_H
#define EBB_MODEL_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#define EBB_MAX_VOLUMES		8	/* of a VM on the volume server */
#define EBB_VOLUME_NAME_SIZE	41	/* bytes of its name with the NUL: as ebb-volumed's */

/* Of volumes, per second; 0: no promise, no maximum.  The ranges are those of ebb-volumed. */
#define EBB_IOPS_MIN		0u
#define EBB_IOPS_MAX		10000000u
#define EBB_IOPS_DEFAULT	0u
#define EBB_IO_BYTES_MIN	0u
#define EBB_IO_BYTES_MAX	1000000000000u
#define EBB_IO_BYTES_DEFAULT	0u

/* Whether a volume holds the records that a database has moved from memory to disk. */
enum ebb_cold {
	EBB_COLD_AUTO,			/* it does if it can only be this one: core/io/cold.h */
	EBB_COLD_NO,
	EBB_COLD_YES,
	EBB_COLD_MAX,
};

/* The tenant of the host's own work, as the volume server calls it, too. */
#define EBB_SYSTEM_NAME		"system"

/*
 * What a volume is promised by the volume server, and the most that it gets.  Requests and bytes
 * are per second, 0: none; a request counts as one for each 64 KiB that it begins ("SQLVM",
 * section 3.1).
 */
struct ebb_sla_io {
	uint64_t reserve_bytes, max_bytes; /* EBB_IO_BYTES_MIN to _MAX */
	uint32_t reserve_iops, max_iops; /* EBB_IOPS_MIN to _MAX */
	uint32_t weight;		/* for spare capacity; EBB_WEIGHT_MIN to _MAX */
	uint32_t penalty;		/* of a request that is promised and not issued in time;
					 * EBB_PENALTY_MIN to _MAX */
	uint8_t cold;			/* enum ebb_cold; the volume server is not told of it */
};

/* What the SLA says of one volume; see model/sla-io.h. */
struct ebb_sla_volume {
	char name[EBB_VOLUME_NAME_SIZE]; /* letters, digits, ".", "_", "-"; rest of the bytes 0 */
	uint8_t given;			/* bit i: the value of the i-th I/O attribute is its own;
					 * all others are those of ebb_sla.io */
	struct ebb_sla_io io;
};

/* The volumes of the volume server that are disks of a VM. */
struct ebb_vm_volumes {
	uint16_t num;			/* 0 to EBB_MAX_VOLUMES */
	uint16_t num_more;		/* beyond EBB_MAX_VOLUMES: not looked after */
	char names[EBB_MAX_VOLUMES][EBB_VOLUME_NAME_SIZE]; /* each once; rest of the bytes 0 */
};

/* What the volume server can do, and what it has promised to all volumes and to the system. */
struct ebb_volume_server {
	uint64_t capacity_iops, capacity_bytes; /* per second; 0: not known */
	uint64_t promised_iops, promised_bytes; /* per second */
	bool allow_overbooking;
};

/*
 * Counters of the volume server's meter (docs/volume-protocol.md, "meters"), which only grow while
 * the server runs.  In units of the promise, but overdue, which is in units of I/O.
 */
struct ebb_volume_counters {
	uint64_t intervals, violated_intervals;	/* that ended; in which something was violated */
	uint64_t charged, early;	/* issued while a unit was due; and while none was */
	uint64_t missed;		/* due while requests waited, and not issued */
	uint64_t violated;		/* missed less early, by interval: sum of the next three */
	uint64_t others_early;		/* to others, beyond their promises */
	uint64_t others_promised;	/* to others, within their promises */
	uint64_t slow;			/* to nobody: the disk was slower than it can be */
	uint64_t overdue;		/* deadlines in an interval, not issued by its end */
};

/* How long after their deadlines requests were issued that were due, since the server started. */
struct ebb_volume_delay {
	uint64_t mean_nsec, p50_nsec, p99_nsec, max_nsec;
};

struct ebb_volume_reading {
	char name[EBB_VOLUME_NAME_SIZE];
	char taker[EBB_VOLUME_NAME_SIZE]; /* volume that got most of what was missing in the last
					   * interval; "": none did */
	struct ebb_volume_counters count;
	struct ebb_volume_delay delay;
};

#endif /* EBB_MODEL_VOLUME_H */
