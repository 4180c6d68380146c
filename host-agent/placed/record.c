/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See record.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "placed/record.h"
#include "placed/traces.h"
#include "util/fs.h"

static void note(json_t *peaks, const char *name, const json_t *vm)
{
	json_t *old = json_object_get(peaks, name), *use = json_object_get(vm, "u"), *value;
	json_t *most = json_array();
	size_t i;

	json_array_foreach(use, i, value) {
		const json_t *before = json_array_get(json_object_get(old, "u"), i);

		json_array_append_new(most, json_integer(
			json_integer_value(value) > json_integer_value(before) ?
			json_integer_value(value) : json_integer_value(before)));
	}
	json_object_set_new(peaks, name, json_pack("{s:o, s:O, s:O}", "u", most, "c",
						   json_object_get(vm, "c"), "a",
						   json_object_get(vm, "a")));
}

/*
 * The label of a VM's rows, which fits PLACED_NAME_SIZE.  Two long names that begin alike must not
 * get the same label, so a label that had to be cut ends with a hash (FNV-1a) of the whole name.
 */
static void label(const char *name, const char *host, uint64_t since, char ret[PLACED_NAME_SIZE])
{
	uint32_t hash = 0x811c9dc5u;
	char own[25], on[17];

	for (const char *p = name; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x01000193u;
	for (const char *p = host; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x01000193u;
	snprintf(own, sizeof(own), "%s", name);
	snprintf(on, sizeof(on), "%s", host);
	if (strlen(name) >= sizeof(own) || strlen(host) >= sizeof(on))
		snprintf(own, sizeof(own), "%.15s-%08x", name, hash);
	snprintf(ret, PLACED_NAME_SIZE, "%s@%s-%llu", own, on, (unsigned long long)since);
}

static int append(const char *folder, const char *host, const char *name, const json_t *vm,
		  uint64_t now_s, struct ebb_err *err)
{
	const char *class = json_string_value(json_object_get(vm, "c"));
	const json_t *use = json_object_get(vm, "u");
	/* One that was deleted and comes back under its name is another VM. */
	const uint64_t since = (now_s - (uint64_t)json_integer_value(json_object_get(vm, "a"))) /
			       PLACED_RECORD_STEP_S;
	char path[PATH_MAX], old[PATH_MAX], vm_label[PLACED_NAME_SIZE];
	int rc = 0;
	FILE *f;

	if (!class || !placed_name_ok(class))
		return 0;
	snprintf(path, sizeof(path), "%s/%s.csv", folder, class);
	snprintf(old, sizeof(old), "%s/%s.old", folder, class);
	f = fopen(path, "ae");
	if (!f)
		return ebb_err_set(err, -errno, "%s: %s", path, strerror(errno));
	fseek(f, 0, SEEK_END);
	if (ftell(f) == 0)
		fputs(PLACED_TRACES_HEADER "\n", f);
	label(name, host, since, vm_label);
	fprintf(f, "%s,%d,%lld,%lld,%lld\n", vm_label, PLACED_RECORD_STEP_S,
		json_integer_value(json_array_get(use, PLACE_CPU)),
		json_integer_value(json_array_get(use, PLACE_MEMORY)),
		json_integer_value(json_array_get(use, PLACE_DISK)));
	if (ftell(f) > PLACED_RECORD_MOST)
		rename(path, old);
	if (fclose(f) != 0)
		rc = ebb_err_set(err, -EIO, "%s: can not be written", path);
	return rc;
}

int placed_record(struct placed_record *r, const char *folder, const json_t *facts,
		  const char *host, uint64_t now_s, struct ebb_err *err)
{
	const uint64_t step = now_s / PLACED_RECORD_STEP_S;
	json_t *vms = json_object_get(facts, "vms"), *vm;
	const char *name;
	int rc = 0;

	if (!r->peaks)
		*r = (struct placed_record){ .step = step, .peaks = json_object() };
	if (step != r->step) {
		rc = ebb_fs_mkdirs(folder, 0755);
		if (rc < 0)
			ebb_err_set(err, rc, "%s: %s", folder, strerror(-rc));
		json_object_foreach(r->peaks, name, vm)
			if (rc == 0)
				rc = append(folder, host, name, vm, now_s, err);
		json_object_clear(r->peaks);
		r->step = step;
	}
	json_object_foreach(vms, name, vm)
		note(r->peaks, name, vm);
	return rc;
}

void placed_record_finish(struct placed_record *r)
{
	json_decref(r->peaks);
	*r = (struct placed_record){ 0 };
}
