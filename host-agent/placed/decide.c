/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See decide.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "placed/decide.h"
#include "util/text.h"

struct run {
	const struct placed_policy *policy;
	const struct placed_view *view;
	const struct placed_cluster *c;
	const struct placed_host *host;	/* this one */
	bool is_at_work;		/* Pacemaker is, see is_at_work() */
	uint64_t now;
	struct placed_state *s;
	struct placed_actions *out;
};

static struct placed_action *emit(struct run *d, enum placed_action_type type, const char *vm)
{
	struct placed_actions *out = d->out;
	/* An action beyond the capacity is written over the last one, and not counted. */
	struct placed_action *a = &out->items[out->count < out->capacity ? out->count :
								       out->capacity - 1];

	if (out->count < out->capacity)
		out->count++;
	*a = (struct placed_action){ .type = type };
	ebb_text_copy(a->vm, sizeof(a->vm), vm);
	return a;
}

static void __attribute__((format(printf, 3, 4)))
say(struct run *d, const char *vm, const char *fmt, ...)
{
	struct placed_action *a = emit(d, PLACED_SAY, vm);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->text, sizeof(a->text), fmt, ap);
	va_end(ap);
}

static void set_score(struct run *d, const struct placed_vm *vm, int32_t score, const char *why)
{
	struct placed_action *a;

	if (vm->scores[d->view->self] == score)
		return;
	a = emit(d, PLACED_SET_SCORE, vm->name);
	a->value = score;
	ebb_text_copy(a->text, sizeof(a->text), why);
}

/* ---- where a VM could go --------------------------------------------------- */

/* The amount of a host that Pacemaker has given to VMs, but for this one and those with it. */
static double taken(const struct placed_cluster *c, int host, const struct placed_vm *without,
		    enum place_resource r)
{
	double sum = 0;

	for (int i = 0; i < c->num_vms; i++)
		if (c->vms[i].started_on == host &&
		    !(without && c->vms[i].set == without->set) && c->vms[i].utilization[r] > 0)
			sum += c->vms[i].utilization[r];
	return sum;
}

static bool fits(const struct placed_cluster *c, int host, const struct placed_vm *vm)
{
	for (int r = 0; r < PLACE_N_RESOURCES; r++) {
		double floors = 0;

		for (int i = vm->set; i >= 0; i = c->vms[i].next)
			if (c->vms[i].utilization[r] > 0)
				floors += c->vms[i].utilization[r];
		if (floors > 0 && taken(c, host, vm, r) + floors > c->hosts[host].utilization[r])
			return false;
	}
	return true;
}

/* Empty: it may take the VM. */
static const char *refusal(const struct placed_cluster *c, int h, const struct placed_vm *vm)
{
	const struct placed_host *host = &c->hosts[h];

	if (vm->scores[h] == PLACED_SCORE_NONE)
		return "has no score for it";
	if (vm->scores[h] == PLACED_SCORE_LIE)
		return "has a score that is not believed";
	if (vm->scores[h] == PLACED_SCORE_NEVER)
		return "says that it can take none";
	if (host->version != 0 && host->version != PLACED_VERSION)
		return "has an ebb-placed of another version";
	if (!host->has_facts)
		return "tells no facts";
	return host->is_ready ? "" : "has an ebbd or libvirtd that does not answer";
}

/* The first VM of those that must be with it to which the host has such a score; NULL: none. */
static const struct placed_vm *with_score(const struct placed_cluster *c,
					  const struct placed_vm *vm, int host, int32_t score)
{
	for (int i = vm->set; i >= 0; i = c->vms[i].next)
		if (c->vms[i].scores[host] == score)
			return &c->vms[i];
	return NULL;
}

/* How much Pacemaker wants one VM on a host; below 0: not at all. */
static int64_t wish(const struct placed_cluster *c, const struct placed_vm *vm, int host)
{
	if (!c->hosts[host].is_online || vm->scores[host] == PLACED_SCORE_NEVER)
		return PLACED_SCORE_NEVER;
	return (vm->scores[host] > 0 ? vm->scores[host] : 0) +
	       (vm->started_on == host && vm->stickiness > 0 ? vm->stickiness : 0);
}

