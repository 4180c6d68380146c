/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of volumes that were added, and of the capacity. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "util/fs.h"
#include "util/log.h"
#include "volumed/volview.h"
#include "volumed/vstate.h"

#define MAX_FILE	(64u << 20)

static void state_path(const struct ebb_server *s, char *ret, size_t size)
{
	snprintf(ret, size, "%s/volumes.json", s->conf->state_dir);
}

static int bad_state(const char *path, const char *why, struct ebb_err *err)
{
	return ebb_err_set(err, -EBADMSG, "%s: %s; move it away to start without it", path, why);
}

static int load_volume(struct ebb_server *s, const char *path, const json_t *o,
		       struct ebb_err *err)
{
	const char *name = json_string_value(json_object_get(o, "name"));
	const char *owner = json_string_value(json_object_get(o, "owner"));
	struct ebb_volspec spec;
	struct ebb_err why;
	const char *key;
	json_t *value;
	char text[32];

	if (!name)
		return bad_state(path, "a volume has no name", err);
	if (ebb_volspec_init(&spec, name, &why) < 0)
		return bad_state(path, why.text, err);
	json_object_foreach((json_t *)o, key, value) {
		if (strcmp(key, "name") == 0 || strcmp(key, "owner") == 0)
			continue;
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		if (ebb_volspec_set(&spec, key, json_is_null(value) ? "none" :
				    json_is_string(value) ? json_string_value(value) : text,
				    &why) < 0)
			return bad_state(path, why.text, err);
	}
	/* A file of an earlier version names no owners: nobody takes its promises back. */
	if (ebb_volspec_set_owner(&spec, owner, &why) < 0 ||
	    ebb_volspec_check(&spec, &why) < 0)
		return bad_state(path, why.text, err);
	if (ebb_server_find(s, name)) {
		ebb_log(LOG_WARNING, "volume_configured_too", EBB_KS("volume", name),
			EBB_KS("error", "it was added before and is in the configuration now, "
			       "which counts"));
		return 0;
	}
	return ebb_server_append(s, &spec) ? 0 : -ENOMEM;
}

/* A number that is absent is 0. */
static int load_number(const char *path, const json_t *o, const char *key, uint64_t max,
		       uint64_t *ret, struct ebb_err *err)
{
	const json_t *value = json_object_get(o, key);
	char why[128];

	if (value && (!json_is_integer(value) || json_integer_value(value) < 0 ||
		      (uint64_t)json_integer_value(value) > max)) {
		snprintf(why, sizeof(why), "%s of \"capacity\": allowed: 0 to %" PRIu64, key, max);
		return bad_state(path, why, err);
	}
	*ret = json_integer_value(value);
	return 0;
}

static int load_capacity(struct ebb_capacity *c, const char *path, const json_t *o,
			 struct ebb_err *err)
{
	uint64_t depth, latency_us;
	int rc = o && !json_is_object(o) ? bad_state(path, "\"capacity\" is no object", err) : 0;

	if (rc == 0)
		rc = load_number(path, o, "iops", INT64_MAX, &c->iops, err);
	if (rc == 0)
		rc = load_number(path, o, "bytes", INT64_MAX, &c->bytes, err);
	if (rc == 0)
		rc = load_number(path, o, "depth", EBB_VCONF_MAX_DEPTH, &depth, err);
	if (rc == 0)
		rc = load_number(path, o, "latency_us", UINT32_MAX, &latency_us, err);
	if (rc < 0)
		return rc;
	c->depth = (uint32_t)depth;
	c->latency_us = (uint32_t)latency_us;
	return 0;
}

static int load_volumes(struct ebb_server *s, const char *path, const json_t *volumes,
			struct ebb_err *err)
{
	json_t *o;
	size_t i;
	int rc = 0;

	if (volumes && !json_is_array(volumes))
		return bad_state(path, "\"volumes\" is no array", err);
	json_array_foreach((json_t *)volumes, i, o) {
		rc = load_volume(s, path, o, err);
		if (rc < 0)
			break;
	}
	return rc;
}

/* An attachment that an earlier storage daemon had may have requests under way. */
static int load_attachment(struct ebb_server *s, struct ebb_volume *v, const char *path,
			   const json_t *o, struct ebb_err *err)
{
	const char *name = json_string_value(json_object_get(o, "name"));
	const char *by = json_string_value(json_object_get(o, "fenced_by"));
	const json_t *fenced = json_object_get(o, "fenced");
	struct ebb_attachment *t;

	if (!name || !json_is_boolean(fenced) || !by || (*by && !ebb_access_is_name(by)) ||
	    ebb_access_attach(&v->access, name, ++s->last_attachment, v->access.generation) < 0)
		return bad_state(path, "an attachment makes no sense", err);
	t = ebb_access_find(&v->access, name);
	t->is_fenced = json_is_true(fenced);
	strcpy(t->fenced_by, by);
	t->export = EBB_ACCESS_LOST;
	return 0;
}

