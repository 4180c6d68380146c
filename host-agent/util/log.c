/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Structured log lines. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util/log.h"

static int log_level = LOG_INFO;

void ebb_log_set_level(int priority)
{
	__atomic_store_n(&log_level, priority, __ATOMIC_RELAXED);
}

int ebb_log_level_of(const char *name, int *ret_priority)
{
	static const struct {
		const char *name;
		int priority;
	} levels[] = {
		{ "error", LOG_ERR },
		{ "warning", LOG_WARNING },
		{ "info", LOG_INFO },
		{ "debug", LOG_DEBUG },
	};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(name, levels[i].name) == 0) {
			*ret_priority = levels[i].priority;
			return 0;
		}
	}
	return -EINVAL;
}

struct line {
	char *buf;
	size_t size;
	size_t len;			/* never more than size - 2: room for newline and NUL */
};

static void line_char(struct line *l, char c)
{
	if (l->len + 2 < l->size)
		l->buf[l->len++] = c;
}

static void line_text(struct line *l, const char *s)
{
	while (*s)
		line_char(l, *s++);
}

static bool is_plain(const char *s)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@+-";

	return *s && s[strspn(s, plain)] == '\0';
}

static void line_value(struct line *l, const char *s)
{
	if (is_plain(s)) {
		line_text(l, s);
		return;
	}
	line_char(l, '"');
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\') {
			line_char(l, '\\');
			line_char(l, c);
		} else if (c < 0x20 || c == 0x7f) {
			char hex[8];

			snprintf(hex, sizeof(hex), "\\x%02x", c);
			line_text(l, hex);
		} else {
			line_char(l, c);
		}
	}
	line_char(l, '"');
}

/* One line with its newline, without the priority; returns its length. */
static size_t format(char *buf, size_t size, const char *event, const struct ebb_log_field *f)
{
	struct line l = { .buf = buf, .size = size };
	char num[40];

	line_text(&l, "event=");
	line_value(&l, event);
	for (; f->kind != EBB_LOG_END; f++) {
		if (f->kind == EBB_LOG_SKIP)
			continue;
		line_char(&l, ' ');
		line_text(&l, f->key);
		line_char(&l, '=');
		switch (f->kind) {
		case EBB_LOG_STR:
			line_value(&l, f->v.str ? f->v.str : "");
			break;
		case EBB_LOG_MS:
			snprintf(num, sizeof(num), "%.3f", (double)f->v.num / 1000);
			line_text(&l, num);
			break;
		default:
			snprintf(num, sizeof(num), "%" PRId64, f->v.num);
			line_text(&l, num);
		}
	}
	l.buf[l.len++] = '\n';
	l.buf[l.len] = '\0';
	return l.len;
}

void ebb_log_fields(int priority, const char *event, const struct ebb_log_field *fields)
{
	static const char *const names[] = {
		"emerg", "alert", "crit", "error", "warning", "notice", "info", "debug",
	};
	char buf[2048];
	size_t at;

	if (priority > __atomic_load_n(&log_level, __ATOMIC_RELAXED) || priority < 0)
		return;
	/* systemd sets this for services whose standard error it reads. */
	if (getenv("JOURNAL_STREAM"))
		at = snprintf(buf, sizeof(buf), "<%d>", priority);
	else
		at = snprintf(buf, sizeof(buf), "level=%s ", names[priority & 7]);
	at += format(buf + at, sizeof(buf) - at, event, fields);
	/*
	 * One write per line keeps lines of several threads apart.  A log that can not be written
	 * can not be reported either.
	 */
	if (write(STDERR_FILENO, buf, at) < 0)
		return;
}
