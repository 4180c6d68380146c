// SPDX-License-Identifier: GPL-2.0-or-later
/* The node that the database leaves: it asks the other one, and may cancel. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "oltp-engine/relocate/wire.h"
#include "oltp-engine/server/link.h"
#include "oltp-engine/server/relocation_private.h"
#include "oltp-engine/src/base/clock.h"

/* Why the other node cannot be asked, or does not take the database. rc: as handshake_offer. */
static const char *reason(int rc)
{
	if (rc == -EPROTO)
		return "no oltp-server answers there with --relocate-listen";
	return rc > 0 ? greeting_status_text((enum greeting_status)rc) : strerror(-rc);
}

static struct greeting_offer make_offer(struct relocation *r, int fd, uint64_t number,
					uint32_t flags)
{
	struct greeting_offer offer = {
		.unit_bits = RELOCATION_UNIT_BITS,
		.flags = flags,
		.secret = { r->hash_secret[0], r->hash_secret[1] },
		.relocation = number,
		.limit_ns = r->drain_config.limit_ns,
		.speed_percent = r->drain_config.speed_percent,
		.fixed_per_s = r->drain_config.fixed_per_s,
	};
	struct oltp_memory_stats stats;

	oltp_memory_stats_read(r->engine, &stats);
	offer.bytes = stats.resident_bytes + stats.file_used_bytes;
	relocation_reads(r, offer.reads);
	if (flags & GREETING_GOES_BACK && *r->clients)
		snprintf(offer.clients, sizeof(offer.clients), "%s", r->clients);
	else
		relocation_own_clients(r, fd, offer.clients);
	return offer;
}

/* Returns a descriptor, or -1 and why not. */
static int greet(struct relocation *r, const char *node, uint64_t number, uint32_t flags,
		 struct greeting_answer *ret_answer, char ret_why[RELOCATION_TEXT_BYTES])
{
	struct greeting_link link = relocation_link(r);
	int fd = -1, rc = server_link_is_local(node);
	const char *why = NULL;

	if (rc < 0) {
		why = "that is no address such as 10.0.0.1:7000, [fd00::1]:7000 or unix:/path";
	} else if (!rc && !link.key && !r->config.is_insecure) {
		why = "needs --relocate-secret, or --relocate-insecure, unless it is a unix "
		      "socket or a loopback address";
	} else {
		peer_volume_look(r->peer_volume);
		fd = server_link_connect(node);
		if (fd < 0)
			why = strerror(-fd);
		else if (server_link_is_own(fd, r->listen_fd))
			why = "that is this node";
	}
	if (!why) {
		rc = handshake_offer(fd, &link, make_offer(r, fd, number, flags), ret_answer);
		if (rc)
			why = reason(rc);
	}
	if (!why)
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(ret_why, RELOCATION_TEXT_BYTES, "node %.200s: %s", node, why);
	return -1;
}

/*
 * Of a relocation that has not begun. Another one for each, so that a node that took part in an
 * earlier one is found out. But the same again for a node that may have noted it already, because
 * it waits for that.
 */
static uint64_t new_number(struct relocation *r, const char *node)
{
	uint64_t n;

	if (!strcmp(node, r->offered_to))
		return r->offered_number;
	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		n = clock_now_ns() ^ r->hash_secret[0];
	snprintf(r->offered_to, sizeof(r->offered_to), "%s", node);
	r->offered_number = n % WIRE_NUMBER_MAX + 1;
	return r->offered_number;
}

/*
 * If a part of the database is on disk, units go whole and on demand: so most of that part stays
 * there. With copies of the other part each unit would go page by page.
 */
static bool copies(const struct relocation_order *order, const struct oltp_memory_stats *memory)
{
	return order->is_failover || (order->copies && !memory->cold_records);
}

