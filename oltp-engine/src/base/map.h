/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Anonymous memory in huge pages. */
#ifndef OLTP_MAP_H
#define OLTP_MAP_H

#include <stddef.h>

/*
 * Zeroed, aligned to OLTP_MEM_BLOCK_BYTES, of which bytes is a multiple; for munmap(). NULL: none.
 */
void *map_aligned(size_t bytes);

#endif
