/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the configuration. */
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "daemon/config.h"
#include "daemon/http.h"
#include "model/types.h"
#include "util/log.h"
#include "util/setting.h"

#define EMU_GROUP_PREFIX	"ebb-emu-"

enum kind {
	KIND_TEXT, KIND_PATH, KIND_ADDRESS, KIND_BOOL, KIND_NUMBER, KIND_NUMBER_OR_AUTO, KIND_LEVEL,
	KIND_OVERBOOK,
};

#define PRESSURE(name, min, max) \
	{ #name, KIND_NUMBER, offsetof(struct ebb_config, pressure.name), min, max }

static const struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	uint32_t min, max;
} keys[] = {
	{ "libvirt_uri", KIND_TEXT, offsetof(struct ebb_config, libvirt_uri), 1, 0 },
	{ "run_dir", KIND_PATH, offsetof(struct ebb_config, run_dir), 1, 0 },
	{ "state_dir", KIND_PATH, offsetof(struct ebb_config, state_dir), 1, 0 },
	{ "host", KIND_TEXT, offsetof(struct ebb_config, host), 1, 0 },
	{ "host_reserve", KIND_TEXT, offsetof(struct ebb_config, host_reserve), 0, 0 },
	{ "emu_group", KIND_TEXT, offsetof(struct ebb_config, emu_group), 0, 0 },
	{ "policy", KIND_TEXT, offsetof(struct ebb_config, policy), 1, 0 },
	{ "link_group", KIND_TEXT, offsetof(struct ebb_config, link_group), 0, 0 },
	{ "control_group", KIND_TEXT, offsetof(struct ebb_config, control_group), 0, 0 },
	{ "metrics_listen", KIND_ADDRESS, offsetof(struct ebb_config, metrics_listen), 0, 0 },
	{ "count_threads", KIND_BOOL, offsetof(struct ebb_config, count_threads), 0, 0 },
	{ "shared_cores", KIND_TEXT, offsetof(struct ebb_config, shared_cores), 0, 0 },
	{ "volume_socket", KIND_PATH, offsetof(struct ebb_config, volume_socket), 0, 0 },
	{ "pool_mib", KIND_NUMBER_OR_AUTO, offsetof(struct ebb_config, pool_mib), 0,
	  EBB_MAX_POOL_MIB },
	{ "memory_overhead_mib", KIND_NUMBER, offsetof(struct ebb_config, memory_overhead_mib), 64,
	  65536 },
	{ "memory_leave_ms", KIND_NUMBER, offsetof(struct ebb_config, memory_leave_ms), 0, 1000 },
	PRESSURE(memory_threshold_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(memory_target_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(memory_failover_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(memory_window_s, 0, EBB_PRESSURE_S_MAX),
	PRESSURE(core_hot_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(host_hot_percent, 1, EBB_PRESSURE_PERCENT_MAX),
	PRESSURE(hot_window_s, 1, EBB_PRESSURE_S_MAX),
	PRESSURE(cool_down_s, 1, EBB_PRESSURE_S_MAX),
	{ "overbook_percent", KIND_NUMBER, offsetof(struct ebb_config, promise.overbook_percent),
	  EBB_OVERBOOK_PERCENT_MIN, EBB_OVERBOOK_PERCENT_MAX },
	{ "overbook_policy", KIND_OVERBOOK, offsetof(struct ebb_config, promise.overbook_policy), 0,
	  0 },
	{ "meter_interval_ms", KIND_NUMBER, offsetof(struct ebb_config, meter_interval_ms), 100,
	  60000 },
	{ "ledger_hours", KIND_NUMBER, offsetof(struct ebb_config, ledger_hours), 0, 8784 },
	{ "workers", KIND_NUMBER, offsetof(struct ebb_config, workers), 2, 64 },
	{ "history_rows", KIND_NUMBER, offsetof(struct ebb_config, history_rows), 1000, 10000000 },
	{ "log_level", KIND_LEVEL, offsetof(struct ebb_config, log_level), 0, 0 },
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

static int unknown_key(const char *key, struct ebb_err *err)
{
	char known[1000] = "";

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i ? ", " : "", keys[i].name);
	return ebb_err_set(err, -EINVAL, "unknown key \"%.64s\"; known are %s", key, known);
}

static int set_text(const struct key *k, char *field, const char *value, struct ebb_err *err)
{
	if (strlen(value) >= EBB_CONFIG_VALUE_SIZE)
		return ebb_err_set(err, -EINVAL, "%s is longer than %u bytes", k->name,
				   EBB_CONFIG_VALUE_SIZE - 1);
	if (k->min && !*value)
		return ebb_err_set(err, -EINVAL, "%s is empty", k->name);
	if (k->kind == KIND_PATH && *value && value[0] != '/')
		return ebb_err_set(err, -EINVAL, "%s=%.64s: an absolute path is needed", k->name,
				   value);
	strcpy(field, value);
	return 0;
}

static int set_address(const struct key *k, char *field, const char *value, struct ebb_err *err)
{
	struct sockaddr_storage addr;
	struct ebb_err why;

	if (*value && ebb_http_address(value, &addr, &why) < 0)
		return ebb_err_set(err, -EINVAL, "%s=%.400s", k->name, why.text);
	return set_text(k, field, value, err);
}

static int set_bool(const struct key *k, bool *field, const char *value, struct ebb_err *err)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: yes, no", k->name, value);
	*field = value[0] == 'y';
	return 0;
}

static int set_number(const struct key *k, uint32_t *field, const char *value, struct ebb_err *err)
{
	char *end;
	unsigned long n;

	if (k->kind == KIND_NUMBER_OR_AUTO && strcmp(value, "auto") == 0) {
		*field = EBB_CONFIG_AUTO;
		return 0;
	}
	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || end == value || *end || value[0] == '-' || n < k->min || n > k->max)
		return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: %u to %u%s", k->name, value,
				   k->min, k->max, k->kind == KIND_NUMBER_OR_AUTO ? ", auto" : "");
	*field = n;
	return 0;
}

static int set_level(const struct key *k, int *field, const char *value, struct ebb_err *err)
{
	if (ebb_log_level_of(value, field) < 0)
		return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: " EBB_LOG_LEVELS, k->name,
				   value);
	return 0;
}

