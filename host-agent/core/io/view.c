// SPDX-License-Identifier: GPL-2.0-or-later
/* Describes the promises of I/O to the volumes of a VM, for ebbctl. */
#include <string.h>

#include "core/explain.h"
#include "core/io/cold.h"
#include "core/io/table.h"
#include "model/sla-io.h"

void io_view(const struct io_room *s, const struct ebb_vm *vm, uint16_t k,
	     struct ebb_io_view *ret)
{
	const char *name = vm->volumes.names[k];
	const struct io_volume *v;

	*ret = (struct ebb_io_view){ .state = EBB_IO_NONE };
	if (!vm->is_running || !ebb_sla_io_covers(&vm->sla, name))
		return;
	v = io_table_find(s, name);
	if (v && v->owner == vm) {
		ret->sum = v->sum;
		ret->system = v->system.got;
		ret->last = v->seen;
	}
	if (!v) {
		/* Until the next cycle, or for good where there are too many volumes. */
		ret->state = s->num == IO_VOLUMES ? EBB_IO_REFUSED : EBB_IO_SETTING;
		if (ret->state == EBB_IO_REFUSED)
			core_text(ret->text, "promises are made to %u volumes at most", IO_VOLUMES);
	} else if (v->owner && v->owner != vm) {
		ret->state = EBB_IO_TAKEN;
		core_text(ret->text, "it is promised to %s already", core_label(v->owner).text);
	} else if (!s->is_up) {
		ret->state = EBB_IO_WAITING;
		core_text(ret->text, "%s", s->lost[0] ? s->lost :
			  "the volume server has not answered yet");
	} else if (v->is_told && ebb_sla_io_is_same(&v->told, &v->want)) {
		ret->state = EBB_IO_SET;
	} else if (v->text[0]) {
		ret->state = EBB_IO_REFUSED;
		memcpy(ret->text, v->text, sizeof(ret->text));
	} else {
		ret->state = EBB_IO_SETTING;
	}
}

const char *ebb_io_state_name(enum ebb_io_state state)
{
	static const char *const names[EBB_IO_STATE_MAX] = {
		[EBB_IO_NONE] = "none",	      [EBB_IO_SET] = "set",
		[EBB_IO_SETTING] = "setting", [EBB_IO_WAITING] = "waiting",
		[EBB_IO_REFUSED] = "refused", [EBB_IO_TAKEN] = "taken",
	};

	return (unsigned)state < EBB_IO_STATE_MAX ? names[state] : "?";
}

static bool is_disk(const struct ebb_vm *vm, const char *name)
{
	for (uint16_t k = 0; k < vm->volumes.num; k++)
		if (strcmp(vm->volumes.names[k], name) == 0)
			return true;
	return false;
}

void io_explain(const struct io_room *s, const struct ebb_vm *vm, struct ebb_explain *e)
{
	const struct io_volume *v;
	struct ebb_io_view view;

	if (!ebb_sla_has_io(&vm->sla))
		return;
	if (vm->volumes.num == 0)
		core_text(core_explain_more(e), "its SLA promises I/O, but none of its disks is a "
			  "volume of the volume server (volume_socket in ebbd.conf)");
	if (vm->volumes.num_more > 0)
		core_text(core_explain_more(e), "%u of its volumes get no promise: a VM may have "
			  "%u with one", vm->volumes.num_more, EBB_MAX_VOLUMES);
	for (uint16_t i = 0; vm->volumes.num > 0 && i < vm->sla.num_volumes; i++)
		if (!is_disk(vm, vm->sla.volumes[i].name))
			core_text(core_explain_more(e), "its SLA names volume %s, which is none of "
				  "its disks", vm->sla.volumes[i].name);
	for (uint16_t k = 0; k < vm->volumes.num; k++) {
		io_view(s, vm, k, &view);
		v = io_table_find(s, vm->volumes.names[k]);
		if (view.state == EBB_IO_REFUSED && v && v->is_told)
			core_text(core_explain_more(e), "volume %s: its new promise is refused, "
				  "that of %u requests/s and %llu bytes/s holds: %.80s", v->name,
				  v->told.reserve_iops, (unsigned long long)v->told.reserve_bytes,
				  view.text);
		else if (view.state == EBB_IO_SETTING)
			core_text(core_explain_more(e), "volume %s: the volume server is being "
				  "told its promise", vm->volumes.names[k]);
		else if (view.state != EBB_IO_SET && view.state != EBB_IO_NONE)
			core_text(core_explain_more(e), "volume %s: its promise is not in force "
				  "(%s): %.110s", vm->volumes.names[k],
				  ebb_io_state_name(view.state), view.text);
	}
	io_cold_explain(s, vm, e);
}
