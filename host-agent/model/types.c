// SPDX-License-Identifier: GPL-2.0-or-later
/* Names, range checks, and the topology of emulated hosts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/promise.h"
#include "model/record.h"
#include "model/sla-io.h"
#include "model/sla.h"
#include "model/types.h"

static const char *name_of(const char *const *names, size_t count, size_t i)
{
	return i < count && names[i] ? names[i] : "?";
}

#define NAME_OF(names, i)	name_of(names, sizeof(names) / sizeof((names)[0]), (size_t)(i))

const char *ebb_event_name(enum ebb_event event)
{
	static const char *const names[EBB_EVENT_MAX] = {
		[EBB_EVENT_JOIN] = "join",	 [EBB_EVENT_LEAVE] = "leave",
		[EBB_EVENT_REQUEST] = "request", [EBB_EVENT_GRANT] = "grant",
		[EBB_EVENT_REFUSE] = "refuse",	 [EBB_EVENT_RELEASE] = "release",
		[EBB_EVENT_OFFER] = "offer",	 [EBB_EVENT_DEMAND] = "demand",
		[EBB_EVENT_FORCE] = "force",	 [EBB_EVENT_UNFORCE] = "unforce",
		[EBB_EVENT_RECLAIM] = "reclaim", [EBB_EVENT_LINK] = "link",
		[EBB_EVENT_SLA] = "sla",	 [EBB_EVENT_POLICY] = "policy",
		[EBB_EVENT_ERROR] = "error",	 [EBB_EVENT_MEM_OFFER] = "mem_offer",
		[EBB_EVENT_MEM_DEMAND] = "mem_demand",
		[EBB_EVENT_MEM_RELEASE] = "mem_release",
		[EBB_EVENT_MEM_REVOKE] = "mem_revoke",
		[EBB_EVENT_LEND] = "lend",	 [EBB_EVENT_CHARGE] = "charge",
		[EBB_EVENT_REBALANCE] = "rebalance",
		[EBB_EVENT_THROTTLE] = "throttle", [EBB_EVENT_LEDGER] = "ledger",
		[EBB_EVENT_VOLUME] = "volume",
		[EBB_EVENT_CONDUCT] = "conduct", [EBB_EVENT_BROKER] = "broker",
		[EBB_EVENT_VIOLATION] = "violation", [EBB_EVENT_MOVE] = "move",
		[EBB_EVENT_QUORUM] = "quorum",
	};

	return NAME_OF(names, event);
}

const char *ebb_promise_name(enum ebb_promise promise)
{
	static const char *const names[EBB_PROMISE_MAX] = {
		[EBB_PROMISE_CPU] = "cpu", [EBB_PROMISE_MEM] = "memory",
		[EBB_PROMISE_IO] = "io",
	};

	return NAME_OF(names, promise);
}

const char *ebb_promise_unit(enum ebb_promise promise)
{
	static const char *const names[EBB_PROMISE_MAX] = {
		[EBB_PROMISE_CPU] = "usec", [EBB_PROMISE_MEM] = "ios",
		[EBB_PROMISE_IO] = "units",
	};

	return NAME_OF(names, promise);
}

void ebb_record_resource(const struct ebb_record *r, char *ret)
{
	const char *volume = r->ledger.volume;

	snprintf(ret, EBB_RESOURCE_SIZE, "%s%s%s", ebb_promise_name(r->ledger.promise),
		 volume[0] ? "/" : "", volume);
}

const char *ebb_cause_name(enum ebb_cause cause)
{
	static const char *const names[EBB_CAUSE_MAX] = {
		[EBB_CAUSE_NONE] = "none",	     [EBB_CAUSE_OTHERS] = "others",
		[EBB_CAUSE_OVERBOOKED] = "overbooked", [EBB_CAUSE_ITSELF] = "itself",
		[EBB_CAUSE_LIMIT] = "limit",	     [EBB_CAUSE_HOST] = "host",
	};

	return NAME_OF(names, cause);
}

const char *ebb_class_name(enum ebb_class class)
{
	static const char *const names[EBB_CLASS_MAX] = {
		[EBB_CLASS_RESERVED] = "reserved",
		[EBB_CLASS_SPOT] = "spot",
	};

	return NAME_OF(names, class);
}

bool ebb_action_is_on_link(enum ebb_action_type type)
{
	return type >= EBB_ACTION_WELCOME;
}

bool ebb_fact_is_from_link(enum ebb_fact_type type)
{
	switch (type) {
	case EBB_FACT_HELLO:
	case EBB_FACT_REQUEST:
	case EBB_FACT_TELEMETRY:
	case EBB_FACT_MEM:
	case EBB_FACT_VOM:
	case EBB_FACT_ACCOUNT:
		return true;
	case EBB_FACT_VM_DEFINED:
	case EBB_FACT_VM_INVALID:
	case EBB_FACT_VM_REMOVED:
	case EBB_FACT_VM_RUNNING:
	case EBB_FACT_VM_STOPPED:
	case EBB_FACT_LOADED:
	case EBB_FACT_LINK_LOST:
	case EBB_FACT_ACTION_DONE:
	case EBB_FACT_SLA_SET:
	case EBB_FACT_CPU_TIMES:
	case EBB_FACT_VOLUMES_UP:
	case EBB_FACT_VOLUMES_LOST:
	case EBB_FACT_VOLUMES_SERVER:
	case EBB_FACT_VOLUMES_METERS:
	case EBB_FACT_MAX:
		break;
	}
	return false;
}

const char *ebb_tier_name(uint16_t tier)
{
	static const char *const names[VIRTIO_EBB_TIER_MAX] = {
		[VIRTIO_EBB_TIER_ANY] = "any",
		[VIRTIO_EBB_TIER_LEND] = "lend",
		[VIRTIO_EBB_TIER_PARK] = "park",
		[VIRTIO_EBB_TIER_UNPLUG] = "unplug",
	};

	return NAME_OF(names, tier);
}

const char *ebb_reason_name(uint16_t reason)
{
	static const char *const names[VIRTIO_EBB_REASON_MAX] = {
		[VIRTIO_EBB_REASON_NONE] = "none",
		[VIRTIO_EBB_REASON_LIMIT] = "limit",
		[VIRTIO_EBB_REASON_CEILING] = "ceiling",
		[VIRTIO_EBB_REASON_NODE] = "node",
		[VIRTIO_EBB_REASON_NOT_HELD] = "not-held",
		[VIRTIO_EBB_REASON_STARTUP] = "startup",
		[VIRTIO_EBB_REASON_HOST] = "host",
		[VIRTIO_EBB_REASON_CAPACITY] = "capacity",
		[VIRTIO_EBB_REASON_NO_AGENT] = "no-agent",
		[VIRTIO_EBB_REASON_TIMEOUT] = "timeout",
		[VIRTIO_EBB_REASON_IN_PROGRESS] = "in-progress",
		[VIRTIO_EBB_REASON_MIGRATED] = "migrated",
		[VIRTIO_EBB_REASON_TYPE] = "type",
		[VIRTIO_EBB_REASON_FLAGS] = "flags",
		[VIRTIO_EBB_REASON_RESERVED] = "reserved",
		[VIRTIO_EBB_REASON_RANGE] = "range",
		[VIRTIO_EBB_REASON_TAG] = "tag",
		[VIRTIO_EBB_REASON_RUNNING] = "running",
	};

	return NAME_OF(names, reason);
}

const char *ebb_action_name(enum ebb_action_type type)
{
	static const char *const names[EBB_ACTION_MAX] = {
		[EBB_ACTION_PLUG] = "plug",	    [EBB_ACTION_UNPLUG] = "unplug",
		[EBB_ACTION_PLACE] = "place",	    [EBB_ACTION_HOME] = "home",
		[EBB_ACTION_WELCOME] = "welcome",   [EBB_ACTION_RESPONSE] = "response",
		[EBB_ACTION_LIMITS] = "limits",	    [EBB_ACTION_CPU_FLAGS] = "cpu-flags",
		[EBB_ACTION_LINK_CLOSE] = "link-close", [EBB_ACTION_MEM_CAP] = "mem-cap",
		[EBB_ACTION_MEM_MIRROR] = "mem-mirror", [EBB_ACTION_REVOKE] = "revoke",
		[EBB_ACTION_ACCOUNT] = "account",
		[EBB_ACTION_THROTTLE] = "throttle",
		[EBB_ACTION_RESERVE] = "reserve",
		[EBB_ACTION_SHARES] = "shares",	    [EBB_ACTION_VOLUME] = "volume",
	};

	return NAME_OF(names, type);
}

const char *ebb_fact_name(enum ebb_fact_type type)
{
	static const char *const names[EBB_FACT_MAX] = {
		[EBB_FACT_VM_DEFINED] = "vm-defined", [EBB_FACT_VM_INVALID] = "vm-invalid",
		[EBB_FACT_VM_REMOVED] = "vm-removed", [EBB_FACT_VM_RUNNING] = "vm-running",
		[EBB_FACT_VM_STOPPED] = "vm-stopped", [EBB_FACT_LOADED] = "loaded",
		[EBB_FACT_HELLO] = "hello",	      [EBB_FACT_LINK_LOST] = "link-lost",
		[EBB_FACT_REQUEST] = "request",	      [EBB_FACT_TELEMETRY] = "telemetry",
		[EBB_FACT_ACTION_DONE] = "action-done", [EBB_FACT_SLA_SET] = "sla-set",
		[EBB_FACT_CPU_TIMES] = "cpu-times",   [EBB_FACT_VOLUMES_UP] = "volumes-up",
		[EBB_FACT_VOLUMES_LOST] = "volumes-lost",
		[EBB_FACT_VOLUMES_SERVER] = "volumes-server",
		[EBB_FACT_VOLUMES_METERS] = "volumes-meters",
		[EBB_FACT_MEM] = "mem",		      [EBB_FACT_VOM] = "vom",
		[EBB_FACT_ACCOUNT] = "account",
	};

	return NAME_OF(names, type);
}

void ebb_value_print(uint64_t value, char *ret_text)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	uint64_t whole = 1;
	size_t i = 0;

	for (; i + 1 < sizeof(units) / sizeof(units[0]) && value / whole >= 1000; i++)
		whole *= 1000;
	if (value == 0)
		snprintf(ret_text, EBB_VALUE_SIZE, "nothing");
	else if (i == 0)
		snprintf(ret_text, EBB_VALUE_SIZE, "%llu ns/s per MiB", (unsigned long long)value);
	else
		snprintf(ret_text, EBB_VALUE_SIZE, "%.2f %s/s per MiB",
			 (double)value / (double)whole, units[i]);
}

static int complain(char *ret_text, const char *field, long value, long min, long max)
{
	snprintf(ret_text, EBB_TEXT_SIZE, "%s is %ld, allowed are %ld to %ld", field, value, min,
		 max);
	return -EINVAL;
}

static int core_check(const struct ebb_host *host, uint16_t c, char *ret_text)
{
	const struct ebb_core *core = &host->cores[c];
	char field[48];

	snprintf(field, sizeof(field), "node of core %u", c);
	if (core->node >= host->num_nodes)
		return complain(ret_text, field, core->node, 0, host->num_nodes - 1);
	snprintf(field, sizeof(field), "threads of core %u", c);
	if (core->num_threads == 0 || core->num_threads > EBB_MAX_SMT)
		return complain(ret_text, field, core->num_threads, 1, EBB_MAX_SMT);
	for (uint16_t i = 0; i < core->num_threads; i++) {
		const uint16_t t = core->threads[i];

		snprintf(field, sizeof(field), "thread %u of core %u", i, c);
		if (t >= host->num_threads)
			return complain(ret_text, field, t, 0, host->num_threads - 1);
		if (host->threads[t].core != c || host->threads[t].node != core->node ||
		    host->threads[t].rank != i) {
			snprintf(ret_text, EBB_TEXT_SIZE,
				 "thread %u and core %u do not agree on core, node or rank", t, c);
			return -EINVAL;
		}
	}
	return 0;
}

int ebb_host_check(const struct ebb_host *host, char *ret_text)
{
	uint32_t threads = 0;

	if (host->num_nodes == 0 || host->num_nodes > EBB_MAX_NODES)
		return complain(ret_text, "number of nodes", host->num_nodes, 1, EBB_MAX_NODES);
	if (host->num_threads == 0 || host->num_threads > EBB_MAX_THREADS)
		return complain(ret_text, "number of threads", host->num_threads, 1,
				EBB_MAX_THREADS);
	if (host->num_cores == 0 || host->num_cores > host->num_threads)
		return complain(ret_text, "number of cores", host->num_cores, 1,
				host->num_threads);
	for (uint16_t c = 0; c < host->num_cores; c++) {
		int r = core_check(host, c, ret_text);

		if (r < 0)
			return r;
		threads += host->cores[c].num_threads;
	}
	for (uint16_t n = 0; n < host->num_nodes; n++)
		if (host->pool_blocks[n] > EBB_MAX_POOL_MIB / EBB_BLOCK_MIB)
			return complain(ret_text, "pool blocks of a node", host->pool_blocks[n], 0,
					EBB_MAX_POOL_MIB / EBB_BLOCK_MIB);
	/* With core and thread agreeing one by one, equal sums mean a bijection. */
	if (threads != host->num_threads)
		return complain(ret_text, "sum of threads of all cores", threads,
				host->num_threads, host->num_threads);
	return 0;
}

