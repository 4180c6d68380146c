/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See plan.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "placed/decide.h"
#include "placed/plan.h"
#include "placed/rules.h"

struct planning {
	const struct placed_cluster *c;
	const struct placed_question *q;
	struct placed_model m;
	int lost;			/* index in the cluster; -1: none */
	int vm;				/* to be explained; -1: those that are moved */
	int added;			/* index in place; -1: none */
	json_t *refusals;		/* by VM: why it is on no host */
	int *where;			/* host of each VM of the cluster, when last asked */
};

static json_t *host_name(const struct planning *p, int32_t host)
{
	return host < 0 ? json_null() : json_string(p->c->hosts[p->m.hosts[host]].name);
}

static json_t *worth(const struct planning *p)
{
	struct place_score s;

	place_score(p->m.place, &s);
	return json_pack("{s:f, s:f, s:i, s:i}", "score", isfinite(s.value) ? s.value : -1.0,
			 "risk", s.violations, "moves", (int)s.n_moves, "unplaced",
			 (int)s.n_unplaced);
}

/* ---- the operator's constraints ----------------------------------------------- */

/* The operator's rule that keeps the VM off a host in this plan; NULL: none. */
static const struct placed_rule *rule_against(const struct planning *p, uint32_t vm, int host)
{
	for (int i = 0; i < p->c->num_vms; i++) {
		const int32_t at = place_host_of(p->m.place, (uint32_t)i);

		p->where[i] = at < 0 ? -1 : p->m.hosts[at];
	}
	return p->added == (int)vm ? NULL :
	       placed_rule_against(p->c, &p->c->vms[vm], host, p->where);
}

/* " (constraint c1, db2)": which, and the VM that it is kept from. */
static void say_rule(const struct planning *p, uint32_t vm, const struct placed_rule *rule,
		     char *text, size_t size)
{
	const bool is_first = rule->type == PLACED_APART &&
			      p->c->vms[rule->vm].set == p->c->vms[vm].set;

	snprintf(text, size, " (constraint %s%s%s)", rule->id, rule->type == PLACED_APART ?
		 ", " : "", rule->type != PLACED_APART ? "" :
		 p->c->vms[is_first ? rule->other : rule->vm].name);
}

/* " together with db2 (constraint c1)", "" for a VM that may be alone. */
static void say_set(const struct planning *p, uint32_t vm, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	if (p->added == (int)vm)
		return;
	for (int i = p->c->vms[vm].set; i >= 0 && len < size; i = p->c->vms[i].next)
		if (i != (int)vm)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " :
						" together with ", p->c->vms[i].name);
	for (int i = 0; len > 0 && len < size && i < p->c->num_rules; i++)
		if (p->c->rules[i].type == PLACED_TOGETHER &&
		    p->c->vms[p->c->rules[i].vm].set == p->c->vms[vm].set) {
			snprintf(text + len, size - len, " (constraint %s)", p->c->rules[i].id);
			break;
		}
}

/* Pacemaker moves VMs that break a constraint, and so does the plan. */
static int let_go(struct planning *p)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < p->c->num_rules; i++) {
		const struct placed_rule *rule = &p->c->rules[i];
		const struct placed_vm *vm = &p->c->vms[rule->vm];
		const int32_t at = place_host_of(p->m.place, (uint32_t)rule->vm);
		const int32_t its = rule->type == PLACED_BAN ? p->m.index[rule->other] :
				    place_host_of(p->m.place, (uint32_t)rule->other);
		bool is_broken = at >= 0 && its >= 0;

		if (is_broken && rule->type == PLACED_BAN)
			is_broken = at == its;
		else if (is_broken)
			is_broken = rule->type == PLACED_APART &&
				    placed_rule_joins(p->c, rule, p->m.hosts[at],
						      p->m.hosts[its]);
		if (is_broken && vm->is_settled && vm->can_migrate)
			rc = place_put(p->m.place, (uint32_t)rule->vm, -1);
	}
	return rc;
}

/* ---- why -------------------------------------------------------------------- */

/* Room for new VMs to grow into is all that spoke against the host, and it was not enough. */
static bool gave_way(const struct place_reason *r)
{
	return r->constraints == 1u << PLACE_RESERVE;
}

