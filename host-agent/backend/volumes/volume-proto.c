/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See volume-proto.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/volumes/volume-proto.h"
#include "util/text.h"

/* Takes the reference. */
static char *line_of(json_t *message)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	const size_t len = text ? strlen(text) : 0;
	char *line = text ? realloc(text, len + 2) : NULL;

	json_decref(message);
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + len, "\n", 2);
	return line;
}

char *ebb_volume_proto_hello(void)
{
	return line_of(json_pack("{s:s}", "cmd", "version"));
}

/* Per second; null: none. */
static json_t *rate(uint64_t value)
{
	return value ? json_integer((json_int_t)value) : json_null();
}

char *ebb_volume_proto_set(const struct ebb_action_volume *a)
{
	return line_of(json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I}", "cmd", "volume-set",
				 "volume", a->name, "reserve_iops", rate(a->io.reserve_iops),
				 "reserve_bytes", rate(a->io.reserve_bytes), "max_iops",
				 rate(a->io.max_iops), "max_bytes", rate(a->io.max_bytes),
				 "weight", (json_int_t)a->io.weight, "penalty",
				 (json_int_t)a->io.penalty));
}

int ebb_volume_proto_result(const json_t *answer, char ret_text[EBB_TEXT_SIZE])
{
	static const struct {
		const char *code;
		int err;
	} codes[] = {
		{ "no-such-volume", -ENOENT }, { "overbooked", -EDQUOT }, { "denied", -EACCES },
		/* In force all the same. */
		{ "not-saved", 0 },
	};
	const json_t *error = json_object_get(answer, "error");
	const char *code = json_string_value(json_object_get(error, "code"));
	const char *message = json_string_value(json_object_get(error, "message"));

	if (json_is_true(json_object_get(answer, "ok")))
		return 0;
	if (!code || !message)
		return -EPROTO;
	ebb_text_copy(ret_text, EBB_TEXT_SIZE, message);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(codes[i].code, code) == 0)
			return codes[i].err;
	return -EINVAL;
}