static int sla_node_check(const struct ebb_sla *sla, uint16_t g, const struct ebb_host *host,
			  char *ret_text)
{
	const struct ebb_sla_node *n = &sla->nodes[g];
	char field[48];

	snprintf(field, sizeof(field), "node %u max", g);
	if (n->max > EBB_MAX_VCPUS)
		return complain(ret_text, field, n->max, 0, EBB_MAX_VCPUS);
	snprintf(field, sizeof(field), "node %u startup", g);
	if (n->startup > n->max)
		return complain(ret_text, field, n->startup, 0, n->max);
	snprintf(field, sizeof(field), "node %u reserved", g);
	if (n->reserved < n->startup || n->reserved > n->max)
		return complain(ret_text, field, n->reserved, n->startup, n->max);
	snprintf(field, sizeof(field), "node %u host", g);
	if (n->host_node >= host->num_nodes)
		return complain(ret_text, field, n->host_node, 0, host->num_nodes - 1);
	snprintf(field, sizeof(field), "node %u max-mib", g);
	if (n->mem_max > EBB_MAX_POOL_MIB / EBB_BLOCK_MIB)
		return complain(ret_text, field, (long)n->mem_max * EBB_BLOCK_MIB, 0,
				EBB_MAX_POOL_MIB);
	snprintf(field, sizeof(field), "node %u min-mib", g);
	if (n->mem_min > n->mem_max)
		return complain(ret_text, field, (long)n->mem_min * EBB_BLOCK_MIB, 0,
				(long)n->mem_max * EBB_BLOCK_MIB);
	return 0;
}

