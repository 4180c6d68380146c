// SPDX-License-Identifier: GPL-2.0-or-later
/* See io.h: the table, and what is told to the volume server. */
#include <errno.h>
#include <string.h>

#include "core/io/io.h"
#include "core/io/table.h"
#include "model/sla-io.h"

_Static_assert(EBB_MAX_VOLUMES <= 8, "ebb_vm_io.taken has a bit for each");

/* The room's own part of a VM. */
static struct ebb_vm_io *own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_io *)&vm->io;
}

/* ---- who owns which volume ------------------------------------------------- */

void io_changed(struct io_room *s, const struct ebb_vm *vm)
{
	if (vm->is_running && (vm->io.num_owned > 0 || vm->io.taken || ebb_sla_has_io(&vm->sla)))
		s->is_stale = true;
}

void io_stop(struct io_room *s, const struct ebb_vm *vm)
{
	for (uint32_t i = 0; vm->io.num_owned > 0 && i < s->num; i++)
		if (s->volumes[i].owner == vm)
			s->volumes[i].owner = NULL;
	s->is_stale = s->is_stale || vm->io.num_owned > 0;
	*own(vm) = (struct ebb_vm_io){ 0 };
}

static bool claims(const struct ebb_vm *vm, const char *name)
{
	for (uint16_t k = 0; k < vm->volumes.num; k++)
		if (strcmp(vm->volumes.names[k], name) == 0)
			return ebb_sla_io_covers(&vm->sla, name);
	return false;
}

static void record_taken(const struct io_room *s, usec_t now, const struct ebb_vm *vm,
			 const struct io_volume *v)
{
	core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
		  "volume %s is promised to %s already: what this SLA says of it waits until that "
		  "VM stops", v->name, core_label(v->owner).text);
}

static void want(struct io_volume *v, const struct ebb_sla_io *io)
{
	if (ebb_sla_io_is_same(&v->want, io))
		return;
	v->want = *io;
	v->failures = 0;
	v->retry_at = 0;
	v->text[0] = '\0';
}

/* Gives the VM each volume that it claims and nobody else has. */
static void claim(struct io_room *s, usec_t now, const struct ebb_vm *vm)
{
	const uint8_t were_taken = vm->io.taken;
	uint8_t taken = 0;

	own(vm)->num_owned = 0;
	for (uint16_t k = 0; k < vm->volumes.num; k++) {
		const char *name = vm->volumes.names[k];
		struct io_volume *v = ebb_sla_io_covers(&vm->sla, name) ? io_table_get(s, name) :
									  NULL;
		struct ebb_sla_io io;

		if (!v)
			continue;
		if (v->owner && v->owner != vm) {
			taken |= (uint8_t)(1u << k);
			if (!(were_taken >> k & 1))
				record_taken(s, now, vm, v);
			continue;
		}
		if (!v->owner && !s->is_up && s->lost[0])
			core_text(core_record(s->env, vm, now, EBB_EVENT_ERROR)->text,
				  "the promise to volume %s waits for the volume server: %.110s",
				  name, s->lost);
		if (v->owner != vm) {
			io_meter_forget(v);
			v->has_old = false;
		}
		v->owner = vm;
		ebb_sla_io_of(&vm->sla, name, &io);
		want(v, &io);
		own(vm)->num_owned++;
	}
	own(vm)->taken = taken;
}

void io_settle(struct io_room *s, usec_t now)
{
	struct ebb_sla_io nothing;

	if (!s->is_stale)
		return;
	s->is_stale = false;
	s->is_due = true;
	/* Before anything is claimed: a volume that one VM no longer has is free for another. */
	for (uint32_t i = 0; i < s->num; i++)
		if (s->volumes[i].owner && !claims(s->volumes[i].owner, s->volumes[i].name))
			s->volumes[i].owner = NULL;
	for (size_t i = 0; i < s->env->num_active; i++) {
		const struct ebb_vm *vm = s->env->active[i];

		if (vm->io.num_owned > 0 || vm->io.taken || ebb_sla_has_io(&vm->sla))
			claim(s, now, vm);
	}
	ebb_sla_io_default(&nothing);
	for (uint32_t i = s->num; i-- > 0;) {
		struct io_volume *v = &s->volumes[i];

		if (v->owner)
			continue;
		want(v, &nothing);
		if (!v->is_set && !v->action)
			io_table_remove(s, v);
	}
}

/* ---- the volume server ------------------------------------------------------ */

/* Promises that this agent or an earlier one has set: those that no VM claims are taken back. */
static void note_owned(struct io_room *s, const struct ebb_fact_volumes_up *f)
{
	for (uint32_t i = 0; i < f->num; i++) {
		struct io_volume *v = io_table_get(s, f->owned[i]);

		if (v)
			v->is_set = true;
	}
	s->is_stale = s->is_stale || f->num > 0;
}

void io_up(struct io_room *s, usec_t now, const struct ebb_fact_volumes_up *f)
{
	if (s->lost[0] && s->num > 0)
		core_text(core_record(s->env, NULL, now, EBB_EVENT_VOLUME)->text,
			  "the volume server answers: promises to %u volumes are told to it",
			  s->num);
	s->is_up = s->is_due = true;
	s->lost[0] = '\0';
	for (uint32_t i = 0; i < s->num; i++) {
		struct io_volume *v = &s->volumes[i];

		v->has_old = v->owner && (v->has_old || v->is_told);
		v->is_told = v->is_metered = false;
		v->failures = 0;
		v->retry_at = 0;
		v->text[0] = '\0';
	}
	note_owned(s, f);
}

