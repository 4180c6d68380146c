/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * "set": changes of a VM's SLA.  In force at once, then written into the domain's metadata, so that
 * it lasts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ctl-cmds.h"
#include "backend/real/real.h"
#include "daemon/view.h"
#include "model/sla-io.h"

/* Those of each node and volume; the others are in model/sla.h. */
#define NODE_KEYS	"max.NODE (for example max.0), reserved.NODE"
#define MEM_NODE_KEYS	"mem.nodeNODE.min, mem.nodeNODE.max (for example mem.node0.max)"

#define IO_KEYS		"io.VOLUME.KEY with any of the keys after \"io.\""

#define KEYS_SIZE	768

static void add_keys(enum ebb_sla_part part, char *text, size_t size)
{
	const struct ebb_sla_key *key;

	for (size_t i = 0; (key = ebb_sla_key_at(i)); i++)
		if (key->part == part)
			snprintf(text + strlen(text), size - strlen(text), "%s, ", key->name);
}

/* The attributes that can be set, for people. */
static const char *all_keys(char text[KEYS_SIZE])
{
	text[0] = '\0';
	add_keys(EBB_SLA_CPU, text, KEYS_SIZE);
	snprintf(text + strlen(text), KEYS_SIZE - strlen(text), NODE_KEYS ", ");
	add_keys(EBB_SLA_MEM, text, KEYS_SIZE);
	snprintf(text + strlen(text), KEYS_SIZE - strlen(text), MEM_NODE_KEYS ", ");
	add_keys(EBB_SLA_IO, text, KEYS_SIZE);
	snprintf(text + strlen(text), KEYS_SIZE - strlen(text), IO_KEYS);
	return text;
}

static bool no_such_key(struct ebb_ctl_request *r, const char *key)
{
	char text[KEYS_SIZE];

	ebb_ctl_fail(r, "bad-value", NULL, "there is no \"%.40s\" to set; there are %s", key,
		     all_keys(text));
	return false;
}

static bool set_number(struct ebb_ctl_request *r, const char *key, const char *value, uint32_t min,
		       uint32_t max, uint32_t *ret)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || end == value || *end || value[0] == '-' || n < min || n > max) {
		ebb_ctl_fail(r, "bad-value", NULL, "%s=%.40s: allowed: %u to %u", key, value, min,
			     max);
		return false;
	}
	*ret = n;
	return true;
}

/* Digits, and where they end; strtoul() alone would take blanks and a sign. */
static bool read_digits(const char *text, unsigned long *ret, char **ret_end)
{
	*ret = strtoul(text, ret_end, 10);
	return *text >= '0' && *text <= '9';
}

/* The guest node after the dot of "max.0" and the like. */
static bool node_of(struct ebb_ctl_request *r, const struct ebb_vm *vm, const char *key,
		    uint32_t *ret)
{
	unsigned long node;
	char *end;

	if (read_digits(strchr(key, '.') + 1, &node, &end) && !*end && node < vm->sla.num_nodes) {
		*ret = node;
		return true;
	}
	ebb_ctl_fail(r, "bad-value", NULL, "%.40s: VM \"%s\" has nodes 0 to %u", key, vm->name,
		     vm->sla.num_nodes - 1);
	return false;
}

/* A reservation equal to the ceiling follows it, and none exceeds it. */
static bool set_max(struct ebb_ctl_request *r, const struct ebb_vm *vm, const char *key,
		    const char *value, struct ebb_sla *sla)
{
	uint32_t node, max, cpus = 0;
	struct ebb_sla_node *n;

	if (!node_of(r, vm, key, &node))
		return false;
	n = &sla->nodes[node];
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		cpus += vm->vcpus[i].node == node;
	if (!set_number(r, key, value, n->startup, cpus, &max))
		return false;
	if (sla->class == EBB_CLASS_RESERVED && (n->reserved == n->max || n->reserved > max))
		n->reserved = max;
	n->max = max;
	return true;
}

static bool set_reserved(struct ebb_ctl_request *r, const struct ebb_vm *vm, const char *key,
			 const char *value, struct ebb_sla *sla)
{
	uint32_t node, reserved, most;

	if (!node_of(r, vm, key, &node))
		return false;
	most = sla->class == EBB_CLASS_SPOT ? sla->nodes[node].startup : sla->nodes[node].max;
	if (!set_number(r, key, value, sla->nodes[node].startup, most, &reserved))
		return false;
	sla->nodes[node].reserved = reserved;
	return true;
}

/* A VM that changes its class gets the new class's default reservation. */
static void set_class(struct ebb_sla *sla, enum ebb_class class)
{
	if (class == sla->class)
		return;
	sla->class = class;
	for (uint16_t g = 0; g < sla->num_nodes; g++)
		sla->nodes[g].reserved = class == EBB_CLASS_SPOT ? sla->nodes[g].startup :
								   sla->nodes[g].max;
}