bool ebb_sla_has_mem(const struct ebb_sla *sla)
{
	for (uint16_t g = 0; g < sla->num_nodes; g++)
		if (sla->nodes[g].mem_max > 0 || sla->nodes[g].has_pool)
			return true;
	return false;
}

static int sla_range_check(const struct ebb_sla *sla, enum ebb_sla_part part, char *ret_text)
{
	const struct ebb_sla_key *key = ebb_sla_out_of_range(sla, part);
	uint64_t value;

	if (!key)
		return 0;
	value = ebb_sla_get(sla, key);
	return complain(ret_text, key->what, key->size > 4 ? (long)value : (int32_t)value,
			(long)key->min, (long)key->max);
}

static bool has_shared(const struct ebb_host *host, uint16_t node)
{
	for (uint16_t c = 0; c < host->num_cores; c++)
		if (host->cores[c].node == node && host->cores[c].is_shared)
			return true;
	return false;
}

static int sla_shared_check(const struct ebb_sla *sla, const struct ebb_host *host, char *ret_text)
{
	for (uint16_t g = 0; sla->is_shared && g < sla->num_nodes; g++) {
		const struct ebb_sla_node *n = &sla->nodes[g];

		if (n->startup != n->max) {
			snprintf(ret_text, EBB_TEXT_SIZE,
				 "node %u startup is %u, max %u: with shared=yes both must be "
				 "equal", g, n->startup, n->max);
			return -EINVAL;
		}
		if (n->startup > 0 && !has_shared(host, n->host_node)) {
			snprintf(ret_text, EBB_TEXT_SIZE,
				 "node %u is shared=yes, and node %u of the host has no shared "
				 "cores: see shared_cores of ebbd.conf(5)", g, n->host_node);
			return -EINVAL;
		}
	}
	return 0;
}

