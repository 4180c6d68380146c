// SPDX-License-Identifier: GPL-2.0-or-later
/* See pressure.h: levels from the state, records, and which VM should move. */
#include <stdio.h>
#include <string.h>

#include "core/pressure/pressure.h"

/* VMs that a cause names. */
#define NUM_NAMED		3u
/* A CPU time that is older says nothing; they come every few seconds. */
#define TIMES_USEC		(30 * EBB_USEC_PER_SEC)

static unsigned long long mib(uint64_t blocks)
{
	return blocks * EBB_BLOCK_MIB;
}

/* The room's own parts of a VM. */
static struct ebb_vm_move *own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_move *)&vm->move;
}

static struct ebb_vm_use *own_use(const struct ebb_vm *vm)
{
	return (struct ebb_vm_use *)&vm->use;
}

static struct ebb_violation *violation_of(struct pressure_room *s, enum ebb_pressed what,
					  uint16_t i)
{
	return what == EBB_PRESSED_CORE ? &s->core_violations[i] : &s->violations[what][i];
}

/* The speed of one of the host's CPUs, in thousandths of a real CPU. */
static uint32_t share_of(const struct pressure_room *s)
{
	return s->env->host.is_emulated ? s->env->host.share_permille : 1000;
}

static uint64_t capacity_of(const struct pressure_room *s, enum ebb_pressed what, uint16_t h)
{
	switch (what) {
	case EBB_PRESSED_MEMORY:
		return s->env->nodes[h].mem_capacity;
	case EBB_PRESSED_CPU:
		return (uint64_t)core_node_capacity(s->env, h) * share_of(s);
	default:
		return 1000;
	}
}

static struct ebb_violation_rule rule_of(const struct pressure_room *s, enum ebb_pressed what,
					 uint16_t h, uint64_t capacity)
{
	const struct ebb_pressure *p = &s->env->cfg.pressure;
	struct ebb_violation_rule r = {
		.threshold = capacity * p->host_hot_percent / 100,
		.failover = UINT64_MAX,
		.window = p->hot_window_s * EBB_USEC_PER_SEC,
		.cooldown = p->cool_down_s * EBB_USEC_PER_SEC,
	};

	if (what == EBB_PRESSED_MEMORY) {
		r.threshold = capacity * p->memory_threshold_percent / 100;
		r.failover = capacity * p->memory_failover_percent / 100;
		r.window = p->memory_window_s * EBB_USEC_PER_SEC;
	} else if (what == EBB_PRESSED_CORE) {
		/* The level of a core is an average over the window already. */
		r.threshold = capacity * p->core_hot_percent / 100;
		r.window = 0;
	}
	/* VMs that are throttled want more than there is, however little is used. */
	if (what == EBB_PRESSED_CPU && s->is_throttled[h])
		r.threshold = r.failover = 0;
	r.target = what == EBB_PRESSED_MEMORY ? capacity * p->memory_target_percent / 100 :
						r.threshold;
	return r;
}

void pressure_create(struct pressure_room *s)
{
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
		for (int what = 0; what < EBB_PRESSED_CORE; what++)
			ebb_violation_clear(&s->violations[what][h]);
	for (uint16_t c = 0; c < EBB_MAX_THREADS; c++)
		ebb_violation_clear(&s->core_violations[c]);
	s->next_at = EBB_TIME_NEVER;
}

void pressure_changed(struct pressure_room *s)
{
	s->is_stale = true;
}

/* The use of a resource of a node of the host by a VM. */
static uint64_t use_of(const struct ebb_vm *vm, enum ebb_pressed what, uint16_t h, usec_t now)
{
	uint64_t sum = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		if (vm->sla.nodes[g].host_node != h)
			continue;
		if (what == EBB_PRESSED_MEMORY)
			sum += vm->pools[g].held + vm->pools[g].unconfirmed;
		else if (vm->use.cpu_at && now < vm->use.cpu_at + TIMES_USEC)
			sum += vm->use.cpu_permille[g];
	}
	return sum;
}