void source_ask(struct relocation *r, const struct relocation_order *order)
{
	const bool resumes = r->rest == STAGE_INTERRUPTED;
	uint64_t number = resumes ? r->number : new_number(r, order->node);
	char why[RELOCATION_TEXT_BYTES];
	struct oltp_memory_stats memory;
	struct greeting_answer answer;
	const char *clients = order->clients;
	int fd;

	r->drain_config = order->drain;
	fd = greet(r, order->node, number, resumes ? GREETING_RESUMES : 0, &answer, why);
	if (fd >= 0 && !*clients)
		clients = answer.clients;
	if (fd >= 0 && !*clients) {
		close(fd);
		fd = -1;
		snprintf(why, sizeof(why), "node %.200s: it does not know where its clients go: "
			 "say CLIENTS", order->node);
	}
	if (fd < 0) {
		relocation_set_error(r, why);
		relocation_set_stage(r, r->rest);
		return;
	}
	oltp_memory_stats_read(r->engine, &memory);
	r->resident_bytes = memory.resident_bytes;
	r->number = number;
	r->is_source = true;
	r->has_met = true;
	r->is_shared = false;
	*r->offered_to = '\0';
	pthread_mutex_lock(&r->lock);
	snprintf(r->node, sizeof(r->node), "%s", order->node);
	pthread_mutex_unlock(&r->lock);
	if (!resumes) {
		move_name(r->move, number);
		move_share(r->move);
	}
	move_connect(r->move, fd, relocation_is_read(r, answer.reads));
	if (copies(order, &memory))
		move_copy(r->move, &order->copy);
	clients_start(r, clients, &order->drain,
		      copies(order, &memory) ? STAGE_COPYING : STAGE_CLIENTS);
}

void source_cancel(struct relocation *r, const struct relocation_order *order)
{
	clients_stay(r);
	pthread_mutex_lock(&r->lock);
	if (*order->node)
		snprintf(r->node, sizeof(r->node), "%s", order->node);
	/* Clients that went come back to this address. */
	snprintf(r->clients, sizeof(r->clients), "%s", order->clients);
	pthread_mutex_unlock(&r->lock);
	/* At the rate at which they came, unless another one is said. */
	if (order->has_drain || r->rest == STAGE_INTERRUPTED)
		r->drain_config = order->drain;
	r->has_said_back = false;
	move_stay(r->move);
	relocation_set_stage(r, STAGE_CANCELLING);
}

/* The connection is made again; back: and the target told that it is cancelled. */
static void reconnect(struct relocation *r, bool back)
{
	char why[RELOCATION_TEXT_BYTES];
	struct greeting_answer answer;
	int fd = greet(r, r->node, r->number, GREETING_RESUMES | (back ? GREETING_GOES_BACK : 0),
		       &answer, why);

	relocation_set_error(r, fd < 0 ? why : "");
	if (fd < 0)
		return;
	move_connect(r->move, fd, relocation_is_read(r, answer.reads));
	r->has_said_back = back;
}

static void look_at_cancel(struct relocation *r, const struct move_stats *stats)
{
	switch (stats->mode) {
	case UNITS_ALONE:
		if (!r->is_shared)
			break;
		r->is_source = false;
		relocation_set_error(r, "");
		relocation_set_stage(r, STAGE_SERVING);
		break;
	case UNITS_LEAVING:
	case UNITS_CLOSED:
	case UNITS_ENDED:
		/* The last unit went before the order came. */
		net_drain(r->front, "closed", 0);
		relocation_set_error(r, "it was too late to cancel: all units have gone");
		relocation_set_stage(r, STAGE_UNITS);
		break;
	case UNITS_SHARED:
		/* Not before this node takes units again: it would refuse what the target gives. */
		if (stats->is_closing)
			move_stay(r->move);
		else if (!r->has_said_back || !stats->is_connected)
			reconnect(r, true);
		break;
	default:
		break;
	}
}

void source_look(struct relocation *r, const struct move_stats *stats)
{
	if (r->stage == STAGE_CANCELLING)
		look_at_cancel(r, stats);
	else if ((r->stage == STAGE_COPYING || r->stage == STAGE_CLIENTS ||
		  r->stage == STAGE_UNITS) && !stats->is_over && !stats->is_connected)
		reconnect(r, false);
}
