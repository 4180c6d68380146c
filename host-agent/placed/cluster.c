/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See cluster.h. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "placed/rules.h"
#include "util/text.h"

bool placed_name_ok(const char *name)
{
	const size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr(".-_", name[i]))
			return false;
	return len > 0 && len < PLACED_NAME_SIZE;
}

int32_t placed_score_parse(const char *text)
{
	char *end;
	long value;

	if (strcmp(text, "-INFINITY") == 0)
		return PLACED_SCORE_NEVER;
	if (!*text)
		return PLACED_SCORE_NONE;
	errno = 0;
	value = strtol(text, &end, 10);
	if (*end || errno || isspace((unsigned char)*text))
		return PLACED_SCORE_LIE;
	if (value == PLACED_SCORE_NEVER)
		return PLACED_SCORE_NEVER;
	return value < 0 || value > PLACED_SCORE_MOST ? PLACED_SCORE_LIE : (int32_t)value;
}

void placed_score_format(int32_t score, char ret[16])
{
	if (score == PLACED_SCORE_NEVER)
		strcpy(ret, "-INFINITY");
	else
		snprintf(ret, 16, "%d", score);
}

static void __attribute__((format(printf, 2, 3)))
complain(struct placed_cluster *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	/* Of one host that tells nonsense a few lines say as much as thousands. */
	if (json_array_size(c->complaints) == PLACED_MAX_COMPLAINTS)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ebb_text_clean(text);
	json_array_append_new(c->complaints, json_string(text));
}

/* Finds or adds; NULL: out of memory, or too many. */
static struct placed_vm *get_vm(struct placed_cluster *c, const char *name)
{
	const int i = placed_vm_place(c, name);
	struct placed_vm *more;

	if (i < c->num_vms && strcmp(c->vms[i].name, name) == 0)
		return &c->vms[i];
	if (c->num_vms == PLACED_MAX_VMS)
		return NULL;
	more = reallocarray(c->vms, c->num_vms + 1, sizeof(*more));
	if (!more)
		return NULL;
	c->vms = more;
	memmove(&more[i + 1], &more[i], (c->num_vms - i) * sizeof(*more));
	c->num_vms++;
	more[i] = (struct placed_vm){ .host = -1, .other_host = -1, .started_on = -1,
				      .stickiness = -1 };
	ebb_text_copy(more[i].name, sizeof(more[i].name), name);
	for (int r = 0; r < PLACE_N_RESOURCES; r++)
		more[i].utilization[r] = -1;
	for (int h = 0; h < PLACED_MAX_HOSTS; h++)
		more[i].scores[h] = PLACED_SCORE_NONE;
	return &more[i];
}

static bool amount_ok(const json_t *value)
{
	const double d = json_number_value(value);

	return json_is_number(value) && isfinite(d) && d >= 0 && d <= PLACE_AMOUNT_MAX;
}

static bool read_amounts(const json_t *from, double ret[PLACE_N_RESOURCES])
{
	double all[PLACE_N_RESOURCES];

	if (json_array_size(from) != PLACE_N_RESOURCES)
		return false;
	for (int r = 0; r < PLACE_N_RESOURCES; r++) {
		if (!amount_ok(json_array_get(from, r)))
			return false;
		all[r] = json_number_value(json_array_get(from, r));
	}
	memcpy(ret, all, sizeof(all));
	return true;
}

static void read_utilization(const json_t *from, double ret[PLACE_N_RESOURCES])
{
	for (int r = 0; r < PLACE_N_RESOURCES; r++) {
		const json_t *value = placed_utilization[r] ?
			json_object_get(from, placed_utilization[r]) : NULL;

		ret[r] = amount_ok(value) ? json_number_value(value) : -1;
	}
}

/* ---- facts of one host ---------------------------------------------------- */

