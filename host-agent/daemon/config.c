/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the configuration. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include "daemon/config.h"
#include "daemon/http.h"
#include "model/types.h"

#define EMU_GROUP_PREFIX	"ebb-emu-"

static int set_address(const struct ebb_setting *s, void *field, const char *value,
		       struct ebb_err *err)
{
	struct sockaddr_storage addr;
	struct ebb_err why;

	if (*value && ebb_http_address(value, &addr, &why) < 0)
		return ebb_err_set(err, -EINVAL, "%s=%.400s", s->name, why.text);
	return ebb_setting_text(s, field, value, err);
}

static int set_overbook(const struct ebb_setting *s, void *field, const char *value,
			struct ebb_err *err)
{
	for (enum ebb_overbook p = 0; p < EBB_OVERBOOK_MAX; p++)
		if (strcmp(value, ebb_overbook_name(p)) == 0) {
			*(enum ebb_overbook *)field = p;
			return 0;
		}
	return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: proportional, penalty", s->name,
			   value);
}

#define KEY(key, field_, kind_, ...) \
	{ .name = key, .kind = EBB_SETTING_##kind_, \
	  .offset = offsetof(struct ebb_config, field_), __VA_ARGS__ }
#define NUMBER(field, low, high)	KEY(#field, field, U32, .min = low, .max = high)
#define PRESSURE(field, low, high)	KEY(#field, pressure.field, U32, .min = low, .max = high)
/* A text that may not be empty, and one that may. */
#define NEEDED(field, kind)		KEY(#field, field, kind, .min = 1)
#define OPTIONAL(field, kind)		KEY(#field, field, kind, .min = 0)

static const struct ebb_setting keys[] = {
	NEEDED(libvirt_uri, TEXT),
	NEEDED(run_dir, PATH),
	NEEDED(state_dir, PATH),
	NEEDED(host, TEXT),
	OPTIONAL(host_reserve, TEXT),
	OPTIONAL(emu_group, TEXT),
	NEEDED(policy, TEXT),
	OPTIONAL(link_group, TEXT),
	OPTIONAL(control_group, TEXT),
	KEY("metrics_listen", metrics_listen, OTHER, .set = set_address),
	OPTIONAL(count_threads, BOOL),
	OPTIONAL(quorum, BOOL),
	OPTIONAL(shared_cores, TEXT),
	OPTIONAL(volume_socket, PATH),
	OPTIONAL(volume_owner, TEXT),
	KEY("pool_mib", pool_mib, U32, .max = EBB_MAX_POOL_MIB, .has_auto = true,
	    .auto_value = EBB_CONFIG_AUTO),
	NUMBER(memory_overhead_mib, 64, 65536),
	NUMBER(memory_leave_ms, 0, 1000),
	PRESSURE(memory_threshold_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(memory_target_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(memory_failover_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(memory_window_s, 0, EBB_PRESSURE_S_MAX),
	PRESSURE(core_hot_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(host_hot_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(hot_window_s, 1, EBB_PRESSURE_S_MAX),
	PRESSURE(cool_down_s, 1, EBB_PRESSURE_S_MAX),
	KEY("overbook_percent", promise.overbook_percent, U32, .min = EBB_OVERBOOK_PERCENT_MIN,
	    .max = EBB_OVERBOOK_PERCENT_MAX),
	KEY("overbook_policy", promise.overbook_policy, OTHER, .set = set_overbook),
	NUMBER(meter_interval_ms, 100, 60000),
	NUMBER(ledger_hours, 0, 8784),
	NUMBER(workers, 2, 64),
	NUMBER(history_rows, 1000, 10000000),
	OPTIONAL(log_level, LEVEL),
};

static const struct ebb_settings settings = {
	.all = keys, .num = sizeof(keys) / sizeof(keys[0]), .more = "",
};

void ebb_config_default(struct ebb_config *c)
{
	memset(c, 0, sizeof(*c));
	strcpy(c->libvirt_uri, "qemu:///system");
	strcpy(c->run_dir, "/run/ebb");
	strcpy(c->state_dir, "/var/lib/ebb");
	strcpy(c->host, "auto");
	strcpy(c->policy, "fair");
	strcpy(c->link_group, "auto");
	c->quorum = true;
	c->pool_mib = EBB_CONFIG_AUTO;
	c->memory_overhead_mib = 1536;
	c->memory_leave_ms = 30;
	ebb_pressure_default(&c->pressure);
	c->promise.overbook_percent = 100;
	c->meter_interval_ms = 1000;
	c->ledger_hours = 24;
	c->workers = 8;
	c->history_rows = 1000000;
	c->log_level = LOG_INFO;
}

int ebb_config_set(struct ebb_config *c, const char *assignment, struct ebb_err *err)
{
	return ebb_settings_assign(&settings, c, assignment, err);
}

int ebb_config_load(struct ebb_config *c, const char *path, struct ebb_err *err)
{
	return ebb_settings_load(&settings, c, path, err);
}

int ebb_config_finish(struct ebb_config *c, struct ebb_err *err)
{
	size_t len = strlen(EMU_GROUP_PREFIX);
	char text[EBB_TEXT_SIZE];

	if (ebb_pressure_check(&c->pressure, text) < 0)
		return ebb_err_set(err, -EINVAL, "%s", text);
	if (!c->emu_group[0]) {
		/*
		 * One instance for each run_dir, so this is unique, and the same after a restart.
		 */
		snprintf(c->emu_group, sizeof(c->emu_group), EMU_GROUP_PREFIX "%.200s",
			 c->run_dir + 1);
		for (char *p = c->emu_group; *p; p++)
			if (*p == '/')
				*p = '-';
	}
	/* Of another ebbd on this host it is another one, and the same after a restart. */
	if (!c->volume_owner[0])
		snprintf(c->volume_owner, sizeof(c->volume_owner), "ebbd:%.900s", c->run_dir);
	if (strncmp(c->emu_group, EMU_GROUP_PREFIX, len) != 0 || strchr(c->emu_group, '/') ||
	    strlen(c->emu_group) > 255)
		return ebb_err_set(
			err, -EINVAL,
			"emu_group=%.64s: a name of one cgroup that begins with " EMU_GROUP_PREFIX
			" is needed",
			c->emu_group);
	return 0;
}
