/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The few kernel names that the pure files of the guest driver use, for user space. */
#ifndef EBB_TESTS_KSHIM_H
#define EBB_TESTS_KSHIM_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define le16_to_cpu(x)	le16toh(x)
#define le32_to_cpu(x)	le32toh(x)
#define le64_to_cpu(x)	le64toh(x)
#define cpu_to_le16(x)	htole16(x)
#define cpu_to_le32(x)	htole32(x)
#define cpu_to_le64(x)	htole64(x)

#endif /* EBB_TESTS_KSHIM_H */
