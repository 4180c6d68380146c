/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulated VMs for --dry-run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/dryrun.h"
#include "model/sla.h"
#include "util/clock.h"
#include "util/log.h"

#define LOAD_USEC		EBB_USEC_PER_SEC
#define TURN_LOADS		30	/* so long others have much to do */
#define START_EVERY_USEC	(2 * EBB_USEC_PER_SEC)
#define SEED			1

struct ebb_dryrun {
	struct ebb_agent *agent;
	struct ebb_fake *fake;
	sd_event_source *timer;		/* starts the next VM */
	sd_event_source *load_timer;	/* sets the load of the VMs */
	uint32_t num_loads;
	uint32_t num_vms, num_started;
};

static void uuid_of(uint32_t i, uint8_t ret[16])
{
	memset(ret, 0, 16);
	ret[0] = 0xeb;
	ret[15] = i + 1;
}

/* Every other VM shares the shared cores of a node, where there are any, and has as many vCPUs. */
static void make_shared(const struct ebb_host *host, uint32_t i, struct ebb_sla *sla)
{
	const uint16_t node = i / 2 % sla->num_nodes;
	uint16_t cores = 0;

	for (uint16_t c = 0; c < host->num_cores; c++)
		cores += host->cores[c].is_shared && host->cores[c].node == node;
	if (i % 2 == 0 || cores == 0)
		return;
	sla->is_shared = true;
	for (uint16_t n = 0; n < sla->num_nodes; n++)
		sla->nodes[n].startup = sla->nodes[n].reserved = sla->nodes[n].max =
			n == node ? cores : 0;
}

/* Floor of one CPU and no memory, ceiling the host; every third belongs to the reserved class. */
static int define_vm(struct ebb_dryrun *d, const struct ebb_host *host, uint32_t i)
{
	struct ebb_sla sla;
	char name[EBB_NAME_SIZE];
	uint8_t uuid[16];

	ebb_sla_default(&sla);
	sla.class = i % 3 ? EBB_CLASS_SPOT : EBB_CLASS_RESERVED;
	sla.num_nodes = host->num_nodes;
	for (uint16_t c = 0; c < host->num_cores; c++)
		sla.nodes[host->cores[c].node].max += !host->cores[c].is_shared;
	for (uint16_t n = 0; n < sla.num_nodes; n++) {
		sla.nodes[n].host_node = n;
		sla.nodes[n].mem_max = host->pool_blocks[n];
	}
	sla.nodes[i % sla.num_nodes].startup = 1;
	for (uint16_t n = 0; n < sla.num_nodes; n++)
		sla.nodes[n].reserved = sla.class == EBB_CLASS_SPOT ? sla.nodes[n].startup :
								      sla.nodes[n].max;
	make_shared(host, i, &sla);
	snprintf(name, sizeof(name), "simulated-%u", i + 1);
	uuid_of(i, uuid);
	return ebb_fake_vm_define(d->fake, ebb_clock_mono_usec(), uuid, name, &sla,
				  i % 4 == 3 ? EBB_FAKE_SILENT : EBB_FAKE_GREEDY);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct ebb_dryrun *d = arg;
	uint8_t uuid[16];
	int rc;

	(void)usec;
	uuid_of(d->num_started, uuid);
	rc = ebb_fake_vm_start(d->fake, ebb_clock_mono_usec(), uuid);
	if (rc < 0)
		ebb_log(LOG_WARNING, "dry_run", EBB_KI("vm", d->num_started + 1),
			EBB_KS("error", strerror(-rc)));
	ebb_agent_poke(d->agent);
	if (++d->num_started == d->num_vms)
		return 0;
	sd_event_source_set_time_relative(s, START_EVERY_USEC);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

int ebb_dryrun_create(struct ebb_agent *a, const struct ebb_host *host, uint32_t num_vms,
		      struct ebb_dryrun **ret)
{
	struct ebb_dryrun *d = calloc(1, sizeof(*d));
	struct ebb_fake_config cfg;
	int rc = 0;

	if (!d)
		return -ENOMEM;
	d->agent = a;
	d->num_vms = num_vms;
	ebb_fake_config_default(&cfg);
	cfg.seed = SEED;
	d->fake = ebb_fake_create(&cfg, ebb_agent_sink(a));
	if (!d->fake)
		rc = -ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < num_vms; i++)
		rc = define_vm(d, host, i);
	if (rc < 0) {
		ebb_dryrun_destroy(d);
		return rc;
	}
	*ret = d;
	return 0;
}

/*
 * For half a minute each, one VM needs most of the memory, and of those that share cores one in
 * four is busy.
 */
static int on_load_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct ebb_dryrun *d = arg;
	const struct ebb_host *host = ebb_state_host(d->agent->state);
	const uint32_t turn = d->num_loads / TURN_LOADS;
	struct ebb_shared_totals shared;
	uint8_t uuid[16];

	(void)usec;
	if (d->num_loads++ % TURN_LOADS == 0)
		ebb_fake_need_turn(d->fake, ebb_clock_mono_usec(), turn);
	ebb_state_shared_totals(d->agent->state, &shared);
	for (uint32_t i = 1; shared.num_threads > 0 && i < d->num_vms; i += 2) {
		uuid_of(i, uuid);
		ebb_fake_vm_load(d->fake, uuid, (i / 2 + turn) % 4 == 0 ? 700 : 200);
	}
	/* A VM is heard of as one that runs before anything else is said of it. */
	if (ebb_state_is_loaded(d->agent->state))
		ebb_fake_load_run(d->fake, ebb_clock_mono_usec(), LOAD_USEC,
				  host->is_emulated ? host->share_permille : 1000);
	ebb_agent_poke(d->agent);
	sd_event_source_set_time_relative(s, LOAD_USEC);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

int ebb_dryrun_begin(struct ebb_dryrun *d)
{
	int rc;

	ebb_fake_agent_start(d->fake, ebb_clock_mono_usec());
	ebb_agent_poke(d->agent);
	rc = sd_event_add_time_relative(d->agent->event, &d->timer, CLOCK_MONOTONIC, 0, 0, on_timer,
					d);
	if (rc >= 0)
		rc = sd_event_add_time_relative(d->agent->event, &d->load_timer, CLOCK_MONOTONIC, 0,
						0, on_load_timer, d);
	return rc < 0 ? rc : 0;
}

void ebb_dryrun_destroy(struct ebb_dryrun *d)
{
	if (!d)
		return;
	sd_event_source_disable_unref(d->timer);
	sd_event_source_disable_unref(d->load_timer);
	ebb_fake_destroy(d->fake);
	free(d);
}

struct ebb_backend ebb_dryrun_backend(struct ebb_dryrun *d)
{
	return ebb_fake_backend(d->fake);
}
