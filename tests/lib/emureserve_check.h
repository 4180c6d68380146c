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
 * was seen in text.  On success text tells the measured parts.  least: thousandths of the core that
 * a thread must get which is promised half of it, beside 24 others; without the promise it gets
 * about 40.  It is up to the caller, since the end of each period costs precision: a guest whose
 * CPUs are emulated switches between threads slowly.
 */
int emureserve_check(const char *name, unsigned least, char *text, size_t size);

#endif
