/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the configuration. */
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "util/log.h"
#include "util/setting.h"
#include "volumed/vconf.h"

/* inih takes the rest of a longer line for the next line. */
#define MAX_LINE	(INI_MAX_LINE - 1u)	/* bytes, with its newline */
#define SECTION_VOLUME	"volume "
#define SECTION_SYSTEM	"system"

enum kind { KIND_TEXT, KIND_PATH, KIND_CHOICE, KIND_BOOL, KIND_NUMBER, KIND_CAPACITY, KIND_LEVEL };

#define FIELD(name)	offsetof(struct ebb_vconf, name)

static const struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	uint64_t min, max;
	const char *choice[2];
} keys[] = {
	{ "run_dir", KIND_PATH, FIELD(run_dir), 1, 0, { NULL } },
	{ "state_dir", KIND_PATH, FIELD(state_dir), 1, 0, { NULL } },
	{ "storage_daemon", KIND_PATH, FIELD(storage_daemon), 1, 0, { NULL } },
	{ "socket_group", KIND_TEXT, FIELD(socket_group), 0, 0, { NULL } },
	{ "control_group", KIND_TEXT, FIELD(control_group), 0, 0, { NULL } },
	{ "depth", KIND_CAPACITY, FIELD(depth), 1, EBB_VCONF_MAX_DEPTH, { NULL } },
	{ "overbooking", KIND_CHOICE, FIELD(overbooking), 0, 0, { "proportional", "penalty" } },
	{ "allow_overbooking", KIND_BOOL, FIELD(allow_overbooking), 0, 0, { NULL } },
	{ "capacity_iops", KIND_CAPACITY, FIELD(capacity_iops), 1, EBB_VOLUME_MAX_IOPS, { NULL } },
	{ "capacity_bytes", KIND_CAPACITY, FIELD(capacity_bytes), 1, EBB_VOLUME_MAX_BYTES,
	  { NULL } },
	{ "aio", KIND_CHOICE, FIELD(aio), 0, 0, { "io_uring", "threads" } },
	{ "direct", KIND_BOOL, FIELD(direct), 0, 0, { NULL } },
	{ "max_connections", KIND_NUMBER, FIELD(max_connections), 1, 65536, { NULL } },
	{ "log_level", KIND_LEVEL, FIELD(log_level), 0, 0, { NULL } },
};
#define NUM_KEYS	(sizeof(keys) / sizeof(keys[0]))

void ebb_vconf_default(struct ebb_vconf *c)
{
	memset(c, 0, sizeof(*c));
	ebb_volspec_init(&c->system, EBB_VOLUME_SYSTEM, NULL);
	strcpy(c->system.tenant, EBB_VOLUME_SYSTEM);
	strcpy(c->run_dir, "/run/ebb-volumed");
	strcpy(c->state_dir, "/var/lib/ebb-volumed");
	strcpy(c->storage_daemon, "/usr/bin/ebb-storage-daemon");
	strcpy(c->socket_group, "auto");
	strcpy(c->overbooking, "proportional");
	strcpy(c->aio, "io_uring");
	c->direct = true;
	c->max_connections = 1024;
	c->log_level = LOG_INFO;
}

void ebb_vconf_finish(struct ebb_vconf *c)
{
	free(c->volumes);
	c->volumes = NULL;
	c->num_volumes = 0;
}

static int unknown_key(const char *key, struct ebb_err *err)
{
	char known[400] = "";

	for (size_t i = 0; i < NUM_KEYS; i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i ? ", " : "", keys[i].name);
	return ebb_err_set(err, -EINVAL, "unknown key \"%.64s\"; known are %s, and [system] and "
			   "[volume NAME]",
			   key, known);
}

static int set_text(const struct key *k, char *field, const char *value, struct ebb_err *err)
{
	if (strlen(value) >= EBB_VCONF_VALUE_SIZE)
		return ebb_err_set(err, -EINVAL, "%s is longer than %u bytes", k->name,
				   EBB_VCONF_VALUE_SIZE - 1);
	if (k->min && !*value)
		return ebb_err_set(err, -EINVAL, "%s is empty", k->name);
	if (k->kind == KIND_PATH && value[0] != '/')
		return ebb_err_set(err, -EINVAL, "%s=%.64s: an absolute path is needed", k->name,
				   value);
	if (k->kind == KIND_CHOICE && strcmp(value, k->choice[0]) != 0 &&
	    strcmp(value, k->choice[1]) != 0)
		return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: %s, %s", k->name, value,
				   k->choice[0], k->choice[1]);
	strcpy(field, value);
	return 0;
}

static int read_number(const struct key *k, const char *value, uint64_t *ret, struct ebb_err *err)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(value, &end, 10);
	if (errno || *end || value[0] < '0' || value[0] > '9' || n < k->min || n > k->max)
		return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: %" PRIu64 " to %" PRIu64 "%s",
				   k->name, value, k->min, k->max,
				   k->kind == KIND_CAPACITY ? ", auto" : "");
	*ret = n;
	return 0;
}