struct search {
	const struct placed_cluster *c;
	const struct placed_vm *vm;
	int from;
	bool runs;			/* on `from`, which goes on to be there */
	/* Pacemaker's sum of scores for the VM on each host; below 0: it can not be there. */
	int64_t sums[PLACED_MAX_HOSTS];
	const struct placed_rule *rule;	/* that rules out a host */
	int num_left;			/* hosts other than `from` that nothing rules out */
};

/*
 * Pacemaker subtracts what VMs want that have to avoid this one (while it runs only if they have
 * influence), one after the other, but for those that leave no host for it.
 */
static void subtract_wishes(struct search *s)
{
	const struct placed_cluster *c = s->c;

	for (int i = 0; i < c->num_rules; i++) {
		const struct placed_rule *rule = &c->rules[i];
		int64_t sums[PLACED_MAX_HOSTS];
		bool is_any = false;

		if (rule->type != PLACED_APART || c->vms[rule->other].set != s->vm->set ||
		    (s->runs && !rule->has_influence))
			continue;
		for (int h = 0; h < c->num_hosts; h++) {
			int64_t most = 0;

			/* The most that it wants a host from which this VM would keep it. */
			for (int k = 0; k < c->num_hosts; k++)
				if (placed_rule_joins(c, rule, k, h) &&
				    wish(c, &c->vms[rule->vm], k) > most)
					most = wish(c, &c->vms[rule->vm], k);
			sums[h] = s->sums[h] - most;
			is_any = is_any || sums[h] >= 0;
		}
		if (is_any)
			memcpy(s->sums, sums, sizeof(sums));
	}
}

/* For the VM and those that must be with it. */
static void add_wishes(struct search *s)
{
	s->num_left = 0;
	for (int h = 0; h < s->c->num_hosts; h++) {
		const bool is_home = s->runs && h == s->from;
		const struct placed_rule *rule = is_home ? NULL :
						 placed_rule_against(s->c, s->vm, h, NULL);
		bool is_open = !rule && (is_home || h != s->from);

		s->rule = rule && s->c->hosts[h].is_online ? rule : s->rule;
		s->sums[h] = 0;
		for (int i = s->vm->set; i >= 0; i = s->c->vms[i].next) {
			const int64_t its = wish(s->c, &s->c->vms[i], h);

			is_open = is_open && its >= 0;
			s->sums[h] += its;
		}
		s->num_left += is_open && !is_home;
		if (!is_open || (!is_home && !fits(s->c, h, s->vm)))
			s->sums[h] = PLACED_SCORE_NEVER;
	}
	subtract_wishes(s);
}

/* Pacemaker's choice but for `from`; -1, and why there is none or it may not be. */
static int find_best(struct search *s, char *ret_why, size_t size)
{
	int best = -1;

	add_wishes(s);
	ret_why[0] = '\0';
	for (int h = 0; h < s->c->num_hosts; h++) {
		/* It believes every number. */
		const struct placed_vm *lie = with_score(s->c, s->vm, h, PLACED_SCORE_LIE);

		if (h == s->from || s->sums[h] < 0)
			continue;
		if (lie) {
			snprintf(ret_why, size, "host %s %s", s->c->hosts[h].name,
				 refusal(s->c, h, lie));
			return -1;
		}
		if (best < 0 || s->sums[h] > s->sums[best])
			best = h;
	}
	if (best < 0)
		snprintf(ret_why, size, "%s%s%s", s->num_left ? "its floors fit on no other host" :
			 "no other host can take it", s->rule ? ", also by constraint " : "",
			 s->rule ? s->rule->id : "");
	else if (*refusal(s->c, best, s->vm))
		snprintf(ret_why, size, "host %s %s", s->c->hosts[best].name,
			 refusal(s->c, best, s->vm));
	return *ret_why ? -1 : best;
}

int placed_best(const struct placed_cluster *c, const struct placed_vm *vm, int from, char *ret_why,
		size_t size)
{
	struct search s = { .c = c, .vm = vm, .from = from };

	return find_best(&s, ret_why, size);
}

/* ---- moves ----------------------------------------------------------------- */

bool placed_waits(const struct placed_state *s, const char *vm, uint64_t now)
{
	for (int i = 0; i < PLACED_MAX_WAITS; i++)
		if (now < s->waits[i].until && strcmp(s->waits[i].vm, vm) == 0)
			return true;
	return false;
}