/* "mem.node0.min", "mem.node0.max": MiB. */
static bool set_pool(struct ebb_ctl_request *r, const struct ebb_vm *vm, const char *key,
		     const char *value, struct ebb_sla *sla)
{
	uint32_t mib, most;
	unsigned long node;
	char *end;
	const bool is_number = read_digits(key + strlen("mem.node"), &node, &end);
	const bool is_max = strcmp(end, ".max") == 0;

	if (!is_number || (!is_max && strcmp(end, ".min") != 0))
		return no_such_key(r, key);
	if (node >= sla->num_nodes || vm->pool_blocks[node] == 0) {
		ebb_ctl_fail(r, "bad-value",
			     "name the node in <ebb:memory> of the domain's metadata first",
			     "%.40s: VM \"%s\" has no pool on node %lu", key, vm->name, node);
		return false;
	}
	most = vm->pool_blocks[node];
	if (!set_number(r, key, value, 0, most * EBB_BLOCK_MIB, &mib))
		return false;
	if (mib % EBB_BLOCK_MIB) {
		ebb_ctl_fail(r, "bad-value", NULL, "%s=%.40s: allowed: multiples of %u MiB", key,
			     value, EBB_BLOCK_MIB);
		return false;
	}
	if (is_max)
		sla->nodes[node].mem_max = mib / EBB_BLOCK_MIB;
	else
		sla->nodes[node].mem_min = mib / EBB_BLOCK_MIB;
	return true;
}

/* One of model/sla.h. */
static bool set_value(struct ebb_ctl_request *r, const struct ebb_sla_key *key, const char *name,
		      const char *value, uint64_t *ret)
{
	char allowed[EBB_TEXT_SIZE];

	if (ebb_sla_value(key, value, ret) == 0)
		return true;
	ebb_sla_allowed(key, allowed);
	ebb_ctl_fail(r, "bad-value", NULL, "%.80s=%.40s: allowed: %s", name, value, allowed);
	return false;
}

/* "io.VOLUME.KEY": the volume's own value, or "default": that of the VM counts again. */
static bool set_volume(struct ebb_ctl_request *r, const char *key, const char *value,
		       struct ebb_sla *sla)
{
	const char *first = strchr(key, '.') + 1, *last = strrchr(key, '.');
	char name[EBB_VOLUME_NAME_SIZE], row[EBB_TEXT_SIZE];
	const struct ebb_sla_key *k;
	struct ebb_sla_volume *v;
	uint64_t number;

	/* No attribute has a dot, names of volumes may. */
	snprintf(row, sizeof(row), "io%s", last);
	k = last > first ? ebb_sla_key_find(row) : NULL;
	if (!k || (size_t)(last - first) >= sizeof(name))
		return no_such_key(r, key);
	snprintf(name, sizeof(name), "%.*s", (int)(last - first), first);
	if (strcmp(value, "default") != 0 && !set_value(r, k, key, value, &number))
		return false;
	v = ebb_sla_volume_get(sla, name);
	if (!v) {
		ebb_ctl_fail(r, "bad-value", NULL, "%.80s: %s", key,
			     ebb_volume_name_usable(name) ? "the SLA names too many volumes" :
			     "allowed in the name of a volume: letters, digits, \".\", \"_\", "
			     "\"-\"");
		return false;
	}
	if (strcmp(value, "default") != 0)
		ebb_sla_volume_put(v, k, number);
	else
		ebb_sla_volume_clear(v, k);
	if (!v->given)
		ebb_sla_volume_drop(sla, name);
	return true;
}

static bool set_shared(struct ebb_ctl_request *r, const struct ebb_vm *vm, bool is_shared)
{
	if (!vm->is_running || is_shared == vm->sla.is_shared)
		return true;
	ebb_ctl_fail(r, "refused", "stop the VM first",
		     "VM \"%s\" runs: whether it shares cores can not be changed", vm->name);
	return false;
}

/* false: the request is answered. */
static bool set_one(struct ebb_ctl_request *r, const struct ebb_vm *vm, const char *key,
		    const char *value, struct ebb_sla *sla)
{
	const struct ebb_sla_key *k = ebb_sla_key_find(key);
	uint64_t number;

	if (k) {
		if (!set_value(r, k, k->name, value, &number) ||
		    (strcmp(key, "shared") == 0 && !set_shared(r, vm, number)))
			return false;
		if (strcmp(key, "class") == 0)
			set_class(sla, (enum ebb_class)number);
		ebb_sla_put(sla, k, number);
		return true;
	}
	if (strncmp(key, "max.", 4) == 0)
		return set_max(r, vm, key, value, sla);
	if (strncmp(key, "reserved.", 9) == 0)
		return set_reserved(r, vm, key, value, sla);
	if (strncmp(key, "mem.node", strlen("mem.node")) == 0)
		return set_pool(r, vm, key, value, sla);
	if (strncmp(key, "io.", strlen("io.")) == 0)
		return set_volume(r, key, value, sla);
	return no_such_key(r, key);
}