static int set_other(const struct key *k, void *field, const char *value, struct ebb_err *err)
{
	uint64_t number;
	int rc;

	switch (k->kind) {
	case KIND_BOOL:
		if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
			return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: yes, no", k->name,
					   value);
		*(bool *)field = value[0] == 'y';
		return 0;
	case KIND_LEVEL:
		if (ebb_log_level_of(value, (int *)field) < 0)
			return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: " EBB_LOG_LEVELS,
					   k->name, value);
		return 0;
	case KIND_CAPACITY:
		if (strcmp(value, "auto") == 0) {
			*(uint64_t *)field = 0;
			return 0;
		}
		return read_number(k, value, field, err);
	default:
		rc = read_number(k, value, &number, err);
		if (rc == 0)
			*(uint32_t *)field = number;
		return rc;
	}
}

static int set_key(struct ebb_vconf *c, const char *key, const char *value, struct ebb_err *err)
{
	for (size_t i = 0; i < NUM_KEYS; i++) {
		void *field = (char *)c + keys[i].offset;

		if (strcmp(key, keys[i].name) != 0)
			continue;
		return keys[i].kind <= KIND_CHOICE ? set_text(&keys[i], field, value, err)
						   : set_other(&keys[i], field, value, err);
	}
	return unknown_key(key, err);
}

int ebb_vconf_set(struct ebb_vconf *c, const char *assignment, struct ebb_err *err)
{
	char key[EBB_SETTING_KEY_SIZE];
	const char *value;
	int rc = ebb_setting_split(assignment, key, &value, err);

	return rc < 0 ? rc : set_key(c, key, value, err);
}

/* The volume of a section, which is a new one when its first key is read. */
static struct ebb_volspec *volume_of(struct ebb_vconf *c, const char *name, struct ebb_err *err)
{
	struct ebb_volspec *more;

	for (size_t i = 0; i < c->num_volumes; i++)
		if (strcmp(c->volumes[i].name, name) == 0)
			return &c->volumes[i];
	more = reallocarray(c->volumes, c->num_volumes + 1, sizeof(*more));
	if (!more) {
		ebb_err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	c->volumes = more;
	if (ebb_volspec_init(&more[c->num_volumes], name, err) < 0)
		return NULL;
	return &more[c->num_volumes++];
}

/* Of the section of the system, which has a promise and nothing else. */
static int set_system(struct ebb_vconf *c, const char *key, const char *value, struct ebb_err *err)
{
	const int rc = ebb_volspec_set(&c->system, key, value, err);

	if (rc == 0 && !ebb_volspec_is_promise(key))
		return ebb_err_set(err, -EINVAL, "[system] has no %.64s: only a promise", key);
	return rc;
}

struct load {
	struct ebb_vconf *config;
	struct ebb_err err;
};

/* inih wants 1 for good and 0 for bad. */
static int load_one(void *arg, const char *section, const char *key, const char *value)
{
	struct load *l = arg;
	struct ebb_volspec *v;

	/* The first error is the one to report. */
	if (l->err.text[0])
		return 0;
	if (!value)
		value = "";
	if (!section[0])
		return set_key(l->config, key, value, &l->err) == 0;
	if (strcmp(section, SECTION_SYSTEM) == 0)
		return set_system(l->config, key, value, &l->err) == 0;
	if (strncmp(section, SECTION_VOLUME, strlen(SECTION_VOLUME)) != 0) {
		ebb_err_set(&l->err, -EINVAL, "section [%.64s]: allowed: [system], [volume NAME]",
			    section);
		return 0;
	}
	v = volume_of(l->config, section + strlen(SECTION_VOLUME), &l->err);
	return v && ebb_volspec_set(v, key, value, &l->err) == 0;
}

static int check_lines(FILE *f, const char *path, struct ebb_err *err)
{
	unsigned int number = 0;
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int rc = 0;

	while (rc == 0 && (len = getline(&line, &size, f)) > 0) {
		number++;
		if (len > MAX_LINE)
			rc = ebb_err_set(err, -EINVAL, "%s:%u: the line has more than %u bytes",
					 path, number, MAX_LINE - 1);
	}
	free(line);
	rewind(f);
	return rc;
}

int ebb_vconf_load(struct ebb_vconf *c, const char *path, struct ebb_err *err)
{
	struct load l = { .config = c };
	FILE *f = fopen(path, "re");
	int line, rc;

	if (!f) {
		rc = -errno;
		return ebb_err_set(err, rc, "%s: %s", path, strerror(-rc));
	}
	rc = check_lines(f, path, err);
	if (rc < 0) {
		fclose(f);
		return rc;
	}
	errno = 0;
	line = ini_parse_file(f, load_one, &l);
	/* For inih a file that can not be read, such as a folder, is an empty one. */
	rc = ferror(f) ? -errno : 0;
	fclose(f);
	if (rc < 0 || line < 0)
		return ebb_err_set(err, rc < 0 ? rc : -ENOMEM, "%s can not be read: %s", path,
				   strerror(rc < 0 ? -rc : ENOMEM));
	if (line == 0)
		return 0;
	return ebb_err_set(err, -EINVAL, "%s:%d: %s", path, line, l.err.text[0] ? l.err.text :
			   "not of the form key = value");
}

int ebb_vconf_check(const struct ebb_vconf *c, struct ebb_err *err)
{
	int rc = ebb_volspec_check_promise(&c->system, err);

	for (size_t i = 0; rc == 0 && i < c->num_volumes; i++)
		rc = ebb_volspec_check(&c->volumes[i], err);
	return rc;
}
