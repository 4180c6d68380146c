/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of volumes of the room, by name.  Pointers to volumes hold until it changes. */
#ifndef EBB_CORE_IO_TABLE_H
#define EBB_CORE_IO_TABLE_H

#include "core/io/io.h"

/* NULL: the table does not have the volume. */
const struct io_volume *io_table_find(const struct io_room *s, const char *name);
/* The same, to be changed. */
struct io_volume *io_table_get_known(struct io_room *s, const char *name);
/* Finds or adds it; NULL: the table is full. */
struct io_volume *io_table_get(struct io_room *s, const char *name);
void io_table_remove(struct io_room *s, struct io_volume *v);

#endif /* EBB_CORE_IO_TABLE_H */