static void say_constraints(const struct planning *p, uint32_t vm, const struct place_reason *r,
			    char *text, size_t size)
{
	const struct placed_rule *rule = rule_against(p, vm, p->m.hosts[r->host]);

	const uint32_t amounts = 1u << PLACE_FLOOR | 1u << PLACE_CAPACITY | 1u << PLACE_RESERVE;
	size_t len = (size_t)snprintf(text, size, "cannot take it:");

	for (int n = 0; n < PLACE_N_CONSTRAINTS && len < size; n++) {
		const bool is_amount = amounts >> n & 1;

		if (r->constraints >> n & 1)
			len += (size_t)snprintf(text + len, size - len, " %s%s%s%s,",
						place_constraint_name(n), is_amount ? " (" : "",
						is_amount ? place_resources[r->resource].name : "",
						is_amount ? ")" : "");
	}
	text[strlen(text) - 1] = '\0';
	if (rule)
		say_rule(p, vm, rule, text + strlen(text), size - strlen(text));
	say_set(p, vm, text + strlen(text), size - strlen(text));
}

static void because(const struct planning *p, uint32_t vm, const struct place_reason *r,
		    const struct place_reason *chosen, char *text, size_t size)
{
	const char *what = place_resources[r->resource].name;

	if (r->is_chosen && gave_way(r))
		snprintf(text, size, "chosen, and the reserve gave way: the %s that is kept for "
			 "new VMs to grow into is %.0f%% of the host's short; a violation within a "
			 "day is expected with probability %.2f there (%.2f without it)", what,
			 -100 * r->room, r->risk_with, r->risk_without);
	else if (r->constraints && !(chosen && gave_way(chosen) && gave_way(r)))
		say_constraints(p, vm, r, text, size);
	else if (r->is_chosen)
		snprintf(text, size, "chosen: a violation within a day is expected with "
			 "probability %.2f there (%.2f without it); %s is the scarcest, %.0f%% "
			 "of it stay free",
			 r->risk_with, r->risk_without, what, 100 * r->room);
	else if (chosen && r->risk_with > chosen->risk_with + 0.005)
		snprintf(text, size, "a violation is more probable there: %.2f, without it %.2f",
			 r->risk_with, r->risk_without);
	else if (chosen && r->score.moves > chosen->score.moves)
		snprintf(text, size, "it could go there, but the gain is not worth the move: a "
			 "violation is expected with probability %.2f", r->risk_with);
	else
		snprintf(text, size, "it could go there, but load would be less even: %.0f%% of "
			 "the %s stay free, and a violation is expected with probability %.2f",
			 100 * r->room, what, r->risk_with);
}

static json_t *reason(const struct planning *p, uint32_t vm, const struct place_reason *r,
		      const struct place_reason *chosen)
{
	json_t *ruled_out = json_array();
	char text[1024];

	because(p, vm, r, chosen, text, sizeof(text));
	for (int n = 0; n < PLACE_N_CONSTRAINTS; n++)
		if (r->constraints >> n & 1)
			json_array_append_new(ruled_out, json_string(place_constraint_name(n)));
	return json_pack("{s:o, s:b, s:f, s:f, s:o, s:s, s:f, s:s}", "host",
			 host_name(p, (int32_t)r->host), "chosen", r->is_chosen, "risk_with",
			 r->risk_with, "risk_without", r->risk_without, "ruled_out", ruled_out,
			 "resource", place_resources[r->resource].name, "room", r->room, "text",
			 text);
}

static json_t *why(const struct planning *p, uint32_t vm)
{
	const uint32_t n = place_n_hosts(p->m.place);
	struct place_reason *rows = calloc(n + 1, sizeof(*rows));
	json_t *list = json_array();

	if (rows && place_explain(p->m.place, vm, rows) == 0)
		for (uint32_t i = 0; i < n; i++)
			json_array_append_new(list, reason(p, vm, &rows[i], rows[0].is_chosen ?
							   &rows[0] : NULL));
	free(rows);
	return list;
}

/* ---- the answer ------------------------------------------------------------- */