/* The VMs that use most: "a 500, b 300, c 20 MiB". */
static void name_most(const struct pressure_room *s, enum ebb_pressed what, uint16_t h, usec_t now,
		      char *text, size_t size)
{
	const struct ebb_vm *named[NUM_NAMED] = { NULL };
	size_t len = 0;

	text[0] = '\0';
	for (size_t k = 0; k < NUM_NAMED; k++) {
		uint64_t most = 0;

		core_set_for_each(i, &s->env->on[h]) {
			const struct ebb_vm *vm = s->env->active[i];
			const uint64_t use = use_of(vm, what, h, now);

			if (use <= most || vm == named[0] || (k > 1 && vm == named[1]))
				continue;
			most = use;
			named[k] = vm;
		}
		if (!named[k])
			return;
		len = strlen(text);
		if (what == EBB_PRESSED_MEMORY)
			snprintf(text + len, size - len, "%s%s %llu", k ? ", " : "; most by ",
				 ebb_text_label(named[k]->name, 20).text, mib(most));
		else
			snprintf(text + len, size - len, "%s%s %.2f", k ? ", " : "; most by ",
				 ebb_text_label(named[k]->name, 20).text, (double)most / 1000);
	}
}

static unsigned percent(uint64_t part, uint64_t all)
{
	return all ? (unsigned)(part * 100 / all) : 0;
}

/* "memory of node 0: 930 of 1024 MiB held (90%)" */
static void say_level(const struct ebb_violation *v, enum ebb_pressed what, uint16_t h, char *text,
		      size_t size)
{
	if (what == EBB_PRESSED_MEMORY)
		snprintf(text, size, "memory of node %u: %llu of %llu MiB held (%u%%)", h,
			 mib(v->level), mib(v->capacity), percent(v->level, v->capacity));
	else
		snprintf(text, size, "CPUs of node %u: %.2f of %.2f used (%u%%)", h,
			 (double)v->level / 1000, (double)v->capacity / 1000,
			 percent(v->level, v->capacity));
}

static void say_rule(const struct pressure_room *s, enum ebb_pressed what, uint16_t h, char *text,
		     size_t size)
{
	const struct ebb_pressure *p = &s->env->cfg.pressure;

	if (what == EBB_PRESSED_MEMORY)
		snprintf(text, size, ", above %u%% for %u s", p->memory_threshold_percent,
			 p->memory_window_s);
	else if (s->is_throttled[h])
		snprintf(text, size, ", and its VMs are throttled");
	else
		snprintf(text, size, ", above %u%% for %u s", p->host_hot_percent,
			 p->hot_window_s);
}

static void record(struct pressure_room *s, usec_t now, const struct ebb_violation *v,
		   enum ebb_pressed what, uint16_t h, usec_t began_at)
{
	struct ebb_record *r = core_record(s->env, NULL, now, EBB_EVENT_VIOLATION);

	r->node = h;
	r->code = ebb_pressed_code(what, !v->is_on);
	r->total_usec = v->is_on ? 0 : now - began_at;
	if (what == EBB_PRESSED_MEMORY)
		r->bytes = v->level * EBB_BLOCK_BYTES;
	memcpy(r->text, v->text, sizeof(r->text));
}

static void step(struct pressure_room *s, usec_t now, enum ebb_pressed what, uint16_t h,
		 uint64_t level)
{
	struct ebb_violation *v = violation_of(s, what, h);
	const usec_t began_at = v->since;
	struct ebb_violation_rule rule;
	char is[128], who[EBB_TEXT_SIZE];
	int news;

	v->capacity = capacity_of(s, what, h);
	rule = rule_of(s, what, h, v->capacity);
	news = ebb_violation_step(v, &rule, level, now);
	s->next_at = core_sooner(s->next_at, ebb_violation_until(v, &rule, now));
	if (!news)
		return;
	say_level(v, what, h, is, sizeof(is));
	if (news > 0) {
		name_most(s, what, h, now, who, sizeof(who));
		say_rule(s, what, h, is + strlen(is), sizeof(is) - strlen(is));
		core_text(v->text, "%s%.80s", is, who);
	} else {
		core_text(v->text, "%s, after %llu s; at most it was %u%%", is,
			  (unsigned long long)((now - began_at) / EBB_USEC_PER_SEC),
			  percent(v->peak, v->capacity));
	}
	record(s, now, v, what, h, began_at);
}