static void wait_for(struct run *d, const char *vm)
{
	const int i = d->s->next_wait++ % PLACED_MAX_WAITS;

	ebb_text_copy(d->s->waits[i].vm, PLACED_NAME_SIZE, vm);
	d->s->waits[i].until = d->now + d->policy->retry_usec;
}

static bool is_in_dispute(const struct placed_vm *vm)
{
	return vm->other_host >= 0 ||
	       (vm->host >= 0 && vm->started_on >= 0 && vm->host != vm->started_on);
}

static bool is_any_moving(const struct placed_cluster *c)
{
	/* A placer that has died, or one that lies, goes on saying so: the VM has to be there. */
	for (int h = 0; h < c->num_hosts; h++) {
		const int i = c->hosts[h].has_facts ? placed_vm_find(c, c->hosts[h].moving) : -1;

		if (i >= 0 && c->vms[i].started_on == h)
			return true;
	}
	for (int i = 0; i < c->num_vms; i++)
		if (c->vms[i].is_busy)
			return true;
	return false;
}

/*
 * Pacemaker moves VMs, or is about to start those of a host that is lost.  Any score that changes
 * makes it think anew, and it first waits for what it has begun: VMs that have their turn later
 * would have to wait for all that are being started.
 */
static bool is_at_work(const struct placed_cluster *c)
{
	for (int i = 0; i < c->num_vms; i++)
		if (c->vms[i].is_resource && c->vms[i].started_on >= 0 &&
		    !c->hosts[c->vms[i].started_on].is_online)
			return true;
	return is_any_moving(c);
}

/* Why Pacemaker can not move the VM; NULL: it can. */
static const char *hindrance(const struct placed_vm *vm)
{
	return !vm->is_settled ? "Pacemaker is not done with it" :
	       !vm->can_migrate ? "its resource has no allow-migrate=true" :
	       vm->stickiness < 0 || !vm->has_rule ? "its resource has no rule or stickiness yet" :
						     NULL;
}

/* Where the VM, and those with it, would go now; -1, and why it may not. */
static int move_target(struct search *s, int64_t *ret_cost, char *ret_why, size_t size)
{
	const int best = find_best(s, ret_why, size);

	for (int i = s->vm->set; i >= 0; i = s->c->vms[i].next) {
		const char *why = hindrance(&s->c->vms[i]);

		if (why) {
			snprintf(ret_why, size, "%s", why);
			return -1;
		}
	}
	/* The sum for its own host if its score there were 0. */
	*ret_cost = s->sums[s->from] - (s->vm->scores[s->from] > 0 ? s->vm->scores[s->from] : 0);
	if (best >= 0 && s->sums[best] <= *ret_cost) {
		snprintf(ret_why, size, "the best other host, %s, has a score of %lld, and moving "
			 "it costs %lld", s->c->hosts[best].name, (long long)s->sums[best],
			 (long long)*ret_cost);
		return -1;
	}
	return best;
}

/*
 * Whether the VM of another host has been waited for in vain: that host's placer may have died, and
 * what it told last stands.  Then the VM is passed over for a while.
 */
static bool has_waited(struct run *d, const struct placed_vm *vm)
{
	struct placed_state *s = d->s;

	if (strcmp(s->awaited, vm->name) != 0) {
		ebb_text_copy(s->awaited, sizeof(s->awaited), vm->name);
		s->awaited_since = d->now;
	}
	if (d->now - s->awaited_since < d->policy->move_usec)
		return false;
	wait_for(d, vm->name);
	return true;
}

/*
 * D2.  The first one that can move, in the order of hosts and VMs: all hosts find the same.  Those
 * of a host that is not ready do not count, as that host moves nothing.
 */
static void begin_move(struct run *d)
{
	char why[PLACED_WHY_SIZE], text[PLACED_TEXT_SIZE];
	int64_t cost;
	int target;

	for (int h = 0; h <= d->view->self; h++)
		for (int i = 0; i < d->c->num_vms; i++) {
			const struct placed_vm *vm = &d->c->vms[i];
			struct search search = { .c = d->c, .vm = vm, .from = h, .runs = true };

			if (!vm->should_move || vm->started_on != h || vm->host != h ||
			    !d->c->hosts[h].is_ready || is_in_dispute(vm) ||
			    placed_waits(d->s, vm->name, d->now))
				continue;
			target = move_target(&search, &cost, why, sizeof(why));
			if (target < 0 && h == d->view->self)
				say(d, vm->name, "should move, but stays: %s (it %s)", why,
				    vm->why);
			if (target < 0 || (h != d->view->self && has_waited(d, vm)))
				continue;
			if (h != d->view->self)
				return;
			ebb_text_copy(d->s->moving, sizeof(d->s->moving), vm->name);
			d->s->moving_since = d->now;
			d->s->awaited[0] = '\0';
			snprintf(text, sizeof(text), "moves to %s, which has %lld, at a cost of "
				 "%lld: it %s", d->c->hosts[target].name,
				 (long long)search.sums[target], (long long)cost, vm->why);
			set_score(d, vm, 0, text);
			return;
		}
	d->s->awaited[0] = '\0';
}

