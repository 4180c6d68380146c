/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One check of promises of CPU time on an emulated core, with real cgroups and real load.  Used
 * like emuhost_check.h.
 */
#ifndef EBB_TESTS_EMURESERVE_CHECK_H
#define EBB_TESTS_EMURESERVE_CHECK_H

#include <stddef.h>

/*
 * Runs all of it; needs root.  name: of the group, used by nobody else.  Returns 0, or -1 with what
 * was seen in text.  On success text tells the measured parts.
 */
int emureserve_check(const char *name, char *text, size_t size);

#endif
