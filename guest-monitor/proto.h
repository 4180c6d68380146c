/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between applications (libebb) and ebb-monitord.  Private to the two.
 *
 * A SOCK_SEQPACKET unix socket; one message per packet; native byte order, as
 * both ends run in the same guest.  Conversation:
 *
 *   application -> monitor   HELLO      first, once: name and counters so far
 *                            OWNED      CPUs and memory that the application owns,
 *                                       whether it is adding CPUs, and whether it answers
 *                                       with VOM; after WELCOME and whenever that changed
 *                            ACK        SHARES up to seq have been looked at
 *                            REPORT     statistics
 *                            STATS_GET  asks for the statistics of an application
 *                            VOM        what its memory is worth, for a number that the
 *                                       host asks for.  Both sides see the number in the
 *                                       device's limits; the monitor may be the later one.
 *   monitor -> application   WELCOME    answer to HELLO; error != 0: refused, and the monitor
 *                                       closes
 *                            SHARES     level: the newest replaces all older ones.  At most
 *                                       EBB_MSG_WINDOW are sent beyond the last ACK.  Of those
 *                                       that say ALONE only the first of several is sent.
 *                            STATS      answer to STATS_GET, same id
 *
 * Every message has exactly the size of its structure, VOM that of its buckets.
 * Anything else, unknown types, reserved fields that are not zero, and messages out of turn end the
 * connection.  Applications are not trusted: what one says changes only how CPUs
 * and memory are divided among the applications of the same guest.
 *
 * The header keeps its layout in all versions, so that a monitor can tell an
 * application of another version why it is refused: WELCOME with EPROTO.
 */
#ifndef EBB_PROTO_H
#define EBB_PROTO_H

#include <stddef.h>
#include <stdint.h>
#include <linux/ebb_ioctl.h>

#define EBB_MSG_MAGIC		0x4d424245u	/* "EBBM" */
#define EBB_MSG_VERSION		6

#define EBB_MSG_HELLO		1
#define EBB_MSG_OWNED		2
#define EBB_MSG_ACK		3
#define EBB_MSG_REPORT		4
#define EBB_MSG_STATS_GET	5
#define EBB_MSG_VOM		6
#define EBB_MSG_WELCOME		128
#define EBB_MSG_SHARES		129
#define EBB_MSG_STATS		130

#define EBB_MSG_NAME_BYTES	32		/* with at least one NUL; the rest is 0 */
#define EBB_MSG_WINDOW		4

/*
 * Amounts of memory are multiples of EBB_MSG_MEM_STEP, the smallest block, up to EBB_MSG_MEM_MAX.
 */
#define EBB_MSG_MEM_STEP	(2ull << 20)
#define EBB_MSG_MEM_MAX		(1ull << 52)

/* An application that has not said HELLO, or a monitor not WELCOME, by then is not there. */
#define EBB_MSG_HELLO_TIMEOUT_MS	1000

struct ebb_msg_hdr {
	uint32_t magic;			/* EBB_MSG_MAGIC */
	uint16_t version;		/* EBB_MSG_VERSION of the sender */
	uint16_t type;			/* EBB_MSG_* */
	uint32_t size;			/* of the message with this header */
	uint32_t id;			/* STATS_GET: of the application's choice, echoed; else 0 */
};

struct ebb_msg_counters {
	uint64_t committed;
	uint64_t aborted;
	uint64_t failed;
	uint64_t accesses;
	uint64_t baseline_ios;		/* as in struct virtio_ebb_telemetry */
	uint64_t actual_ios;
};

struct ebb_msg_hello {
	struct ebb_msg_hdr hdr;
	char name[EBB_MSG_NAME_BYTES];
	struct ebb_msg_counters counters; /* as last reported to an earlier monitor; 0 if never */
};

struct ebb_msg_owned_node {
	uint32_t node;
	uint32_t cpus;			/* owned by the application; not forced, leaving or lent */
	uint64_t mem_bytes;		/* in its leases */
};

/* ebb_msg_owned.flags */
#define EBB_MSG_OWNED_ADDING	(1u << 0)	/* waits for the host to add CPUs */
#define EBB_MSG_OWNED_VALUES	(1u << 1)	/* says what memory is worth, when asked */

struct ebb_msg_owned {
	struct ebb_msg_hdr hdr;
	uint32_t num_nodes;		/* entries in nodes[]; the rest is 0 */
	uint32_t flags;			/* EBB_MSG_OWNED_* */
	struct ebb_msg_owned_node nodes[EBB_MAX_NODES]; /* ascending by node, each below that */
};

struct ebb_msg_ack {
	struct ebb_msg_hdr hdr;
	uint64_t seq;			/* of a SHARES that was sent */
};

struct ebb_msg_report {
	struct ebb_msg_hdr hdr;
	struct ebb_msg_counters counters;
	uint32_t p50_us;
	uint32_t p95_us;
	uint32_t p99_us;
	uint32_t workers;
	uint32_t interval_ms;
	uint32_t baseline_mib;		/* of the simulated cache; 0: there is none */
};

