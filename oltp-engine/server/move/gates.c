// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/move/gates.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include "oltp-engine/src/base/clock.h"

int gates_init(struct gates *gates, uint32_t n, int event_fd)
{
	*gates = (struct gates){ .n = n, .event_fd = event_fd };
	gates->waiting.next = gates->waiting.prev = &gates->waiting;
	pthread_mutex_init(&gates->lock, NULL);
	gates->list = calloc(n, sizeof(*gates->list));
	gates->epochs = calloc(n, sizeof(*gates->epochs));
	gates->wanted_ns = calloc(n, sizeof(*gates->wanted_ns));
	if (!gates->list || !gates->epochs || !gates->wanted_ns) {
		gates_finish(gates);
		return -ENOMEM;
	}
	return 0;
}

void gates_finish(struct gates *gates)
{
	free(gates->list);
	free(gates->epochs);
	free(gates->wanted_ns);
	pthread_mutex_destroy(&gates->lock);
}

static void tell(struct gates *gates)
{
	(void)eventfd_write(gates->event_fd, 1);
}

/* With the lock. */
static void want(struct gates *gates, uint32_t unit)
{
	if (gates->wanted_ns[unit])
		return;
	gates->wanted_ns[unit] = clock_now_ns();
	gates->n_wanted++;
	tell(gates);
}

/* With the lock. */
static uint64_t birth_now(const struct gates *gates)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return gate_birth((uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000 +
			  gates->behind_us,
			  atomic_load_explicit(&gates->is_target, memory_order_relaxed));
}

void gates_heard(struct gates *gates, uint64_t birth)
{
	uint64_t now;

	pthread_mutex_lock(&gates->lock);
	now = birth_now(gates);
	if (birth > now)
		gates->behind_us += (birth - now) / 2 + 1;
	pthread_mutex_unlock(&gates->lock);
}

static void list_waiting(struct gates *gates, struct kv_pins *pins)
{
	pins->next = &gates->waiting;
	pins->prev = gates->waiting.prev;
	pins->prev->next = pins;
	gates->waiting.prev = pins;
}

static void unlist(struct kv_pins *pins)
{
	pins->next->prev = pins->prev;
	pins->prev->next = pins->next;
}

/*
 * Pins all, or waits for the first that is not here (G2). The others are asked for now as well, or
 * they would come one after the other. With the lock; not of one that is in the list.
 */
