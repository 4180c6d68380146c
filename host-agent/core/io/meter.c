// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether volumes got what was promised ("SQLVM", sections 2.2 and 3.2), from the counters of the
 * volume server's meter, which judges its scheduler and takes nothing from it.
 */
#include <stdio.h>
#include <string.h>

#include "core/io/beyond.h"
#include "core/io/cold.h"
#include "core/io/table.h"

/* A unit of a promise of bytes alone; of others a request of at most so many bytes is one. */
#define UNIT_BYTES	65536u

/* The room's own part of a VM. */
static struct ebb_vm_io *own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_io *)&vm->io;
}

void io_meter_forget(struct io_volume *v)
{
	v->is_metered = false;
	v->since = 0;
	v->sum = v->system = (struct ebb_ledger){ 0 };
	v->seen = (struct ebb_volume_reading){ 0 };
}

/* False: a counter went back, so nothing is known of the time between the two. */
static bool subtract(const struct ebb_volume_counters *now, const struct ebb_volume_counters *then,
		     struct ebb_volume_counters *ret)
{
	*ret = (struct ebb_volume_counters){
		.intervals = now->intervals - then->intervals,
		.violated_intervals = now->violated_intervals - then->violated_intervals,
		.charged = now->charged - then->charged, .early = now->early - then->early,
		.missed = now->missed - then->missed, .violated = now->violated - then->violated,
		.others_early = now->others_early - then->others_early,
		.others_promised = now->others_promised - then->others_promised,
		.slow = now->slow - then->slow, .overdue = now->overdue - then->overdue,
	};
	return now->intervals >= then->intervals &&
	       now->violated_intervals >= then->violated_intervals &&
	       now->charged >= then->charged && now->early >= then->early &&
	       now->missed >= then->missed && now->violated >= then->violated &&
	       now->others_early >= then->others_early &&
	       now->others_promised >= then->others_promised && now->slow >= then->slow &&
	       now->overdue >= then->overdue;
}

static enum ebb_cause cause_of(const struct ebb_volume_counters *d)
{
	if (d->others_early >= d->others_promised && d->others_early >= d->slow)
		return EBB_CAUSE_OTHERS;
	return d->others_promised >= d->slow ? EBB_CAUSE_OVERBOOKED : EBB_CAUSE_HOST;
}

static void explain(const struct io_room *s, const struct io_volume *v,
		    const struct ebb_volume_counters *d, char *text)
{
	const struct io_volume *taker = v->seen.taker[0] ? io_table_find(s, v->seen.taker) : NULL;
	char to[256] = "";

	if (v->seen.taker[0])
		snprintf(to, sizeof(to), ", most to volume %s%s%s", v->seen.taker,
			 taker && taker->owner ? " of " : "",
			 taker && taker->owner ? ebb_text_label(taker->owner->name, 24).text : "");
	core_text(text, "of %llu units beyond others' promises %llu, within them %llu, to nobody "
		  "%llu%s", (unsigned long long)d->violated, (unsigned long long)d->others_early,
		  (unsigned long long)d->others_promised, (unsigned long long)d->slow, to);
}

static uint64_t rate_of(const struct ebb_sla_io *io)
{
	return io->reserve_iops ? io->reserve_iops : io->reserve_bytes / UNIT_BYTES;
}

/* ---- intervals -------------------------------------------------------------- */

static void sum_up(struct ebb_ledger *sum, const struct ebb_ledger *row)
{
	sum->metered_usec += row->metered_usec;
	sum->wanted += row->wanted;
	sum->promised += row->promised;
	sum->got += row->got;
	sum->violated += row->violated;
	sum->unclear += row->unclear;
	sum->num_intervals += row->num_intervals;
	sum->num_violations += row->num_violations;
	sum->num_unclear += row->num_unclear;
}