struct ebb_msg_stats_get {
	struct ebb_msg_hdr hdr;
	char name[EBB_MSG_NAME_BYTES];	/* all 0: of the sender */
};

struct ebb_msg_vom {
	struct ebb_msg_hdr hdr;
	uint32_t seq;			/* ebb_limits.vom_seq that this answers; not 0 */
	uint32_t num_buckets;		/* in buckets[]; the message ends with the last one */
	/* Nodes ascend, each below EBB_MAX_NODES; in each, values rise; at least 1 KiB each. */
	struct ebb_vom_bucket buckets[EBB_VOM_MAX_BUCKETS];
};

struct ebb_msg_welcome {
	struct ebb_msg_hdr hdr;
	uint32_t error;			/* 0, EEXIST, EPROTO, EINVAL (name) or EUSERS (too many) */
	uint32_t reserved;
};

/*
 * offered and demanded are relative to owned, the number that the application
 * last told, so that an application that has meanwhile added or removed some can
 * tell what is left of them.  Owned, offered and
 * demanded memory are whole steps.
 */
struct ebb_msg_share {
	uint32_t node;
	uint32_t held;			/* of the VM */
	uint32_t limit;			/* of the VM */
	uint32_t owned;
	uint32_t offered;
	uint32_t demanded;
	uint32_t tier;			/* VIRTIO_EBB_TIER_*, of the VM */
	uint32_t reserved;
	uint64_t deadline_ns;		/* CLOCK_MONOTONIC; 0: no demand */
	uint64_t mem_held_bytes;	/* of the VM */
	uint64_t mem_limit_bytes;	/* of the VM */
	uint64_t mem_owned_bytes;
	uint64_t mem_offered_bytes;
	uint64_t mem_demanded_bytes;
	uint64_t mem_deadline_ns;	/* CLOCK_MONOTONIC; 0: no demand */
};

/*
 * ebb_msg_shares.flags.  Nobody to divide with: all that the device offers and demands is this
 * application's, which reads it there sooner than it would hear it from the monitor.
 */
#define EBB_MSG_SHARES_ALONE	(1u << 0)

struct ebb_msg_shares {
	struct ebb_msg_hdr hdr;
	uint64_t seq;			/* from 1, one more each time */
	uint32_t num_nodes;
	uint32_t flags;			/* EBB_MSG_SHARES_* */
	uint32_t mem_promise_mib;	/* its part of ebb_limits.mem_promise_mib */
	uint32_t reserved;
	struct ebb_msg_share nodes[EBB_MAX_NODES];
};

struct ebb_msg_stats {
	struct ebb_msg_hdr hdr;
	uint32_t error;			/* 0 or ENOENT; then the rest is 0 */
	uint32_t reserved;
	struct ebb_msg_counters counters;
	uint32_t p50_us;
	uint32_t p95_us;
	uint32_t p99_us;
	uint32_t workers;
	uint32_t interval_ms;
	uint32_t cpu_permille;
	uint32_t cpus_online;
	uint32_t reserved2;
	double committed_ps;
	double aborted_ps;
	double accesses_ps;
	uint64_t mem_total_bytes;
	uint64_t mem_available_bytes;
};

VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_hdr, 16);
VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_hello, 96);
VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_owned, 280);
VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_ack, 24);
VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_report, 88);
VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_stats_get, 48);
VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_vom, 8216);
VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_welcome, 24);
VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_shares, 1448);
VIRTIO_EBB_ASSERT_SIZE(struct ebb_msg_stats, 144);

union ebb_msg {
	struct ebb_msg_hdr hdr;
	struct ebb_msg_hello hello;
	struct ebb_msg_owned owned;
	struct ebb_msg_ack ack;
	struct ebb_msg_report report;
	struct ebb_msg_stats_get stats_get;
	struct ebb_msg_vom vom;
	struct ebb_msg_welcome welcome;
	struct ebb_msg_shares shares;
	struct ebb_msg_stats stats;
};

/* Zeroes a message of that type and fills its header in; returns its size (the most, of VOM). */
size_t ebb_msg_init(union ebb_msg *msg, uint16_t type, uint32_t id);

/* Size of a VOM of so many buckets. */
size_t ebb_msg_vom_bytes(uint32_t num_buckets);

/*
 * Is that a whole, well-formed message of this version?  Checks all that can be
 * checked without knowing the conversation.
 *   -EPROTO   another version; magic and header are right
 *   -EBADMSG  anything else; ret_what says what, for a log line
 */
int ebb_msg_check(const union ebb_msg *msg, size_t bytes, const char **ret_what);

/* 1 to 31 bytes of [A-Za-z0-9._-]? */
int ebb_msg_name_is_valid(const char *name);

#endif /* EBB_PROTO_H */
