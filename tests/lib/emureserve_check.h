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
 * was seen in text.  On success text tells the measured parts.  slack: by how
 * many thousandths of the core a thread may miss the half that it is promised, beside 24 others, up
 * or down; without the promise it gets about 40.  It is up to the caller, since the end of each
 * period costs precision: a guest whose CPUs are emulated switches between threads slowly.
 */
int emureserve_check(const char *name, unsigned slack, char *text, size_t size);

#endif
