// SPDX-License-Identifier: GPL-2.0-or-later
/* A ring of decision records; when nobody fetches them the oldest are lost, and counted. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/journal.h"
#include "core/room.h"

void core_text(char *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, EBB_TEXT_SIZE, format, args);
	va_end(args);
	ebb_text_clean(text);
}

struct ebb_record *core_record(const struct core_env *e, const struct ebb_vm *vm, usec_t now,
			       enum ebb_event event)
{
	struct core_journal *l = e->journal;
	struct ebb_record *r;

	if (l->num == EBB_RECORDS) {
		l->first = (l->first + 1) % EBB_RECORDS;
		l->num--;
		l->num_lost++;
	}
	r = &l->records[(l->first + l->num++) % EBB_RECORDS];
	memset(r, 0, sizeof(*r));
	r->at = now;
	r->event = event;
	r->node = EBB_NODE_ANY;
	if (vm) {
		memcpy(r->uuid, vm->uuid, sizeof(r->uuid));
		memcpy(r->name, vm->name, sizeof(r->name));
	}
	return r;
}

bool core_journal_pop(struct core_journal *l, struct ebb_record *ret_record)
{
	if (l->num_lost > 0) {
		memset(ret_record, 0, sizeof(*ret_record));
		ret_record->event = EBB_EVENT_ERROR;
		ret_record->node = EBB_NODE_ANY;
		ret_record->at = l->records[l->first].at;
		core_text(ret_record->text, "%llu earlier records were not fetched and are lost",
			  (unsigned long long)l->num_lost);
		l->num_lost = 0;
		return true;
	}
	if (l->num == 0)
		return false;
	*ret_record = l->records[l->first];
	l->first = (l->first + 1) % EBB_RECORDS;
	l->num--;
	return true;
}
