// SPDX-License-Identifier: GPL-2.0-or-later
/* Life of a relocation, its thread, and the orders that it takes: see relocation_private.h. */
#include "oltp-engine/server/relocation.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "oltp-engine/server/kv/unit.h"
#include "oltp-engine/server/link.h"
#include "oltp-engine/server/relocation_private.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp_volume.h"

#define TICK_MS		100
/* Between two looks at whether copying ahead has stopped. */
#define COPY_MS		2
/* For which volume the peer's is: a greeting takes a second at most. */
#define VOLUME_MS	250
/* Three signs of life that did not come. */
#define SILENCE_NS_MIN	(3 * RELOCATION_SECOND_NS)

static int fail(const char *option, const char *value, const char *why, int rc)
{
	fprintf(stderr, "oltp-server: %s %s: %s\n", option, value, why);
	return rc;
}

static int read_secret(struct relocation *r)
{
	const char *path = r->config.secret_path;
	int rc = path ? secret_file_read(path, &r->secret) : 0;

	return rc ? fail("--relocate-secret", path, secret_file_strerror(rc), rc) : 0;
}

static int listen_for_source(struct relocation *r)
{
	const char *at = r->config.listen;

	if (!at)
		return 0;
	if (!r->secret.n && !r->config.is_insecure && server_link_is_local(at) == 0)
		return fail("--relocate-listen", at, "needs --relocate-secret, or "
			    "--relocate-insecure, unless it is a unix socket or a loopback "
			    "address", -EINVAL);
	r->listen_fd = server_link_listen(at);
	return r->listen_fd < 0 ? fail("--relocate-listen", at, strerror(-r->listen_fd),
				       r->listen_fd) : 0;
}

static int open_all(struct relocation *r)
{
	struct move_config config = { .unit_bits = RELOCATION_UNIT_BITS,
				      .is_target = r->config.listen,
				      .peer_volume = r->config.peer_volume };
	const struct relocation_fence *fence = r->config.fence;
	int rc = read_secret(r);

	if (!rc)
		rc = listen_for_source(r);
	if (rc)
		return rc;
	if (fence) {
		config.fence = fence->ops;
		config.fence_ctx = fence->ctx;
		config.fence_ns = fence->after_ns;
		config.silence_ns = fence->after_ns / 2 > SILENCE_NS_MIN ? fence->after_ns / 2 :
				    SILENCE_NS_MIN;
	}
	r->has_fence = fence;
	r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = r->event_fd < 0 ? -errno : move_create(&config, &r->move);
	if (!rc)
		rc = peer_volume_create(r->config.peer_volume, &r->peer_volume);
	return rc ? fail("relocation", "", strerror(-rc), rc) : 0;
}

int relocation_create(const struct relocation_config *config, struct relocation **ret_relocation)
{
	struct relocation *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->config = *config;
	r->listen_fd = r->event_fd = -1;
	r->stage = config->listen ? STAGE_WAITING : STAGE_SERVING;
	pthread_mutex_init(&r->lock, NULL);
	rc = open_all(r);
	if (rc)
		relocation_destroy(r);
	else
		*ret_relocation = r;
	return rc;
}

void relocation_gate(struct relocation *r, struct kv_config *ret_config)
{
	ret_config->gate = &move_gate_ops;
	ret_config->gate_ctx = r->move;
	ret_config->unit_bits = RELOCATION_UNIT_BITS;
	ret_config->relocate = &relocation_kv_ops;
	ret_config->relocate_ctx = r;
}

int relocation_open(struct relocation *r, struct oltp_engine *engine)
{
	r->engine = engine;
	return move_open(r->move, engine);
}

void relocation_set_stage(struct relocation *r, enum relocation_stage stage)
{
	pthread_mutex_lock(&r->lock);
	r->stage = stage;
	pthread_mutex_unlock(&r->lock);
}

void relocation_set_error(struct relocation *r, const char *text)
{
	pthread_mutex_lock(&r->lock);
	snprintf(r->error, sizeof(r->error), "%s", text);
	pthread_mutex_unlock(&r->lock);
}

struct greeting_link relocation_link(const struct relocation *r)
{
	return (struct greeting_link){ .key = r->secret.n ? r->secret.bytes : NULL,
				       .key_bytes = r->secret.n };
}

/* Once: as long as this process owns the volume nobody formats it. */
static void read_own_volume(struct relocation *r)
{
	struct oltp_volume_info info;

	_Static_assert(sizeof(info.uuid) == GREETING_VOLUME_BYTES, "as sent");
	if (r->config.volume && !oltp_volume_list(r->config.volume, &info, NULL, NULL))
		memcpy(r->own_volume, info.uuid, sizeof(info.uuid));
}

