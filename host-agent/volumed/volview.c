/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See volview.h. */
#include <string.h>
#include "volumed/volview.h"

/* A penalty of 0 is a number like any other. */
static void add_number(void *object, const char *key, uint64_t number)
{
	const bool is_none = number == EBB_VOLUME_NO_NUMBER && strcmp(key, "penalty") != 0;

	json_object_set_new(object, key, is_none ? json_null() : json_integer(number));
}

json_t *ebb_volview_spec(const struct ebb_volspec *spec)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "name", spec->name, "tenant", spec->tenant,
			      "file", spec->file, "format", spec->format);

	ebb_volspec_each_number(spec, add_number, o);
	json_object_set_new(o, "owner", spec->owner[0] ? json_string(spec->owner) : json_null());
	return o;
}
