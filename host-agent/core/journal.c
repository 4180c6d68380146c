// SPDX-License-Identifier: GPL-2.0-or-later
/* A ring of decision records; when nobody fetches them the oldest are lost, and counted. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/internal.h"

void core_text(char *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, EBB_TEXT_SIZE, format, args);
	va_end(args);
	ebb_text_clean(text);
}

struct ebb_record *core_record(struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
			       enum ebb_event event)
{
	struct ebb_record *r;

	if (s->num_records == EBB_RECORDS) {
		s->first_record = (s->first_record + 1) % EBB_RECORDS;
		s->num_records--;
		s->lost_records++;
	}
	r = &s->records[(s->first_record + s->num_records++) % EBB_RECORDS];
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

bool ebb_state_record_pop(struct ebb_state *s, struct ebb_record *ret_record)
{
	if (s->lost_records > 0) {
		memset(ret_record, 0, sizeof(*ret_record));
		ret_record->event = EBB_EVENT_ERROR;
		ret_record->node = EBB_NODE_ANY;
		ret_record->at = s->records[s->first_record].at;
		core_text(ret_record->text, "%llu earlier records were not fetched and are lost",
			  (unsigned long long)s->lost_records);
		s->lost_records = 0;
		return true;
	}
	if (s->num_records == 0)
		return false;
	*ret_record = s->records[s->first_record];
	s->first_record = (s->first_record + 1) % EBB_RECORDS;
	s->num_records--;
	return true;
}
