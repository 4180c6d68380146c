// SPDX-License-Identifier: GPL-2.0-or-later
/* See kv_stub.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kv_stub.h"
#include "oltp-engine/server/resp/parse.h"

struct kv {
	struct oltp_table *table;
	_Atomic bool is_locked;
	_Atomic uint64_t attempts;
	_Atomic int32_t sessions;
	pthread_mutex_t lock;
	bool is_open;			/* under the lock, like waiting */
	struct kv_session *waiting;
};

struct kv_session {
	struct kv *kv;
	uint64_t left;		/* conflicts, or transactions, of the command that is tried */
	bool is_tried;
	bool is_busy, is_restricted;
	bool is_observer;
	const struct resp_arg *args;	/* of it */
	void (*ready)(void *ctx);
	void *ready_ctx;
};

struct kv *kv_stub_create(struct oltp_table *table)
{
	struct kv *kv = calloc(1, sizeof(*kv));

	if (kv) {
		kv->table = table;
		pthread_mutex_init(&kv->lock, NULL);
	}
	return kv;
}

void kv_stub_destroy(struct kv *kv)
{
	free(kv);
}

void kv_stub_lock(struct kv *kv, bool is_locked)
{
	kv->is_locked = is_locked;
}

uint64_t kv_stub_attempts(const struct kv *kv)
{
	return kv->attempts;
}

int32_t kv_stub_sessions(const struct kv *kv)
{
	return kv->sessions;
}

struct kv_session *kv_session_create(struct kv *kv)
{
	struct kv_session *s = calloc(1, sizeof(*s));

	if (s) {
		s->kv = kv;
		kv->sessions++;
	}
	return s;
}

void kv_session_destroy(struct kv_session *s)
{
	if (s)
		s->kv->sessions--;
	free(s);
}

void kv_session_set_peer(struct kv_session *s, const char *address, const char *own_address, int fd)
{
	(void)s, (void)address, (void)own_address, (void)fd;
}

void kv_session_set_ready(struct kv_session *s, void (*ready)(void *ctx), void *ctx)
{
	s->ready = ready;
	s->ready_ctx = ctx;
}

void kv_session_stop_waiting(struct kv_session *s)
{
	pthread_mutex_lock(&s->kv->lock);
	if (s->kv->waiting == s)
		s->kv->waiting = NULL;
	pthread_mutex_unlock(&s->kv->lock);
}

/* With the lock. */
static void wake(struct kv *kv)
{
	if (kv->waiting)
		kv->waiting->ready(kv->waiting->ready_ctx);
	kv->waiting = NULL;
}

void kv_stub_wake(struct kv *kv)
{
	pthread_mutex_lock(&kv->lock);
	wake(kv);
	pthread_mutex_unlock(&kv->lock);
}

void kv_stub_shut(struct kv *kv)
{
	pthread_mutex_lock(&kv->lock);
	kv->is_open = false;
	pthread_mutex_unlock(&kv->lock);
}

void kv_stub_let_in(struct kv *kv)
{
	pthread_mutex_lock(&kv->lock);
	kv->is_open = true;
	wake(kv);
	pthread_mutex_unlock(&kv->lock);
}

static bool enter(struct kv_session *s)
{
	bool is_open;

	pthread_mutex_lock(&s->kv->lock);
	is_open = s->kv->is_open;
	if (!is_open)
		s->kv->waiting = s;
	pthread_mutex_unlock(&s->kv->lock);
	return is_open;
}

void kv_session_restrict(struct kv_session *s)
{
	s->is_restricted = true;
}

bool kv_session_is_busy(const struct kv_session *s)
{
	return s->is_busy;
}

bool kv_session_is_observer(const struct kv_session *s)
{
	return s->is_observer;
}

static uint64_t number_of(const struct resp_arg *arg)
{
	uint64_t number = 0;

	for (uint32_t i = 0; i < arg->n; i++)
		number = number * 10 + (uint64_t)(arg->bytes[i] - '0');
	return number;
}

static enum oltp_rc count(struct kv *kv, struct oltp_worker *worker, uint64_t key, bool up,
			  uint64_t *ret_number)
{
	const struct oltp_span span = { 0, 8 };
	const void *record;
	void *row;
	enum oltp_rc rc = oltp_txn_begin(worker);

	if (!rc && up) {
		rc = oltp_txn_update(worker, kv->table, key, &span, 1, &row);
		if (!rc)
			*ret_number = ++*(uint64_t *)row;
	} else if (!rc) {
		rc = oltp_txn_read(worker, kv->table, key, &record);
		if (!rc)
			*ret_number = *(const uint64_t *)record;
	}
	if (!rc)
		rc = oltp_txn_commit(worker);
	if (rc)
		oltp_txn_abort(worker);
	return rc;
}

