// SPDX-License-Identifier: GPL-2.0-or-later
/* See cold.h. */
#include "core/explain.h"
#include "core/io/cold.h"
#include "core/io/table.h"
#include "model/sla-io.h"

/* Volumes of one kind: how many, and one of them. */
struct kind {
	const struct io_volume *volume;
	uint16_t num;
};

/* Of the VM's disks in the table: those with "yes", and those with "auto" and a promise. */
static void count(const struct io_room *s, const struct ebb_vm *vm, struct kind *ret_yes,
		  struct kind *ret_auto)
{
	*ret_yes = *ret_auto = (struct kind){ NULL, 0 };
	for (uint16_t k = 0; k < vm->volumes.num; k++) {
		const struct io_volume *v = io_table_find(s, vm->volumes.names[k]);
		struct kind *kind = NULL;
		struct ebb_sla_io io;

		if (!v || v->owner != vm)
			continue;
		ebb_sla_io_of(&vm->sla, v->name, &io);
		if (io.cold == EBB_COLD_YES)
			kind = ret_yes;
		else if (io.cold == EBB_COLD_AUTO && (io.reserve_iops || io.reserve_bytes))
			kind = ret_auto;
		if (kind)
			*kind = (struct kind){ v, (uint16_t)(kind->num + 1) };
	}
}

/* The SLA says "yes" of a volume, which need not be a disk of the VM now. */
static bool says_yes(const struct ebb_sla *sla)
{
	bool is_said = sla->io.cold == EBB_COLD_YES;

	for (uint16_t i = 0; i < sla->num_volumes; i++)
		is_said = is_said || sla->volumes[i].io.cold == EBB_COLD_YES;
	return is_said;
}

const struct io_volume *io_cold_volume(const struct io_room *s, const struct ebb_vm *vm)
{
	struct kind yes, other;

	count(s, vm, &yes, &other);
	if (says_yes(&vm->sla))
		return yes.num == 1 ? yes.volume : NULL;
	return other.num == 1 ? other.volume : NULL;
}

void io_cold_explain(const struct io_room *s, const struct ebb_vm *vm, struct ebb_explain *e)
{
	const struct io_volume *v = io_cold_volume(s, vm);
	struct kind yes, other;

	if (vm->floor.promised_mib == 0)
		return;
	count(s, vm, &yes, &other);
	if (yes.num > 1)
		core_text(core_explain_more(e), "reads beyond its promised cache count as its own "
			  "I/O: its SLA says cold=\"yes\" of %u volumes, so their reads can not be "
			  "told apart", yes.num);
	else if (!says_yes(&vm->sla) && other.num > 1)
		core_text(core_explain_more(e), "reads beyond its promised cache count as its own "
			  "I/O: any of %u volumes may hold its cold records (say which: "
			  "io.VOLUME.cold=yes)", other.num);
	else if (v && v->want.reserve_bytes && !v->want.reserve_iops)
		core_text(core_explain_more(e), "reads beyond its promised cache count as its own "
			  "I/O: volume %s is promised bytes only, and how many a read has is not "
			  "known", v->name);
}