/* ---- moves --------------------------------------------------------------- */

/*
 * The VM computes nearly all the time on all CPUs that its limit allows, and its SLA would allow
 * more.  Engines ask for no more than is offered, so that they say nothing of this themselves.
 */
static bool is_short(const struct pressure_room *s, const struct ebb_vm *vm, uint16_t g, usec_t now)
{
	const struct ebb_vm_node *n = &vm->nodes[g];
	const uint64_t full = (uint64_t)n->used * share_of(s) *
			      s->env->cfg.pressure.core_hot_percent / 100;

	return core_counts_as_driven(vm) && n->used > 0 && n->used >= n->limit &&
	       n->used < vm->sla.nodes[g].max && now < vm->use.cpu_at + TIMES_USEC &&
	       vm->use.cpu_permille[g] > full;
}

/* A VM on the node asks for more CPUs than it has or is short of them, or VMs are throttled. */
static bool has_want(const struct pressure_room *s, uint16_t h, usec_t now)
{
	if (s->is_throttled[h])
		return true;
	core_set_for_each(i, &s->env->on[h]) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t g = 0; vm->is_admitted && g < vm->sla.num_nodes; g++)
			if (vm->sla.nodes[g].host_node == h &&
			    (core_wanted(vm, g, now) > vm->nodes[g].used ||
			     is_short(s, vm, g, now)))
				return true;
	}
	return false;
}

/*
 * Where a policy hands all memory out on purpose, or all VMs have the CPUs that they want, a node
 * that is full is well used.
 */
static bool needs_move(const struct pressure_room *s, enum ebb_pressed what, uint16_t h, usec_t now)
{
	if (what == EBB_PRESSED_MEMORY)
		return s->env->policy->mem_review_usec > 0;
	return what == EBB_PRESSED_CPU && has_want(s, h, now);
}

static uint64_t state_bytes(const struct ebb_vm *vm)
{
	uint64_t bytes = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		bytes += vm->boot_bytes[g] + vm->pools[g].held * EBB_BLOCK_BYTES;
	return bytes;
}

/* Of all nodes; one whose CPU times are not known counts as in use. */
static uint32_t activity(const struct pressure_room *s, const struct ebb_vm *vm, usec_t now)
{
	uint64_t sum = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		if (!vm->use.cpu_at && vm->sla.nodes[g].startup > 0)
			return EBB_MOVE_IDLE_PERMILLE;
		if (now < vm->use.cpu_at + TIMES_USEC)
			sum += vm->use.cpu_permille[g];
	}
	/* In cores of this host. */
	return (uint32_t)(sum * 1000 / share_of(s));
}

static void end_move(struct pressure_room *s, usec_t now, const struct ebb_vm *vm, const char *why)
{
	struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_MOVE);

	own(vm)->is_on = false;
	r->node = vm->move.host_node;
	r->code = ebb_pressed_code(vm->move.pressed, true);
	r->total_usec = now - vm->move.at;
	core_text(r->text, "need not move any more: %s", why);
}

void pressure_stop(struct pressure_room *s, usec_t now, const struct ebb_vm *vm)
{
	if (vm->move.is_on)
		end_move(s, now, vm, "it has left, or stopped");
	*own_use(vm) = (struct ebb_vm_use){ 0 };
}

