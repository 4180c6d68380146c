/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the configuration. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "volumed/vconf.h"

#define SECTION_VOLUME	"volume "
#define SECTION_SYSTEM	"system"

#define KEY(field, kind_, ...) \
	{ .name = #field, .kind = EBB_SETTING_##kind_, \
	  .offset = offsetof(struct ebb_vconf, field), __VA_ARGS__ }
/* A number that calibration finds unless the configuration has it. */
#define CAPACITY(field, most)	KEY(field, U64, .min = 1, .max = most, .has_auto = true)

static const struct ebb_setting keys[] = {
	KEY(run_dir, PATH, .min = 1),
	KEY(state_dir, PATH, .min = 1),
	KEY(storage_daemon, PATH, .min = 1),
	KEY(socket_group, TEXT, .min = 0),
	KEY(control_group, TEXT, .min = 0),
	CAPACITY(depth, EBB_VCONF_MAX_DEPTH),
	KEY(overbooking, WORD, .words = { "proportional", "penalty" }),
	KEY(allow_overbooking, BOOL, .min = 0),
	CAPACITY(capacity_iops, EBB_VOLUME_MAX_IOPS),
	CAPACITY(capacity_bytes, EBB_VOLUME_MAX_BYTES),
	KEY(aio, WORD, .words = { "io_uring", "threads" }),
	KEY(direct, BOOL, .min = 0),
	KEY(max_connections, U32, .min = 1, .max = 65536),
	KEY(log_level, LEVEL, .min = 0),
};

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

static int set_in_section(void *config, const char *section, const char *key, const char *value,
			  struct ebb_err *err)
{
	struct ebb_vconf *c = config;
	struct ebb_volspec *v;

	if (strcmp(section, SECTION_SYSTEM) == 0)
		return set_system(c, key, value, err);
	if (strncmp(section, SECTION_VOLUME, strlen(SECTION_VOLUME)) != 0)
		return ebb_err_set(err, -EINVAL, "section [%.64s]: allowed: [system], "
				   "[volume NAME]", section);
	v = volume_of(c, section + strlen(SECTION_VOLUME), err);
	return v ? ebb_volspec_set(v, key, value, err) : -EINVAL;
}

static const struct ebb_settings settings = {
	.all = keys, .num = sizeof(keys) / sizeof(keys[0]),
	.more = ", and [system] and [volume NAME]",
	.set_in_section = set_in_section, .may_indent = true,
};

int ebb_vconf_set(struct ebb_vconf *c, const char *assignment, struct ebb_err *err)
{
	return ebb_settings_assign(&settings, c, assignment, err);
}

int ebb_vconf_load(struct ebb_vconf *c, const char *path, struct ebb_err *err)
{
	return ebb_settings_load(&settings, c, path, err);
}

int ebb_vconf_check(const struct ebb_vconf *c, struct ebb_err *err)
{
	int rc = ebb_volspec_check_promise(&c->system, err);

	for (size_t i = 0; rc == 0 && i < c->num_volumes; i++)
		rc = ebb_volspec_check(&c->volumes[i], err);
	return rc;
}
