// SPDX-License-Identifier: GPL-2.0-or-later
/* Life of a move, and its thread. */
#include "oltp-engine/server/move/move.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "oltp-engine/server/move/private.h"

#define MS	1000000ull
#define SECOND	(1000 * MS)
#define PUSH_MAX	4u

uint64_t move_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static enum kv_gate enter(void *ctx, struct kv_pins *pins)
{
	return gates_enter(&((struct move *)ctx)->gates, pins);
}

static bool pin(void *ctx, struct kv_pins *pins)
{
	return gates_pin_last(&((struct move *)ctx)->gates, pins);
}

static void leave(void *ctx, struct kv_pins *pins)
{
	gates_leave(&((struct move *)ctx)->gates, pins);
}

static bool is_whole(void *ctx)
{
	return atomic_load(&((struct move *)ctx)->is_whole);
}

const struct kv_gate_ops move_gate_ops = {
	.enter = enter, .pin = pin, .leave = leave, .is_whole = is_whole,
};

static int allocate(struct move *m, uint32_t n)
{
	m->list = calloc(n, sizeof(*m->list));
	m->table = calloc(n, sizeof(*m->table));
	m->places = calloc(n, sizeof(*m->places));
	m->draining = calloc(n, sizeof(*m->draining));
	m->actions.room = UNITS_ACTIONS_MAX(n);
	m->actions.list = calloc(m->actions.room, sizeof(*m->actions.list));
	/* One for each unit, and those of the node. */
	m->forced_room = n + 8;
	m->forced = calloc(m->forced_room, sizeof(*m->forced));
	if (!m->list || !m->table || !m->places || !m->draining || !m->actions.list || !m->forced)
		return -ENOMEM;
	for (uint32_t u = 0; u < n; u++) {
		trace_stop(&m->places[u].taking);
		trace_stop(&m->places[u].giving);
	}
	return channel_init(&m->channel);
}

int move_create(const struct move_config *config, struct move **ret_move)
{
	uint32_t n = 1u << config->unit_bits;
	struct move *m;
	int rc;

	if (config->unit_bits > KV_UNIT_BITS_MAX)
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->config = *config;
	m->units_config = (struct units_config){
		.n_units = n,
		.push_max = config->push_max ?: PUSH_MAX,
		.is_target = config->is_target,
		.hold_ns = config->hold_ns ?: MS,
		.repeat_ns = config->repeat_ns ?: 200 * MS,
		.fence_ns = config->fence_ns ?: 10000 * MS,
	};
	m->terms = (struct wire_terms){ config->relocation, n };
	m->channel.fd = m->new_fd = -1;
	m->check_ns = config->fence ? 0 : NEVER;
	m->fence_ns = NEVER;
	m->stats.n_units = n;
	pthread_mutex_init(&m->lock, NULL);
	m->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = m->event_fd < 0 ? -errno : gates_init(&m->gates, n, m->event_fd);
	if (rc) {
		if (m->event_fd >= 0)
			close(m->event_fd);
		free(m);
		return rc;
	}
	rc = allocate(m, n);
	if (rc)
		move_destroy(m);
	else
		*ret_move = m;
	return rc;
}

int move_open(struct move *m, struct oltp_engine *engine)
{
	m->engine = engine;
	return facts_open(&m->facts, engine, m->terms.n_units);
}

static void publish(struct move *m)
{
	const uint32_t *in_state = m->units.in_state;

	pthread_mutex_lock(&m->lock);
	m->stats.mode = (enum units_mode)m->units.mode;
	m->stats.owned = in_state[UNIT_OWNED];
	memcpy(m->stats.in_state, in_state, sizeof(m->stats.in_state));
	m->stats.is_connected = m->channel.fd >= 0;
	m->stats.is_closing = m->units.is_closing;
	m->stats.relocation = m->terms.relocation;
	m->stats.is_peer_fenced = m->is_peer_fenced;
	if (m->left_ns && !m->stats.leave_ns && in_state[UNIT_AWAY] == m->terms.n_units)
		m->stats.leave_ns = move_now_ns() - m->left_ns;
	m->stats.copy = (struct move_copy_stats){
		.is_copying = m->copy.is_told,
		.has_stopped = m->copy.is_told && !m->copy.is_on && m->copy.precopy.reason &&
			       m->copy.on == m->channel.number && m->channel.fd >= 0,
		.is_at_once = m->copy.precopy.is_at_once,
		.reason = (enum precopy_reason)m->copy.precopy.reason,
		.rounds = m->copy.precopy.rounds,
		.pages = m->copy.precopy.pages,
		.bytes = m->copy.precopy.bytes,
		.stale_pages = m->copy.stale_pages,
	};
	m->stats.units = m->units.stats;
	m->stats.link_sent_bytes = m->channel.sent_bytes;
	m->stats.link_received_bytes = m->channel.received_bytes;
	pthread_mutex_unlock(&m->lock);
}

