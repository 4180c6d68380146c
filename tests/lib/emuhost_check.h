/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One check of the emulated host with real cgroups and real load, used by the unit test (on
 * whatever version of cgroups this machine has) and by a program that runs inside a guest, which
 * has version 2.
 */
#ifndef EBB_TESTS_EMUHOST_CHECK_H
#define EBB_TESTS_EMUHOST_CHECK_H

#include <stddef.h>

/*
 * Runs all of it; needs root.  name: of the group, used by nobody else.  Returns 0, or -1
 * with what was seen in text.  On success text tells the measured shares.
 */
int emuhost_check(const char *name, char *text, size_t size);

#endif
