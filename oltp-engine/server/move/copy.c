// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records that go ahead of their units: carries out the decisions of relocate/precopy.h. The peer
 * puts them behind the closed gates of its units, where they count only once a GIVE with DELTA says
 * so. Nothing of this outlives the connection.
 *
 * A unit that went the other way is such a copy, too: the node that gave it keeps its records, and
 * the node that has it marks the pages that change. So if the unit is asked back, only these pages
 * go.
 *
 * A page is read while commands run on it. If a hash in it changes meanwhile, its parts may not fit
 * together: the page is marked again then, and not sent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/server/move/private.h"

/* In one turn of the thread, which also serves the peer and units that move. */
#define TURN_NS		2000000ull
/* More is not put into the channel while the peer does not read. */
#define BACKLOG_BYTES	(1u << 20)
/* A frame is put by the peer in one go, and requests there wait. */
#define FRAME_BYTES	16384u
/* A page with more than this is left for its unit. */
#define PAGE_BYTES_MAX	(8u << 20)
/* Of pages that go with their unit, in one part. */
#define PART_BYTES	65536u
#define STALE_PAGES	64u	/* that are read together, at most */
#define STEP_NS		1000000ull

static int add_record(void *ctx, const uint8_t *record, uint32_t bytes)
{
	struct page *page = ctx;
	struct kv_record head;

	memcpy(&head, record, sizeof(head));
	if (head.type == KV_RECORD_FIELD ? !page->fields_left : page->fields_left > 0)
		return -ECANCELED;
	if (head.type == KV_RECORD_FIELD)
		page->fields_left--;
	else
		page->fields_left = head.n_fields;
	if (page->room - page->n < bytes) {
		size_t room = 2 * page->room + bytes;
		uint8_t *to = room > PAGE_BYTES_MAX ? NULL : realloc(page->bytes, room);

		if (!to)
			return -ECANCELED;
		page->bytes = to;
		page->room = room;
	}
	memcpy(page->bytes + page->n, record, bytes);
	page->n += bytes;
	return 0;
}

static int send_clear(struct sender *s, uint32_t page)
{
	uint8_t *at;

	move_end_frame(s);
	at = channel_reserve(&s->m->channel, WIRE_HEADER_BYTES);
	if (!at)
		return -ENOMEM;
	channel_add(&s->m->channel,
		    wire_put_clear(&s->m->terms, &s->give, s->flags, page, at));
	return 0;
}

static int send_records(struct sender *s, const struct page *page)
{
	int rc = 0;

	for (size_t at = 0, length; !rc && at < page->n; at += length) {
		length = kv_record_bytes(page->bytes + at, page->n - at);
		rc = length ? move_send_record(s, page->bytes + at, (uint32_t)length) : -EIO;
	}
	return rc;
}

/*
 * The next marked pages that follow one another are read together: many of them have only a few
 * records. None is left: place->reader is NULL.
 */
static int begin_stale(struct sender *s, struct place *place)
{
	uint32_t unit = s->give.unit, n = 0;
	struct move *m = s->m;
	int rc = 0;

	place->page_at = kv_page_next_marked(m->kv, unit, place->page_at);
	while (!rc && n < STALE_PAGES && place->page_at < KV_PAGES &&
	       kv_page_take_mark(m->kv, unit, place->page_at)) {
		rc = send_clear(s, place->page_at);
		n++;
		place->page_at++;
	}
	m->copy.stale_pages += m->copy.is_told ? n : 0;
	if (!rc && n)
		rc = kv_pages_read_begin(m->kv, &m->reads, unit, place->page_at - n, n,
					 &place->reader);
	if (place->reader && move_refers(m, place))
		kv_unit_read_refer(place->reader);
	return rc;
}

int move_send_stale(struct sender *s, struct place *place)
{
	int rc = 0;

	while (s->n_bytes < PART_BYTES) {
		if (!place->reader)
			rc = begin_stale(s, place);
		if (rc || !place->reader)
			return rc;
		rc = kv_unit_read_part(place->reader, move_send_record, s);
		if (rc < 0)
			return rc;
		if (!rc) {
			kv_unit_read_end(place->reader);
			place->reader = NULL;
		}
		rc = 0;
	}
	return 1;
}

