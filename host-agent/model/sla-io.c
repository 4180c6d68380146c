// SPDX-License-Identifier: GPL-2.0-or-later
/* See sla-io.h. */
#include "model/sla-io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool ebb_volume_name_usable(const char *name)
{
	size_t len = 0;

	for (; name[len] && len < EBB_VOLUME_NAME_SIZE; len++) {
		const char c = name[len];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '.' || c == '_' || c == '-'))
			return false;
	}
	return len > 0 && len < EBB_VOLUME_NAME_SIZE;
}

void ebb_volume_name_copy(char ret[EBB_VOLUME_NAME_SIZE], const char *name)
{
	const size_t len = strnlen(name, EBB_VOLUME_NAME_SIZE - 1);

	memset(ret, 0, EBB_VOLUME_NAME_SIZE);
	memcpy(ret, name, len);
}

/* Of the attribute within struct ebb_sla_io. */
static size_t offset_of(const struct ebb_sla_key *key)
{
	return key->offset - offsetof(struct ebb_sla, io);
}

static uint16_t index_of(const struct ebb_sla *sla, const char *name)
{
	uint16_t i = 0;

	while (i < sla->num_volumes && strcmp(sla->volumes[i].name, name) != 0)
		i++;
	return i;
}

const struct ebb_sla_volume *ebb_sla_volume(const struct ebb_sla *sla, const char *name)
{
	const uint16_t i = index_of(sla, name);

	return i < sla->num_volumes ? &sla->volumes[i] : NULL;
}

struct ebb_sla_volume *ebb_sla_volume_get(struct ebb_sla *sla, const char *name)
{
	const uint16_t i = index_of(sla, name);
	struct ebb_sla_volume *v = &sla->volumes[i];

	if (i < sla->num_volumes)
		return v;
	if (sla->num_volumes == EBB_MAX_VOLUMES || !ebb_volume_name_usable(name))
		return NULL;
	memset(v, 0, sizeof(*v));
	ebb_volume_name_copy(v->name, name);
	sla->num_volumes++;
	return v;
}

void ebb_sla_volume_put(struct ebb_sla_volume *v, const struct ebb_sla_key *key, uint64_t value)
{
	v->given |= key->given;
	ebb_sla_store((char *)&v->io + offset_of(key), key, value);
}

void ebb_sla_volume_clear(struct ebb_sla_volume *v, const struct ebb_sla_key *key)
{
	ebb_sla_volume_put(v, key, 0);
	v->given &= (uint8_t)~key->given;
}

bool ebb_sla_volume_value(const struct ebb_sla_volume *v, const struct ebb_sla_key *key,
			  uint64_t *ret)
{
	*ret = ebb_sla_load((const char *)&v->io + offset_of(key), key);
	return v->given & key->given;
}

void ebb_sla_volume_drop(struct ebb_sla *sla, const char *name)
{
	const uint16_t i = index_of(sla, name);

	if (i == sla->num_volumes)
		return;
	sla->num_volumes--;
	memmove(&sla->volumes[i], &sla->volumes[i + 1],
		(sla->num_volumes - i) * sizeof(sla->volumes[0]));
	memset(&sla->volumes[sla->num_volumes], 0, sizeof(sla->volumes[0]));
}

void ebb_sla_io_of(const struct ebb_sla *sla, const char *name, struct ebb_sla_io *ret)
{
	const struct ebb_sla_volume *v = ebb_sla_volume(sla, name);
	const struct ebb_sla_key *key;
	uint64_t value;

	*ret = sla->io;
	for (size_t i = 0; v && (key = ebb_sla_key_at(i)); i++)
		if (key->part == EBB_SLA_IO && ebb_sla_volume_value(v, key, &value))
			ebb_sla_store((char *)ret + offset_of(key), key, value);
}

void ebb_sla_io_default(struct ebb_sla_io *ret)
{
	/* Also the bytes between the fields, as SLAs are compared as a whole. */
	memset(ret, 0, sizeof(*ret));
	ret->weight = EBB_WEIGHT_DEFAULT;
	ret->penalty = EBB_PENALTY_DEFAULT;
}

