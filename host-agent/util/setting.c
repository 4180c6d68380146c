/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See setting.h. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include "util/setting.h"

int ebb_setting_split(const char *text, char ret_key[EBB_SETTING_KEY_SIZE], const char **ret_value,
		      struct ebb_err *err)
{
	const char *eq = strchr(text, '=');

	if (!eq || eq == text || eq - text >= EBB_SETTING_KEY_SIZE)
		return ebb_err_set(err, -EINVAL, "\"%.64s\" is not of the form key=value", text);
	snprintf(ret_key, EBB_SETTING_KEY_SIZE, "%.*s", (int)(eq - text), text);
	*ret_value = eq + 1;
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
