// SPDX-License-Identifier: GPL-2.0-or-later
/* See serve_fence.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fence/remote.h"
#include "fence/talk.h"
#include "fence/volumed.h"
#include "oltp-engine/bench/options.h"
#include "serve_fence.h"

#define AFTER_S_MIN	2u
#define AFTER_S_MAX	3600u
#define SECOND_NS	1000000000ull

enum option_key {
	OPT_FENCE = 0x400,
	OPT_FENCE_SECRET,
	OPT_FENCE_VOLUME,
	OPT_FENCE_NODES,
	OPT_FENCE_PEER_VOLUME,
	OPT_FENCE_AFTER,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Another node that is gone for good:", 7 },
	{ "fence", OPT_FENCE, "ADDRESS", 0,
	  "shut it out there and take its part of the database: ebb-fenced at "
	  "tcp:A.B.C.D:PORT, tcp:[IPV6]:PORT or unix:PATH; or, without --fence-secret, the "
	  "control socket of ebb-volumed at unix:PATH (it is waited for)", 7 },
	{ "fence-secret", OPT_FENCE_SECRET, "FILE", 0,
	  "the secret of ebb-fenced; its mode must be 0600", 7 },
	{ "fence-volume", OPT_FENCE_VOLUME, "NAME", 0,
	  "the shared volume, if ebb-volumed is asked itself", 7 },
	{ "fence-nodes", OPT_FENCE_NODES, "OWN,PEER", 0,
	  "the attachments of this node and of the other one", 7 },
	{ "fence-peer-volume", OPT_FENCE_PEER_VOLUME, "PATH", 0,
	  "where this node can read the other one's --volume; cold records stay there until they "
	  "are read, instead of coming over the link, also without --fence", 7 },
	{ "fence-after-s", OPT_FENCE_AFTER, "N", 0, "how long it must have been lost (10)", 7 },
	{ 0 },
};

/* False: these are not two names. */
static bool split(const char *nodes, char ret_own[FENCE_NAME_MAX + 1], const char **ret_peer)
{
	const char *comma = strchr(nodes, ',');
	size_t n = comma ? (size_t)(comma - nodes) : 0;

	if (!n || n > FENCE_NAME_MAX)
		return false;
	memcpy(ret_own, nodes, n);
	ret_own[n] = '\0';
	*ret_peer = comma + 1;
	return fence_is_name(ret_own) && fence_is_name(comma + 1) && strcmp(ret_own, comma + 1);
}

static bool has_kind(const char *address, const char *kind)
{
	return !strncmp(address, kind, strlen(kind)) && address[strlen(kind)];
}

static void check(struct argp_state *state, const struct serve_fence_options *o)
{
	char own[FENCE_NAME_MAX + 1];
	const char *peer;

	if (!o->address) {
		if (o->secret_path || o->volume || o->nodes || o->after_s != SERVE_FENCE_AFTER_S)
			argp_error(state, "options of a fence need --fence");
		return;
	}
	if (!has_kind(o->address, "unix:") && !has_kind(o->address, "tcp:"))
		argp_error(state, "--fence: '%s' begins with neither unix: nor tcp:", o->address);
	else if (!o->nodes || !o->peer_volume)
		argp_error(state, "--fence needs --fence-nodes and --fence-peer-volume");
	else if (!split(o->nodes, own, &peer))
		argp_error(state, "--fence-nodes: '%s' is not two names such as a,b", o->nodes);
	else if (!o->secret_path == !o->volume)
		argp_error(state, "--fence needs --fence-secret, of ebb-fenced, or --fence-volume, "
			   "for ebb-volumed, and not both");
	else if (o->volume && !has_kind(o->address, "unix:"))
		argp_error(state, "--fence-volume needs --fence unix:PATH");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct serve_fence_options *o = state->input;

	switch (key) {
	case OPT_FENCE:
		o->address = arg;
		break;
	case OPT_FENCE_SECRET:
		o->secret_path = arg;
		break;
	case OPT_FENCE_VOLUME:
		o->volume = arg;
		break;
	case OPT_FENCE_NODES:
		o->nodes = arg;
		break;
	case OPT_FENCE_PEER_VOLUME:
		o->peer_volume = arg;
		break;
	case OPT_FENCE_AFTER:
		o->after_s = (uint32_t)bench_parse_number(state, "fence-after-s", arg, AFTER_S_MIN,
							  AFTER_S_MAX);
		break;
	case ARGP_KEY_END:
		check(state, o);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp serve_fence_argp = { .options = options, .parser = parse };

struct serve_fence {
	char own[FENCE_NAME_MAX + 1];
	struct secret secret;
	struct oltp_config peer_config;
	struct fence_remote remote;
	struct fence_volumed volumed;
	struct relocation_fence ops;
};

int serve_fence_create(const struct serve_fence_options *o, struct serve_fence **ret_fence)
{
	struct serve_fence *f = calloc(1, sizeof(*f));
	const char *peer = "";
	int rc;

	if (!f)
		return -ENOMEM;
	split(o->nodes, f->own, &peer);
	f->peer_config = (struct oltp_config){ .node = -1,
					       .durability = OLTP_DURABILITY_COMMIT,
					       .volume = o->peer_volume,
					       .volume_read_only = true };
	f->ops.after_ns = o->after_s * SECOND_NS;
	if (o->secret_path) {
		rc = secret_file_read(o->secret_path, &f->secret);
		if (rc) {
			fprintf(stderr, "oltp-server: --fence-secret %s: %s\n", o->secret_path,
				secret_file_strerror(rc));
			free(f);
			return rc;
		}
		f->remote = (struct fence_remote){
			.address = has_kind(o->address, "tcp:") ? o->address + 4 : o->address,
			.secret = &f->secret, .own = f->own, .peer = peer,
			.peer_config = &f->peer_config };
		f->ops.ops = &fence_remote_ops;
		f->ops.ctx = &f->remote;
	} else {
		f->volumed = (struct fence_volumed){ o->address + 5, o->volume, f->own, peer,
						     &f->peer_config };
		f->ops.ops = &fence_volumed_ops;
		f->ops.ctx = &f->volumed;
	}
	*ret_fence = f;
	return 0;
}

void serve_fence_destroy(struct serve_fence *fence)
{
	free(fence);
}

const struct relocation_fence *serve_fence_ops(const struct serve_fence *fence)
{
	return &fence->ops;
}