static void go_on(struct gates *gates, struct kv_pins *pins)
{
	pins->at = gates_pin(gates->list, pins->units, pins->n);
	if (pins->at == pins->n) {
		pins->n_pinned = pins->n;
		pins->state = KV_GATE_IN;
		return;
	}
	pins->state = KV_GATE_WAIT;
	if (!pins->birth)
		pins->birth = birth_now(gates);
	list_waiting(gates, pins);
	for (uint32_t i = pins->at; i < pins->n; i++) {
		if (!gates->list[pins->units[i]].is_open)
			want(gates, pins->units[i]);
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Of one that waits: units ascend then. */
static bool needs(const struct kv_pins *pins, uint32_t unit)
{
	return bsearch(&unit, pins->units, pins->n, sizeof(unit), compare);
}

static void unpin(struct gates *gates, struct kv_pins *pins)
{
	bool was_last = false;

	for (uint32_t i = 0; i < pins->n_pinned; i++) {
		uint64_t *epoch = &gates->epochs[pins->units[i]];

		if (*epoch < pins->epoch)
			*epoch = pins->epoch;
		was_last |= gate_unpin(&gates->list[pins->units[i]]);
	}
	pins->n_pinned = 0;
	if (was_last)
		tell(gates);
}

enum kv_gate gates_enter(struct gates *gates, struct kv_pins *pins)
{
	enum kv_gate state;

	pthread_mutex_lock(&gates->lock);
	if (gates->is_stopped)
		pins->state = KV_GATE_GONE;
	else if (pins->state == KV_GATE_OUT)
		go_on(gates, pins);
	state = pins->state;
	pthread_mutex_unlock(&gates->lock);
	return state;
}

bool gates_pin_last(struct gates *gates, struct kv_pins *pins)
{
	bool is_open;

	pthread_mutex_lock(&gates->lock);
	is_open = gate_pin(&gates->list[pins->units[pins->n_pinned]]);
	pins->n_pinned += is_open;
	pthread_mutex_unlock(&gates->lock);
	return is_open;
}

void gates_leave(struct gates *gates, struct kv_pins *pins)
{
	pthread_mutex_lock(&gates->lock);
	if (pins->state == KV_GATE_WAIT)
		unlist(pins);
	unpin(gates, pins);
	pins->state = KV_GATE_OUT;
	if (pins->birth) {
		gates->has_ended = true;
		if (gates->tells_ended)
			tell(gates);
	}
	pthread_mutex_unlock(&gates->lock);
}

/* With the lock. */
static uint64_t oldest(const struct gates *gates, uint32_t unit)
{
	uint64_t birth = 0;

	for (const struct kv_pins *pins = gates->waiting.next; pins != &gates->waiting;
	     pins = pins->next) {
		if (gate_is_older(pins->birth, birth) && needs(pins, unit))
			birth = pins->birth;
	}
	return birth;
}

uint64_t gates_oldest(struct gates *gates, uint32_t unit)
{
	uint64_t birth;

	pthread_mutex_lock(&gates->lock);
	birth = oldest(gates, unit);
	pthread_mutex_unlock(&gates->lock);
	return birth;
}

bool gates_take_ended(struct gates *gates, bool tells)
{
	bool has_ended;

	pthread_mutex_lock(&gates->lock);
	has_ended = gates->has_ended;
	gates->has_ended = false;
	gates->tells_ended = tells;
	pthread_mutex_unlock(&gates->lock);
	return has_ended;
}

void gates_open(struct gates *gates, uint32_t unit)
{
	struct kv_pins *pins, *next;

	pthread_mutex_lock(&gates->lock);
	if (!gates->is_stopped) {
		gate_open(&gates->list[unit]);
		for (pins = gates->waiting.next; pins != &gates->waiting; pins = next) {
			next = pins->next;
			if (pins->units[pins->at] != unit)
				continue;
			unlist(pins);
			go_on(gates, pins);
			if (pins->state == KV_GATE_IN && pins->ready)
				pins->ready(pins->ready_ctx);
		}
	}
	pthread_mutex_unlock(&gates->lock);
}

void gates_close(struct gates *gates, uint32_t unit)
{
	pthread_mutex_lock(&gates->lock);
	gate_close(&gates->list[unit]);
	/* They will have to get it back. */
	if (gates->waiting.next != &gates->waiting && oldest(gates, unit))
		want(gates, unit);
	pthread_mutex_unlock(&gates->lock);
}

bool gates_is_idle(struct gates *gates, uint32_t unit, uint64_t *ret_epoch)
{
	bool is_idle;

	pthread_mutex_lock(&gates->lock);
	is_idle = !gates->list[unit].pins;
	*ret_epoch = gates->epochs[unit];
	pthread_mutex_unlock(&gates->lock);
	return is_idle;
}

static void fail(struct gates *gates, uint32_t unit)
{
	struct kv_pins *pins, *next;

	for (pins = gates->waiting.next; pins != &gates->waiting; pins = next) {
		next = pins->next;
		if (pins->units[pins->at] != unit)
			continue;
		unlist(pins);
		pins->state = KV_GATE_GONE;
		if (pins->ready)
			pins->ready(pins->ready_ctx);
	}
}

void gates_fail(struct gates *gates, uint32_t unit)
{
	pthread_mutex_lock(&gates->lock);
	fail(gates, unit);
	pthread_mutex_unlock(&gates->lock);
}

void gates_stop(struct gates *gates)
{
	pthread_mutex_lock(&gates->lock);
	gates->is_stopped = true;
	for (uint32_t u = 0; u < gates->n; u++) {
		gate_close(&gates->list[u]);
		fail(gates, u);
	}
	pthread_mutex_unlock(&gates->lock);
}

bool gates_wanted(struct gates *gates, uint32_t *unit, uint64_t *ret_since_ns)
{
	pthread_mutex_lock(&gates->lock);
	/* Units before *unit may have been wanted meanwhile: the caller's next scan finds them. */
	if (!gates->n_wanted)
		*unit = gates->n;
	while (*unit < gates->n && !gates->wanted_ns[*unit])
		(*unit)++;
	if (*unit < gates->n) {
		*ret_since_ns = gates->wanted_ns[*unit];
		gates->wanted_ns[*unit] = 0;
		gates->n_wanted--;
	}
	pthread_mutex_unlock(&gates->lock);
	return *unit < gates->n;
}
