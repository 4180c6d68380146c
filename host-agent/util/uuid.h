/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UUIDs in RFC 4122 byte order. */
#ifndef EBB_UTIL_UUID_H
#define EBB_UTIL_UUID_H

#include <stdint.h>

#define EBB_UUID_BYTES		16
#define EBB_UUID_TEXT_SIZE	37	/* 36 characters and NUL */

void ebb_uuid_format(const uint8_t uuid[EBB_UUID_BYTES], char ret_text[EBB_UUID_TEXT_SIZE]);

/* -EINVAL unless text is exactly 8-4-4-4-12 hexadecimal digits. */
int ebb_uuid_parse(const char *text, uint8_t ret_uuid[EBB_UUID_BYTES]);

#endif
