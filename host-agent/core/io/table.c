// SPDX-License-Identifier: GPL-2.0-or-later
/* See table.h. */
#include <string.h>

#include "core/io/table.h"
#include "model/sla-io.h"

/* Index of the volume, or of the place where it would be. */
static uint32_t index_of(const struct io_room *s, const char *name)
{
	uint32_t low = 0, high = s->num;

	while (low < high) {
		const uint32_t mid = (low + high) / 2;

		if (strcmp(s->volumes[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool is_at(const struct io_room *s, uint32_t i, const char *name)
{
	return i < s->num && strcmp(s->volumes[i].name, name) == 0;
}

const struct io_volume *io_table_find(const struct io_room *s, const char *name)
{
	const uint32_t i = index_of(s, name);

	return is_at(s, i, name) ? &s->volumes[i] : NULL;
}

struct io_volume *io_table_get_known(struct io_room *s, const char *name)
{
	const uint32_t i = index_of(s, name);

	return is_at(s, i, name) ? &s->volumes[i] : NULL;
}

struct io_volume *io_table_get(struct io_room *s, const char *name)
{
	const uint32_t i = index_of(s, name);
	struct io_volume *v = &s->volumes[i];

	if (is_at(s, i, name))
		return v;
	if (s->num == IO_VOLUMES)
		return NULL;
	memmove(v + 1, v, (s->num - i) * sizeof(*v));
	s->num++;
	*v = (struct io_volume){ 0 };
	ebb_volume_name_copy(v->name, name);
	ebb_sla_io_default(&v->want);
	return v;
}

void io_table_remove(struct io_room *s, struct io_volume *v)
{
	const uint32_t i = (uint32_t)(v - s->volumes);

	memmove(v, v + 1, (s->num - i - 1) * sizeof(*v));
	s->num--;
}