static bool is(const struct resp_arg *arg, const char *name)
{
	return arg->n == strlen(name) && !strncasecmp(arg->bytes, name, arg->n);
}

static void put_big(struct resp_out *out, uint64_t n)
{
	char head[32], *bytes;

	resp_out_raw(out, head, (size_t)snprintf(head, sizeof(head), "$%llu\r\n",
						 (unsigned long long)n));
	bytes = resp_out_reserve(out, n + 2);
	if (!bytes)
		return;
	memset(bytes, 'x', n);
	memcpy(bytes + n, "\r\n", 2);
	out->n += n + 2;
}

/* Counts down; the same arguments must come with each attempt. False: not yet. */
static bool is_through(struct kv_session *s, const struct resp_arg *args, bool retry, uint64_t n)
{
	if (retry != s->is_tried || (retry && args != s->args))
		abort();
	if (!retry)
		s->left = n;
	s->args = args;
	s->is_tried = s->left > 0;
	return !s->left || !s->left--;
}

enum oltp_rc kv_run(struct kv_session *s, struct oltp_worker *worker, const struct resp_arg *args,
		    uint32_t n_args, bool retry, struct resp_out *out, uint64_t *ret_epoch,
		    enum kv_after *ret_after)
{
	uint64_t n = n_args > 1 && !is(args, "echo") ? number_of(&args[1]) : 0;
	uint64_t number = 0;
	enum oltp_rc rc;

	*ret_epoch = 0;
	*ret_after = KV_GO_ON;
	if (s->is_restricted && !is(args, "hello")) {
		resp_out_error(out, "ERR this database moves to another node");
		*ret_after = KV_CLOSE;
	} else if (is(args, "echo") && n_args == 2) {
		resp_out_bulk(out, args[1].bytes, args[1].n);
	} else if (is(args, "inc") || is(args, "get")) {
		rc = count(s->kv, worker, n, is(args, "inc"), &number);
		if (rc == OLTP_CONFLICT || rc == OLTP_COLD)
			return rc;
		if (rc) {
			resp_out_error(out, oltp_strerror(rc));
			return OLTP_OK;
		}
		resp_out_integer(out, (int64_t)number);
		*ret_epoch = oltp_worker_epoch(worker);
	} else if (is(args, "big")) {
		put_big(out, n);
	} else if (is(args, "conflict")) {
		if (!is_through(s, args, retry, n))
			return OLTP_CONFLICT;
		resp_out_simple(out, "OK");
	} else if (is(args, "locked")) {
		if (retry != s->is_tried)
			abort();
		s->kv->attempts++;
		s->is_tried = s->kv->is_locked;
		if (s->is_tried)
			return OLTP_CONFLICT;
		resp_out_simple(out, "OK");
	} else if (is(args, "wait")) {
		s->kv->attempts++;
		if (!enter(s)) {
			*ret_after = KV_WAIT;
			return OLTP_OK;
		}
		rc = count(s->kv, worker, 0, true, &number);
		if (rc)
			return rc;
		resp_out_simple(out, "OK");
		*ret_epoch = oltp_worker_epoch(worker);
	} else if (is(args, "meet")) {
		s->kv->attempts++;
		if (retry && s->kv->is_locked)
			return OLTP_CONFLICT;
		*ret_after = KV_WAIT;
		if (retry)
			s->ready(s->ready_ctx);
		else
			enter(s);
	} else if (is(args, "cold")) {
		return OLTP_COLD;
	} else if (is(args, "again")) {
		if (is_through(s, args, retry, n))
			resp_out_simple(out, "OK");
		else
			*ret_after = KV_AGAIN;
	} else if (is(args, "hello")) {
		out->version = (uint8_t)n;
		resp_out_simple(out, "OK");
	} else if (is(args, "multi") || is(args, "exec")) {
		s->is_busy = is(args, "multi");
		resp_out_simple(out, "OK");
	} else if (is(args, "observe") || is(args, "serve")) {
		s->is_observer = is(args, "observe");
		resp_out_simple(out, "OK");
	} else if (is(args, "quit")) {
		resp_out_simple(out, "OK");
		*ret_after = KV_CLOSE;
	} else {
		resp_out_error(out, "ERR unknown command");
	}
	return OLTP_OK;
}

void kv_give_up(struct kv_session *s, enum oltp_rc rc, struct resp_out *out)
{
	s->is_tried = false;
	resp_out_errorf(out, "ERR given up: %s", oltp_strerror(rc));
}