/* From here on this node is the source of a relocation of that number. */
static void share(struct move *m, uint64_t relocation)
{
	if (m->units.mode != UNITS_ALONE)
		return;
	if (relocation)
		m->terms.relocation = relocation;
	m->units_config.is_target = false;
	atomic_store(&m->gates.is_target, false);
	m->units_config.push_max = m->config.push_max ?: PUSH_MAX;
	m->left_ns = 0;
	pthread_mutex_lock(&m->lock);
	m->stats.leave_ns = 0;
	pthread_mutex_unlock(&m->lock);
	units_share(&m->units, &m->actions);
	move_act(m);
}

static void stay(struct move *m)
{
	if (m->copy.is_told)
		kv_pages_unwatch(m->kv);
	m->copy.is_told = m->copy.is_on = false;
	m->units_config.push_max = m->config.push_max ?: PUSH_MAX;
	m->left_ns = 0;
	units_stay(&m->units, &m->actions);
	move_act(m);
}

/* A target that a source has found, but not begun with. */
static bool is_unused(const struct move *m)
{
	bool is_unused = m->units_config.is_target && m->units.mode == UNITS_SHARED;

	for (uint32_t u = 0; is_unused && u < m->terms.n_units; u++)
		is_unused = !m->list[u].is_mine && !m->list[u].gen && !m->list[u].offer;
	return is_unused;
}

static void rename_unused(struct move *m, uint64_t relocation)
{
	int rc = facts_rename(&m->facts, m->worker, relocation);

	pthread_mutex_lock(&m->lock);
	m->told_name = 0;
	pthread_mutex_unlock(&m->lock);
	if (rc)
		move_note_error(m, rc);
	else
		m->terms.relocation = relocation;
}

/* False: the thread is to end. */
static bool obey(struct move *m)
{
	bool quits, shares, leaves, stays, takes_over, has_times, at_once, refers;
	struct drain_times times;
	uint64_t relocation = 0;
	int fd = -1;

	pthread_mutex_lock(&m->lock);
	quits = m->is_told_quit;
	shares = m->is_told_share;
	leaves = m->is_told_leave;
	stays = m->is_told_stay;
	at_once = m->is_told_at_once;
	if (m->is_told_copy) {
		m->copy.is_told = true;
		m->copy.on = 0;
		m->copy.config = m->told_config;
		precopy_start(&m->copy.precopy, move_now_ns());
	}
	m->is_told_copy = false;
	takes_over = m->is_told_take_over;
	times = m->times;
	has_times = m->has_times;
	refers = m->new_refers;
	/* No message before it is known which node is fenced. */
	if (m->check_ns == NEVER || quits) {
		fd = m->new_fd;
		m->new_fd = -1;
	}
	relocation = m->told_name;
	if (shares)
		m->told_name = 0;
	m->is_told_share = m->is_told_leave = m->is_told_stay = m->is_told_take_over = false;
	m->has_times = false;
	pthread_mutex_unlock(&m->lock);
	if (fd >= 0 && (quits || m->is_peer_fenced || m->units.mode == UNITS_STOPPED ||
			move_is_stalled(m))) {
		close(fd);
		fd = -1;
	}
	if (quits)
		return false;
	/* Before anything of the new connection is read: its frames have the new number. */
	if (shares)
		share(m, relocation);
	else if (relocation && is_unused(m))
		rename_unused(m, relocation);
	if (fd >= 0) {
		if (m->channel.fd >= 0)
			move_lost(m, 0);
		channel_connect(&m->channel, fd);
		m->refers = refers;
		m->heard_ns = move_now_ns();
	}
	if (has_times)
		move_beat_begin(m, &times);
	if (stays)
		stay(m);
	if (leaves) {
		if (at_once)
			m->units_config.push_max = m->terms.n_units;
		if (!m->left_ns)
			m->left_ns = move_now_ns();
		units_close(&m->units, move_now_ns(), &m->actions);
		move_act(m);
	}
	if (takes_over && m->config.fence)
		m->fence_ns = 0;
	return true;
}