void relocation_reads(struct relocation *r, uint8_t ret[GREETING_VOLUME_BYTES])
{
	peer_volume_uuid(r->peer_volume, VOLUME_MS, ret);
}

bool relocation_is_read(const struct relocation *r, const uint8_t reads[GREETING_VOLUME_BYTES])
{
	static const uint8_t none[GREETING_VOLUME_BYTES];

	return memcmp(r->own_volume, none, sizeof(none)) != 0 &&
	       !memcmp(r->own_volume, reads, sizeof(none));
}

void relocation_own_clients(const struct relocation *r, int fd, char ret[NET_ADDRESS_MAX + 1])
{
	char host[80];

	if (r->config.clients) {
		snprintf(ret, NET_ADDRESS_MAX + 1, "%s", r->config.clients);
		return;
	}
	server_link_host(fd, host, sizeof(host));
	net_address(r->front, host, ret);
}

static enum relocation_stage stage_after(const struct move_begun *begun)
{
	if (!begun->has_begun || begun->was == UNITS_WAS_ALONE)
		return STAGE_SERVING;
	if (begun->is_source)
		return STAGE_INTERRUPTED;
	/* It has given all back, and says so until the source has heard it. */
	return begun->was == UNITS_WAS_CLOSED ? STAGE_UNITS : STAGE_SERVING;
}

int relocation_begin(struct relocation *r, const struct move_begun *begun)
{
	int rc;

	kv_secret(r->kv, r->hash_secret);
	r->number = begun->relocation;
	r->is_source = begun->is_source;
	move_name(r->move, r->number);
	rc = move_start(r->move, r->kv);
	if (rc)
		return rc;
	/* It has no keys, nor will it have any. */
	if (begun->has_begun && begun->was == UNITS_WAS_CLOSED)
		net_drain(r->front, "closed", 0);
	relocation_set_stage(r, stage_after(begun));
	atomic_store(&r->is_ready, true);
	return 0;
}

/* ---- orders ---- */

static const char *refuse_move(struct relocation *r)
{
	struct move_stats stats;

	switch ((enum relocation_stage)r->stage) {
	case STAGE_WAITING:
		return "this node is a target, and no database has come";
	case STAGE_SERVING:
		break;
	case STAGE_INTERRUPTED:
		return NULL;
	case STAGE_CANCELLING:
		return "the relocation is being cancelled";
	case STAGE_OVER:
		return "the database has moved already";
	default:
		return "it is moving already";
	}
	move_stats_read(r->move, &stats);
	if (r->has_fence && r->has_met)
		return "this node can fence the other one of its last relocation only: start it "
		       "again with the --fence options of the new one";
	if (stats.mode == UNITS_ALONE)
		return NULL;
	return stats.mode == UNITS_STOPPED ? "this node has stopped: see error of its status" :
	       "this node is a target, and not all of the database has come";
}

static const char *refuse_cancel(struct relocation *r, const struct relocation_order *order)
{
	switch ((enum relocation_stage)r->stage) {
	case STAGE_INTERRUPTED:
		return *order->node ? NULL :
		       "this node was restarted meanwhile: say TO which node it was moving";
	case STAGE_COPYING:
	case STAGE_CLIENTS:
	case STAGE_UNITS:
		return r->is_source ? NULL : "it is being cancelled already";
	case STAGE_CANCELLING:
		return "it is being cancelled already";
	case STAGE_ASKING:
		return "the other node is being asked: try again";
	case STAGE_OVER:
		return "too late: the database has moved";
	default:
		return "no relocation of which this node is the source";
	}
}

const char *relocation_order(struct relocation *r, const struct relocation_order *order,
			     uint64_t *ret_number)
{
	const char *why;

	pthread_mutex_lock(&r->lock);
	if (r->has_order && r->order.cancels)
		why = order->cancels ? "it is being cancelled already" :
		      "the relocation is being cancelled";
	else
		why = order->cancels ? refuse_cancel(r, order) : refuse_move(r);
	if (!why && r->has_order)
		why = "it has just been ordered already";
	if (!why) {
		r->order = *order;
		r->has_order = true;
		r->n_orders++;
		if (ret_number)
			*ret_number = r->n_orders;
		*r->error = '\0';
		r->rest = (enum relocation_stage)r->stage;
		if (!order->cancels)
			r->stage = STAGE_ASKING;
	}
	pthread_mutex_unlock(&r->lock);
	(void)eventfd_write(r->event_fd, 1);
	return why;
}

