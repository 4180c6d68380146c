// SPDX-License-Identifier: GPL-2.0-or-later
/* Options of the network front: see serve_kv.h. */
#include <string.h>

#include "serve_kv.h"

#define KEYS_MAX	(1ull << 32)
#define SECONDS_MAX	31536000u

const struct serve_options serve_options_default = {
	.net = { .clients_max = 10000, .request_bytes_max = 1u << 20,
		 .output_bytes_max = 16u << 20 },
	.fence = { .after_s = SERVE_FENCE_AFTER_S },
};

enum option_key {
	OPT_LISTEN = 'l',
	OPT_UNIX = 'u',
	OPT_MAX_CLIENTS = 0x300,
	OPT_MAX_REQUEST,
	OPT_MAX_OUTPUT,
	OPT_IDLE,
	OPT_PASSWORD,
	OPT_KEYS,
	OPT_RELOCATABLE,
	OPT_RELOCATE_LISTEN,
	OPT_RELOCATE_SECRET,
	OPT_RELOCATE_INSECURE,
	OPT_ADVERTISE,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Clients instead of a workload:", 6 },
	{ "listen", OPT_LISTEN, "HOST:PORT", 0,
	  "serve clients that speak the Redis protocol there; may be given several times", 6 },
	{ "unix", OPT_UNIX, "PATH", 0, "the same on a unix socket, for this user only", 6 },
	{ "max-clients", OPT_MAX_CLIENTS, "N", 0, "refuse more clients at once (10000)", 6 },
	{ "max-request-kib", OPT_MAX_REQUEST, "KIB", 0,
	  "refuse larger requests, and close the client's connection (1024)", 6 },
	{ "max-output-kib", OPT_MAX_OUTPUT, "KIB", 0,
	  "a client that has not read half of this waits with its requests; one with a reply "
	  "larger than this is closed (16384)", 6 },
	{ "client-timeout", OPT_IDLE, "S", 0,
	  "close clients to and from which nothing was sent for S seconds (0: never)", 6 },
	{ "password-file", OPT_PASSWORD, "FILE", 0,
	  "clients must give the password that is the first line of FILE (none)", 6 },
	{ "keys", OPT_KEYS, "N", 0, "keys and fields of hashes to expect (1048576)", 6 },
	{ "relocatable", OPT_RELOCATABLE, NULL, 0,
	  "the database can be moved to another node (RELOCATE, or 'relocate' of --control)", 6 },
	{ "relocate-listen", OPT_RELOCATE_LISTEN, "ADDRESS", 0,
	  "take over the database of a node that connects there, A.B.C.D:PORT, [IPV6]:PORT or "
	  "unix:PATH; clients are let in from then on", 6 },
	{ "relocate-secret", OPT_RELOCATE_SECRET, "FILE", 0,
	  "the two nodes prove to each other that they have the secret in FILE, which only its "
	  "owner may read", 6 },
	{ "relocate-insecure", OPT_RELOCATE_INSECURE, NULL, 0,
	  "without --relocate-secret the other node may be on another machine all the same", 6 },
	{ "advertise", OPT_ADVERTISE, "ADDRESS", 0,
	  "what clients are told who shall come here, A.B.C.D:PORT, [IPV6]:PORT or unix:PATH "
	  "(that of the first --listen or --unix)", 6 },
	{ 0 },
};

static void add(struct argp_state *state, const char *option, const char **list, uint32_t *n,
		const char *arg)
{
	if (*n == NET_LISTENERS_MAX)
		argp_error(state, "--%s: given more than %u times", option, NET_LISTENERS_MAX);
	else
		list[(*n)++] = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct serve_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->fence;
		break;
	case OPT_LISTEN:
		add(state, "listen", o->listen, &o->n_listen, arg);
		break;
	case OPT_UNIX:
		add(state, "unix", o->unix_paths, &o->n_unix, arg);
		break;
	case OPT_MAX_CLIENTS:
		o->net.clients_max = (uint32_t)bench_parse_number(state, "max-clients", arg, 1,
								  NET_CLIENTS_MAX);
		break;
	case OPT_MAX_REQUEST:
		o->net.request_bytes_max =
			(uint32_t)bench_parse_number(state, "max-request-kib", arg,
						     NET_REQUEST_BYTES_MIN >> 10,
						     NET_REQUEST_BYTES_MAX >> 10) << 10;
		break;
	case OPT_MAX_OUTPUT:
		o->net.output_bytes_max =
			(uint32_t)bench_parse_number(state, "max-output-kib", arg,
						     NET_OUTPUT_BYTES_MIN >> 10,
						     NET_OUTPUT_BYTES_MAX >> 10) << 10;
		break;
	case OPT_IDLE:
		o->net.idle_seconds_max = (uint32_t)bench_parse_number(state, "client-timeout", arg,
								       0, SECONDS_MAX);
		break;
	case OPT_PASSWORD:
		o->password_path = arg;
		break;
	case OPT_KEYS:
		o->keys = bench_parse_number(state, "keys", arg, 1, KEYS_MAX);
		break;
	case OPT_RELOCATABLE:
		o->is_relocatable = true;
		break;
	case OPT_RELOCATE_LISTEN:
		o->relocate_listen = arg;
		break;
	case OPT_RELOCATE_SECRET:
		o->relocate_secret = arg;
		break;
	case OPT_RELOCATE_INSECURE:
		o->relocate_insecure = true;
		break;
	case OPT_ADVERTISE:
		if (!*arg || strlen(arg) > NET_ADDRESS_MAX)
			argp_error(state, "--advertise: an address has 1 to %u bytes",
				   NET_ADDRESS_MAX);
		o->advertise = arg;
		break;
	case ARGP_KEY_END:
		if ((o->fence.address || o->fence.peer_volume) && !o->is_relocatable &&
		    !o->relocate_listen)
			argp_error(state, "--fence and --fence-peer-volume need --relocatable or "
				   "--relocate-listen");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_child children[] = { { &serve_fence_argp, 0, NULL, 0 }, { 0 } };

const struct argp serve_options_argp = { .options = options, .parser = parse,
					 .children = children };