static void ask_for_wanted(struct move *m)
{
	uint64_t since_ns;

	for (uint32_t u = 0; gates_wanted(&m->gates, &u, &since_ns);) {
		enum units_answer answer;

		if (m->list[u].state == UNIT_AWAY && m->places[u].taking.now == MOVE_PHASES)
			trace_begin(&m->places[u].taking, MOVE_NOTICED, since_ns);
		move_here(m, u);
		answer = units_want(&m->units, u, move_now_ns(), &m->actions);
		move_act(m);
		if (answer == UNITS_GONE)
			gates_fail(&m->gates, u);
	}
}

/* Units that the peer asks for may go, if those have ended that they were kept for. */
static void look_at_asked(struct move *m)
{
	m->keeps_asked = false;
	for (uint32_t u = 0; u < m->terms.n_units; u++) {
		if (m->list[u].is_asked)
			move_here(m, u);
		m->keeps_asked |= m->list[u].is_asked && m->list[u].state == UNIT_OWNED;
	}
}

/* Units that nobody here needs any more are not asked for again. */
static void look_at_wanted(struct move *m)
{
	for (uint32_t u = 0; u < m->terms.n_units; u++) {
		if (m->list[u].is_wanted)
			move_here(m, u);
	}
}

/* One unit at a time, in parts, when there is nothing else to do. */
static void remove_junk(struct move *m)
{
	uint32_t u = 0;
	int rc;

	while (!m->places[u].has_junk)
		u++;
	/* Records to come are put in a unit without any, and then count as put. */
	m->places[u].put_gen = 0;
	m->places[u].came_gen = 0;
	rc = kv_unit_remove_some(m->kv, &m->reads, &m->junk_wait, u);
	if (!rc)
		move_unmark_junk(m, u);
	else if (rc < 0 && rc != -EAGAIN)
		move_stop(m, rc);
}

/* Requests wait for the units that a node still has when it leaves. */
static bool has_to_give(const struct move *m)
{
	return m->units.mode == UNITS_SHARED && m->units.is_closing &&
	       m->units.in_state[UNIT_AWAY] < m->terms.n_units;
}

static bool can_remove_junk(const struct move *m)
{
	return m->n_junk && !has_to_give(m) && !kv_cold_waits(&m->reads, &m->junk_wait);
}

/*
 * Requests wait on one of the nodes until the epoch is on disk, and the interval of the log's
 * groups is long for them. Once for each epoch, when there is nothing else to add to it.
 */
static void hurry(struct move *m, uint64_t epoch)
{
	if (epoch <= m->hurried_epoch)
		return;
	m->hurried_epoch = epoch;
	oltp_durable_hurry(m->engine);
}

/* How long there is nothing to do; 1 s at most. */
static uint64_t timeout_ns(struct move *m)
{
	uint64_t now = move_now_ns(), next = units_next_ns(&m->units);
	uint64_t epoch = move_awaited_epoch(m), copy_ns = move_copy_wait_ns(m);
	uint64_t cold_ns = move_cold_wait_ns(m);

	if (m->units.mode == UNITS_STOPPED)
		return SECOND;
	if (m->check_ns < next)
		next = m->check_ns;
	if (m->fence_ns < next)
		next = m->fence_ns;
	/* Nothing tells of commands that ended before their gate was closed. */
	if (can_remove_junk(m) || (m->has_frames && !move_references_wait(m)) || move_can_send(m) ||
	    m->has_new_drains)
		return 0;
	if (copy_ns != NEVER && now + copy_ns < next)
		next = now + copy_ns;
	if (cold_ns != NEVER && now + cold_ns < next)
		next = now + cold_ns;
	/* The log tells event_fd, unless it has been written already, or has failed. */
	if (epoch && !oltp_durable_watch_set(m->watch, epoch))
		return 0;
	hurry(m, epoch);
	if (next <= now)
		return 0;
	return next - now > SECOND ? SECOND : next - now;
}