/* NULL: it makes no sense; *ret then is as it was. */
static const char *read_vm(const json_t *from, struct placed_vm *ret)
{
	const char *class = json_string_value(json_object_get(from, "c"));
	const char *why = json_string_value(json_object_get(from, "mv"));
	const json_t *age = json_object_get(from, "a"), *most = json_object_get(from, "m");
	struct placed_vm vm = *ret;

	if (!class || strlen(class) >= sizeof(vm.class))
		return "its class";
	if (!json_is_integer(age) || json_integer_value(age) < 0 ||
	    json_integer_value(age) > UINT32_MAX)
		return "its age";
	if (!read_amounts(json_object_get(from, "u"), vm.use) ||
	    !read_amounts(json_object_get(from, "p"), vm.peak) ||
	    /* A placer of an older release does not send "m". */
	    (most && !read_amounts(most, vm.most)) ||
	    !read_amounts(json_object_get(from, "f"), vm.floor))
		return "an amount of it";
	vm.role = json_integer_value(json_object_get(from, "s")) == 1 ? PLACE_SECONDARY :
									PLACE_PRIMARY;
	vm.age_s = (uint32_t)json_integer_value(age);
	vm.is_active = json_is_true(json_object_get(from, "on"));
	vm.should_move = why && *why;
	ebb_text_copy(vm.class, sizeof(vm.class), class);
	ebb_text_copy(vm.why, sizeof(vm.why), why ? why : "");
	vm.is_known = true;
	*ret = vm;
	return NULL;
}

/* VMs that are no resources of Pacemaker must not take the places of those that are. */
static bool has_room(const struct placed_cluster *c, const char *name, const json_t *resources)
{
	return json_object_get(resources, name) || placed_vm_find(c, name) >= 0 ||
	       (size_t)c->num_vms + json_object_size(resources) < PLACED_MAX_VMS;
}

/* Whether this host's word on the VM counts: that of the one on which Pacemaker has it, if any. */
static bool is_believed(const struct placed_cluster *c, int h, const struct placed_vm *vm,
			const json_t *resources)
{
	const char *home = json_string_value(json_object_get(json_object_get(resources, vm->name),
							     "host"));

	return home ? strcmp(home, c->hosts[h].name) == 0 : vm->host < 0;
}

static int read_facts_vms(struct placed_cluster *c, int h, const json_t *vms,
			  const json_t *resources)
{
	const char *name, *wrong;
	const json_t *value;
	struct placed_vm *vm;

	/* The macro's iteration writes nothing, but it is not declared so. */
	json_object_foreach((json_t *)vms, name, value) {
		if (!placed_name_ok(name)) {
			complain(c, "host %s: \"%.80s\" is no name that Pacemaker's resources can "
				 "have: letters, digits and .-_, at most %d; the VM is left out",
				 c->hosts[h].name, name, PLACED_NAME_SIZE - 1);
			continue;
		}
		if (!has_room(c, name, resources)) {
			complain(c, "host %s: it tells of too many VMs: those that are no "
				 "resources of Pacemaker are left out", c->hosts[h].name);
			continue;
		}
		vm = get_vm(c, name);
		if (!vm)
			return -ENOSPC;
		wrong = is_believed(c, h, vm, resources) ? read_vm(value, vm) : NULL;
		if (wrong)
			complain(c, "VM %s: what host %s tells of it makes no sense (%s): left out",
				 name, c->hosts[h].name, wrong);
		if (vm->host >= 0) {
			complain(c, "VM %s: hosts %s and %s both say that it runs there; nothing "
				 "is decided about it", name, c->hosts[vm->host].name,
				 c->hosts[h].name);
			vm->other_host = h;
			continue;
		}
		vm->host = h;
	}
	return 0;
}

static int read_facts(struct placed_cluster *c, int h, const json_t *facts,
		      const json_t *resources)
{
	struct placed_host *host = &c->hosts[h];
	const char *moving = json_string_value(json_object_get(facts, "moving"));
	const json_t *version = json_object_get(facts, "v");

	if (!facts || json_is_null(facts))
		return 0;
	if (!json_is_integer(version) || json_integer_value(version) < 1 ||
	    json_integer_value(version) > UINT32_MAX) {
		complain(c, "host %s: its facts make no sense: ignored", host->name);
		return 0;
	}
	host->version = (uint32_t)json_integer_value(version);
	if (host->version != PLACED_VERSION) {
		complain(c, "host %s: its ebb-placed speaks version %u, this one %u: its facts are "
			 "ignored, and no VM is sent there", host->name, host->version,
			 PLACED_VERSION);
		return 0;
	}
	if (!read_amounts(json_object_get(facts, "cap"), host->capacity)) {
		complain(c, "host %s: the capacity that it tells makes no sense: its facts are "
			 "ignored", host->name);
		return 0;
	}
	host->has_facts = true;
	host->is_ready = json_is_true(json_object_get(facts, "ready"));
	ebb_text_copy(host->moving, sizeof(host->moving), moving ? moving : "");
	return read_facts_vms(c, h, json_object_get(facts, "vms"), resources);
}

