/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UUIDs. */
#include <errno.h>
#include <string.h>
#include <systemd/sd-id128.h>
#include "util/uuid.h"

_Static_assert(EBB_UUID_BYTES == sizeof(sd_id128_t) &&
	       EBB_UUID_TEXT_SIZE == SD_ID128_UUID_STRING_MAX, "a UUID is an id of 128 bits");

void ebb_uuid_format(const uint8_t uuid[EBB_UUID_BYTES], char ret_text[EBB_UUID_TEXT_SIZE])
{
	sd_id128_t id;

	memcpy(id.bytes, uuid, sizeof(id));
	sd_id128_to_uuid_string(id, ret_text);
}

int ebb_uuid_parse(const char *text, uint8_t ret_uuid[EBB_UUID_BYTES])
{
	sd_id128_t id;

	/* The library also takes 32 digits without dashes. */
	if (strlen(text) != EBB_UUID_TEXT_SIZE - 1 || sd_id128_from_string(text, &id) < 0)
		return -EINVAL;
	memcpy(ret_uuid, id.bytes, sizeof(id));
	return 0;
}
