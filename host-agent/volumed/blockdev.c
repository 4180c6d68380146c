/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a volume is described to the storage daemon. */
#include <stdio.h>
#include <string.h>
#include "volumed/blockdev.h"

void ebb_blockdev_node(const struct ebb_volume *v, char ret[EBB_BLOCKDEV_ID_SIZE])
{
	snprintf(ret, EBB_BLOCKDEV_ID_SIZE, "v%u", v->id);
}

void ebb_blockdev_export_id(const struct ebb_volume *v, char ret[EBB_BLOCKDEV_ID_SIZE])
{
	snprintf(ret, EBB_BLOCKDEV_ID_SIZE, "e%u", v->id);
}

/* QEMU writes names with "-" where the configuration has "_". */
static void add_number(void *object, const char *key, uint64_t number)
{
	char name[32];

	snprintf(name, sizeof(name), "%s", key);
	for (char *p = name; *p; p++)
		if (*p == '_')
			*p = '-';
	json_object_set_new(object, name, json_integer(number));
}

json_t *ebb_blockdev_promise_args(const struct ebb_volspec *spec)
{
	json_t *o = json_pack("{s:s}", "volume", spec->name);

	ebb_volspec_each_number(spec, add_number, o);
	return o;
}

static json_t *file_args(const struct ebb_vconf *conf, const struct ebb_volume *v)
{
	/* The file that calibration reads may be in use at the same time, also as a volume. */
	return json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:{s:b}}", "driver", "file", "filename",
			 v->spec.file, "discard", "unmap", "read-only", v->is_probe, "locking",
			 v->is_probe ? "off" : "auto", "aio", conf->aio, "cache", "direct",
			 conf->direct);
}

/* A raw file needs no node of its own above it, which each request would go through. */
static json_t *format_args(const struct ebb_vconf *conf, const struct ebb_volume *v)
{
	if (strcmp(v->spec.format, "raw") == 0)
		return file_args(conf, v);
	return json_pack("{s:s, s:s, s:b, s:o}", "driver", v->spec.format, "discard", "unmap",
			 "read-only", v->is_probe, "file", file_args(conf, v));
}

json_t *ebb_blockdev_node_args(const struct ebb_vconf *conf, const struct ebb_volume *v)
{
	json_t *o = ebb_blockdev_promise_args(&v->spec);
	char node[EBB_BLOCKDEV_ID_SIZE];

	ebb_blockdev_node(v, node);
	json_object_set_new(o, "driver", json_string("ebb-volume"));
	json_object_set_new(o, "node-name", json_string(node));
	json_object_set_new(o, "tenant", json_string(v->spec.tenant));
	json_object_set_new(o, "discard", json_string("unmap"));
	json_object_set_new(o, "read-only", json_boolean(v->is_probe));
	json_object_set_new(o, "file", format_args(conf, v));
	return o;
}

void ebb_blockdev_attachment_id(const struct ebb_attachment *t, char ret[EBB_BLOCKDEV_ID_SIZE])
{
	snprintf(ret, EBB_BLOCKDEV_ID_SIZE, "a%u", t->id);
}

static json_t *export_args(const struct ebb_volume *v, const char *id, const char *name)
{
	char node[EBB_BLOCKDEV_ID_SIZE];

	ebb_blockdev_node(v, node);
	/*
	 * One thread for all: a scheduler that sees all requests needs no lock that is ever waited
	 * for.
	 */
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:b}", "type", "nbd", "id", id,
			 "node-name", node, "name", name, "writable", !v->is_probe,
			 "iothread", "io", "fixed-iothread", 1);
}

json_t *ebb_blockdev_export_args(const struct ebb_volume *v)
{
	char id[EBB_BLOCKDEV_ID_SIZE];

	ebb_blockdev_export_id(v, id);
	return export_args(v, id, v->spec.name);
}

json_t *ebb_blockdev_attachment_args(const struct ebb_volume *v, const struct ebb_attachment *t)
{
	char id[EBB_BLOCKDEV_ID_SIZE], name[EBB_VOLUME_NAME_SIZE + EBB_ACCESS_NAME_SIZE];

	ebb_blockdev_attachment_id(t, id);
	snprintf(name, sizeof(name), "%s@%s", v->spec.name, t->name);
	return export_args(v, id, name);
}
