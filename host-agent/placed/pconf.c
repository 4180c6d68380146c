/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the configuration. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "placed/pconf.h"

#define MOST_COST	1e6

static int set_real(const struct ebb_setting *s, void *field, const char *value,
		    struct ebb_err *err)
{
	char *end;
	const double d = strtod(value, &end);

	if (end == value || *end || !isfinite(d) || d < 0 || d > MOST_COST)
		return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: a number from 0 to %g",
				   s->name, value, MOST_COST);
	*(double *)field = d;
	return 0;
}

#define KEY(key, field_, kind_, ...) \
	{ .name = key, .kind = EBB_SETTING_##kind_, \
	  .offset = offsetof(struct placed_conf, field_), __VA_ARGS__ }
#define NUMBER(field, low, high)	KEY(#field, field, U32, .min = low, .max = high)
#define REAL(key, field)		KEY(key, field, OTHER, .set = set_real)

static const struct ebb_setting keys[] = {
	KEY("ebbd_socket", ebbd_socket, PATH, .min = 1),
	KEY("run_dir", run_dir, PATH, .min = 1),
	KEY("traces_dir", traces_dir, PATH, .min = 1),
	KEY("record", record, BOOL, .min = 0),
	NUMBER(interval_ms, 500, 600000),
	NUMBER(tool_limit_ms, 500, 60000),
	NUMBER(dampen_s, 0, 60),
	NUMBER(stickiness_low, 1, 500),
	NUMBER(stickiness_medium, 1, 500),
	NUMBER(stickiness_high, 1, 500),
	NUMBER(score_step, 1, 500),
	NUMBER(move_s, 10, 3600),
	NUMBER(retry_s, 10, 86400),
	NUMBER(idle_s, 0, 86400),
	NUMBER(samples, 10, 10000),
	REAL("move_cost_disk", cost.a),
	REAL("move_cost_memory", cost.b),
	REAL("move_cost_active", cost.c),
	REAL("move_cost_medium", cost.limit[0]),
	REAL("move_cost_high", cost.limit[1]),
	KEY("log_level", log_level, LEVEL, .min = 0),
};

static const struct ebb_settings settings = {
	.all = keys, .num = sizeof(keys) / sizeof(keys[0]), .more = "",
};

void placed_conf_default(struct placed_conf *c)
{
	memset(c, 0, sizeof(*c));
	strcpy(c->ebbd_socket, "/run/ebb/control.sock");
	strcpy(c->run_dir, "/run/ebb-placed");
	strcpy(c->traces_dir, "/var/lib/ebb-placed/traces");
	c->record = true;
	c->interval_ms = 5000;
	c->tool_limit_ms = 10000;
	c->dampen_s = 1;
	c->stickiness_low = 50;
	c->stickiness_medium = 100;
	c->stickiness_high = 200;
	c->score_step = 20;
	c->move_s = 120;
	c->retry_s = 300;
	c->idle_s = 600;
	c->samples = 100;
	c->cost = place_config_default().cost;
	c->log_level = LOG_INFO;
}

int placed_conf_set(struct placed_conf *c, const char *assignment, struct ebb_err *err)
{
	return ebb_settings_assign(&settings, c, assignment, err);
}

int placed_conf_load(struct placed_conf *c, const char *path, struct ebb_err *err)
{
	return ebb_settings_load(&settings, c, path, err);
}

int placed_conf_read(struct placed_conf *c, const char *path, struct ebb_err *err)
{
	int rc;

	placed_conf_default(c);
	rc = placed_conf_load(c, path ? path : PLACED_CONFIG, err);
	if (rc != -ENOENT || path)
		return rc;
	err->text[0] = '\0';
	return 0;
}

int placed_conf_check(const struct placed_conf *c, struct ebb_err *err)
{
	if (c->stickiness_low > c->stickiness_medium || c->stickiness_medium > c->stickiness_high)
		return ebb_err_set(err, -EINVAL, "stickiness_low, stickiness_medium and "
				   "stickiness_high must rise");
	if (c->cost.limit[0] > c->cost.limit[1])
		return ebb_err_set(err, -EINVAL, "move_cost_medium is above move_cost_high");
	return 0;
}

void placed_conf_policy(const struct placed_conf *c, struct placed_policy *ret)
{
	*ret = (struct placed_policy){
		.stickiness = { (int32_t)c->stickiness_low, (int32_t)c->stickiness_medium,
				(int32_t)c->stickiness_high },
		.score_step = (int32_t)c->score_step,
		.move_usec = c->move_s * 1000000ull,
		.retry_usec = c->retry_s * 1000000ull,
		.cost = c->cost,
	};
}

void placed_conf_place(const struct placed_conf *c, struct place_config *ret)
{
	*ret = place_config_default();
	ret->samples = c->samples;
	ret->cost = c->cost;
}
