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
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", spec->name, "tenant",
			      spec->tenant, "file", spec->file, "format", spec->format, "shared",
			      spec->is_shared ? "yes" : "no");

	ebb_volspec_each_number(spec, add_number, o);
	json_object_set_new(o, "owner", spec->owner[0] ? json_string(spec->owner) : json_null());
	return o;
}

const char *ebb_volview_state(const struct ebb_volume *v)
{
	static const char *const names[] = {
		[EBB_VOLUME_WAITING] = "waiting",
		[EBB_VOLUME_SERVED] = "served",
		[EBB_VOLUME_FAILED] = "failed",
		[EBB_VOLUME_REMOVING] = "removing",
	};

	return names[v->state];
}

static json_t *view_name(const struct ebb_volume *v)
{
	return json_pack("{s:I, s:s}", "id", (json_int_t)v->id, "name", v->spec.name);
}

json_t *ebb_volview_volume(const struct ebb_volume *v)
{
	json_t *o = ebb_volview_spec(&v->spec);

	json_object_set_new(o, "id", json_integer(v->id));
	json_object_set_new(o, "state", json_string(ebb_volview_state(v)));
	json_object_set_new(o, "error", json_string(v->error));
	json_object_set_new(o, "configured", json_boolean(v->is_configured));
	return o;
}

static const char *attachment_state(const struct ebb_attachment *t)
{
	if (t->is_leaving)
		return "detaching";
	if (t->is_fenced)
		return ebb_access_is_settled(t) ? "fenced" : "fencing";
	return ebb_access_is_settled(t) ? "open" : "opening";
}

json_t *ebb_volview_access(const struct ebb_volume *v)
{
	json_t *all = json_array();

	for (size_t i = 0; i < v->access.num; i++) {
		const struct ebb_attachment *t = &v->access.all[i];

		json_array_append_new(all, json_pack("{s:s, s:o, s:s, s:s}", "name", t->name,
				      "export", json_sprintf("%s@%s", v->spec.name, t->name),
				      "state", attachment_state(t), "fenced_by", t->fenced_by));
	}
	return json_pack("{s:s, s:I, s:o}", "name", v->spec.name, "generation",
			 (json_int_t)v->access.generation, "attachments", all);
}

json_t *ebb_volview_server(const struct ebb_server *s)
{
	uint64_t iops, bytes;

	ebb_server_promised(s, NULL, &iops, &bytes);
	return json_pack("{s:i, s:s, s:b, s:I, s:I, s:I, s:I, s:i, s:i, s:b, s:b, s:I, s:I}",
			 "depth", s->depth, "overbooking", s->overbooking, "allow_overbooking",
			 s->conf->allow_overbooking, "capacity_iops",
			 (json_int_t)ebb_server_capacity_iops(s), "capacity_bytes",
			 (json_int_t)ebb_server_capacity_bytes(s), "promised_iops",
			 (json_int_t)iops, "promised_bytes", (json_int_t)bytes,
			 "calibrated_depth", s->capacity.depth, "calibrated_latency_us",
			 s->capacity.latency_us, "up", s->qmp != NULL,
			 "answers", s->qmp && !ebb_server_hangs(s), "pid",
			 (json_int_t)(s->storage ? ebb_storage_pid(s->storage) : 0), "restarts",
			 (json_int_t)s->restarts);
}

static bool is_listed(const struct ebb_volview_listing *l, const struct ebb_volume *v)
{
	return (!l->only || v == l->only) && v->id > l->after &&
	       (!l->owner || strcmp(v->spec.owner, l->owner) == 0);
}

/*
 * Ids rise along the list, so a client that asks in parts misses no volume that exists all the
 * time.
 */
json_t *ebb_volview_list(const struct ebb_server *s, const struct ebb_volview_listing *l)
{
	json_t *volumes = json_array();
	bool has_more = false;

	for (const struct ebb_volume *v = s->volumes; v && !has_more; v = v->next) {
		if (!is_listed(l, v))
			continue;
		has_more = (json_int_t)json_array_size(volumes) >= l->most;
		if (!has_more)
			json_array_append_new(volumes, l->is_brief ? view_name(v) :
								     ebb_volview_volume(v));
	}
	return json_pack("{s:o, s:o, s:b}", "server", ebb_volview_server(s), "volumes", volumes,
			 "more", has_more);
}
