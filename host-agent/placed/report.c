/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See report.h. */
#include <stdlib.h>
#include <string.h>
#include "placed/report.h"
#include "util/text.h"

/* A VM that computes less is idle, as ebbd judges it (core/pressure/move.h). */
#define IDLE_PERMILLE	100
/* Facts are told in these steps, so that noise is no news. */
#define AGE_STEP_S	600

static const double steps[PLACE_N_RESOURCES] = {
	[PLACE_CPU] = 50, [PLACE_MEMORY] = 16, [PLACE_DISK] = 64,
};

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static double mib(const json_t *o, const char *key)
{
	return number(o, key) / (1 << 20);
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static json_t *amounts(const double all[PLACE_N_RESOURCES])
{
	json_t *list = json_array();

	for (int r = 0; r < PLACE_N_RESOURCES; r++)
		json_array_append_new(list, json_integer((json_int_t)(
			(uint64_t)(all[r] / steps[r] + 0.5) * steps[r])));
	return list;
}

/* Exactly: a capacity, or what must not be oversold. */
static json_t *exact(const double all[PLACE_N_RESOURCES])
{
	json_t *list = json_array();

	for (int r = 0; r < PLACE_N_RESOURCES; r++)
		json_array_append_new(list, json_integer((json_int_t)(all[r] + 0.999)));
	return list;
}

/* ---- what was seen ----------------------------------------------------------- */

static struct placed_seen *seen_of(struct placed_memory *m, const char *name,
				   const struct placed_cluster *before, uint64_t now_s)
{
	const int known = before ? placed_vm_find(before, name) : -1;
	struct placed_seen *s;

	for (size_t i = 0; i < m->num; i++)
		if (strcmp(m->seen[i].name, name) == 0)
			return &m->seen[i];
	s = reallocarray(m->seen, m->num + 1, sizeof(*s));
	if (!s)
		return NULL;
	m->seen = s;
	s = &m->seen[m->num++];
	*s = (struct placed_seen){ .since_s = now_s, .hour = now_s / 3600, .active_s = now_s };
	ebb_text_copy(s->name, sizeof(s->name), name);
	if (known >= 0 && before->vms[known].is_known) {
		const struct placed_vm *vm = &before->vms[known];

		s->since_s = now_s - (vm->age_s < now_s ? vm->age_s : now_s);
		memcpy(s->peaks[s->hour % PLACED_DAY_SLOTS], vm->peak, sizeof(vm->peak));
		memcpy(s->most, vm->most, sizeof(vm->most));
	}
	return s;
}

static void see(struct placed_seen *s, const double use[PLACE_N_RESOURCES], uint64_t now_s,
		double ret_peak[PLACE_N_RESOURCES])
{
	const uint64_t hour = now_s / 3600;

	for (; s->hour < hour && hour - s->hour <= PLACED_DAY_SLOTS; s->hour++)
		memset(s->peaks[(s->hour + 1) % PLACED_DAY_SLOTS], 0, sizeof(s->peaks[0]));
	if (s->hour < hour) {
		memset(s->peaks, 0, sizeof(s->peaks));
		s->hour = hour;
	}
	for (int r = 0; r < PLACE_N_RESOURCES; r++) {
		double *slot = &s->peaks[s->hour % PLACED_DAY_SLOTS][r];

		*slot = use[r] > *slot ? use[r] : *slot;
		s->most[r] = use[r] > s->most[r] ? use[r] : s->most[r];
		ret_peak[r] = 0;
		for (int i = 0; i < PLACED_DAY_SLOTS; i++)
			if (s->peaks[i][r] > ret_peak[r])
				ret_peak[r] = s->peaks[i][r];
	}
}

/* VMs that are gone are forgotten: of one that comes back the other hosts have told meanwhile. */
static void forget(struct placed_memory *m, const json_t *facts_vms)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->num; i++)
		if (json_object_get(facts_vms, m->seen[i].name))
			m->seen[kept++] = m->seen[i];
	m->num = kept;
}

/* ---- facts --------------------------------------------------------------------- */

/* CPUs that the VM gets whenever it asks for them; of one that shares cores what it is promised. */
static double floor_cpu(const json_t *vm)
{
	const json_t *node;
	double sum = 0;
	size_t i;

	if (json_is_true(json_object_get(vm, "shared")))
		return number(vm, "reserve_percent") * 10;
	json_array_foreach(json_object_get(vm, "nodes"), i, node)
		sum += number(node, "reserved") > number(node, "floor") ? number(node, "reserved") :
									  number(node, "floor");
	return sum * 1000;
}