bool ebb_sla_io_is_same(const struct ebb_sla_io *a, const struct ebb_sla_io *b)
{
	return a->reserve_bytes == b->reserve_bytes && a->max_bytes == b->max_bytes &&
	       a->reserve_iops == b->reserve_iops && a->max_iops == b->max_iops &&
	       a->weight == b->weight && a->penalty == b->penalty;
}

static bool has_io_of_all(const struct ebb_sla *sla)
{
	struct ebb_sla_io none;

	ebb_sla_io_default(&none);
	return !ebb_sla_io_is_same(&sla->io, &none);
}

bool ebb_sla_has_io(const struct ebb_sla *sla)
{
	return sla->num_volumes > 0 || sla->io.cold != EBB_COLD_AUTO || has_io_of_all(sla);
}

bool ebb_sla_io_covers(const struct ebb_sla *sla, const char *name)
{
	return has_io_of_all(sla) || ebb_sla_volume(sla, name);
}

/* ---- checks ---------------------------------------------------------------- */

static int check_range(const struct ebb_sla_volume *v, char *ret_text)
{
	const struct ebb_sla_key *key;
	char allowed[EBB_TEXT_SIZE];
	uint64_t value;

	for (size_t i = 0; (key = ebb_sla_key_at(i)); i++) {
		if (key->part != EBB_SLA_IO || !ebb_sla_volume_value(v, key, &value) ||
		    (value >= key->min && value <= key->max))
			continue;
		ebb_sla_allowed(key, allowed);
		snprintf(ret_text, EBB_TEXT_SIZE, "volume %s %s is %llu, allowed are %.60s",
			 v->name, key->attribute, (unsigned long long)value, allowed);
		return -EINVAL;
	}
	return 0;
}

/* what: "" or "volume NAME ". */
static int check_maxima(const struct ebb_sla_io *io, const char *what, char *ret_text)
{
	const bool is_iops = io->max_iops && io->reserve_iops > io->max_iops;

	if (!is_iops && !(io->max_bytes && io->reserve_bytes > io->max_bytes))
		return 0;
	snprintf(ret_text, EBB_TEXT_SIZE, "%sreserve-%s is %llu, which is more than max-%s, %llu",
		 what, is_iops ? "iops" : "bytes",
		 (unsigned long long)(is_iops ? io->reserve_iops : io->reserve_bytes),
		 is_iops ? "iops" : "bytes",
		 (unsigned long long)(is_iops ? io->max_iops : io->max_bytes));
	return -EINVAL;
}

int ebb_sla_io_check(const struct ebb_sla *sla, char *ret_text)
{
	char what[EBB_VOLUME_NAME_SIZE + 16];
	struct ebb_sla_io io;
	int rc = check_maxima(&sla->io, "I/O ", ret_text);

	if (rc == 0 && sla->num_volumes > EBB_MAX_VOLUMES) {
		snprintf(ret_text, EBB_TEXT_SIZE, "number of volumes is %u, allowed are 0 to %u",
			 sla->num_volumes, EBB_MAX_VOLUMES);
		return -EINVAL;
	}
	for (uint16_t i = 0; rc == 0 && i < sla->num_volumes; i++) {
		const struct ebb_sla_volume *v = &sla->volumes[i];

		if (!ebb_volume_name_usable(v->name) || index_of(sla, v->name) != i) {
			snprintf(ret_text, EBB_TEXT_SIZE, "volume \"%.40s\": each name once, 1 to "
				 "%u letters, digits, \".\", \"_\" and \"-\"", v->name,
				 EBB_VOLUME_NAME_SIZE - 1);
			return -EINVAL;
		}
		rc = check_range(v, ret_text);
		ebb_sla_io_of(sla, v->name, &io);
		snprintf(what, sizeof(what), "volume %s ", v->name);
		if (rc == 0)
			rc = check_maxima(&io, what, ret_text);
	}
	return rc;
}
