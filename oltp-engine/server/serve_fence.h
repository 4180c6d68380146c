/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whom a node that relocates asks to fence its peer, and where it reads what the peer has on disk:
 * options, and what move/ needs of them (docs/relocation.md, "Fencing").
 */
#ifndef OLTP_SERVE_FENCE_H
#define OLTP_SERVE_FENCE_H

#include <argp.h>
#include <stdint.h>

#include "relocation.h"

struct serve_fence_options {
	/* unix:PATH, tcp:A.B.C.D:PORT or tcp:[IPV6]:PORT; NULL: a lost peer is waited for. */
	const char *address;
	const char *secret_path;	/* of ebb-fenced; NULL: address is the one of ebb-volumed */
	const char *volume;		/* at ebb-volumed; NULL: ebb-fenced knows it */
	const char *nodes;		/* "OWN,PEER": names of attachments */
	const char *peer_volume;	/* device or file; may be set without an address */
	uint32_t after_s;
};

#define SERVE_FENCE_AFTER_S	10u

/* Its input is a struct serve_fence_options; it refuses those that do not fit together. */
extern const struct argp serve_fence_argp;

struct serve_fence;

/* Says on stderr what is wrong with the secret. Errors: -ENOMEM, those of secret_file_read. */
int serve_fence_create(const struct serve_fence_options *options, struct serve_fence **ret_fence);

/* Accepts NULL. */
void serve_fence_destroy(struct serve_fence *fence);

/* For relocation_create; stays until serve_fence_destroy. */
const struct relocation_fence *serve_fence_ops(const struct serve_fence *fence);

#endif
