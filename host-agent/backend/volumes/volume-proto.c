/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See volume-proto.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/volumes/volume-proto.h"
#include "model/sla-io.h"
#include "util/text.h"

/* Volumes in a part of a list: reading it takes less than a millisecond. */
#define PART	256
/* No server has so many; one that says so is no volume server. */
#define MOST	65536u

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

char *ebb_volume_proto_server(void)
{
	return line_of(json_pack("{s:s, s:i}", "cmd", "volumes", "most", 0));
}

char *ebb_volume_proto_claim(const char *owner)
{
	return line_of(json_pack("{s:s, s:s}", "cmd", "claim", "owner", owner));
}

char *ebb_volume_proto_owned(const char *owner, uint64_t after)
{
	return line_of(json_pack("{s:s, s:s, s:b, s:I, s:i}", "cmd", "volumes", "owner", owner,
				 "brief", 1, "after", (json_int_t)after, "most", PART));
}

char *ebb_volume_proto_meters(void)
{
	return line_of(json_pack("{s:s, s:b}", "cmd", "meters", "brief", 1));
}

/* Per second; null: none. */
static json_t *rate(uint64_t value)
{
	return value ? json_integer((json_int_t)value) : json_null();
}

char *ebb_volume_proto_set(const char *owner, const struct ebb_action_volume *a)
{
	return line_of(json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:s?}",
				 "cmd", "volume-set", "volume", a->name,
				 "reserve_iops", rate(a->io.reserve_iops),
				 "reserve_bytes", rate(a->io.reserve_bytes),
				 "max_iops", rate(a->io.max_iops),
				 "max_bytes", rate(a->io.max_bytes),
				 "weight", (json_int_t)a->io.weight,
				 "penalty", (json_int_t)a->io.penalty,
				 "owner", a->is_owned ? owner : NULL));
}

int ebb_volume_proto_result(const json_t *answer, char ret_text[EBB_TEXT_SIZE])
{
	static const struct {
		const char *code;
		int err;
	} codes[] = {
		{ "no-such-volume", -ENOENT }, { "overbooked", -EDQUOT }, { "denied", -EACCES },
		/* It may be in force, or come into force yet. */
		{ "no-answer", -ETIMEDOUT },
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

static uint64_t number(const json_t *o, const char *key)
{
	const json_int_t value = json_integer_value(json_object_get(o, key));

	return value > 0 ? (uint64_t)value : 0;
}

/* A name of a volume, or "". */
static void read_name(const json_t *text, char ret[EBB_VOLUME_NAME_SIZE])
{
	const char *name = json_string_value(text);

	memset(ret, 0, EBB_VOLUME_NAME_SIZE);
	if (name && strlen(name) < EBB_VOLUME_NAME_SIZE)
		memcpy(ret, name, strlen(name));
}

int ebb_volume_proto_read_server(const json_t *answer, struct ebb_volume_server *ret)
{
	const json_t *server = json_object_get(answer, "server");

	if (!json_is_object(server))
		return -EPROTO;
	*ret = (struct ebb_volume_server){
		.capacity_iops = number(server, "capacity_iops"),
		.capacity_bytes = number(server, "capacity_bytes"),
		.promised_iops = number(server, "promised_iops"),
		.promised_bytes = number(server, "promised_bytes"),
		.allow_overbooking = json_is_true(json_object_get(server, "allow_overbooking")),
	};
	return 0;
}

int ebb_volume_proto_read_owned(const json_t *answer, struct ebb_volume_list *list)
{
	const json_t *volumes = json_object_get(answer, "volumes");
	const bool has_more = json_is_true(json_object_get(answer, "more"));
	const size_t num = json_array_size(volumes);
	const uint64_t before = list->after;
	void *names;

	if (!json_is_array(volumes) || num > MOST - list->num)
		return -EPROTO;
	names = realloc(list->names, (list->num + num + 1) * sizeof(*list->names));
	if (!names)
		return -ENOMEM;
	list->names = names;
	for (size_t i = 0; i < num; i++) {
		const json_t *volume = json_array_get(volumes, i);
		const char *name = json_string_value(json_object_get(volume, "name"));

		list->after = number(volume, "id");
		if (name && ebb_volume_name_usable(name))
			ebb_volume_name_copy(list->names[list->num++], name);
	}
	/* Or it would be asked for the same part again and again. */
	if (has_more && list->after <= before)
		return -EPROTO;
	return has_more;
}

static void read_meter(const json_t *meter, struct ebb_volume_reading *ret)
{
	const json_t *c = json_object_get(meter, "counters");
	const json_t *delay = json_object_get(meter, "delay");

	*ret = (struct ebb_volume_reading){
		.count = {
			.intervals = number(c, "intervals"),
			.violated_intervals = number(c, "violated-intervals"),
			.charged = number(c, "charged"), .early = number(c, "early"),
			.missed = number(c, "missed"), .violated = number(c, "violated"),
			.others_early = number(c, "others-early"),
			.others_promised = number(c, "others-promised"),
			.slow = number(c, "slow"), .overdue = number(c, "overdue"),
		},
		.delay = {
			.mean_nsec = number(delay, "mean-ns"), .p50_nsec = number(delay, "p50-ns"),
			.p99_nsec = number(delay, "p99-ns"), .max_nsec = number(delay, "max-ns"),
		},
	};
	read_name(json_object_get(meter, "name"), ret->name);
	read_name(json_object_get(json_object_get(meter, "interval"), "taker"), ret->taker);
}

int ebb_volume_proto_read_meters(const json_t *answer, struct ebb_fact_volumes_meters *ret,
				 struct ebb_volume_reading **ret_volumes)
{
	const json_t *meters = json_object_get(answer, "meters");
	const uint64_t usec = number(json_object_get(answer, "scheduler"), "interval-us");
	const size_t num = json_array_size(meters);
	struct ebb_volume_reading *volumes;

	if (!json_is_array(meters))
		return -EPROTO;
	volumes = calloc(num ? num : 1, sizeof(*volumes));
	if (!volumes)
		return -ENOMEM;
	for (size_t i = 0; i < num; i++)
		read_meter(json_array_get(meters, i), &volumes[i]);
	/* Before the first storage daemon has come up nothing is counted either. */
	ret->interval_usec = usec ? usec : EBB_USEC_PER_SEC;
	ret->num = (uint32_t)num;
	ret->volumes = *ret_volumes = volumes;
	return 0;
}