/* num_cpus: the vCPUs of the startup set, which are all if the VM shares cores. */
static int sla_percent_check(const struct ebb_sla *sla, uint32_t num_cpus, char *ret_text)
{
	if (sla->max_percent && sla->reserve_percent > sla->max_percent) {
		snprintf(ret_text, EBB_TEXT_SIZE, "reserve-percent is %u, which is more than "
			 "max-percent, %u", sla->reserve_percent, sla->max_percent);
		return -EINVAL;
	}
	if (sla->is_shared && sla->reserve_percent > EBB_PROMISE_MOST / 10 * num_cpus) {
		snprintf(ret_text, EBB_TEXT_SIZE, "reserve-percent is %u: %u vCPUs can be promised "
			 "%u at most, since %u per cent of each core are for VMs without a promise",
			 sla->reserve_percent, num_cpus, EBB_PROMISE_MOST / 10 * num_cpus,
			 EBB_PROMISE_LEFT / 10);
		return -EINVAL;
	}
	return 0;
}

static int sla_reserve_check(const struct ebb_sla *sla, char *ret_text)
{
	uint64_t room = 0;

	for (uint16_t g = 0; g < sla->num_nodes; g++)
		room += sla->nodes[g].mem_max - sla->nodes[g].mem_min;
	if (sla->reserve_mem_mib <= room * EBB_BLOCK_MIB)
		return 0;
	snprintf(ret_text, EBB_TEXT_SIZE, "reserve-mem is %u: its pools may have %llu MiB beyond "
		 "min-mib", sla->reserve_mem_mib, (unsigned long long)room * EBB_BLOCK_MIB);
	return -EINVAL;
}

