/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which volume holds the cold records of a VM's database: the one that its reads beyond a promised
 * cache come from.  The agent does not see where the engine's folder for them (--cold-dir) lies, so
 * the SLA says it:
 *
 *   cold="yes"   this volume.  If several have "yes", reads cannot be told apart: none counts
 *   cold="no"    not this volume cold="auto"  the default: this one, if no volume has "yes" and no
 *   other one that is promised
 *                something has "auto"
 */
#ifndef EBB_CORE_IO_COLD_H
#define EBB_CORE_IO_COLD_H

#include "core/io/io.h"

/* NULL: none, or nobody knows which. */
const struct io_volume *io_cold_volume(const struct io_room *s, const struct ebb_vm *vm);

/* Adds a line if the VM has promises of a cache and of I/O, and its reads can not be told apart. */
void io_cold_explain(const struct io_room *s, const struct ebb_vm *vm, struct ebb_explain *e);

#endif /* EBB_CORE_IO_COLD_H */
