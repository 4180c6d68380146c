/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How large the disks of a domain are. */
#ifndef EBB_IO_DISKS_H
#define EBB_IO_DISKS_H

#include <stdint.h>

/*
 * Bytes of all disks of the domain that are files or block devices of this host; what can not be
 * looked at counts as 0.  libvirt is not asked: its answer would wait for what it does with the
 * domain, an unplug for one.  Looks at the file system, so for worker threads only.
 */
uint64_t ebb_disks_size(const char *xml);

#endif