static json_t *hosts(const struct planning *p)
{
	static const char *const states[] = { "open", "draining", "other version", "silent" };
	json_t *list = json_array();

	for (uint32_t i = 0; i < place_n_hosts(p->m.place); i++) {
		const struct placed_host *h = &p->c->hosts[p->m.hosts[i]];
		const int state = h->version && h->version != PLACED_VERSION ? 2 :
				  h->has_facts && h->is_ready ? 0 : 3;
		json_t *load = json_object(), *capacity = json_object();
		double used[PLACE_N_RESOURCES];
		int num_vms = 0;

		place_host_load(p->m.place, i, used);
		for (int r = 0; r < PLACE_N_RESOURCES; r++) {
			json_object_set_new(load, place_resources[r].name, json_real(used[r]));
			json_object_set_new(capacity, place_resources[r].name,
					    json_real(h->capacity[r]));
		}
		for (uint32_t v = 0; v < place_n_vms(p->m.place); v++)
			num_vms += place_host_of(p->m.place, v) == (int32_t)i;
		json_array_append_new(list, json_pack(
			"{s:s, s:s, s:i, s:f, s:o, s:o}", "host", h->name, "state", states[state],
			"vms", num_vms, "risk", place_host_risk(p->m.place, i), "load", load,
			"capacity", capacity));
	}
	return list;
}

static json_t *scores(const struct placed_cluster *c, const struct placed_vm *vm)
{
	json_t *o = json_object();

	for (int h = 0; h < c->num_hosts; h++)
		if (vm->scores[h] != PLACED_SCORE_NONE && vm->scores[h] != PLACED_SCORE_LIE)
			json_object_set_new(o, c->hosts[h].name, json_integer(vm->scores[h]));
	return o;
}

static json_t *answer_vm(const struct planning *p, uint32_t i)
{
	const bool is_added = p->added == (int)i;
	const struct placed_vm *vm = is_added ? NULL : &p->c->vms[i];
	const int32_t plan = place_host_of(p->m.place, i);
	const int32_t origin = place_origin_of(p->m.place, i);
	const bool was_lost = vm && p->lost >= 0 && vm->started_on == p->lost;
	json_t *pacemaker = NULL, *o, *refusal;
	char text[PLACED_WHY_SIZE];

	if (was_lost && vm->is_resource) {
		const int best = placed_best(p->c, vm, p->lost, text, sizeof(text));

		pacemaker = json_string(best >= 0 ? p->c->hosts[best].name : text);
	}
	refusal = json_object_get(p->refusals, vm ? vm->name : PLACED_NEW_VM);
	o = json_pack("{s:s, s:s, s:o, s:o, s:o, s:O, s:o}", "vm", vm ? vm->name : PLACED_NEW_VM,
		      "class", vm ? vm->class : p->q->add, "host",
		      was_lost ? json_string(p->c->hosts[p->lost].name) : host_name(p, origin),
		      "plan", host_name(p, plan), "pacemaker", pacemaker ? pacemaker : json_null(),
		      "refusal", refusal ? refusal : json_null(), "scores",
		      vm ? scores(p->c, vm) : json_object());
	if (p->vm < 0 ? plan != origin || plan < 0 || was_lost || is_added : p->vm == (int)i)
		json_object_set_new(o, "why", why(p, i));
	return o;
}

static json_t *answer(struct planning *p, json_t *before)
{
	json_t *vms = json_array();

	for (uint32_t i = 0; i < place_n_vms(p->m.place); i++)
		json_array_append_new(vms, answer_vm(p, i));
	return json_pack("{s:o, s:o, s:o, s:o, s:O}", "hosts", hosts(p), "vms", vms, "before",
			 before, "after", worth(p), "complaints", p->c->complaints);
}

/* ---- the question ------------------------------------------------------------ */

static int look_up(struct planning *p, const struct placed_traces *traces, struct ebb_err *err)
{
	const struct placed_question *q = p->q;

	p->lost = q->lost ? placed_host_find(p->c, q->lost) : -1;
	if (q->lost && p->lost < 0)
		return ebb_err_set(err, -ENOENT, "the cluster has no host \"%.64s\"", q->lost);
	p->vm = q->vm ? placed_vm_find(p->c, q->vm) : -1;
	if (q->vm && p->vm < 0)
		return ebb_err_set(err, -ENOENT, "the cluster has no VM \"%.64s\"", q->vm);
	if (q->add && placed_model_class(traces, q->add) < 0)
		return ebb_err_set(err, -ENOENT, "there are no traces of a class \"%.64s\"; there "
				   "are of %u others", q->add, traces->num_classes);
	return 0;
}