static void end_move(struct run *d)
{
	const int i = placed_vm_find(d->c, d->s->moving);
	const struct placed_vm *vm = i >= 0 ? &d->c->vms[i] : NULL;
	const double seconds = (double)(d->now - d->s->moving_since) / 1e6;

	if (vm && vm->is_busy)
		return;
	if (!vm || vm->started_on != d->view->self) {
		say(d, d->s->moving, "has left this host for %s after %.1f s",
		    vm && vm->started_on >= 0 ? d->c->hosts[vm->started_on].name : "no other",
		    seconds);
	} else if (d->now - d->s->moving_since >= d->policy->move_usec) {
		say(d, d->s->moving, "is still here after %.0f s: it stays, and is not moved for "
		    "%.0f s", seconds, (double)d->policy->retry_usec / 1e6);
		wait_for(d, d->s->moving);
	} else if (vm->should_move) {
		return;
	}
	d->s->moving[0] = '\0';
}

/* ---- what is published ----------------------------------------------------- */

/*
 * Two hosts never have the same score for a VM, if there are no more than ten: Pacemaker would
 * choose by rules of its own then, and other VMs are judged by where this one would go.  So the
 * last digit is the host's place in an order that differs from VM to VM.
 */
static int32_t score_of(const struct run *d, const struct placed_vm *vm, double risk)
{
	uint32_t hash = (uint32_t)d->view->self;

	/* Sum of characters: names that end with a number begin with different hosts. */
	for (const char *c = vm->name; *c; c++)
		hash += (uint8_t)*c;
	return (int32_t)(99 * (1 - (risk > 1 ? 1 : risk)) + 0.5) * 10 +
	       9 - (int32_t)(hash % (uint32_t)d->c->num_hosts % 10);
}

static void publish_home(struct run *d, const struct placed_vm *vm)
{
	if (strcmp(d->s->moving, vm->name) == 0)
		set_score(d, vm, 0, "it is to leave this host");
	else
		set_score(d, vm, PLACED_SCORE_MOST, "it stays on this host");
}

static void publish_other(struct run *d, const struct placed_vm *vm, double risk)
{
	const struct placed_rule *rule = placed_rule_against(d->c, vm, d->view->self, NULL);
	const int32_t stands = vm->scores[d->view->self];
	const int32_t score = score_of(d, vm, risk);
	const int32_t change = score > stands ? score - stands : stands - score;
	char why[128];

	if (!d->host->is_ready) {
		set_score(d, vm, PLACED_SCORE_NEVER, "ebbd or libvirtd does not answer here");
		return;
	}
	if (rule) {
		snprintf(why, sizeof(why), "constraint %s", rule->id);
		set_score(d, vm, PLACED_SCORE_NEVER, why);
		return;
	}
	if (risk < 0 || (stands >= 0 && (change < d->policy->score_step || d->is_at_work)))
		return;
	snprintf(why, sizeof(why), "a violation is expected with probability %.3f", risk);
	set_score(d, vm, score, why);
}

/* ---- what Pacemaker is told of sizes and costs ----------------------------- */

/* Of a VM that two hosts tell of nobody is believed: what Pacemaker was told of it stands. */
static double floor_of(const struct placed_vm *vm, int r)
{
	if (!is_in_dispute(vm))
		return vm->floor[r];
	return vm->utilization[r] > 0 ? vm->utilization[r] : 0;
}