static void read_vm(const json_t *vm, double use[PLACE_N_RESOURCES],
		    double floor[PLACE_N_RESOURCES])
{
	const json_t *telemetry = json_object_get(vm, "telemetry");
	const double most = number(vm, "cpus_held") * 1000;

	/* The guest tells it: more than it has it can not use, whatever it says. */
	use[PLACE_CPU] = json_is_object(telemetry) ? number(telemetry, "cpu_permille") : most;
	if (use[PLACE_CPU] > most)
		use[PLACE_CPU] = most;
	use[PLACE_MEMORY] = mib(vm, "mem_held_bytes");
	use[PLACE_DISK] = mib(vm, "disk_bytes");
	floor[PLACE_CPU] = floor_cpu(vm);
	floor[PLACE_MEMORY] = mib(vm, "mem_floor_bytes") + number(vm, "promised_mem_mib");
	floor[PLACE_DISK] = 0;
}

static json_t *vm_facts(const json_t *vm, struct placed_seen *s, const struct placed_state *state,
			uint64_t now_s, uint64_t now_usec, uint32_t idle_s)
{
	double use[PLACE_N_RESOURCES], floor[PLACE_N_RESOURCES], peak[PLACE_N_RESOURCES];
	const json_t *move = json_object_get(vm, "move");
	uint64_t age_s;
	json_t *o;

	read_vm(vm, use, floor);
	see(s, use, now_s, peak);
	if (use[PLACE_CPU] > IDLE_PERMILLE)
		s->active_s = now_s;
	age_s = now_s > s->since_s ? now_s - s->since_s : 0;
	o = json_pack("{s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:b}", "c", text(vm, "class"), "s", 0,
		      "a", (json_int_t)(age_s / AGE_STEP_S * AGE_STEP_S), "u", amounts(use), "p",
		      amounts(peak), "m", amounts(s->most), "f", exact(floor), "on",
		      now_s - s->active_s < idle_s);
	/* The others need not wait for a VM whose move was given up. */
	if (o && json_is_object(move) && !placed_waits(state, s->name, now_usec)) {
		char why[PLACED_WHY_SIZE];

		ebb_text_copy(why, sizeof(why), text(move, "text"));
		json_object_set_new(o, "mv", json_string(*why ? why : "should move"));
	}
	return o;
}

static json_t *capacity_of(const json_t *host)
{
	double capacity[PLACE_N_RESOURCES] = { 0 };
	const json_t *node;
	size_t i;

	json_array_foreach(json_object_get(host, "nodes"), i, node) {
		/* Cores that VMs share are no part of the former: per cent of one core. */
		capacity[PLACE_CPU] += number(node, "capacity") * 1000 +
				       number(json_object_get(node, "promises"),
					      "most_percent") * 10;
		capacity[PLACE_MEMORY] += mib(node, "mem_capacity_bytes");
	}
	return exact(capacity);
}

json_t *placed_report(const json_t *host, const json_t *vms, const struct placed_cluster *before,
		      const struct placed_state *state, uint64_t now_s, uint64_t now_usec,
		      uint32_t idle_s, struct placed_memory *m, json_t *complaints)
{
	const json_t *h = json_object_get(host, "host"), *vm;
	json_t *facts, *list;
	bool is_ready;
	size_t i;

	if (!json_is_object(h) || !json_is_array(json_object_get(vms, "vms"))) {
		facts = m->last ? json_deep_copy(m->last) :
			json_pack("{s:i, s:[iii], s:b, s:s, s:{}}", "v", PLACED_VERSION, "cap", 0,
				  0, 0, "ready", 0, "moving", "", "vms");
		json_object_set_new(facts, "ready", json_false());
		return facts;
	}
	list = json_object();
	json_array_foreach(json_object_get(vms, "vms"), i, vm) {
		const char *name = text(vm, "name");
		struct placed_seen *s;

		if (strcmp(text(vm, "state"), "stopped") == 0)
			continue;
		if (!placed_name_ok(name)) {
			json_array_append_new(complaints, json_sprintf(
				"VM \"%.80s\": no resource of Pacemaker can have this name: it "
				"counts as load nowhere", name));
			continue;
		}
		s = seen_of(m, name, before, now_s);
		if (s)
			json_object_set_new(list, name,
					    vm_facts(vm, s, state, now_s, now_usec, idle_s));
	}
	forget(m, list);
	is_ready = strcmp(text(h, "libvirt"), "down") != 0 &&
		   json_is_true(json_object_get(h, "loaded"));
	facts = json_pack("{s:i, s:o, s:b, s:s, s:o}", "v", PLACED_VERSION, "cap", capacity_of(h),
			  "ready", is_ready, "moving", state->moving, "vms", list);
	json_decref(m->last);
	m->last = json_incref(facts);
	return facts;
}

void placed_memory_finish(struct placed_memory *m)
{
	free(m->seen);
	json_decref(m->last);
	*m = (struct placed_memory){ 0 };
}
