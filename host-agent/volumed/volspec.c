/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keys of a volume. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "util/text.h"
#include "volumed/volspec.h"

enum kind { KIND_TENANT, KIND_FILE, KIND_FORMAT, KIND_FLAG, KIND_RATE, KIND_NUMBER };

static const struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	uint64_t min, max;
} keys[] = {
	{ "tenant", KIND_TENANT, offsetof(struct ebb_volspec, tenant), 0, 0 },
	{ "file", KIND_FILE, offsetof(struct ebb_volspec, file), 0, 0 },
	{ "format", KIND_FORMAT, offsetof(struct ebb_volspec, format), 0, 0 },
	{ "shared", KIND_FLAG, offsetof(struct ebb_volspec, is_shared), 0, 0 },
	{ "reserve_iops", KIND_RATE, offsetof(struct ebb_volspec, reserve_iops), 1,
	  EBB_VOLUME_MAX_IOPS },
	{ "reserve_bytes", KIND_RATE, offsetof(struct ebb_volspec, reserve_bytes), 1,
	  EBB_VOLUME_MAX_BYTES },
	{ "max_iops", KIND_RATE, offsetof(struct ebb_volspec, max_iops), 1, EBB_VOLUME_MAX_IOPS },
	{ "max_bytes", KIND_RATE, offsetof(struct ebb_volspec, max_bytes), 1,
	  EBB_VOLUME_MAX_BYTES },
	{ "weight", KIND_NUMBER, offsetof(struct ebb_volspec, weight), 1, EBB_VOLUME_MAX_WEIGHT },
	{ "penalty", KIND_NUMBER, offsetof(struct ebb_volspec, penalty), 0,
	  EBB_VOLUME_MAX_PENALTY },
};
#define NUM_KEYS	(sizeof(keys) / sizeof(keys[0]))

static const char name_chars[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

int ebb_volspec_init(struct ebb_volspec *v, const char *name, struct ebb_err *err)
{
	const size_t len = strlen(name);

	if (!len || len >= EBB_VOLUME_NAME_SIZE || strspn(name, name_chars) != len)
		return ebb_err_set(err, -EINVAL, "\"%.80s\" is no name of a volume; allowed: 1 to "
				   "%u letters, digits, \".\", \"_\" and \"-\"", name,
				   EBB_VOLUME_NAME_SIZE - 1);
	memset(v, 0, sizeof(*v));
	memcpy(v->name, name, len + 1);
	memcpy(v->format, "raw", sizeof("raw"));
	v->weight = 100;
	v->penalty = 1;
	return 0;
}

static const struct key *find_key(const char *name)
{
	for (size_t i = 0; i < NUM_KEYS; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

static int unknown_key(const char *name, struct ebb_err *err)
{
	char known[200] = "";

	for (size_t i = 0; i < NUM_KEYS; i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i ? ", " : "", keys[i].name);
	return ebb_err_set(err, -ENOENT, "unknown key \"%.64s\"; known are %s", name, known);
}

static int set_number(const struct key *k, uint64_t *field, const char *value, struct ebb_err *err)
{
	unsigned long long n;
	char *end;

	if (k->kind == KIND_RATE && strcmp(value, "none") == 0) {
		*field = EBB_VOLUME_NO_NUMBER;
		return 0;
	}
	errno = 0;
	n = strtoull(value, &end, 10);
	/* strtoull() takes a sign and blanks, which are no part of a number here. */
	if (errno || *end || value[0] < '0' || value[0] > '9' || n < k->min || n > k->max)
		return ebb_err_set(err, -EINVAL,
				   "%s=%.64s: allowed: %" PRIu64 " to %" PRIu64 "%s", k->name,
				   value, k->min, k->max, k->kind == KIND_RATE ? ", none" : "");
	*field = n;
	return 0;
}

static int set_text(const struct key *k, char *field, size_t size, const char *value,
		    struct ebb_err *err)
{
	const size_t len = strlen(value);

	if (!len || len >= size)
		return ebb_err_set(err, -EINVAL, "%s: allowed: 1 to %zu bytes", k->name, size - 1);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return ebb_err_set(err, -EINVAL, "%s: a control character is not allowed",
					   k->name);
	/* Neither the storage daemon nor ebbctl could be told of it: both take JSON. */
	for (size_t i = 0; i < len; i += ebb_text_char(value + i))
		if (!ebb_text_char(value + i))
			return ebb_err_set(err, -EINVAL, "%s=%.200s: it is no UTF-8", k->name,
					   value);
	if (k->kind == KIND_FILE && value[0] != '/')
		return ebb_err_set(err, -EINVAL, "%s=%.200s: an absolute path is needed", k->name,
				   value);
	memcpy(field, value, len + 1);
	return 0;
}

int ebb_volspec_set(struct ebb_volspec *v, const char *key, const char *value,
		    struct ebb_err *err)
{
	const struct key *k = find_key(key);
	char *field;

	if (!k)
		return unknown_key(key, err);
	field = (char *)v + k->offset;
	switch (k->kind) {
	case KIND_TENANT:
		return set_text(k, field, sizeof(v->tenant), value, err);
	case KIND_FILE:
		return set_text(k, field, sizeof(v->file), value, err);
	case KIND_FORMAT:
		if (strcmp(value, "raw") != 0 && strcmp(value, "qcow2") != 0)
			return ebb_err_set(err, -EINVAL, "format=%.64s: allowed: raw, qcow2",
					   value);
		return set_text(k, field, sizeof(v->format), value, err);
	case KIND_FLAG:
		if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
			return ebb_err_set(err, -EINVAL, "%s=%.64s: allowed: yes, no", k->name,
					   value);
		*(bool *)field = strcmp(value, "yes") == 0;
		return 0;
	default:
		return set_number(k, (uint64_t *)field, value, err);
	}
}

int ebb_volspec_set_owner(struct ebb_volspec *v, const char *owner, struct ebb_err *err)
{
	/*
	 * Not in the table: neither the configuration nor a command that adds a volume names an
	 * owner.
	 */
	static const struct key key = { .name = "owner", .kind = KIND_TENANT };

	if (owner)
		return set_text(&key, v->owner, sizeof(v->owner), owner, err);
	v->owner[0] = '\0';
	return 0;
}

bool ebb_volspec_is_promise(const char *key)
{
	const struct key *k = find_key(key);

	return k && k->kind >= KIND_RATE;
}

int ebb_volspec_check_promise(const struct ebb_volspec *v, struct ebb_err *err)
{
	if (v->max_iops && v->max_iops < v->reserve_iops)
		return ebb_err_set(err, -EINVAL, "volume %s: max_iops is less than reserve_iops",
				   v->name);
	if (v->max_bytes && v->max_bytes < v->reserve_bytes)
		return ebb_err_set(err, -EINVAL, "volume %s: max_bytes is less than reserve_bytes",
				   v->name);
	return 0;
}

int ebb_volspec_check(const struct ebb_volspec *v, struct ebb_err *err)
{
	if (!v->tenant[0])
		return ebb_err_set(err, -EINVAL, "volume %s has no tenant", v->name);
	if (!v->file[0])
		return ebb_err_set(err, -EINVAL, "volume %s has no file", v->name);
	return ebb_volspec_check_promise(v, err);
}

void ebb_volspec_each_number(const struct ebb_volspec *v,
			     void (*fn)(void *ctx, const char *key, uint64_t number), void *ctx)
{
	for (size_t i = 0; i < NUM_KEYS; i++)
		if (keys[i].kind >= KIND_RATE)
			fn(ctx, keys[i].name,
			   *(const uint64_t *)((const char *)v + keys[i].offset));
}
