// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/kv/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "oltp-engine/server/kv/private.h"

#define STAMPS_AT_ONCE	1024u

struct kv_session *kv_session_create(struct kv *kv)
{
	struct kv_session *s = calloc(1, sizeof(*s));
	struct timespec now;

	if (!s)
		return NULL;
	clock_gettime(CLOCK_MONOTONIC, &now);
	s->kv = kv;
	s->fd = -1;
	s->created_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	session_reset(s);
	pthread_mutex_lock(&kv->sessions_lock);
	s->id = ++kv->sessions_made;
	s->next = kv->sessions;
	if (s->next)
		s->next->prev = s;
	kv->sessions = s;
	pthread_mutex_unlock(&kv->sessions_lock);
	return s;
}

void kv_session_destroy(struct kv_session *s)
{
	struct kv *kv;

	if (!s)
		return;
	kv = s->kv;
	pthread_mutex_lock(&kv->sessions_lock);
	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		kv->sessions = s->next;
	kv->commands_ended += s->n_commands;
	pthread_mutex_unlock(&kv->sessions_lock);
	session_leave(s);
	free(s->pins.units);
	session_end_multi(s);
	free(s->watched);
	free(s);
}

void kv_session_set_peer(struct kv_session *s, const char *address, const char *own_address,
			 int fd)
{
	pthread_mutex_lock(&s->kv->sessions_lock);
	snprintf(s->address, sizeof(s->address), "%s", address ?: "");
	snprintf(s->own_address, sizeof(s->own_address), "%s", own_address ?: "");
	s->fd = fd;
	pthread_mutex_unlock(&s->kv->sessions_lock);
}

void kv_session_set_ready(struct kv_session *s, void (*ready)(void *ctx), void *ctx)
{
	s->pins.ready = ready;
	s->pins.ready_ctx = ctx;
}

void kv_session_restrict(struct kv_session *s)
{
	s->is_restricted = true;
}

bool kv_session_is_observer(const struct kv_session *s)
{
	/* Asked after every request, of sessions that mostly have no name. */
	return s->name[0] && !strcmp(s->name, KV_OBSERVER_NAME);
}

bool kv_session_is_busy(const struct kv_session *s)
{
	return s->in_multi || s->n_watched > 0;
}

void session_reset(struct kv_session *s)
{
	session_end_multi(s);
	kv_session_unwatch(s);
	pthread_mutex_lock(&s->kv->sessions_lock);
	s->name[0] = '\0';
	pthread_mutex_unlock(&s->kv->sessions_lock);
	s->version = 2;
	s->is_authenticated = !s->kv->password;
	s->flush_from = 0;
}

void session_end_multi(struct kv_session *s)
{
	while (s->first) {
		struct queued *next = s->first->next;

		free(s->first);
		s->first = next;
	}
	s->end = NULL;
	s->n_queued = 0;
	s->queued_bytes = 0;
	s->in_multi = false;
	s->is_dirty = false;
}

int session_queue(struct kv_session *s, const struct command *command,
		  const struct resp_arg *args, uint32_t n_args)
{
	uint64_t bytes = sizeof(struct queued) + (uint64_t)n_args * sizeof(struct resp_arg);
	struct queued *queued;
	char *to;

	for (uint32_t i = 0; i < n_args; i++)
		bytes += args[i].n;
	if (s->n_queued == KV_QUEUE_COMMANDS || bytes > KV_QUEUE_BYTES - s->queued_bytes)
		return -E2BIG;
	queued = malloc(bytes);
	if (!queued)
		return -ENOMEM;
	queued->next = NULL;
	queued->command = command;
	queued->n_args = n_args;
	to = (char *)&queued->args[n_args];
	for (uint32_t i = 0; i < n_args; i++) {
		queued->args[i].bytes = to;
		queued->args[i].n = args[i].n;
		if (args[i].n > 0)
			memcpy(to, args[i].bytes, args[i].n);
		to += args[i].n;
	}
	if (s->end)
		s->end->next = queued;
	else
		s->first = queued;
	s->end = queued;
	s->n_queued++;
	s->queued_bytes += (uint32_t)bytes;
	return 0;
}

int session_watch_room(struct kv_session *s, uint32_t n)
{
	uint32_t room = s->watched_room ? s->watched_room : 4;
	struct watched *watched;

	if (n > KV_WATCHES_MAX - s->n_watched)
		return -E2BIG;
	if (s->n_watched + n <= s->watched_room)
		return 0;
	while (room < s->n_watched + n)
		room *= 2;
	watched = realloc(s->watched, room * sizeof(*watched));
	if (!watched)
		return -ENOMEM;
	s->watched = watched;
	s->watched_room = room;
	return 0;
}

void kv_session_unwatch(struct kv_session *s)
{
	s->n_watched = 0;
}

uint64_t session_stamp(struct kv_session *s)
{
	if (s->next_stamp == s->stamps_end) {
		s->next_stamp = meta_stamps(&s->kv->meta, STAMPS_AT_ONCE);
		s->stamps_end = s->next_stamp + STAMPS_AT_ONCE;
	}
	return s->next_stamp++;
}