static void turn(struct move *m)
{
	struct pollfd fds[] = {
		{ .fd = m->event_fd, .events = POLLIN },
		{ .fd = m->channel.fd, .events = POLLIN },
	};
	uint64_t wait_ns = timeout_ns(m);
	struct timespec timeout = { (time_t)(wait_ns / SECOND), (long)(wait_ns % SECOND) };
	eventfd_t told;
	int n;

	/* What comes behind the frame that waits for the disk need not wake this thread. */
	if (m->has_frames && move_references_wait(m))
		fds[1].events = 0;
	if (m->channel.n_sent < m->channel.n_out)
		fds[1].events |= POLLOUT;
	n = ppoll(fds, 2, &timeout, NULL);
	if (fds[0].revents)
		(void)eventfd_read(m->event_fd, &told);
	if (m->has_frames || (n > 0 && fds[1].revents))
		move_receive(m);
	else if (n == 0 && !move_can_send(m) && can_remove_junk(m) &&
		 m->units.mode != UNITS_STOPPED)
		remove_junk(m);
	if (m->full_ns && move_now_ns() >= m->full_ns) {
		m->full_ns = 0;
		units_full(&m->units, false, move_now_ns(), &m->actions);
		move_act(m);
	}
	ask_for_wanted(m);
	move_settle(m);
	if (gates_take_ended(&m->gates, m->keeps_asked))
		look_at_asked(m);
	if (move_now_ns() >= units_next_ns(&m->units)) {
		look_at_asked(m);
		look_at_wanted(m);
		units_tick(&m->units, move_now_ns(), &m->actions);
		move_act(m);
	}
	move_fence(m);
	move_beat(m);
	move_cold_poll(m);
	if (move_can_send(m))
		move_send_parts(m);
	move_copy_some(m);
	if (m->channel.fd >= 0 && !channel_write(&m->channel))
		move_lost(m, 0);
	publish(m);
}

static void *run(void *ctx)
{
	struct move *m = ctx;

	while (obey(m))
		turn(m);
	return NULL;
}

static void tell(struct move *m)
{
	(void)eventfd_write(m->event_fd, 1);
}

int move_read_begun(struct move *m, struct move_begun *ret_begun)
{
	struct facts_found found;
	int rc = m->worker ? 0 : oltp_worker_create(m->engine, &m->worker);

	if (!rc)
		rc = facts_read(&m->facts, m->worker, m->config.is_target, m->list, &found);
	if (!rc && found.incarnation)
		*ret_begun = (struct move_begun){ true, found.was, found.role.relocation,
						  found.role.is_source };
	else
		*ret_begun = (struct move_begun){ 0 };
	return rc;
}

void move_name(struct move *m, uint64_t relocation)
{
	pthread_mutex_lock(&m->lock);
	m->told_name = relocation;
	pthread_mutex_unlock(&m->lock);
	tell(m);
}

static bool has_had_units(const struct move *m)
{
	bool has = false;

	for (uint32_t u = 0; !has && u < m->terms.n_units; u++)
		has = m->list[u].is_mine || m->list[u].gen;
	return has;
}

/* A node that was in a relocation has its number and its role on disk. */
static void take_role(struct move *m, struct facts_found *found)
{
	if (found->role.relocation && found->was != UNITS_WAS_ALONE)
		m->units_config.is_target = !found->role.is_source;
	else if (m->config.is_target && !found->role.relocation)
		found->role.relocation = m->told_name ?: m->config.relocation;
	/* The number on disk may be of a source with which an earlier start failed half-way. */
	if (m->units_config.is_target && m->told_name && !has_had_units(m))
		found->role.relocation = m->told_name;
	m->terms.relocation = found->role.relocation ?: m->config.relocation;
	m->told_name = 0;
}

/* Everything that can fail before there is a thread. */
static int prepare_start(struct move *m, struct facts_found *found)
{
	int rc = 0;

	if (!m->worker)
		rc = oltp_worker_create(m->engine, &m->worker);
	if (!rc)
		rc = oltp_worker_create(m->engine, &m->reads.worker);
	if (!rc)
		rc = oltp_durable_watch_create(m->engine, m->event_fd, &m->watch);
	if (!rc)
		rc = facts_read(&m->facts, m->worker, m->config.is_target, m->list, found);
	if (!rc)
		take_role(m, found);
	atomic_store(&m->gates.is_target, m->units_config.is_target);
	if (!rc)
		rc = facts_begin(&m->facts, m->worker, m->list, found);
	for (uint32_t u = 0; !rc && u < m->terms.n_units; u++) {
		m->places[u].is_left = m->list[u].is_mine;
		if (!m->list[u].is_mine)
			rc = move_remove(m, u);
	}
	return rc;
}