bool relocation_has_answer(struct relocation *r, uint64_t number, char *ret, size_t room)
{
	bool has_answer;

	pthread_mutex_lock(&r->lock);
	has_answer = r->n_orders != number || r->stage != STAGE_ASKING;
	snprintf(ret, room, "%s", r->n_orders == number ? r->error :
		 "another order has followed: see relocate-status");
	pthread_mutex_unlock(&r->lock);
	return has_answer;
}

const char *relocation_take_over(struct relocation *r)
{
	struct move_stats stats;

	move_stats_read(r->move, &stats);
	if (!r->has_fence)
		return "the server was started without --fence";
	if (!relocation_is_ready(r) || stats.mode != UNITS_SHARED)
		return "there is no other node that has a part of the database";
	move_take_over(r->move);
	return NULL;
}

static void order_is_obeyed(struct relocation *r)
{
	pthread_mutex_lock(&r->lock);
	r->has_order = false;
	pthread_mutex_unlock(&r->lock);
}

static void obey(struct relocation *r)
{
	struct relocation_order order;
	bool has_order;

	pthread_mutex_lock(&r->lock);
	has_order = r->has_order;
	order = r->order;
	pthread_mutex_unlock(&r->lock);
	if (has_order && order.cancels) {
		source_cancel(r, &order);
		/* Until then the stage does not say that another order comes too late. */
		order_is_obeyed(r);
	} else if (has_order) {
		order_is_obeyed(r);
		source_ask(r, &order);
	}
}

/* ---- the thread ---- */

static void measure(struct relocation *r)
{
	struct net_stats now;

	net_stats_read(r->front, &now);
	/* Requests that are not answered yet count with their age, see drain.h. */
	r->times = (struct drain_times){ now.replied - r->last.replied + now.open,
					 now.reply_ns - r->last.reply_ns + now.open_ns };
	r->last = now;
}

static void look(struct relocation *r)
{
	struct move_stats stats;

	measure(r);
	move_stats_read(r->move, &stats);
	r->is_shared |= stats.mode == UNITS_SHARED;
	/* Of either node: a sign of life. */
	move_tell_times(r->move, &r->times);
	/* Fenced by the other, or without a log: only a restart helps. */
	if (stats.mode == UNITS_STOPPED)
		return;
	if (r->is_source)
		source_look(r, &stats);
	clients_look(r, &stats);
}

static void *run(void *ctx)
{
	struct relocation *r = ctx;
	uint64_t next_ns = 0;

	while (!atomic_load(&r->is_ending)) {
		struct pollfd fds[] = { { .fd = r->event_fd, .events = POLLIN },
					{ .fd = r->listen_fd, .events = POLLIN } };
		eventfd_t told;

		poll(fds, 2, r->stage == STAGE_COPYING ? COPY_MS : TICK_MS);
		if (fds[0].revents)
			(void)eventfd_read(r->event_fd, &told);
		if (fds[1].revents)
			target_receive(r);
		if (!relocation_is_ready(r))
			continue;
		obey(r);
		if (r->stage == STAGE_COPYING)
			clients_look_at_copies(r);
		if (clock_now_ns() < next_ns)
			continue;
		next_ns = clock_now_ns() + RELOCATION_SECOND_NS;
		look(r);
	}
	return NULL;
}

int relocation_start(struct relocation *r, struct kv *kv, struct net_front *front)
{
	struct move_begun begun;
	int rc = move_read_begun(r->move, &begun);

	r->kv = kv;
	r->front = front;
	read_own_volume(r);
	if (!rc && (!r->config.listen || begun.has_begun))
		rc = relocation_begin(r, &begun);
	if (!rc)
		rc = -pthread_create(&r->thread, NULL, run, r);
	r->has_thread = !rc;
	return rc;
}

bool relocation_is_ready(const struct relocation *r)
{
	return atomic_load(&r->is_ready);
}

void relocation_end(struct relocation *r)
{
	if (!r->has_thread)
		return;
	atomic_store(&r->is_ending, true);
	(void)eventfd_write(r->event_fd, 1);
	pthread_join(r->thread, NULL);
	r->has_thread = false;
}

void relocation_destroy(struct relocation *r)
{
	if (!r)
		return;
	relocation_end(r);
	move_destroy(r->move);
	peer_volume_destroy(r->peer_volume);
	if (r->listen_fd >= 0) {
		close(r->listen_fd);
		if (!strncmp(r->config.listen, "unix:", 5))
			unlink(r->config.listen + 5);
	}
	if (r->event_fd >= 0)
		close(r->event_fd);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
