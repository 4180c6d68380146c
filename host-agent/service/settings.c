/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See settings.h. */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "service/settings.h"
#include "util/log.h"

#define KEY_SIZE	64

static int unknown_key(const struct ebb_settings *s, const char *key, struct ebb_err *err)
{
	char known[1000] = "";

	for (size_t i = 0; i < s->num; i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i ? ", " : "", s->all[i].name);
	return ebb_err_set(err, -EINVAL, "unknown key \"%.64s\"; known are %s%s", key, known,
			   s->more);
}

int ebb_setting_text(const struct ebb_setting *s, char *field, const char *value,
		     struct ebb_err *err)
{
	if (strlen(value) >= EBB_SETTING_SIZE)
		return ebb_err_set(err, -EINVAL, "%s is longer than %u bytes", s->name,
				   EBB_SETTING_SIZE - 1);
	if (s->min && !*value)
		return ebb_err_set(err, -EINVAL, "%s is empty", s->name);
	if (s->kind == EBB_SETTING_PATH && *value && value[0] != '/')
		return ebb_err_set(err, -EINVAL, "%s=%.64s: an absolute path is needed", s->name,
				   value);
	if (s->kind == EBB_SETTING_WORD && strcmp(value, s->words[0]) != 0 &&
	    strcmp(value, s->words[1]) != 0)
		return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: %s, %s", s->name, value,
				   s->words[0], s->words[1]);
	strcpy(field, value);
	return 0;
}

static int read_number(const struct ebb_setting *s, const char *value, uint64_t *ret,
		       struct ebb_err *err)
{
	unsigned long long n;
	char *end;

	if (s->has_auto && strcmp(value, "auto") == 0) {
		*ret = s->auto_value;
		return 0;
	}
	errno = 0;
	n = strtoull(value, &end, 10);
	if (errno || *end || value[0] < '0' || value[0] > '9' || n < s->min || n > s->max)
		return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: %" PRIu64 " to %" PRIu64 "%s",
				   s->name, value, s->min, s->max, s->has_auto ? ", auto" : "");
	*ret = n;
	return 0;
}

static int set_field(const struct ebb_setting *s, void *field, const char *value,
		     struct ebb_err *err)
{
	uint64_t number;
	int rc;

	switch (s->kind) {
	case EBB_SETTING_BOOL:
		if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
			return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: yes, no", s->name,
					   value);
		*(bool *)field = value[0] == 'y';
		return 0;
	case EBB_SETTING_U32:
		rc = read_number(s, value, &number, err);
		if (rc == 0)
			*(uint32_t *)field = (uint32_t)number;
		return rc;
	case EBB_SETTING_U64:
		return read_number(s, value, field, err);
	case EBB_SETTING_LEVEL:
		if (ebb_log_level_of(value, field) < 0)
			return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: " EBB_LOG_LEVELS,
					   s->name, value);
		return 0;
	case EBB_SETTING_OTHER:
		return s->set(s, field, value, err);
	default:
		return ebb_setting_text(s, field, value, err);
	}
}

static int set_key(const struct ebb_settings *s, void *config, const char *key, const char *value,
		   struct ebb_err *err)
{
	for (size_t i = 0; i < s->num; i++)
		if (strcmp(key, s->all[i].name) == 0)
			return set_field(&s->all[i], (char *)config + s->all[i].offset, value,
					 err);
	return unknown_key(s, key, err);
}

int ebb_settings_assign(const struct ebb_settings *s, void *config, const char *assignment,
			struct ebb_err *err)
{
	const char *eq = strchr(assignment, '=');
	char key[KEY_SIZE];

	if (!eq || eq == assignment || eq - assignment >= KEY_SIZE)
		return ebb_err_set(err, -EINVAL, "\"%.64s\" is not of the form key=value",
				   assignment);
	snprintf(key, sizeof(key), "%.*s", (int)(eq - assignment), assignment);
	return set_key(s, config, key, eq + 1, err);
}

struct load {
	const struct ebb_settings *settings;
	void *config;
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
	if (text > line && *text && !strchr("#;", *text) && !l->settings->may_indent)
		ebb_err_set(&l->err, -EINVAL, "the line is indented: keys begin in the first "
			    "column, and a value ends with its line");
	else if (!strchr(line, '\n') && !feof(l->file))
		ebb_err_set(&l->err, -EINVAL, "the line has more than %d bytes", size - 2);
	return l->err.text[0] ? NULL : line;
}

/* inih wants 1 for good and 0 for bad. */
static int load_one(void *arg, const char *section, const char *key, const char *value)
{
	struct load *l = arg;

	/* A line that inih does not understand is not the end for it. */
	if (l->err.text[0])
		return 0;
	if (!value)
		value = "";
	if (!section[0])
		return set_key(l->settings, l->config, key, value, &l->err) == 0;
	if (l->settings->set_in_section)
		return l->settings->set_in_section(l->config, section, key, value, &l->err) == 0;
	ebb_err_set(&l->err, -EINVAL, "section [%s]: the file has no sections", section);
	return 0;
}

int ebb_settings_load(const struct ebb_settings *s, void *config, const char *path,
		      struct ebb_err *err)
{
	struct load l = { .settings = s, .config = config, .file = fopen(path, "re") };
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

int ebb_setting_group(const char *key, const char *name, gid_t *ret, struct ebb_err *err)
{
	struct group *g;

	*ret = -1;
	if (!*name)
		return 0;
	/* Debian's and others' libvirt run QEMU with the group that /dev/kvm belongs to. */
	g = getgrnam(strcmp(name, "auto") == 0 ? "kvm" : name);
	if (!g && strcmp(name, "auto") == 0)
		return 0;
	if (!g)
		return ebb_err_set(err, -EINVAL, "%s=%.64s: there is no such group", key, name);
	*ret = g->gr_gid;
	return 0;
}