static void destroy_workers(struct move *m)
{
	oltp_durable_watch_destroy(m->watch);
	oltp_worker_destroy(m->reads.worker);
	oltp_worker_destroy(m->worker);
	m->watch = NULL;
	m->reads.worker = m->worker = NULL;
}

int move_start(struct move *m, struct kv *kv)
{
	struct facts_found found;
	int rc;

	m->kv = kv;
	rc = prepare_start(m, &found);
	if (!rc) {
		units_start(&m->units, &m->units_config, m->list, found.was, found.incarnation + 1,
			    move_now_ns(), &m->actions);
		move_act(m);
		publish(m);
		rc = -pthread_create(&m->thread, NULL, run, m);
	}
	m->has_thread = !rc;
	/* A target starts again with the next source: else each failure would cost workers. */
	if (rc)
		destroy_workers(m);
	return rc;
}

void move_connect(struct move *m, int fd, bool refers)
{
	pthread_mutex_lock(&m->lock);
	if (m->new_fd >= 0)
		close(m->new_fd);
	m->new_fd = fd;
	m->new_refers = refers;
	pthread_mutex_unlock(&m->lock);
	tell(m);
}

void move_share(struct move *m)
{
	pthread_mutex_lock(&m->lock);
	m->is_told_share = true;
	pthread_mutex_unlock(&m->lock);
	tell(m);
}

void move_leave(struct move *m, bool at_once)
{
	pthread_mutex_lock(&m->lock);
	m->is_told_leave = true;
	m->is_told_at_once = at_once;
	pthread_mutex_unlock(&m->lock);
	tell(m);
}

void move_copy(struct move *m, const struct precopy_config *config)
{
	pthread_mutex_lock(&m->lock);
	m->is_told_copy = true;
	m->told_config = *config;
	pthread_mutex_unlock(&m->lock);
	tell(m);
}

void move_stay(struct move *m)
{
	pthread_mutex_lock(&m->lock);
	m->is_told_stay = true;
	pthread_mutex_unlock(&m->lock);
	tell(m);
}

void move_tell_times(struct move *m, const struct drain_times *times)
{
	pthread_mutex_lock(&m->lock);
	m->times = *times;
	m->has_times = true;
	pthread_mutex_unlock(&m->lock);
	tell(m);
}

void move_take_over(struct move *m)
{
	pthread_mutex_lock(&m->lock);
	m->is_told_take_over = true;
	pthread_mutex_unlock(&m->lock);
	tell(m);
}

void move_stats_read(struct move *m, struct move_stats *ret_stats)
{
	pthread_mutex_lock(&m->lock);
	*ret_stats = m->stats;
	pthread_mutex_unlock(&m->lock);
}

void move_times_read(struct move *m, struct move_times ret_times[MOVE_PHASES])
{
	for (uint32_t phase = 0; phase < MOVE_PHASES; phase++) {
		struct hist_view view = { 0 };

		hist_view_add(&view, &m->phases[phase]);
		ret_times[phase] = (struct move_times){
			.n = hist_view_count(&view),
			.p50_ns = hist_view_quantile_ns(&view, 0.5),
			.p99_ns = hist_view_quantile_ns(&view, 0.99),
		};
	}
}

void move_destroy(struct move *m)
{
	if (!m)
		return;
	if (m->has_thread) {
		pthread_mutex_lock(&m->lock);
		m->is_told_quit = true;
		pthread_mutex_unlock(&m->lock);
		tell(m);
		pthread_join(m->thread, NULL);
	}
	for (uint32_t u = 0; m->places && u < m->terms.n_units; u++)
		move_send_stop(m, u);
	if (m->new_fd >= 0)
		close(m->new_fd);
	move_references_finish(m);
	channel_finish(&m->channel);
	destroy_workers(m);
	gates_finish(&m->gates);
	close(m->event_fd);
	pthread_mutex_destroy(&m->lock);
	free(m->list);
	free(m->table);
	free(m->places);
	free(m->draining);
	free(m->actions.list);
	free(m->forced);
	free(m->copy.pages);
	free(m->copy.page.bytes);
	free(m->collected.bytes);
	free(m);
}
