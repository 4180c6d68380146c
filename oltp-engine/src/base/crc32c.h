/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CRC-32C (Castagnoli, RFC 3720): what the log's files are checked with. */
#ifndef OLTP_CRC32C_H
#define OLTP_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Of data behind what gave crc; 0 for the beginning. In pieces it is the same as in one:
 * crc32c(crc32c(0, "ab", 2), "c", 1) == crc32c(0, "abc", 3).
 */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