/* ---- the cluster ----------------------------------------------------------- */

static void add_stray(struct placed_cluster *c, int h, const char *name, const json_t *value)
{
	const char *text = json_string_value(value);

	/* Pacemaker keeps deleted attributes with an empty value. */
	if (text && !*text)
		return;
	complain(c, "host %s: attribute " PLACED_SCORE "%.80s is about a VM that does not exist: "
		 "ignored", c->hosts[h].name, name);
	if (c->num_strays == PLACED_MAX_STRAYS || !placed_name_ok(name))
		return;
	c->strays[c->num_strays].host = h;
	ebb_text_copy(c->strays[c->num_strays++].vm, PLACED_NAME_SIZE, name);
}

static void read_scores(struct placed_cluster *c, int h, const json_t *scores)
{
	const char *name, *text;
	const json_t *value;
	struct placed_vm *vm;
	char number[32];
	int i;

	json_object_foreach((json_t *)scores, name, value) {
		i = placed_name_ok(name) ? placed_vm_find(c, name) : -1;
		if (i < 0 || !c->vms[i].is_resource) {
			add_stray(c, h, name, value);
			continue;
		}
		vm = &c->vms[i];
		snprintf(number, sizeof(number), "%lld", json_integer_value(value));
		text = json_is_string(value) ? json_string_value(value) :
		       json_is_integer(value) ? number : "?";
		vm->scores[h] = placed_score_parse(text);
		if (vm->scores[h] == PLACED_SCORE_LIE)
			complain(c, "host %s: attribute " PLACED_SCORE "%s=%.40s is no number from "
				 "0 to %d: ignored", c->hosts[h].name, name, text,
				 PLACED_SCORE_MOST);
	}
}

static int read_resource(struct placed_cluster *c, const char *name, const json_t *from)
{
	const char *host = json_string_value(json_object_get(from, "host"));
	const char *class = json_string_value(json_object_get(from, "class"));
	const json_t *stickiness = json_object_get(from, "stickiness");
	struct placed_vm *vm;

	if (!placed_name_ok(name)) {
		complain(c, "resource \"%.80s\": its name is too long or has odd characters: it is "
			 "not placed", name);
		return 0;
	}
	vm = get_vm(c, name);
	if (!vm)
		return -ENOSPC;
	vm->is_resource = true;
	vm->is_settled = json_is_true(json_object_get(from, "settled"));
	vm->started_on = host ? placed_host_find(c, host) : -1;
	vm->is_busy = json_is_true(json_object_get(from, "busy"));
	vm->can_migrate = json_is_true(json_object_get(from, "migrates"));
	vm->has_rule = json_is_true(json_object_get(from, "rule"));
	if (json_is_integer(stickiness) && json_integer_value(stickiness) >= 0 &&
	    json_integer_value(stickiness) <= -PLACED_SCORE_NEVER)
		vm->stickiness = (int32_t)json_integer_value(stickiness);
	if (class)
		ebb_text_copy(vm->class, sizeof(vm->class), class);
	read_utilization(json_object_get(from, "utilization"), vm->utilization);
	/* Nobody told of it yet: what it was defined with is all that is known. */
	for (int r = 0; r < PLACE_N_RESOURCES && !vm->is_known; r++)
		vm->floor[r] = vm->utilization[r] > 0 ? vm->utilization[r] : 0;
	return 0;
}

/* As Pacemaker compares them: upper and lower case are one, and so are those that have none. */
static bool is_same_domain(const json_t *hosts, const char *a, const char *b, int domain)
{
	const json_t *of_a = json_object_get(json_object_get(hosts, a), "domains");
	const json_t *of_b = json_object_get(json_object_get(hosts, b), "domains");
	const char *its = json_string_value(json_object_get(of_a, placed_domains[domain]));
	const char *other = json_string_value(json_object_get(of_b, placed_domains[domain]));

	return its && other ? strcasecmp(its, other) == 0 : its == other;
}