/* Before the first record of the unit goes ahead. */
static int begin_unit(struct move *m, struct sender *s)
{
	struct place *place = &m->places[s->give.unit];

	if (place->ahead_on == m->channel.number)
		return 0;
	place->ahead_on = m->channel.number;
	return send_clear(s, WIRE_CLEAR_ALL);
}

/* With those of the frame that is open. */
static size_t pending(const struct sender *s)
{
	return channel_backlog(&s->m->channel) + (s->frame ? s->bytes : 0);
}

/* Pages of a unit that follow one another share a frame, so that the peer puts them together. */
static int send_page(struct move *m, struct sender *s, uint32_t number)
{
	uint32_t unit = number >> KV_PAGE_BITS, page = number % KV_PAGES;
	struct copy *copy = &m->copy;
	size_t before;
	int rc;

	/* A unit that came since copying began has no marks for what came with it. */
	if (m->list[unit].state != UNIT_OWNED || m->places[unit].ahead_gen != m->list[unit].gen ||
	    !kv_page_is_marked(m->kv, unit, page))
		return 0;
	if (s->give.unit != unit || (s->frame && s->bytes >= FRAME_BYTES))
		move_end_frame(s);
	s->give = (struct units_message){ .from = m->units.incarnation, .to = m->units.peer,
					  .gen = m->list[unit].gen, .unit = unit };
	before = pending(s);
	rc = begin_unit(m, s);
	if (rc)
		return rc;
	kv_page_take_mark(m->kv, unit, page);
	copy->page.n = 0;
	copy->page.fields_left = 0;
	rc = kv_page_read(m->kv, m->worker, unit, page, add_record, &copy->page);
	if (rc == -ECANCELED || (!rc && copy->page.fields_left)) {
		kv_page_mark(m->kv, unit, page);
		precopy_sent(&copy->precopy, 0);
		return 0;
	}
	/* In the first round there is nothing of it yet. */
	if (!rc && copy->precopy.rounds > 1)
		rc = send_clear(s, page);
	if (!rc)
		rc = send_records(s, &copy->page);
	precopy_sent(&copy->precopy, pending(s) - before);
	return rc;
}

struct ranked {
	uint64_t use;
	uint32_t page;
};

static int compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->use != y->use)
		return x->use < y->use ? 1 : -1;
	return (x->page > y->page) - (x->page < y->page);
}

/*
 * Pages with a record in memory, used last first, or in their order. The others are left for their
 * units.
 */
static int rank_pages(struct move *m)
{
	uint32_t n_pages = m->terms.n_units << KV_PAGE_BITS;
	uint64_t *uses = malloc(n_pages * sizeof(*uses));
	struct ranked *ranked = malloc(n_pages * sizeof(*ranked));
	struct copy *copy = &m->copy;
	int rc = -ENOMEM;

	if (!copy->pages)
		copy->pages = malloc(n_pages * sizeof(*copy->pages));
	if (uses && ranked && copy->pages)
		rc = kv_pages_rank(m->kv, m->worker, uses);
	copy->is_watching |= !rc;
	copy->n = copy->at = 0;
	for (uint32_t i = 0; !rc && i < n_pages; i++) {
		if (uses[i])
			ranked[copy->n++] = (struct ranked){ uses[i], i };
	}
	if (copy->n && !copy->config.is_in_order)
		qsort(ranked, copy->n, sizeof(*ranked), compare);
	for (uint32_t i = 0; i < copy->n; i++)
		copy->pages[i] = ranked[i].page;
	free(uses);
	free(ranked);
	return rc;
}

/* On another connection nothing is there: all pages are to be sent, and time goes on. */
static void begin(struct move *m)
{
	struct copy *copy = &m->copy;
	uint64_t start_ns = copy->precopy.start_ns;
	int rc = rank_pages(m);

	precopy_start(&copy->precopy, move_now_ns());
	copy->precopy.start_ns = start_ns;
	copy->on = m->channel.number;
	copy->is_on = true;
	copy->stale_pages = 0;
	for (uint32_t u = 0; u < m->terms.n_units; u++) {
		m->places[u].ahead_on = 0;
		m->places[u].ahead_gen = m->list[u].state == UNIT_OWNED && !rc ?
					 m->list[u].gen : 0;
		/* There may be records of it, which are not to be sent. */
		if (m->list[u].state < UNIT_OWNED)
			kv_pages_unmark(m->kv, u);
	}
	/* All is left for the units then: nothing is wrong with that. */
	if (rc)
		move_note_error(m, rc);
}