static int load_generation(const char *path, const json_t *o, uint64_t *ret, struct ebb_err *err)
{
	const json_t *value = json_object_get(o, "generation");

	if (value && (!json_is_integer(value) || json_integer_value(value) < 0))
		return bad_state(path, "a generation is no whole number from 0", err);
	*ret = json_integer_value(value);
	return 0;
}

static int load_access(struct ebb_server *s, const char *path, const json_t *access,
		       struct ebb_err *err)
{
	const char *name;
	json_t *o, *t;
	size_t i;
	int rc = 0;

	if (access && !json_is_object(access))
		return bad_state(path, "\"access\" is no object", err);
	json_object_foreach((json_t *)access, name, o) {
		struct ebb_volume *v = ebb_server_find(s, name);

		/* Without its attachments nobody can write it, should it come back. */
		if (!v || !v->spec.is_shared) {
			ebb_log(LOG_WARNING, "attachments_dropped", EBB_KS("volume", name),
				EBB_KS("error", "there is no shared volume of that name any more"));
			continue;
		}
		rc = load_generation(path, o, &v->access.generation, err);
		json_array_foreach(json_object_get(o, "attachments"), i, t)
			if (rc == 0)
				rc = load_attachment(s, v, path, t, err);
		if (rc == 0 && v->access.generation > s->generation)
			rc = bad_state(path, "a volume has a generation that was not given", err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static json_t *access_state(const struct ebb_volume *v)
{
	json_t *all = json_array();

	for (size_t i = 0; i < v->access.num; i++) {
		const struct ebb_attachment *t = &v->access.all[i];

		if (!t->is_leaving)
			json_array_append_new(all, json_pack("{s:s, s:b, s:s}", "name", t->name,
					      "fenced", t->is_fenced, "fenced_by", t->fenced_by));
	}
	return json_pack("{s:I, s:o}", "generation", (json_int_t)v->access.generation,
			 "attachments", all);
}

int ebb_vstate_load(struct ebb_server *s, struct ebb_err *err)
{
	char path[EBB_VCONF_VALUE_SIZE + 32], *text = NULL;
	json_t *state;
	int rc;

	state_path(s, path, sizeof(path));
	rc = ebb_fs_read_all(path, MAX_FILE, &text);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return ebb_err_set(err, rc, "%s: %s", path, strerror(-rc));
	state = json_loads(text, 0, NULL);
	free(text);
	if (!json_is_object(state)) {
		json_decref(state);
		return bad_state(path, "it is no JSON object", err);
	}
	rc = load_capacity(&s->capacity, path, json_object_get(state, "capacity"), err);
	if (rc == 0)
		rc = load_volumes(s, path, json_object_get(state, "volumes"), err);
	if (rc == 0)
		rc = load_generation(path, state, &s->generation, err);
	if (rc == 0)
		rc = load_access(s, path, json_object_get(state, "access"), err);
	json_decref(state);
	return rc;
}

int ebb_vstate_save(const struct ebb_server *s, struct ebb_err *err)
{
	json_t *volumes = json_array(), *access = json_object(), *state;
	char path[EBB_VCONF_VALUE_SIZE + 32], *text;
	int rc;

	for (const struct ebb_volume *v = s->volumes; v; v = v->next) {
		if (v->access.generation && v->state != EBB_VOLUME_REMOVING)
			json_object_set_new(access, v->spec.name, access_state(v));
		if (v->is_configured || v->is_probe || v->state == EBB_VOLUME_REMOVING)
			continue;
		json_array_append_new(volumes, ebb_volview_spec(ebb_server_in_force(v)));
	}
	state = json_pack("{s:{s:I, s:I, s:i, s:i}, s:o, s:I, s:o}", "capacity", "iops",
			  (json_int_t)s->capacity.iops, "bytes", (json_int_t)s->capacity.bytes,
			  "depth", s->capacity.depth, "latency_us", s->capacity.latency_us,
			  "volumes", volumes, "generation", (json_int_t)s->generation, "access",
			  access);
	text = json_dumps(state, JSON_INDENT(1));
	json_decref(state);
	state_path(s, path, sizeof(path));
	rc = text ? ebb_fs_replace(path, text, 0600) : -ENOMEM;
	free(text);
	return rc < 0 ? ebb_err_set(err, rc, "the state can not be written to %s: %s", path,
				    strerror(-rc)) : 0;
}
