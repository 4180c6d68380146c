/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the settings of ebbd and of ebb-volumed have in common. */
#ifndef EBB_UTIL_SETTING_H
#define EBB_UTIL_SETTING_H

#include <sys/types.h>
#include "util/err.h"

#define EBB_SETTING_KEY_SIZE	64

/*
 * Splits "key=value", as it is on a command line.  *ret_value points into the text.  -EINVAL: it is
 * not of that form, or the key is too long.
 */
int ebb_setting_split(const char *text, char ret_key[EBB_SETTING_KEY_SIZE], const char **ret_value,
		      struct ebb_err *err);

/*
 * The group of a socket by its name.  (gid_t)-1: none, for "", and for "auto" where there is no
 * group kvm, with which libvirt runs QEMU.  -EINVAL: there is no such group; the message names key.
 */
int ebb_setting_group(const char *key, const char *name, gid_t *ret, struct ebb_err *err);

#endif