static void review_move(struct pressure_room *s, usec_t now, const struct ebb_vm *vm)
{
	const struct ebb_vm_move *m = &vm->move;

	if (!m->is_on)
		return;
	if (!violation_of(s, m->pressed, m->host_node)->is_on)
		end_move(s, now, vm, "the pressure is over");
	else if (!needs_move(s, m->pressed, m->host_node, now))
		end_move(s, now, vm, "no other VM waits for its resources");
	else if (2 * use_of(vm, m->pressed, m->host_node, now) < m->relief)
		end_move(s, now, vm, "it would free less than half of that now");
}

static void begin_move(struct pressure_room *s, usec_t now, const struct ebb_vm *vm,
		       enum ebb_pressed what,
		       uint16_t h, const struct ebb_move_candidate *c, uint64_t needed,
		       enum ebb_move_why why)
{
	const char *resource = what == EBB_PRESSED_MEMORY ? "memory" : "CPUs";
	struct ebb_record *r;
	char frees[48];

	if (what == EBB_PRESSED_MEMORY)
		snprintf(frees, sizeof(frees), "%llu of %llu MiB", mib(c->relief), mib(needed));
	else
		snprintf(frees, sizeof(frees), "%.2f of %.2f CPUs", (double)c->relief / 1000,
			 (double)needed / 1000);
	*own(vm) = (struct ebb_vm_move){
		.is_on = true, .pressed = what, .host_node = h, .at = now, .relief = c->relief,
	};
	core_text(own(vm)->text, "should move to another host: that frees %s needed of the %s of "
		  "node %u; weight %u, %s, %llu MiB to take along; %s", frees, resource, h,
		  c->weight, c->cpu_permille < EBB_MOVE_IDLE_PERMILLE ? "idle" : "in use",
		  (unsigned long long)(c->state_bytes >> 20), ebb_move_why_text(why));
	r = core_record(s->env, vm, now, EBB_EVENT_MOVE);
	r->node = h;
	r->code = ebb_pressed_code(what, false);
	r->bytes = c->state_bytes;
	memcpy(r->text, vm->move.text, sizeof(r->text));
}

/* A VM that does next to nothing is no help, however little there is too much. */
static uint64_t cpus_needed(const struct pressure_room *s, const struct ebb_violation *v)
{
	const uint64_t threshold = v->capacity * s->env->cfg.pressure.host_hot_percent / 100;
	const uint64_t least = v->capacity / 20;

	return v->level > threshold + least ? v->level - threshold : least;
}

/* A VM that is to move already, for this or another resource, counts as gone. */
static void call_move(struct pressure_room *s, usec_t now, enum ebb_pressed what, uint16_t h)
{
	struct ebb_violation *v = violation_of(s, what, h);
	const struct ebb_violation_rule rule = rule_of(s, what, h, v->capacity);
	struct ebb_move_candidate *c = s->candidates;
	uint64_t going = 0, needed;
	enum ebb_move_why why;
	uint32_t num_users = 0;
	int best;

	if (!ebb_violation_calls_move(v, &rule, now) || !needs_move(s, what, h, now))
		return;
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];
		const uint64_t use = use_of(vm, what, h, now);
		const bool is_barred = vm->move.is_on ||
				       (vm->move.at && now < vm->move.at + rule.cooldown);

		num_users += use > 0;
		going += vm->move.is_on ? use : 0;
		c[i] = (struct ebb_move_candidate){
			.relief = is_barred ? 0 : use,
			.weight = what == EBB_PRESSED_MEMORY ? vm->sla.mem_weight : vm->sla.weight,
			.cpu_permille = activity(s, vm, now),
			.state_bytes = state_bytes(vm),
			.order = vm->order,
		};
	}
	needed = v->level > rule.target ? v->level - rule.target : 1;
	if (what == EBB_PRESSED_CPU)
		needed = cpus_needed(s, v);
	/* A VM that has it all to itself crowds out nobody. */
	if (going >= needed || num_users < 2)
		return;
	best = ebb_move_choose(c, s->env->num_active, needed - going, &why);
	if (best < 0)
		return;
	v->moved_at = now;
	v->num_moves++;
	begin_move(s, now, s->env->active[best], what, h, &c[best], needed - going, why);
}

