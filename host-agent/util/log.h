/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Structured log lines on standard error: `event=NAME key=value key="text with spaces" ...`, with
 * the syslog priority in front ("<6>") when standard error is the journal.  Keys are lower case;
 * values are quoted when they hold anything but letters, digits and ._:/@+-; what others sent can
 * therefore neither forge a field nor a line.  Safe to call from every thread; one call is one
 * line.
 */
#ifndef EBB_UTIL_LOG_H
#define EBB_UTIL_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <syslog.h>

enum ebb_log_kind {
	EBB_LOG_END = 0, /* closes the list of fields */
	EBB_LOG_STR,
	EBB_LOG_INT,
	EBB_LOG_MS,   /* microseconds, printed as milliseconds with three decimals */
	EBB_LOG_SKIP, /* a field that has nothing to say this time */
};

struct ebb_log_field {
	const char *key;
	enum ebb_log_kind kind;
	union {
		const char *str;
		int64_t num;
	} v;
};

#define EBB_KS(k, s)	((struct ebb_log_field){ .key = (k), .kind = EBB_LOG_STR, .v.str = (s) })
#define EBB_KI(k, n)                                                                               \
	((struct ebb_log_field){.key = (k), .kind = EBB_LOG_INT, .v.num = (int64_t)(n)})
#define EBB_KMS(k, us)                                                                             \
	((struct ebb_log_field){.key = (k), .kind = EBB_LOG_MS, .v.num = (int64_t)(us)})
#define EBB_KSKIP	((struct ebb_log_field){ .kind = EBB_LOG_SKIP })

/* priority is LOG_DEBUG ... LOG_CRIT; at least one field. */
#define ebb_log(priority, event, ...) \
	ebb_log_fields((priority), (event), \
		       (const struct ebb_log_field[]){ __VA_ARGS__, { .kind = EBB_LOG_END } })

void ebb_log_fields(int priority, const char *event, const struct ebb_log_field *fields);

/* Lines of a lower importance than priority are dropped; LOG_INFO at start. */
void ebb_log_set_level(int priority);

/* A priority by its name in a configuration; -EINVAL: it is none of EBB_LOG_LEVELS. */
#define EBB_LOG_LEVELS	"error, warning, info, debug"
int ebb_log_level_of(const char *name, int *ret_priority);

#endif
