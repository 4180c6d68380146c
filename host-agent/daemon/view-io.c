/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See view-io.h. */
#include "daemon/view-io.h"
#include "daemon/view.h"
#include "model/sla-io.h"

json_t *ebb_view_sla_volumes(const struct ebb_sla *sla)
{
	json_t *volumes = json_array();
	const struct ebb_sla_key *key;
	uint64_t value;

	for (uint16_t k = 0; k < sla->num_volumes; k++) {
		json_t *o = json_pack("{s:s}", "volume", sla->volumes[k].name);

		for (size_t i = 0; (key = ebb_sla_key_at(i)); i++)
			if (key->part == EBB_SLA_IO &&
			    ebb_sla_volume_value(&sla->volumes[k], key, &value))
				json_object_set_new(o, key->json, ebb_view_sla_value(key, value));
		json_array_append_new(volumes, o);
	}
	return volumes;
}

json_t *ebb_view_io(const struct ebb_state *s)
{
	const struct ebb_volume_server *server = ebb_state_volume_server(s);
	json_t *o = json_pack("{s:b, s:s}", "answers", server != NULL, "error",
			      ebb_state_volumes_lost(s));

	if (server)
		json_object_update_new(o, json_pack(
			"{s:I, s:I, s:I, s:I, s:b}", "capacity_iops",
			(json_int_t)server->capacity_iops, "capacity_bytes",
			(json_int_t)server->capacity_bytes, "promised_iops",
			(json_int_t)server->promised_iops, "promised_bytes",
			(json_int_t)server->promised_bytes, "allow_overbooking",
			server->allow_overbooking));
	return o;
}

/* Null: nothing was metered. */
static json_t *meter_view(const struct ebb_io_view *view)
{
	const struct ebb_volume_delay *d = &view->last.delay;
	const struct ebb_ledger *sum = &view->sum;

	if (sum->num_intervals == 0)
		return json_null();
	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}",
			 "metered_s", (double)sum->metered_usec / EBB_USEC_PER_SEC, "wanted",
			 (json_int_t)sum->wanted, "promised", (json_int_t)sum->promised, "got",
			 (json_int_t)sum->got, "violated", (json_int_t)sum->violated,
			 "unclear", (json_int_t)sum->unclear, "system", (json_int_t)view->system,
			 "num_intervals", (json_int_t)sum->num_intervals, "num_violations",
			 (json_int_t)sum->num_violations, "overdue",
			 (json_int_t)view->last.count.overdue, "delay_mean_ms",
			 (double)d->mean_nsec / 1e6, "delay_p50_ms", (double)d->p50_nsec / 1e6,
			 "delay_p99_ms", (double)d->p99_nsec / 1e6, "delay_max_ms",
			 (double)d->max_nsec / 1e6);
}

json_t *ebb_view_volumes(const struct ebb_state *s, const struct ebb_vm *vm)
{
	json_t *volumes = json_array();

	for (uint16_t k = 0; vm->has_sla && k < vm->volumes.num; k++) {
		struct ebb_io_view view;
		struct ebb_sla_io io;

		ebb_state_volume(s, vm, k, &view);
		ebb_sla_io_of(&vm->sla, vm->volumes.names[k], &io);
		json_array_append_new(volumes, json_pack(
			"{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "volume",
			vm->volumes.names[k], "state", ebb_io_state_name(view.state), "error",
			view.text, "meter", meter_view(&view),
			"reserve_iops", (json_int_t)io.reserve_iops, "reserve_bytes",
			(json_int_t)io.reserve_bytes, "max_iops", (json_int_t)io.max_iops,
			"max_bytes", (json_int_t)io.max_bytes, "weight", (json_int_t)io.weight,
			"penalty", (json_int_t)io.penalty, "cold",
			ebb_view_sla_value(ebb_sla_key_find("io.cold"), io.cold)));
	}
	return volumes;
}
