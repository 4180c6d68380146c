// SPDX-License-Identifier: GPL-2.0-or-later
/* What a relocation says of itself: the status, INFO, and what RELOCATE answers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "oltp-engine/server/relocation_private.h"

#define PHASES_BYTES	1024u

static const char *const stage_names[] = {
	[STAGE_WAITING] = "waiting", [STAGE_SERVING] = "serving",
	[STAGE_INTERRUPTED] = "interrupted", [STAGE_ASKING] = "asking", [STAGE_COPYING] = "copying",
	[STAGE_CLIENTS] = "clients", [STAGE_UNITS] = "units",
	[STAGE_CANCELLING] = "cancelling", [STAGE_OVER] = "over",
};

/* Of one moment. */
struct view {
	struct move_stats move;
	struct net_stats net;
	const char *stage, *role;
	char node[ORDER_ADDRESS_BYTES], clients[ORDER_ADDRESS_BYTES];
	char error[RELOCATION_TEXT_BYTES];
};

static void read_view(struct relocation *r, struct view *v)
{
	move_stats_read(r->move, &v->move);
	net_stats_read(r->front, &v->net);
	pthread_mutex_lock(&r->lock);
	v->stage = stage_names[r->stage];
	memcpy(v->node, r->node, sizeof(v->node));
	memcpy(v->clients, r->clients, sizeof(v->clients));
	snprintf(v->error, sizeof(v->error), "%s", *r->error ? r->error :
		 v->move.error ? strerror(-v->move.error) : "");
	pthread_mutex_unlock(&r->lock);
}

/* Inside of a JSON string: addresses come from who gives the order. */
static void escape(char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ||
		    (unsigned char)*text > '~')
			*text = '?';
	}
}

/* A JSON object: how long units took in each phase (enum move_phase). */
static void write_phases(struct relocation *r, char *ret, size_t room)
{
	static const char *const names[MOVE_PHASES] = {
		"noticed", "asked", "taken", "held", "pinned", "forced", "sent", "answered",
	};
	struct move_times times[MOVE_PHASES];
	size_t n = 0;

	move_times_read(r->move, times);
	for (uint32_t i = 0; i < MOVE_PHASES && n < room; i++)
		n += (size_t)snprintf(ret + n, room - n, "%s\"%s\": {\"n\": %" PRIu64
				      ", \"p50_us\": %.0f, \"p99_us\": %.0f}", i ? ", " : "{",
				      names[i], times[i].n, times[i].p50_ns / 1000,
				      times[i].p99_ns / 1000);
	if (n < room)
		snprintf(ret + n, room - n, "}");
}

static const char *fence_state(const struct relocation *r, const struct move_stats *stats)
{
	static const char *const names[] = {
		[MOVE_FENCE_LATER] = "unknown", [MOVE_FENCE_WON] = "won",
		[MOVE_FENCE_LOST] = "lost", [MOVE_FENCE_NONE] = "open",
	};

	return r->has_fence ? names[stats->fence] : "none";
}

