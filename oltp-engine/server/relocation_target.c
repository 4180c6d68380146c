// SPDX-License-Identifier: GPL-2.0-or-later
/* The node that takes a database from another one, and gives it back if that is cancelled. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "oltp-engine/server/kv/unit.h"
#include "oltp-engine/server/link.h"
#include "oltp-engine/server/relocation_private.h"

/* For its number to be on disk; the source waits no longer than a second. */
#define NAME_MS	700

/* Returns an enum greeting_status, or -errno. */
static int take_database(struct relocation *r, const struct greeting_offer *offer)
{
	const struct move_begun begun = { .relocation = offer->relocation };
	struct oltp_worker *worker;
	int rc;

	/* If the source resumed a relocation with this node, this node would have it on disk. */
	if (offer->flags & GREETING_RESUMES)
		return GREETING_OTHER_RELOCATION;
	if (r->config.room_bytes && offer->bytes > r->config.room_bytes)
		return GREETING_FULL;
	rc = oltp_worker_create(r->engine, &worker);
	if (rc)
		return rc == -ENOMEM || rc == -ENOSPC ? GREETING_FULL : rc;
	rc = kv_set_secret(r->kv, worker, offer->secret);
	oltp_worker_destroy(worker);
	if (!rc)
		rc = relocation_begin(r, &begun);
	if (rc == -EEXIST)
		return GREETING_OTHER_DATABASE;
	if (rc)
		fprintf(stderr, "oltp-server: taking a database over: %s\n", strerror(-rc));
	return rc == -ENOMEM ? GREETING_FULL : rc;
}

/*
 * The source begins another relocation, so the one that it has offered before has not begun: as if
 * it was killed in between.
 */
static int begin_anew(struct relocation *r, uint64_t number)
{
	struct move_stats stats = { 0 };

	move_name(r->move, number);
	for (int i = 0; i < NAME_MS && stats.relocation != number; i++) {
		usleep(1000);
		move_stats_read(r->move, &stats);
	}
	if (stats.relocation != number)
		return GREETING_OTHER_RELOCATION;
	r->number = number;
	return GREETING_WELCOME;
}

/* Whether this is the source of the relocation that goes on here, or went on. */
static int check_source(struct relocation *r, const struct greeting_offer *offer)
{
	struct move_stats stats;

	if (memcmp(offer->secret, r->hash_secret, sizeof(r->hash_secret)) != 0)
		return GREETING_OTHER_DATABASE;
	move_stats_read(r->move, &stats);
	if (!(offer->flags & GREETING_RESUMES) && stats.mode == UNITS_ALONE)
		return GREETING_OTHER_DATABASE;
	if (r->is_source)
		return GREETING_OTHER_RELOCATION;
	if (offer->relocation == r->number)
		return GREETING_WELCOME;
	if (offer->flags & GREETING_RESUMES || stats.mode != UNITS_SHARED || stats.units.taken)
		return GREETING_OTHER_RELOCATION;
	return begin_anew(r, offer->relocation);
}

/* What the source says of the relocation that it goes on with. */
static void obey_source(struct relocation *r, const struct greeting_offer *offer)
{
	const struct drain_config drain = { .speed_percent = offer->speed_percent,
					    .fixed_per_s = offer->fixed_per_s,
					    .limit_ns = offer->limit_ns };
	const bool leaves = r->stage == STAGE_CLIENTS || r->stage == STAGE_UNITS;
	struct move_stats stats;

	move_stats_read(r->move, &stats);
	if (stats.mode != UNITS_SHARED)
		return;
	if (offer->flags & GREETING_GOES_BACK && r->stage == STAGE_SERVING) {
		clients_start(r, offer->clients, &drain, STAGE_CLIENTS);
	} else if (!(offer->flags & GREETING_GOES_BACK) && leaves) {
		clients_stay(r);
		move_stay(r->move);
		relocation_set_stage(r, STAGE_SERVING);
	}
}

void target_receive(struct relocation *r)
{
	struct greeting_link link = relocation_link(r);
	char clients[NET_ADDRESS_MAX + 1] = "";
	uint8_t reads[GREETING_VOLUME_BYTES];
	struct greeting_offer offer;
	int fd = server_link_accept(r->listen_fd), rc, sent;

	if (fd < 0)
		return;
	peer_volume_look(r->peer_volume);
	rc = handshake_take(fd, &link, RELOCATION_UNIT_BITS, &offer);
	if (rc) {
		close(fd);
		return;
	}
	rc = relocation_is_ready(r) ? check_source(r, &offer) : take_database(r, &offer);
	relocation_own_clients(r, fd, clients);
	relocation_reads(r, reads);
	sent = rc < 0 ? rc : handshake_answer(fd, &link, (enum greeting_status)rc, clients, reads);
	if (rc || sent) {
		close(fd);
		return;
	}
	r->has_met = true;
	move_connect(r->move, fd, relocation_is_read(r, offer.reads));
	obey_source(r, &offer);
}