static void end_round(struct move *m)
{
	struct copy *copy = &m->copy;
	struct precopy_facts facts = { 0 };

	/* No room, or no time, for those that follow. */
	if (copy->precopy.rounds == 1)
		copy->n = copy->at;
	for (uint32_t i = 0; i < copy->n; i++)
		facts.written += kv_page_is_marked(m->kv, copy->pages[i] >> KV_PAGE_BITS,
						   copy->pages[i] % KV_PAGES);
	facts.never_sent = kv_pages_marked(m->kv);
	/* Both change meanwhile. */
	facts.never_sent -= facts.written < facts.never_sent ? facts.written : facts.never_sent;
	copy->at = 0;
	copy->is_on = precopy_end_round(&copy->precopy, &copy->config, &facts, move_now_ns()) ==
		      PRECOPY_GOES_ON;
}

/* A node that closes takes no unit again. */
static bool keeps(const struct move *m)
{
	return m->units.mode == UNITS_SHARED && !m->units.is_closing && m->channel.fd >= 0;
}

static void forget_kept(struct move *m)
{
	for (uint32_t u = 0; u < m->terms.n_units; u++) {
		if (m->places[u].came_gen)
			move_mark_junk(m, u);
	}
	m->copy.has_kept = false;
}

void move_copy_keep(struct move *m, uint32_t unit, uint64_t gen)
{
	if (!keeps(m)) {
		move_mark_junk(m, unit);
		return;
	}
	m->places[unit].came_gen = gen;
	m->copy.has_kept = true;
}

void move_copy_came(struct move *m, uint32_t unit, uint64_t gen)
{
	struct place *place = &m->places[unit];

	place->ahead_gen = 0;
	/* While records go ahead, all of it counts as not sent. */
	if (m->copy.is_on)
		return;
	if (!m->copy.is_watching && kv_pages_watch(m->kv))
		return;
	m->copy.is_watching = true;
	kv_pages_unmark(m->kv, unit);
	place->ahead_gen = gen;
	place->ahead_on = m->channel.number;
}

bool move_copy_make_room(struct move *m, uint32_t but_unit)
{
	for (uint32_t u = 0; u < m->terms.n_units; u++) {
		if (u == but_unit || !m->places[u].came_gen)
			continue;
		move_mark_junk(m, u);
		return !move_remove(m, u);
	}
	return false;
}

/* It is told to copy, and there is somebody to copy for. */
static bool can_copy(const struct move *m)
{
	return m->copy.is_told && m->units.mode == UNITS_SHARED && !m->units.is_closing &&
	       m->units.is_synced && m->channel.fd >= 0;
}

void move_copy_some(struct move *m)
{
	struct copy *copy = &m->copy;
	struct sender s = { .m = m, .flags = WIRE_FLAG_AHEAD };
	uint64_t end_ns = move_now_ns() + TURN_NS, now;
	int rc = 0;

	if (m->units.mode != UNITS_SHARED && m->units.mode != UNITS_SHARING &&
	    m->units.mode != UNITS_ALONE)
		copy->is_told = copy->is_on = false;
	if (!keeps(m) && copy->has_kept)
		forget_kept(m);
	if (m->units.mode != UNITS_SHARED && copy->is_watching) {
		kv_pages_unwatch(m->kv);
		copy->is_watching = false;
	}
	if (!can_copy(m))
		return;
	if (copy->on != m->channel.number)
		begin(m);
	for (now = move_now_ns(); copy->is_on && !rc && now < end_ns; now = move_now_ns()) {
		if (copy->at == copy->n || precopy_cuts_round(&copy->precopy, &copy->config, now))
			end_round(m);
		else if (channel_backlog(&m->channel) > BACKLOG_BYTES ||
			 !precopy_allowed(&copy->precopy, &copy->config, now))
			break;
		else
			rc = send_page(m, &s, copy->pages[copy->at++]);
	}
	move_end_frame(&s);
	move_count_sent(&s);
	if (rc)
		move_lost(m, rc);
}

uint64_t move_copy_wait_ns(const struct move *m)
{
	bool is_due = can_copy(m) && (m->copy.on != m->channel.number || m->copy.is_on);

	return is_due ? STEP_NS : NEVER;
}