/* Whether place means this rule by that constraint. */
static bool is_of(const struct placed_rule *rule, enum place_constraint constraint)
{
	if (rule->type == PLACED_BAN)
		return constraint == PLACE_BANNED;
	return constraint == (rule->scope == PLACE_WITHIN_HOST ? PLACE_ANTI_AFFINITY :
			      rule->scope == PLACE_WITHIN_FAULT_DOMAIN ? PLACE_FAULT_DOMAIN :
									 PLACE_UPGRADE_DOMAIN);
}

static void note_refusal(struct planning *p, const struct place_refusal *r)
{
	const char *vm = p->added == (int)r->vm ? PLACED_NEW_VM : p->c->vms[r->vm].name;
	char by[PLACED_WHY_SIZE] = "", with[PLACED_WHY_SIZE];

	for (uint32_t h = 0; !*by && h < place_n_hosts(p->m.place); h++) {
		const struct placed_rule *rule = rule_against(p, r->vm, p->m.hosts[h]);

		if (rule && is_of(rule, r->constraint))
			say_rule(p, r->vm, rule, by, sizeof(by));
	}
	say_set(p, r->vm, with, sizeof(with));
	json_object_set_new(p->refusals, vm, json_sprintf(
		"%s%s%s", place_constraint_name(r->constraint), by, with));
}

/* A new VM counts with what most of its class reached in their first day. */
static int add(struct planning *p, const struct placed_traces *traces, struct ebb_err *err)
{
	struct place_vm vm = { .id = 1, .host = -1, .may_move = true };
	struct place_refusal refusal;
	struct place_problem problem;
	uint32_t index;
	int rc;

	vm.class = (uint32_t)placed_model_class(traces, p->q->add);
	rc = place_reserve(p->m.traces, vm.class, PLACE_PRIMARY, vm.reserve);
	if (rc == 0)
		rc = place_add(p->m.place, &vm, &index, &problem, &refusal);
	if (rc < 0)
		return ebb_err_set(err, rc, "a VM of class %s can not be added: %s", p->q->add,
				   strerror(-rc));
	p->added = (int)index;
	rc = place_new(p->m.place, index, &refusal);
	if (rc == -EBUSY)
		note_refusal(p, &refusal);
	return rc == -EBUSY ? 0 : rc;
}

static int search(struct planning *p)
{
	const struct place_limit limit = { .seed = 1, .steps = p->q->steps, .usec = p->q->usec,
					   .now = p->q->now };
	struct place_refusal refusal;
	int rc = let_go(p);

	if (rc == 0)
		rc = place_anneal(p->m.place, &limit, NULL, &refusal);
	/* It tells of the first VM only. */
	for (uint32_t vm = 0; rc == -EBUSY && vm < place_n_vms(p->m.place); vm++)
		if (place_host_of(p->m.place, vm) < 0 &&
		    place_new(p->m.place, vm, &refusal) == -EBUSY)
			note_refusal(p, &refusal);
	return rc == -EBUSY ? 0 : rc;
}

json_t *placed_plan(const struct placed_cluster *c, const struct placed_traces *traces,
		    const struct place_config *config, const struct placed_question *q,
		    int *ret_rc, struct ebb_err *err)
{
	struct planning p = { .c = c, .q = q, .added = -1, .refusals = json_object() };
	json_t *before = NULL, *all = NULL;
	int rc;

	p.where = calloc((size_t)c->num_vms + 1, sizeof(*p.where));
	rc = p.where ? look_up(&p, traces, err) : -ENOMEM;
	if (rc == 0)
		rc = placed_model_create(c, traces, config, PLACED_ALL_HOSTS, p.lost, &p.m, err);
	if (rc == 0) {
		before = worth(&p);
		/* One VM that comes moves no other one. */
		rc = q->add ? add(&p, traces, err) : search(&p);
	}
	if (rc == 0)
		all = answer(&p, before);
	else
		json_decref(before);
	if (rc < 0 && !err->text[0])
		ebb_err_set(err, rc, "%s", strerror(-rc));
	placed_model_finish(&p.m);
	json_decref(p.refusals);
	free(p.where);
	*ret_rc = rc;
	return all;
}
