/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Comparing looks with what was told. */
#include <errno.h>
#include <string.h>
#include "backend/real/watch.h"
#include "util/text.h"

static int tell(const struct ebb_watch *w, usec_t now, const struct ebb_sink *sink,
		struct ebb_fact *fact)
{
	memcpy(fact->uuid, w->uuid, 16);
	return sink->report(sink->ctx, now, fact);
}

static void tell_type(const struct ebb_watch *w, usec_t now, const struct ebb_sink *sink,
		      enum ebb_fact_type type)
{
	struct ebb_fact fact = { .type = type };

	tell(w, now, sink, &fact);
}

static void stop(struct ebb_watch *w, usec_t now, const struct ebb_sink *sink)
{
	if (w->told_running)
		tell_type(w, now, sink, EBB_FACT_VM_STOPPED);
	w->told_running = false;
}

static void define(struct ebb_watch *w, const struct ebb_look *look, usec_t now,
		   const struct ebb_sink *sink)
{
	const struct ebb_metadata *m = &look->domain.metadata;
	const bool keep_sla = w->told == EBB_WATCH_VALID &&
			      (look->is_sla_stale ||
			       memcmp(&w->metadata.sla, &m->sla, sizeof(m->sla)) == 0);
	const struct ebb_sla found = keep_sla ? w->metadata.sla : m->sla;
	const struct ebb_sla sla = keep_sla ? w->sla : m->sla;
	struct ebb_fact fact = { .type = EBB_FACT_VM_DEFINED };
	struct ebb_fact_vm_defined *d = &fact.u.vm_defined;
	int rc;

	/* is_enabled and mem_blocks are no part of the definition. */
	if (keep_sla && strcmp(w->name, look->domain.name) == 0 &&
	    w->metadata.num_vcpus == m->num_vcpus &&
	    memcmp(w->metadata.vcpus, m->vcpus, sizeof(m->vcpus)) == 0 &&
	    memcmp(w->metadata.boot_bytes, m->boot_bytes, sizeof(m->boot_bytes)) == 0 &&
	    memcmp(w->metadata.pool_blocks, m->pool_blocks, sizeof(m->pool_blocks)) == 0 &&
	    memcmp(&w->volumes, &look->domain.volumes, sizeof(w->volumes)) == 0 &&
	    w->disk_bytes == look->domain.disk_bytes)
		return;
	d->sla = sla;
	memcpy(d->name, look->domain.name, sizeof(d->name));
	d->num_vcpus = m->num_vcpus;
	d->vcpus = m->vcpus;
	memcpy(d->boot_bytes, m->boot_bytes, sizeof(d->boot_bytes));
	memcpy(d->pool_blocks, m->pool_blocks, sizeof(d->pool_blocks));
	d->volumes = look->domain.volumes;
	d->disk_bytes = look->domain.disk_bytes;
	rc = tell(w, now, sink, &fact);
	memcpy(w->name, look->domain.name, sizeof(w->name));
	/* A definition that the core finds wrong (-EINVAL) it has noted, so it counts as told. */
	if (rc < 0 && rc != -EINVAL)
		return;
	w->told = EBB_WATCH_VALID;
	w->metadata = *m;
	w->volumes = look->domain.volumes;
	w->disk_bytes = look->domain.disk_bytes;
	w->metadata.sla = found;
	w->sla = sla;
	w->error[0] = '\0';
}

static void invalidate(struct ebb_watch *w, const struct ebb_look *look, usec_t now,
		       const struct ebb_sink *sink)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_INVALID };
	struct ebb_fact_vm_invalid *i = &fact.u.vm_invalid;

	ebb_text_copy(i->text, sizeof(i->text), look->domain.error.text);
	if (w->told == EBB_WATCH_INVALID && strcmp(w->error, i->text) == 0)
		return;
	memcpy(w->name, look->domain.name, sizeof(w->name));
	memcpy(i->name, w->name, sizeof(i->name));
	if (tell(w, now, sink, &fact) < 0)
		return;
	w->told = EBB_WATCH_INVALID;
	memcpy(w->error, i->text, sizeof(w->error));
}

static void run(struct ebb_watch *w, const struct ebb_look *look, usec_t now,
		const struct ebb_sink *sink)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_RUNNING };

	fact.u.vm_running = (struct ebb_fact_vm_running){
		.order = look->domain.order, .as_of = look->as_of,
		.is_incoming = look->domain.is_moving && !look->domain.is_leaving,
		.is_outgoing = look->domain.is_leaving,
		.num_plugged = look->num_plugged, .plugged = look->plugged,
	};
	memcpy(fact.u.vm_running.mem_blocks, look->domain.metadata.mem_blocks,
	       sizeof(fact.u.vm_running.mem_blocks));
	if (tell(w, now, sink, &fact) < 0)
		return;
	w->told_running = true;
	w->order = look->domain.order;
}

void ebb_watch_sla_set(struct ebb_watch *w, const struct ebb_sla *sla)
{
	w->sla = *sla;
}

enum ebb_watch_result ebb_watch_apply(struct ebb_watch *w, const struct ebb_look *look, usec_t now,
				      const struct ebb_sink *sink)
{
	const struct ebb_virt_domain *d = &look->domain;
	bool is_ours = d->exists && d->sla != 0;

	/* Another run than the one that was told: that one is over. */
	if (!d->exists || !d->is_running || w->order != d->order)
		stop(w, now, sink);
	if (!is_ours) {
		if (w->told != EBB_WATCH_UNKNOWN && w->told != EBB_WATCH_REMOVED)
			tell_type(w, now, sink, EBB_FACT_VM_REMOVED);
		w->told = w->told_running ? EBB_WATCH_REMOVED : EBB_WATCH_UNKNOWN;
		return w->told_running ? EBB_WATCH_KEEP : EBB_WATCH_FORGET;
	}
	if (d->sla < 0) {
		invalidate(w, look, now, sink);
		return EBB_WATCH_KEEP;
	}
	define(w, look, now, sink);
	if (!d->is_running)
		return EBB_WATCH_KEEP;
	if ((!look->is_ready || d->is_starting) && !w->told_running)
		return EBB_WATCH_AGAIN;
	run(w, look, now, sink);
	return EBB_WATCH_KEEP;
}

static bool is_shared(const struct ebb_watch *w)
{
	return w->told == EBB_WATCH_VALID && w->sla.is_shared;
}

bool ebb_watch_is_promised(const struct ebb_watch *w)
{
	return is_shared(w) && w->told_running && w->sla.reserve_percent > 0;
}

usec_t ebb_watch_period(const struct ebb_watch *w, usec_t window, usec_t interval)
{
	const usec_t period = window / 4 < interval ? window / 4 : interval;

	return is_shared(w) && period < EBB_WATCH_PERIOD_MOST ? period : EBB_WATCH_PERIOD_MOST;
}
