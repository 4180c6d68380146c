/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configurations of ebbd and of ebb-volumed: tables of keys, ini files, "key=value". */
#ifndef EBB_SERVICE_SETTINGS_H
#define EBB_SERVICE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "util/err.h"

/* Bytes of a text with its NUL: the size of a field of EBB_SETTING_TEXT, _PATH and _WORD. */
#define EBB_SETTING_SIZE	1024

enum ebb_setting_kind {
	EBB_SETTING_TEXT,
	EBB_SETTING_PATH,		/* a text that is an absolute path */
	EBB_SETTING_WORD,		/* a text that is one of two words */
	EBB_SETTING_BOOL,		/* bool: yes, no */
	EBB_SETTING_U32,
	EBB_SETTING_U64,
	EBB_SETTING_LEVEL,		/* int, of the log (util/log.h) */
	EBB_SETTING_OTHER,		/* what its own function makes of it */
};

struct ebb_setting {
	const char *name;
	enum ebb_setting_kind kind;
	size_t offset;			/* of the field in the configuration */
	/* Bounds of a number.  A text with min 1 may not be empty. */
	uint64_t min, max;
	bool has_auto;			/* a number may be "auto", which is auto_value */
	uint64_t auto_value;
	const char *words[2];
	/* Of EBB_SETTING_OTHER.  -EINVAL with a message that names the key. */
	int (*set)(const struct ebb_setting *s, void *field, const char *value,
		   struct ebb_err *err);
};

struct ebb_settings {
	const struct ebb_setting *all;
	size_t num;
	const char *more;		/* what a file has besides keys, for messages; may be "" */
	/* A key in a section of the file; NULL: there are none. */
	int (*set_in_section)(void *config, const char *section, const char *key,
			      const char *value, struct ebb_err *err);
	bool may_indent;		/* lines of the file, as inih understands them */
};

/*
 * Changes one field by "key=value", as it is on a command line.  -EINVAL: it is not of that form,
 * there is no such key, or it can not have this value.
 */
int ebb_settings_assign(const struct ebb_settings *s, void *config, const char *assignment,
			struct ebb_err *err);

/* For a set function: as EBB_SETTING_TEXT. */
int ebb_setting_text(const struct ebb_setting *s, char *field, const char *value,
		     struct ebb_err *err);

/*
 * Reads an ini file.  -errno with "FILE:LINE: ...", or if it can not be read "FILE: ..."; config
 * may be half changed then.
 */
int ebb_settings_load(const struct ebb_settings *s, void *config, const char *path,
		      struct ebb_err *err);

/*
 * The group of a socket by its name.  (gid_t)-1: none, for "", and for "auto" where there is no
 * group kvm, with which libvirt runs QEMU.  -EINVAL: there is no such group; the message names key.
 */
int ebb_setting_group(const char *key, const char *name, gid_t *ret, struct ebb_err *err);

#endif