/* D3.  False: the floors of the VMs here may not be told yet. */
static bool set_capacity(struct run *d)
{
	bool may_tell = true;

	for (int r = 0; r < PLACE_N_RESOURCES; r++) {
		const double has = d->host->capacity[r], stands = d->host->utilization[r];
		double floors = 0;

		if (!placed_utilization[r] || has <= 0)
			continue;
		for (int i = 0; i < d->c->num_vms; i++)
			if (d->c->vms[i].started_on == d->view->self)
				floors += floor_of(&d->c->vms[i], r);
		if (taken(d->c, d->view->self, NULL, r) > has || floors > has) {
			say(d, "", "the floors of the VMs here add up to more %s than the host "
			    "has: Pacemaker is not told, as it would stop some",
			    place_resources[r].name);
			may_tell = false;
		} else if (stands != (double)(int64_t)has) {
			struct placed_action *a = emit(d, PLACED_SET_CAPACITY, "");

			a->resource = r;
			a->value = (int64_t)has;
			may_tell = false;
		}
	}
	return may_tell;
}

static void set_costs(struct run *d, const struct placed_vm *vm, bool may_tell)
{
	const struct place_move_cost *cost = &d->policy->cost;
	const double value = place_move_cost(cost, vm->use[PLACE_DISK], vm->use[PLACE_MEMORY],
					     vm->is_active);
	const int32_t stickiness = d->policy->stickiness[place_cost_bucket(cost, value)];

	if (vm->stickiness != stickiness)
		emit(d, PLACED_SET_STICKINESS, vm->name)->value = stickiness;
	for (int r = 0; may_tell && r < PLACE_N_RESOURCES; r++) {
		const int64_t floor = (int64_t)(vm->floor[r] + 0.999);
		struct placed_action *a;

		if (!placed_utilization[r] || d->host->capacity[r] <= 0 ||
		    floor == (vm->utilization[r] < 0 ? 0 : (int64_t)vm->utilization[r]))
			continue;
		a = emit(d, PLACED_SET_UTILIZATION, vm->name);
		a->resource = r;
		a->value = floor;
	}
}

/* Whether this host is the one that takes care of VMs that run nowhere. */
static bool is_first(const struct run *d)
{
	for (int h = 0; h < d->view->self; h++)
		if (d->c->hosts[h].is_online && d->c->hosts[h].has_facts)
			return false;
	return true;
}

static void look_at(struct run *d, const struct placed_vm *vm, double risk, bool may_tell)
{
	const bool is_home = vm->started_on == d->view->self;

	if (is_in_dispute(vm)) {
		if (vm->other_host < 0)
			say(d, vm->name, "Pacemaker has it on %s, and the ebbd of %s says that it "
			    "runs there: nothing is decided about it",
			    d->c->hosts[vm->started_on].name, d->c->hosts[vm->host].name);
		return;
	}
	/* While Pacemaker is at work on it another score would send it back. */
	if (vm->is_busy)
		return;
	if (is_home)
		publish_home(d, vm);
	else
		publish_other(d, vm, risk);
	if (!vm->has_rule && (is_home || (vm->started_on < 0 && is_first(d))))
		emit(d, PLACED_ADD_RULE, vm->name);
	if (is_home && vm->host == d->view->self && vm->is_known && d->host->is_ready &&
	    strcmp(d->s->moving, vm->name) != 0)
		set_costs(d, vm, may_tell);
}

void placed_decide(const struct placed_policy *policy, const struct placed_view *view, uint64_t now,
		   struct placed_state *s, struct placed_actions *ret_actions)
{
	const struct placed_cluster *c = view->cluster;
	struct run d = {
		.policy = policy, .view = view, .c = c, .host = &c->hosts[view->self], .now = now,
		.s = s, .out = ret_actions,
	};
	bool may_tell;

	ret_actions->count = 0;
	if (!c->is_quorum_known)
		return;
	if (!c->has_quorum) {
		s->moving[0] = s->awaited[0] = '\0';
		return;
	}
	if (s->moving[0])
		end_move(&d);
	if (!s->moving[0] && !is_any_moving(c) && d.host->is_ready)
		begin_move(&d);
	else
		s->awaited[0] = '\0';
	d.is_at_work = is_at_work(c);
	may_tell = d.host->is_ready && set_capacity(&d);
	for (int i = 0; i < c->num_vms; i++)
		if (c->vms[i].is_resource)
			look_at(&d, &c->vms[i], view->risk[i], may_tell);
	for (int i = 0; i < c->num_strays; i++)
		if (c->strays[i].host == view->self)
			emit(&d, PLACED_DROP_SCORE, c->strays[i].vm);
}