int ebb_sla_check(const struct ebb_sla *sla, const struct ebb_host *host, char *ret_text)
{
	uint32_t startup = 0;
	int r;

	r = sla_range_check(sla, EBB_SLA_CPU, ret_text);
	if (r == 0)
		r = sla_range_check(sla, EBB_SLA_IO, ret_text);
	if (r == 0)
		r = ebb_sla_io_check(sla, ret_text);
	if (r < 0)
		return r;
	if (sla->num_nodes == 0 || sla->num_nodes > EBB_MAX_GUEST_NODES)
		return complain(ret_text, "number of nodes", sla->num_nodes, 1,
				EBB_MAX_GUEST_NODES);
	for (uint16_t g = 0; g < sla->num_nodes; g++) {
		r = sla_node_check(sla, g, host, ret_text);
		if (r < 0)
			return r;
		startup += sla->nodes[g].startup;
	}
	if (startup == 0)
		return complain(ret_text, "sum of startup", 0, 1, EBB_MAX_VCPUS);
	r = sla_shared_check(sla, host, ret_text);
	if (r == 0)
		r = sla_percent_check(sla, startup, ret_text);
	if (r < 0)
		return r;
	for (uint16_t g = 0; g < sla->num_nodes && sla->class == EBB_CLASS_SPOT; g++) {
		if (sla->nodes[g].reserved == sla->nodes[g].startup)
			continue;
		snprintf(ret_text, EBB_TEXT_SIZE,
			 "node %u reserved is %u, class spot allows its startup only, %u", g,
			 sla->nodes[g].reserved, sla->nodes[g].startup);
		return -EINVAL;
	}
	r = ebb_sla_has_mem(sla) ? sla_range_check(sla, EBB_SLA_MEM, ret_text) : 0;
	return r < 0 ? r : sla_reserve_check(sla, ret_text);
}

int ebb_host_emulate(uint32_t sockets, uint32_t cores, uint32_t threads, uint32_t share_permille,
		     struct ebb_host *ret_host)
{
	uint16_t t = 0;

	if (sockets == 0 || sockets > EBB_MAX_NODES || threads == 0 || threads > EBB_MAX_SMT ||
	    cores == 0 || cores > EBB_MAX_THREADS ||
	    sockets * cores * threads > EBB_MAX_THREADS || share_permille == 0)
		return -EINVAL;
	memset(ret_host, 0, sizeof(*ret_host));
	ret_host->is_emulated = true;
	ret_host->share_permille = share_permille;
	ret_host->num_nodes = (uint16_t)sockets;
	ret_host->num_cores = (uint16_t)(sockets * cores);
	ret_host->num_threads = (uint16_t)(sockets * cores * threads);
	for (uint16_t c = 0; c < ret_host->num_cores; c++) {
		struct ebb_core *core = &ret_host->cores[c];

		core->node = (uint16_t)(c / cores);
		core->num_threads = (uint16_t)threads;
		for (uint16_t rank = 0; rank < threads; rank++, t++) {
			core->threads[rank] = t;
			ret_host->threads[t] = (struct ebb_thread){
				.core = c, .node = core->node, .rank = rank, .os_cpu = t,
			};
		}
	}
	return 0;
}