/* ---- levels -------------------------------------------------------------- */

static uint64_t level_of(const struct pressure_room *s, enum ebb_pressed what, uint16_t h,
			 usec_t now)
{
	uint64_t sum = 0;

	core_set_for_each(i, &s->env->on[h])
		sum += use_of(s->env->active[i], what, h, now);
	return sum;
}

usec_t pressure_settle(struct pressure_room *s, usec_t now)
{
	if (!s->is_stale && now < s->next_at)
		return s->next_at;
	s->is_stale = false;
	s->next_at = EBB_TIME_NEVER;
	for (uint16_t h = 0; h < s->env->host.num_nodes; h++)
		for (enum ebb_pressed what = 0; what < EBB_PRESSED_CORE; what++)
			step(s, now, what, h, level_of(s, what, h, now));
	for (size_t i = 0; i < s->env->num_active; i++)
		review_move(s, now, s->env->active[i]);
	for (uint16_t h = 0; h < s->env->host.num_nodes; h++)
		for (enum ebb_pressed what = 0; what < EBB_PRESSED_CORE; what++)
			call_move(s, now, what, h);
	return s->next_at;
}

void pressure_report_times(struct pressure_room *s, usec_t as_of, const struct ebb_vm *vm)
{
	struct ebb_vm_use *use = own_use(vm);

	*use = (struct ebb_vm_use){ .cpu_at = as_of };
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu_times *t = &vm->vcpu_times[i];

		if (core_vcpu_is_present(&vm->vcpus[i]) && t->at && as_of < t->at + TIMES_USEC)
			use->cpu_permille[vm->vcpus[i].node] += t->cpu_permille;
	}
	s->is_stale = true;
}

/* "90% of its time used or waited for (70% used)" */
static void say_core(uint32_t level, uint32_t used, char *text, size_t size)
{
	if (level > used)
		snprintf(text, size, "%u%% of its time used or waited for (%u%% used)", level / 10,
			 used / 10);
	else
		snprintf(text, size, "%u%% of its time used", used / 10);
}

void pressure_report_core(struct pressure_room *s, usec_t now, uint16_t core, uint32_t level,
			  uint32_t used, const char *who)
{
	struct ebb_violation *v = violation_of(s, EBB_PRESSED_CORE, core);
	const struct ebb_violation_rule rule = rule_of(s, EBB_PRESSED_CORE, 0, 1000);
	const usec_t began_at = v->since;
	const int news = ebb_violation_step(v, &rule, level, now);
	char is[64];

	v->capacity = 1000;
	if (!news)
		return;
	say_core(level, used, is, sizeof(is));
	if (news > 0)
		core_text(v->text, "core %u, which VMs share: %s over %u s, above %u%%; %.80s",
			  core, is, s->env->cfg.pressure.hot_window_s,
			  s->env->cfg.pressure.core_hot_percent, who);
	else
		core_text(v->text, "core %u: %s, after %llu s; at most it was %u%%", core, is,
			  (unsigned long long)((now - began_at) / EBB_USEC_PER_SEC),
			  (unsigned)(v->peak / 10));
	record(s, now, v, EBB_PRESSED_CORE, s->env->host.cores[core].node, began_at);
}

void pressure_report_throttle(struct pressure_room *s, uint16_t host_node, bool is_throttled)
{
	if (s->is_throttled[host_node] != is_throttled)
		s->is_stale = true;
	s->is_throttled[host_node] = is_throttled;
}

/* ---- reading ------------------------------------------------------------- */

const struct ebb_violation *pressure_violation(const struct pressure_room *s,
					       enum ebb_pressed pressed, uint16_t i)
{
	const bool is_core = pressed == EBB_PRESSED_CORE;

	if (i >= (is_core ? s->env->host.num_cores : s->env->host.num_nodes))
		return NULL;
	return is_core ? &s->core_violations[i] : &s->violations[pressed][i];
}