/* vm: NULL: of the system. */
static struct ebb_record *record(const struct io_room *s, const struct io_volume *v, usec_t at,
				 const struct ebb_vm *vm)
{
	struct ebb_record *r = core_record(s->env, vm, at, EBB_EVENT_LEDGER);

	r->total_usec = at - v->since;
	r->ledger.promise = EBB_PROMISE_IO;
	memcpy(r->ledger.volume, v->name, sizeof(v->name));
	r->ledger.sum = vm ? v->sum : v->system;
	return r;
}

static void record_system(const struct io_room *s, const struct io_volume *v, usec_t at)
{
	struct ebb_record *r = record(s, v, at, NULL);

	memcpy(r->name, EBB_SYSTEM_NAME, sizeof(EBB_SYSTEM_NAME));
}

/* How many of the units that the volume got are reads beyond its owner's promised cache. */
static uint64_t take_beyond(const struct io_room *s, const struct io_volume *v, usec_t start,
			    uint64_t got)
{
	struct io_beyond *b = &own(v->owner)->beyond;

	return b->open > 0 && io_cold_volume(s, v->owner) == v ? io_beyond_take(b, start, got) : 0;
}

static void add(const struct io_room *s, struct io_volume *v, const struct ebb_volume_counters *d,
		const struct ebb_fact_volumes_meters *f)
{
	const usec_t length = d->intervals * f->interval_usec;
	struct ebb_ledger row = {
		.metered_usec = length, .num_intervals = d->intervals,
		.promised = d->charged + d->missed, .got = d->charged + d->early,
		.violated = d->violated, .num_violations = d->violated_intervals,
		.wanted = d->charged + d->early + d->violated,
	};
	const uint64_t beyond = take_beyond(s, v, f->as_of - length, row.got);
	const struct ebb_ledger system = {
		.metered_usec = length, .num_intervals = d->intervals,
		.wanted = beyond, .got = beyond,
	};
	struct ebb_record *r;

	io_beyond_charge(&row, beyond);
	if (v->sum.num_intervals == 0)
		v->since = f->as_of - length;
	sum_up(&v->sum, &row);
	r = record(s, v, f->as_of, v->owner);
	r->order = v->owner->order;
	r->ledger.rate = rate_of(&v->told);
	if (d->violated > 0) {
		r->code = cause_of(d);
		explain(s, v, d, r->text);
	}
	if (beyond > 0) {
		sum_up(&v->system, &system);
		record_system(s, v, f->as_of);
	}
}

/* Only a promise of requests has units that a read can be charged as. */
static bool can_charge(const struct io_volume *v)
{
	return v && v->is_metered && v->told.reserve_iops > 0;
}

void io_report_beyond(struct io_room *s, usec_t now, const struct ebb_vm *vm, usec_t length,
		      uint64_t reads)
{
	struct io_beyond *b = &own(vm)->beyond;

	if (can_charge(io_cold_volume(s, vm)))
		io_beyond_report(b, now, length, reads);
	else
		*b = (struct io_beyond){ 0 };
}

void io_meters(struct io_room *s, const struct ebb_fact_volumes_meters *f)
{
	for (uint32_t i = 0; i < f->num; i++) {
		const struct ebb_volume_reading *now = &f->volumes[i];
		struct io_volume *v = io_table_get_known(s, now->name);
		struct ebb_volume_counters d;
		bool goes_on;

		if (!v)
			continue;
		if (!v->owner || !v->is_told || (!v->told.reserve_iops && !v->told.reserve_bytes)) {
			v->is_metered = false;
			continue;
		}
		goes_on = v->is_metered && subtract(&now->count, &v->seen.count, &d);
		/* No interval has ended since: what is in the counters belongs to the next one. */
		if (goes_on && d.intervals == 0)
			continue;
		v->seen = *now;
		v->is_metered = true;
		if (goes_on)
			add(s, v, &d, f);
		/* Reads from before the first reading of the meter are in no row. */
		else if (io_cold_volume(s, v->owner) == v)
			own(v->owner)->beyond = (struct io_beyond){ 0 };
	}
}

void io_server(struct io_room *s, const struct ebb_volume_server *server)
{
	s->server = *server;
	s->has_server = true;
}
