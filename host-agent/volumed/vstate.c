/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of volumes that were added, and of the capacity. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util/fs.h"
#include "util/log.h"
#include "volumed/vstate.h"

#define MAX_FILE	(64u << 20)

static void state_path(const struct ebb_server *s, const char *suffix, char *ret, size_t size)
{
	snprintf(ret, size, "%s/volumes.json%s", s->conf->state_dir, suffix);
}

static int bad_state(const char *path, const char *why, struct ebb_err *err)
{
	return ebb_err_set(err, -EBADMSG, "%s: %s; move it away to start without it", path, why);
}

static int load_volume(struct ebb_server *s, const char *path, const json_t *o,
		       struct ebb_err *err)
{
	const char *name = json_string_value(json_object_get(o, "name"));
	struct ebb_volspec spec;
	struct ebb_err why;
	const char *key;
	json_t *value;
	char text[32];

	if (!name || ebb_volspec_init(&spec, name, &why) < 0)
		return bad_state(path, "a volume has no name", err);
	json_object_foreach((json_t *)o, key, value) {
		if (strcmp(key, "name") == 0)
			continue;
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		if (ebb_volspec_set(&spec, key, json_is_null(value) ? "none" :
				    json_is_string(value) ? json_string_value(value) : text,
				    &why) < 0)
			return bad_state(path, why.text, err);
	}
	if (ebb_volspec_check(&spec, &why) < 0)
		return bad_state(path, why.text, err);
	if (ebb_server_find(s, name)) {
		ebb_log(LOG_WARNING, "volume_configured_too", EBB_KS("volume", name),
			EBB_KS("error", "it was added before and is in the configuration now, "
			       "which counts"));
		return 0;
	}
	return ebb_server_append(s, &spec) ? 0 : -ENOMEM;
}

int ebb_vstate_load(struct ebb_server *s, struct ebb_err *err)
{
	char path[EBB_VCONF_VALUE_SIZE + 32], *text = NULL;
	json_t *state, *capacity, *o;
	size_t i;
	int rc;

	state_path(s, "", path, sizeof(path));
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
	capacity = json_object_get(state, "capacity");
	s->capacity.iops = json_integer_value(json_object_get(capacity, "iops"));
	s->capacity.bytes = json_integer_value(json_object_get(capacity, "bytes"));
	s->capacity.depth = json_integer_value(json_object_get(capacity, "depth"));
	s->capacity.latency_us = json_integer_value(json_object_get(capacity, "latency_us"));
	json_array_foreach(json_object_get(state, "volumes"), i, o) {
		rc = load_volume(s, path, o, err);
		if (rc < 0)
			break;
	}
	json_decref(state);
	return rc < 0 ? rc : 0;
}

static void add_number(void *object, const char *key, uint64_t number)
{
	json_object_set_new(object, key, number == EBB_VOLUME_NO_NUMBER &&
			    strncmp(key, "penalty", 7) != 0 ? json_null() : json_integer(number));
}

static int write_file(const struct ebb_server *s, const char *text)
{
	char path[EBB_VCONF_VALUE_SIZE + 32], fresh[EBB_VCONF_VALUE_SIZE + 32];
	const size_t len = strlen(text);
	int fd, rc = 0;

	state_path(s, "", path, sizeof(path));
	state_path(s, ".new", fresh, sizeof(fresh));
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		rc = -EIO;
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	close(fd);
	if (rc == 0 && rename(fresh, path) < 0)
		rc = -errno;
	return rc;
}

int ebb_vstate_save(const struct ebb_server *s, struct ebb_err *err)
{
	json_t *volumes = json_array(), *state;
	char *text;
	int rc;

	for (const struct ebb_volume *v = s->volumes; v; v = v->next) {
		json_t *o;

		if (v->is_configured || v->is_probe || v->state == EBB_VOLUME_REMOVING)
			continue;
		o = json_pack("{s:s, s:s, s:s, s:s}", "name", v->spec.name, "tenant",
			      v->spec.tenant, "file", v->spec.file, "format", v->spec.format);
		ebb_volspec_each_number(&v->spec, add_number, o);
		json_array_append_new(volumes, o);
	}
	state = json_pack("{s:{s:I, s:I, s:i, s:i}, s:o}", "capacity", "iops",
			  (json_int_t)s->capacity.iops, "bytes", (json_int_t)s->capacity.bytes,
			  "depth", s->capacity.depth, "latency_us", s->capacity.latency_us,
			  "volumes", volumes);
	text = json_dumps(state, JSON_INDENT(1));
	json_decref(state);
	rc = text ? write_file(s, text) : -ENOMEM;
	free(text);
	return rc < 0 ? ebb_err_set(err, rc, "the state can not be written to %s: %s",
				    s->conf->state_dir, strerror(-rc)) : 0;
}