static void read_domains(struct placed_cluster *c, const json_t *hosts)
{
	for (int d = 0; d < PLACED_N_DOMAINS; d++)
		for (int h = 0, i = 0; h < c->num_hosts; c->hosts[h++].domains[d] = i)
			for (i = 0; i < h; i++)
				if (is_same_domain(hosts, c->hosts[h].name, c->hosts[i].name, d))
					break;
}

/* Hosts in the order of their names, so that indexes are the same on all hosts. */
static int add_hosts(struct placed_cluster *c, const json_t *hosts)
{
	const char *name;
	const json_t *value;
	int i;

	json_object_foreach((json_t *)hosts, name, value) {
		struct placed_host *host;

		if (strlen(name) >= PLACED_NAME_SIZE) {
			complain(c, "host %.80s: its name is too long: ignored", name);
			continue;
		}
		if (c->num_hosts == PLACED_MAX_HOSTS)
			return -ENOSPC;
		for (i = c->num_hosts; i > 0 && strcmp(c->hosts[i - 1].name, name) > 0; i--)
			c->hosts[i] = c->hosts[i - 1];
		host = &c->hosts[i];
		*host = (struct placed_host){ .is_online =
			json_is_true(json_object_get(value, "online")) };
		ebb_text_copy(host->name, sizeof(host->name), name);
		read_utilization(json_object_get(value, "utilization"), host->utilization);
		c->num_hosts++;
	}
	return 0;
}

int placed_cluster_read(const json_t *from, struct placed_cluster *ret, struct ebb_err *err)
{
	json_t *hosts = json_object_get(from, "hosts");
	json_t *resources = json_object_get(from, "resources");
	struct placed_cluster c = { .complaints = json_array() };
	const char *name;
	char complaint[256] = "";
	json_t *value;
	int rc;

	if (!json_is_object(hosts) || (resources && !json_is_object(resources))) {
		placed_cluster_finish(&c);
		return ebb_err_set(err, -EINVAL, "no description of a cluster: it needs \"hosts\"");
	}
	c.is_quorum_known = json_is_boolean(json_object_get(from, "quorum"));
	c.has_quorum = json_is_true(json_object_get(from, "quorum"));
	rc = add_hosts(&c, hosts);
	read_domains(&c, hosts);
	for (int h = 0; rc == 0 && h < c.num_hosts; h++)
		/* A host that is away may have left facts behind; nothing of it runs any more. */
		if (c.hosts[h].is_online)
			rc = read_facts(&c, h, json_object_get(
						json_object_get(hosts, c.hosts[h].name), "facts"),
					resources);
	json_object_foreach(resources, name, value)
		if (rc == 0)
			rc = read_resource(&c, name, value);
	for (int h = 0; rc == 0 && h < c.num_hosts; h++)
		read_scores(&c, h, json_object_get(json_object_get(hosts, c.hosts[h].name),
						   "scores"));
	if (rc == 0)
		rc = placed_rules_read(&c, json_object_get(from, "rules"), complaint,
				       sizeof(complaint));
	if (*complaint)
		complain(&c, "%s", complaint);
	if (rc < 0) {
		placed_cluster_finish(&c);
		return ebb_err_set(err, rc, "more than %d hosts or %d VMs", PLACED_MAX_HOSTS,
				   PLACED_MAX_VMS);
	}
	*ret = c;
	return 0;
}

void placed_cluster_finish(struct placed_cluster *c)
{
	free(c->vms);
	free(c->rules);
	json_decref(c->complaints);
	*c = (struct placed_cluster){ 0 };
}

void placed_cluster_remember(struct placed_cluster *c, const struct placed_cluster *before)
{
	for (int i = 0; i < c->num_vms; i++) {
		struct placed_vm *vm = &c->vms[i];
		const int k = vm->is_known ? -1 : placed_vm_find(before, vm->name);
		const struct placed_vm *old = k >= 0 ? &before->vms[k] : NULL;

		if (!old || !old->is_known)
			continue;
		if (!vm->class[0])
			memcpy(vm->class, old->class, sizeof(vm->class));
		vm->role = old->role;
		vm->age_s = old->age_s;
		memcpy(vm->use, old->use, sizeof(vm->use));
		memcpy(vm->peak, old->peak, sizeof(vm->peak));
		memcpy(vm->most, old->most, sizeof(vm->most));
		memcpy(vm->floor, old->floor, sizeof(vm->floor));
		vm->is_known = true;
	}
}