void io_lost(struct io_room *s, usec_t now, const char *text)
{
	s->is_up = s->has_server = false;
	ebb_text_copy(s->lost, sizeof(s->lost), text);
	if (s->num > 0)
		core_text(core_record(s->env, NULL, now, EBB_EVENT_ERROR)->text,
			  "the volume server does not answer: %.90s; promises to %u volumes are "
			  "told to it when it does", s->lost, s->num);
}

/* ---- actions ------------------------------------------------------------------ */

static bool is_lower(const struct ebb_sla_io *a, const struct ebb_sla_io *b)
{
	return a->reserve_iops <= b->reserve_iops && a->reserve_bytes <= b->reserve_bytes;
}

/* The server may have lost a promise that it kept: it gets that one before one that is higher. */
static bool is_restored(const struct io_volume *v)
{
	return v->has_old && !is_lower(&v->want, &v->told);
}

/* It takes nothing from what others are promised. */
static bool goes_first(const struct io_volume *v)
{
	return !v->owner || ((v->is_told || v->has_old) && is_lower(&v->want, &v->told)) ||
	       is_restored(v);
}

bool io_act(struct io_room *s, usec_t now, struct ebb_actions *out)
{
	if (!s->is_up || (!s->is_due && now < s->wake_at))
		return true;
	s->is_due = true;
	s->wake_at = EBB_TIME_NEVER;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < s->num; i++) {
			struct io_volume *v = &s->volumes[i];
			struct ebb_action *a;

			if (v->action || (v->is_told && ebb_sla_io_is_same(&v->want, &v->told)) ||
			    (round == 0 && !goes_first(v)))
				continue;
			if (now < v->retry_at) {
				s->wake_at = core_sooner(s->wake_at, v->retry_at);
				continue;
			}
			a = core_emit(out, v->owner, EBB_ACTION_VOLUME);
			if (!a)
				return false;
			a->id = v->action = core_action_id(s->env, v->owner, 0);
			memcpy(a->u.volume.name, v->name, sizeof(v->name));
			a->u.volume.io = v->telling = is_restored(v) ? v->told : v->want;
			a->u.volume.is_owned = v->owner;
		}
	s->is_due = false;
	return true;
}

usec_t io_next_at(const struct io_room *s)
{
	return s->is_up ? s->wake_at : EBB_TIME_NEVER;
}

static void record_set(const struct io_room *s, usec_t now, const struct io_volume *v)
{
	char *text = core_record(s->env, v->owner, now, EBB_EVENT_VOLUME)->text;
	const struct ebb_sla_io *io = &v->told;

	if (v->owner)
		core_text(text, "volume %s: %u requests/s and %llu bytes/s promised, at most %u "
			  "and %llu (0: none); weight %u, penalty %u", v->name, io->reserve_iops,
			  (unsigned long long)io->reserve_bytes, io->max_iops,
			  (unsigned long long)io->max_bytes, io->weight, io->penalty);
	else
		core_text(text, "volume %s: its promise is taken back", v->name);
}

static void set_done(struct io_room *s, usec_t now, struct io_volume *v)
{
	const bool is_new = !v->is_set || !ebb_sla_io_is_same(&v->told, &v->telling);

	v->told = v->telling;
	v->is_told = v->is_set = true;
	v->has_old = false;
	v->failures = 0;
	v->text[0] = '\0';
	if (is_new)
		record_set(s, now, v);
	/* It may have made room for what was refused. */
	for (uint32_t i = 0; i < s->num; i++)
		s->volumes[i].retry_at = 0;
	if (!v->owner && ebb_sla_io_is_same(&v->want, &v->told))
		io_table_remove(s, v);
}

static void set_failed(struct io_room *s, usec_t now, struct io_volume *v,
		       const struct ebb_fact_action_done *f)
{
	char text[EBB_TEXT_SIZE];

	ebb_text_copy(text, sizeof(text), f->text && f->text[0] ? f->text : strerror(-f->err));
	/* The server has no such volume, so no promise is in force that must be taken back. */
	if (f->err == -ENOENT)
		v->is_told = v->is_set = false;
	/* Nobody knows what the server has by now, or will have: it is told again. */
	if (f->err == -ETIMEDOUT) {
		v->is_set = true;
		v->has_old = v->has_old || (v->is_told && v->owner);
		v->is_told = false;
	}
	/* The disk can do less than before: no promise of before can be restored. */
	if (f->err == -EDQUOT)
		v->has_old = false;
	s->is_stale = s->is_stale || (!v->owner && !v->is_set);
	v->failures++;
	v->retry_at = now + core_backoff(s->env, v->failures);
	/* Once, not at each try. */
	if (strcmp(text, v->text) != 0)
		core_text(core_record(s->env, v->owner, now, EBB_EVENT_ERROR)->text,
			  "volume %s: the volume server refuses its promise: %s", v->name, text);
	memcpy(v->text, text, sizeof(text));
}

void io_done(struct io_room *s, usec_t now, const struct ebb_fact_action_done *f)
{
	struct io_volume *v = NULL;

	for (uint32_t i = 0; i < s->num && !v; i++)
		if (s->volumes[i].action == f->id)
			v = &s->volumes[i];
	if (!v)
		return;
	v->action = 0;
	s->is_due = true;
	if (f->err == 0) {
		set_done(s, now, v);
	} else if (f->err == -ENOTCONN) {
		/* The server may have got it. */
		v->is_set = true;
		v->has_old = v->has_old || (v->is_told && v->owner);
		v->is_told = false;
	} else {
		set_failed(s, now, v, f);
	}
}
