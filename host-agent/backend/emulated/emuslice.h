/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long a thread may keep a real CPU while another waits for it.
 *
 * Emulated cores share real CPUs, and a thread that wakes on its own core should run at once. With
 * the kernel's usual slice (a few ms) it waits until the one before it has used that up, which is
 * looked at with the timer tick only; one with a shorter slice goes in front. Its share stays what
 * its group's weight and quota say.
 */
#ifndef EBB_IO_EMUSLICE_H
#define EBB_IO_EMUSLICE_H

#include <sys/types.h>

#define EBB_EMUSLICE_NSEC	100000	/* the shortest that Linux takes */

/*
 * For threads of the ordinary scheduling class, threads they start inherit it; others stay as they
 * are. nsec 0: the kernel's usual slice. Linux 6.12 or later; before it nothing changes. -errno:
 * -ESRCH when the thread is gone.
 */
int ebb_emuslice_set(pid_t tid, unsigned int nsec);

/* As it is, ns; 0: another class, an older kernel, or the thread is gone. */
unsigned int ebb_emuslice_get(pid_t tid);

#endif
