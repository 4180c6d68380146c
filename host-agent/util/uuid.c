/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UUIDs. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "util/uuid.h"

static bool has_dash_after(int byte)
{
	return byte == 3 || byte == 5 || byte == 7 || byte == 9;
}

void ebb_uuid_format(const uint8_t uuid[EBB_UUID_BYTES], char ret_text[EBB_UUID_TEXT_SIZE])
{
	char *p = ret_text;

	for (int i = 0; i < EBB_UUID_BYTES; i++) {
		p += sprintf(p, "%02x", uuid[i]);
		if (has_dash_after(i))
			*p++ = '-';
	}
	*p = '\0';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int ebb_uuid_parse(const char *text, uint8_t ret_uuid[EBB_UUID_BYTES])
{
	uint8_t uuid[EBB_UUID_BYTES];

	if (strlen(text) != EBB_UUID_TEXT_SIZE - 1)
		return -EINVAL;
	for (int i = 0; i < EBB_UUID_BYTES; i++) {
		int hi = hex_digit(text[0]), lo = hi < 0 ? -1 : hex_digit(text[1]);

		if (lo < 0)
			return -EINVAL;
		uuid[i] = hi << 4 | lo;
		text += 2;
		if (has_dash_after(i) && *text++ != '-')
			return -EINVAL;
	}
	memcpy(ret_uuid, uuid, sizeof(uuid));
	return 0;
}