static int set_overbook(const struct key *k, enum ebb_overbook *field, const char *value,
			struct ebb_err *err)
{
	for (enum ebb_overbook p = 0; p < EBB_OVERBOOK_MAX; p++)
		if (strcmp(value, ebb_overbook_name(p)) == 0) {
			*field = p;
			return 0;
		}
	return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: proportional, penalty", k->name,
			   value);
}

static int set_key(struct ebb_config *c, const char *key, const char *value, struct ebb_err *err)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct key *k = &keys[i];
		void *field = (char *)c + k->offset;

		if (strcmp(key, k->name) != 0)
			continue;
		switch (k->kind) {
		case KIND_ADDRESS:
			return set_address(k, field, value, err);
		case KIND_BOOL:
			return set_bool(k, field, value, err);
		case KIND_NUMBER:
		case KIND_NUMBER_OR_AUTO:
			return set_number(k, field, value, err);
		case KIND_LEVEL:
			return set_level(k, field, value, err);
		case KIND_OVERBOOK:
			return set_overbook(k, field, value, err);
		default:
			return set_text(k, field, value, err);
		}
	}
	return unknown_key(key, err);
}

int ebb_config_set(struct ebb_config *c, const char *assignment, struct ebb_err *err)
{
	char key[EBB_SETTING_KEY_SIZE];
	const char *value;
	int rc = ebb_setting_split(assignment, key, &value, err);

	return rc < 0 ? rc : set_key(c, key, value, err);
}

struct load {
	struct ebb_config *config;
	FILE *file;
	int line;			/* that was read last */
	int bad_line;			/* that err is about */
	struct ebb_err err;		/* the first error, the one to report */
};

/*
 * One line for inih.  inih would take an indented line as more of the value before it, hand it over
 * as a value of its own, and read a line that does not fit as two.
 */
static char *load_line(char *line, int size, void *arg)
{
	struct load *l = arg;
	const char *text = line;

	if (l->err.text[0] || !fgets(line, size, l->file))
		return NULL;
	l->line++;
	l->bad_line = l->line;
	while (isspace((unsigned char)*text))
		text++;
	if (text > line && *text && !strchr("#;", *text))
		ebb_err_set(&l->err, -EINVAL, "the line is indented: keys begin in the first "
			    "column, and a value ends with its line");
	else if (!strchr(line, '\n') && !feof(l->file))
		ebb_err_set(&l->err, -EINVAL, "the line is longer than %d bytes", size - 2);
	return l->err.text[0] ? NULL : line;
}

/* inih wants 1 for good and 0 for bad. */
static int load_one(void *arg, const char *section, const char *key, const char *value)
{
	struct load *l = arg;

	if (!section[0])
		return set_key(l->config, key, value ? value : "", &l->err) == 0;
	ebb_err_set(&l->err, -EINVAL, "section [%s]: the file has no sections", section);
	return 0;
}

int ebb_config_load(struct ebb_config *c, const char *path, struct ebb_err *err)
{
	struct load l = { .config = c, .file = fopen(path, "re") };
	int line, rc;

	if (!l.file) {
		rc = -errno;
		return ebb_err_set(err, rc, "%s: %s", path, strerror(-rc));
	}
	errno = 0;
	line = ini_parse_stream(load_line, &l, load_one, &l);
	/* For inih a file that can not be read, such as a folder, is an empty one. */
	rc = ferror(l.file) ? -errno : 0;
	fclose(l.file);
	if (rc < 0 || line < 0)
		return ebb_err_set(err, rc < 0 ? rc : -ENOMEM, "%s can not be read: %s", path,
				   strerror(rc < 0 ? -rc : ENOMEM));
	/* inih goes on after a line without key and value. */
	if (line > 0 && !(l.err.text[0] && line >= l.bad_line))
		return ebb_err_set(err, -EINVAL, "%s:%d: not of the form key = value", path, line);
	if (l.err.text[0])
		return ebb_err_set(err, -EINVAL, "%s:%d: %s", path, l.bad_line, l.err.text);
	return 0;
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
	if (strncmp(c->emu_group, EMU_GROUP_PREFIX, len) != 0 || strchr(c->emu_group, '/') ||
	    strlen(c->emu_group) > 255)
		return ebb_err_set(
			err, -EINVAL,
			"emu_group=%.64s: a name of one cgroup that begins with " EMU_GROUP_PREFIX
			" is needed",
			c->emu_group);
	return 0;
}