/*
 * The class says what may be reserved, and so does the ceiling, however the request orders them.
 */
#define RANKS	3

static int rank_of(const char *key)
{
	if (strcmp(key, "class") == 0)
		return 0;
	return strncmp(key, "max.", 4) == 0 ? 1 : 2;
}

static bool set_rank(struct ebb_ctl_request *r, const struct ebb_vm *vm, json_t *values, int rank,
		     struct ebb_sla *sla)
{
	json_t *value;
	const char *key;

	json_object_foreach(values, key, value) {
		char number[32];

		if (rank_of(key) != rank)
			continue;
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		if (!json_is_string(value) && !json_is_integer(value)) {
			ebb_ctl_fail(r, "bad-request", NULL,
				     "the value of \"%.40s\" must be a string or an integer", key);
			return false;
		}
		if (!set_one(r, vm, key, json_is_string(value) ? json_string_value(value) : number,
			     sla))
			return false;
	}
	return true;
}

static bool parse(struct ebb_ctl_request *r, const struct ebb_vm *vm, struct ebb_sla *sla)
{
	json_t *values = json_object_get(r->body, "values");
	char text[KEYS_SIZE];

	if (!json_is_object(values) || json_object_size(values) == 0) {
		ebb_ctl_fail(r, "bad-request", NULL, "\"set\" needs an object \"values\" of %s",
			     all_keys(text));
		return false;
	}
	for (int rank = 0; rank < RANKS; rank++)
		if (!set_rank(r, vm, values, rank, sla))
			return false;
	/* Only now, since either may be changed first. */
	for (uint16_t g = 0; g < sla->num_nodes; g++) {
		const struct ebb_sla_node *n = &sla->nodes[g];

		if (n->mem_min <= n->mem_max)
			continue;
		ebb_ctl_fail(r, "bad-value", NULL,
			     "mem.node%u.min is %u, which is more than mem.node%u.max, %u", g,
			     n->mem_min * EBB_BLOCK_MIB, g, n->mem_max * EBB_BLOCK_MIB);
		return false;
	}
	return true;
}

struct saving {
	struct ebb_agent *agent;
	struct ebb_ctl_request *request;
	uint8_t uuid[16];
};

static void reply(struct ebb_agent *a, struct ebb_ctl_request *r, const uint8_t uuid[16])
{
	const struct ebb_vm *vm = ebb_state_vm(a->state, uuid);
	json_t *o;

	if (!vm) {
		ebb_ctl_fail(r, "no-such-vm", NULL, "the VM has gone meanwhile");
		return;
	}
	o = json_pack("{s:s}", "name", vm->name);
	ebb_view_add_sla(o, &vm->sla);
	ebb_ctl_reply(r, o);
}

static void saved(void *ctx, int rc, const char *text)
{
	struct saving *s = ctx;

	if (rc < 0)
		ebb_ctl_fail(s->request, "not-saved",
			     "it is in force until ebbd is restarted; "
			     "try again, or change the metadata with virsh edit",
			     "the SLA could not be written into the domain's metadata: %s",
			     text[0] ? text : strerror(-rc));
	else
		reply(s->agent, s->request, s->uuid);
	free(s);
}

void ebb_ctl_set(struct ebb_agent *a, struct ebb_ctl_request *r, const struct ebb_vm *vm)
{
	struct ebb_fact fact = { .type = EBB_FACT_SLA_SET };
	char text[EBB_TEXT_SIZE];
	struct saving *s;
	int rc;

	if (!vm->has_sla) {
		ebb_ctl_fail(r, "unmanaged", "correct the metadata with virsh edit",
			     "VM \"%s\" has no valid SLA: %s", vm->name, vm->error);
		return;
	}
	fact.u.sla_set = vm->sla;
	memcpy(fact.uuid, vm->uuid, sizeof(fact.uuid));
	if (!parse(r, vm, &fact.u.sla_set))
		return;
	if (ebb_sla_check(&fact.u.sla_set, ebb_state_host(a->state), text) < 0) {
		ebb_ctl_fail(r, "refused", NULL, "VM \"%s\" can not have this SLA: %s", vm->name,
			     text);
		return;
	}
	rc = ebb_agent_report(a, &fact);
	if (rc < 0) {
		ebb_ctl_fail(r, "refused", NULL, "VM \"%s\" can not have this SLA: %s", vm->name,
			     strerror(-rc));
		return;
	}
	if (!a->real) {
		reply(a, r, fact.uuid);
		return;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		ebb_ctl_fail(r, "not-saved", NULL, "out of memory");
		return;
	}
	s->agent = a;
	s->request = r;
	memcpy(s->uuid, fact.uuid, sizeof(s->uuid));
	ebb_real_save_sla(a->real, s->uuid, &fact.u.sla_set, saved, s);
}
