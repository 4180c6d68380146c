/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The link protocol of virtio_ebb_link.h as the agent speaks it: an incremental, strict parser of
 * what a device sends, and an encoder of what the agent sends.  No I/O, no clock.  QEMU may be
 * hostile: whatever arrives ends in a message that keeps every rule of the header, or in -EPROTO.
 */
#ifndef EBB_IO_LINKPROTO_H
#define EBB_IO_LINKPROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/real/virtio_ebb_link.h"
#include "model/types.h"
#include "util/err.h"

struct ebb_linkproto_msg {
	uint16_t type;			/* LINK_HELLO, REQUEST, TELEMETRY, MEM or ACCOUNT */
	uint8_t uuid[16];		/* HELLO: the VM's, as its QEMU says */
	bool is_vom;			/* TELEMETRY: vom, not telemetry */
	union {
		/*
		 * is_first is left for the caller.  num_nodes, max_cpus and num_cpus are in range,
		 * cpus is sorted by vCPU and pools by node, both name none twice, and are valid
		 * until the next parser call.
		 */
		struct ebb_fact_hello hello;
		struct ebb_fact_request request; /* in range for the VM of the last HELLO */
		struct ebb_telemetry telemetry;
		/* By node and value, in range; buckets are valid until the next parser call. */
		struct ebb_fact_vom vom;
		struct ebb_account account;	/* writer is not 0, no counter above 2^62 */
		struct ebb_fact_mem mem;	/* the pools of the last HELLO, as there */
	} u;
};

struct ebb_linkproto_parser {
	uint8_t *frame;			/* header and what arrived of the payload */
	size_t have, need, size;	/* bytes in frame, bytes wanted next, bytes allocated */
	bool failed;			/* the stream is lost: nothing more is parsed */
	bool has_hello;
	uint16_t num_nodes;		/* of the last HELLO */
	uint32_t max_cpus;		/* of the last HELLO */
	struct ebb_hello_cpu cpus[EBB_MAX_VCPUS]; /* of the last HELLO */
	uint16_t num_pools;		/* of the last HELLO */
	struct ebb_pool_fact pools[EBB_MAX_GUEST_NODES]; /* of the last HELLO or MEM */
};

void ebb_linkproto_parser_init(struct ebb_linkproto_parser *p);
void ebb_linkproto_parser_finish(struct ebb_linkproto_parser *p);

/*
 * Take bytes until one message is complete or there are no more.  Returns 1 with a message, 0 when
 * all bytes were taken and more are needed, -EPROTO with err saying what was wrong (the connection
 * must be closed; later calls return -EPROTO, too), -ENOMEM.  *ret_used is how many bytes were
 * taken.
 */
int ebb_linkproto_parse(struct ebb_linkproto_parser *p, const void *data, size_t len,
			size_t *ret_used, struct ebb_linkproto_msg *ret_msg, struct ebb_err *err);

/* True when the stream may end here: no frame is half read. */
bool ebb_linkproto_is_idle(const struct ebb_linkproto_parser *p);

/*
 * Encoders: each writes one frame to buf (8-byte aligned, EBB_LINKPROTO_MAX_OUT bytes) and returns
 * its length.  Counts in the actions are in range: they are the agent's own.
 */
#define EBB_LINKPROTO_MAX_OUT \
	(sizeof(struct virtio_ebb_link_hdr) + sizeof(struct virtio_ebb_link_response) + \
	 VIRTIO_EBB_MAX_REQ_CPUS * sizeof(struct virtio_ebb_link_cpu))

size_t ebb_linkproto_welcome(void *buf, const struct ebb_action_welcome *action);
size_t ebb_linkproto_response(void *buf, const struct ebb_action_response *action);
size_t ebb_linkproto_limits(void *buf, const struct ebb_action_limits *action);
size_t ebb_linkproto_cpu_flags(void *buf, const struct ebb_action_cpu_flags *action);
size_t ebb_linkproto_account(void *buf, const struct ebb_account *action);
size_t ebb_linkproto_revoke(void *buf, const struct ebb_action_pool *action);

#endif
