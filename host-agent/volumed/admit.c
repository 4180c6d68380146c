/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The promises to all volumes of a server together, and whether one more fits. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "util/log.h"
#include "volumed/server.h"

uint64_t ebb_server_capacity_iops(const struct ebb_server *s)
{
	return s->conf->capacity_iops ? s->conf->capacity_iops : s->capacity.iops;
}

uint64_t ebb_server_capacity_bytes(const struct ebb_server *s)
{
	return s->conf->capacity_bytes ? s->conf->capacity_bytes : s->capacity.bytes;
}

static int admit(const char *unit, uint64_t promised, uint64_t capacity, struct ebb_err *err)
{
	if (!capacity || promised <= capacity)
		return 0;
	return ebb_err_set(err, -EDQUOT, "%" PRIu64 " %s would be promised to all volumes "
			   "together, and the disk can do %" PRIu64, promised, unit, capacity);
}

struct promised {
	uint64_t iops, bytes;
};

static bool is_system(const struct ebb_volspec *spec)
{
	return strcmp(spec->tenant, EBB_VOLUME_SYSTEM) == 0;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Of the system's volumes, or of all others; without the one called except (NULL: all).  While a
 * promise changes both the old one and the new one may be in force in the end.
 */
static struct promised sum_up(const struct ebb_server *s, bool of_system, const char *except)
{
	struct promised sum = { 0, 0 };

	for (const struct ebb_volume *v = s->volumes; v; v = v->next) {
		if (is_system(&v->spec) != of_system ||
		    (except && strcmp(v->spec.name, except) == 0))
			continue;
		sum.iops += most(v->spec.reserve_iops, ebb_server_in_force(v)->reserve_iops);
		sum.bytes += most(v->spec.reserve_bytes, ebb_server_in_force(v)->reserve_bytes);
	}
	return sum;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void ebb_server_promised(const struct ebb_server *s, const struct ebb_volspec *spec,
			 uint64_t *ret_iops, uint64_t *ret_bytes)
{
	const char *except = spec ? spec->name : NULL;
	struct promised system = sum_up(s, true, except), others = sum_up(s, false, except);

	if (spec) {
		struct promised *own = is_system(spec) ? &system : &others;

		own->iops += spec->reserve_iops;
		own->bytes += spec->reserve_bytes;
	}
	*ret_iops = others.iops + most(system.iops, s->conf->system.reserve_iops);
	*ret_bytes = others.bytes + most(system.bytes, s->conf->system.reserve_bytes);
}

void ebb_server_charge_system(const struct ebb_server *s, struct ebb_volspec *spec)
{
	const struct ebb_volspec *system = &s->conf->system;
	const struct promised used = sum_up(s, true, spec->name);

	spec->reserve_iops = minus(system->reserve_iops, used.iops);
	spec->reserve_bytes = minus(system->reserve_bytes, used.bytes);
	spec->max_iops = system->max_iops;
	spec->max_bytes = system->max_bytes;
	spec->weight = system->weight;
	spec->penalty = system->penalty;
}

/* To the volume of that name; nothing, if there is none. */
static struct promised promised_now(const struct ebb_server *s, const struct ebb_volspec *spec)
{
	for (const struct ebb_volume *v = s->volumes; spec && v; v = v->next)
		if (strcmp(v->spec.name, spec->name) == 0)
			return (struct promised){ v->spec.reserve_iops, v->spec.reserve_bytes };
	return (struct promised){ 0, 0 };
}

int ebb_server_admit(const struct ebb_server *s, const struct ebb_volspec *spec,
		     struct ebb_err *err)
{
	const struct promised old = promised_now(s, spec);
	uint64_t iops, bytes;
	int rc = 0;

	if (s->conf->allow_overbooking)
		return 0;
	ebb_server_promised(s, spec, &iops, &bytes);
	if (!spec || spec->reserve_iops > old.iops)
		rc = admit("requests per second", iops, ebb_server_capacity_iops(s), err);
	if (rc == 0 && (!spec || spec->reserve_bytes > old.bytes))
		rc = admit("bytes per second", bytes, ebb_server_capacity_bytes(s), err);
	return rc;
}

int ebb_server_admit_all(const struct ebb_server *s, struct ebb_err *err)
{
	const struct ebb_vconf *conf = s->conf;
	struct ebb_err why;
	uint64_t iops, bytes;
	int rc;

	if (conf->allow_overbooking)
		return 0;
	ebb_server_promised(s, NULL, &iops, &bytes);
	rc = admit("requests per second", iops, conf->capacity_iops, err);
	if (rc == 0)
		rc = admit("bytes per second", bytes, conf->capacity_bytes, err);
	if (rc == 0 && ebb_server_admit(s, NULL, &why) < 0)
		ebb_log(LOG_WARNING, "overbooked", EBB_KS("error", why.text));
	return rc;
}