void relocation_status(struct relocation *r, char ret[RELOCATION_STATUS_BYTES])
{
	char phases[PHASES_BYTES];
	struct net_pauses pauses;
	const struct move_copy_stats *copy;
	const uint32_t *in_state;
	struct view v;

	read_view(r, &v);
	net_pauses_read(r->front, &pauses);
	write_phases(r, phases, sizeof(phases));
	in_state = v.move.in_state;
	copy = &v.move.copy;
	escape(v.node);
	escape(v.clients);
	escape(v.error);
	snprintf(ret, RELOCATION_STATUS_BYTES,
		 "{\"stage\": \"%s\", \"node\": \"%s\", \"clients_go_to\": \"%s\", "
		 "\"connected\": %s, \"clients\": %u, \"clients_told\": %u, "
		 "\"units\": {\"unknown\": %u, \"away\": %u, \"taking\": %u, \"owned\": %u, "
		 "\"draining\": %u, \"giving\": %u}, \"given\": %" PRIu64 ", \"taken\": %" PRIu64
		 ", \"taken_back\": %" PRIu64 ", \"refused\": %" PRIu64
		 ", \"records\": {\"sent_bytes\": %" PRIu64 ", \"received_bytes\": %" PRIu64
		 ", \"resident_bytes_before\": %" PRIu64 "}, \"references\": {\"sent\": %" PRIu64
		 ", \"read\": %" PRIu64 ", \"units_unread\": %" PRIu64
		 "}, \"pauses\": {\"n\": %" PRIu64
		 ", \"p50_us\": %.0f, \"p99_us\": %.0f, \"max_us\": %" PRIu64
		 "}, \"copied\": {\"rounds\": %u, \"pages\": %" PRIu64 ", \"bytes\": %" PRIu64
		 ", \"stopped\": \"%s\", \"at_once\": %s, \"stale_pages\": %" PRIu64
		 ", \"pause_ms\": %.1f}, \"drain_percent\": %u, \"phases\": %s, \"fence\": \"%s\""
		 ", \"recovered\": %" PRIu64 ", \"error\": \"%s\"}",
		 v.stage, v.node, v.clients, v.move.is_connected ? "true" : "false",
		 v.net.clients, v.net.told, in_state[UNIT_UNKNOWN], in_state[UNIT_AWAY],
		 in_state[UNIT_TAKING], in_state[UNIT_OWNED], in_state[UNIT_DRAINING],
		 in_state[UNIT_GIVING], v.move.units.given, v.move.units.taken,
		 v.move.units.taken_back, v.move.units.refused, v.move.bytes_sent,
		 v.move.bytes_received, atomic_load(&r->resident_bytes),
		 v.move.references_sent, v.move.references_read, v.move.units_unread, pauses.n,
		 pauses.p50_ns / 1000,
		 pauses.p99_ns / 1000, pauses.max_ns / 1000,
		 copy->rounds, copy->pages, copy->bytes, precopy_reason_name(copy->reason),
		 copy->is_at_once ? "true" : "false", copy->stale_pages,
		 r->is_at_once ? (double)v.move.leave_ns / 1e6 : 0,
		 atomic_load(&r->drain_percent), phases, fence_state(r, &v.move),
		 v.move.recovered, v.error);
}

static void line(struct resp_out *text, const char *name, const char *value)
{
	char bytes[RELOCATION_TEXT_BYTES + 64];
	int n = snprintf(bytes, sizeof(bytes), "relocation_%s:%s\r\n", name, value);

	resp_out_raw(text, bytes, (size_t)n);
}

static void number(struct resp_out *text, const char *name, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	line(text, name, digits);
}

void relocation_info(struct relocation *r, struct resp_out *text)
{
	struct view v;

	read_view(r, &v);
	escape(v.node);
	escape(v.error);
	line(text, "stage", v.stage);
	line(text, "node", v.node);
	line(text, "link_status", v.move.is_connected ? "up" : "down");
	number(text, "link_sent_bytes", v.move.link_sent_bytes);
	number(text, "link_received_bytes", v.move.link_received_bytes);
	number(text, "clients_told", v.net.told);
	number(text, "units", v.move.n_units);
	number(text, "units_owned", v.move.owned);
	number(text, "units_given", v.move.units.given);
	number(text, "units_taken", v.move.units.taken);
	number(text, "units_taken_back", v.move.units.taken_back);
	line(text, "error", v.error);
}

static const char *order(void *ctx, char *const *words, uint32_t n)
{
	struct relocation_order parsed;
	const char *wrong = order_parse(words, n, &parsed);

	return wrong ?: relocation_order(ctx, &parsed, NULL);
}

static void status(void *ctx, struct resp_out *out)
{
	char text[RELOCATION_STATUS_BYTES];

	relocation_status(ctx, text);
	resp_out_text(out, text);
}

const struct kv_relocate_ops relocation_kv_ops = { order, status };
