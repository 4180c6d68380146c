// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether volumes got what was promised ("SQLVM", sections 2.2 and 3.2), from the counters of the
 * volume server's meter, which judges its scheduler and takes nothing from it.
 */
#include <stdio.h>
#include <string.h>

#include "core/io/table.h"

/* A unit of a promise of bytes alone; of others a request of at most so many bytes is one. */
#define UNIT_BYTES	65536u

void io_meter_forget(struct io_volume *v)
{
	v->is_metered = false;
	v->since = 0;
	v->sum = (struct ebb_ledger){ 0 };
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

static void add(const struct io_room *s, struct io_volume *v, const struct ebb_volume_counters *d,
		const struct ebb_fact_volumes_meters *f)
{
	const usec_t length = d->intervals * f->interval_usec;
	struct ebb_ledger *sum = &v->sum;
	struct ebb_record *r;

	if (sum->num_intervals == 0)
		v->since = f->as_of - length;
	sum->metered_usec += length;
	sum->promised += d->charged + d->missed;
	sum->got += d->charged + d->early;
	sum->violated += d->violated;
	sum->wanted += d->charged + d->early + d->violated;
	sum->num_intervals += d->intervals;
	sum->num_violations += d->violated_intervals;
	r = core_record(s->env, v->owner, f->as_of, EBB_EVENT_LEDGER);
	r->order = v->owner->order;
	r->total_usec = f->as_of - v->since;
	r->ledger.promise = EBB_PROMISE_IO;
	memcpy(r->ledger.volume, v->name, sizeof(v->name));
	r->ledger.rate = rate_of(&v->told);
	r->ledger.sum = *sum;
	if (d->violated > 0) {
		r->code = cause_of(d);
		explain(s, v, d, r->text);
	}
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
	}
}

void io_server(struct io_room *s, const struct ebb_volume_server *server)
{
	s->server = *server;
	s->has_server = true;
}
