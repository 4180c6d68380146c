/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See access.h. */
#include <errno.h>
#include <string.h>
#include "volumed/access.h"

bool ebb_access_is_name(const char *name)
{
	static const char chars[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	const size_t len = strlen(name);

	return len && len < EBB_ACCESS_NAME_SIZE && strspn(name, chars) == len;
}

struct ebb_attachment *ebb_access_find(struct ebb_access *a, const char *name)
{
	for (size_t i = 0; i < a->num; i++)
		if (strcmp(a->all[i].name, name) == 0)
			return &a->all[i];
	return NULL;
}

struct ebb_attachment *ebb_access_find_id(struct ebb_access *a, uint32_t id)
{
	for (size_t i = 0; i < a->num; i++)
		if (a->all[i].id == id)
			return &a->all[i];
	return NULL;
}

static bool may_write(const struct ebb_attachment *t)
{
	return !t->is_fenced && !t->is_leaving;
}

int ebb_access_attach(struct ebb_access *a, const char *name, uint32_t id, uint64_t next)
{
	struct ebb_attachment *t;

	if (!ebb_access_is_name(name))
		return -EINVAL;
	if (ebb_access_find(a, name))
		return -EEXIST;
	if (a->num == EBB_ACCESS_MAX)
		return -ENOSPC;
	t = &a->all[a->num++];
	memset(t, 0, sizeof(*t));
	strcpy(t->name, name);
	t->id = id;
	a->generation = next;
	return 0;
}

int ebb_access_detach(struct ebb_access *a, const char *name, uint64_t next)
{
	struct ebb_attachment *t = ebb_access_find(a, name);

	if (!t)
		return -ENOENT;
	if (!t->is_leaving)
		a->generation = next;
	t->is_leaving = true;
	return 0;
}

int ebb_access_fence(struct ebb_access *a, const char *name, const char *by, uint64_t expected,
		     uint64_t next)
{
	struct ebb_attachment *t = ebb_access_find(a, name);
	const struct ebb_attachment *asks = by ? ebb_access_find(a, by) : NULL;

	if (!t)
		return -ENOENT;
	if (by && (!asks || asks == t))
		return -EINVAL;
	if (asks && !may_write(asks))
		return -EACCES;
	if (t->is_fenced)
		return 0;
	if (expected != a->generation)
		return -ESTALE;
	t->is_fenced = true;
	if (by)
		strcpy(t->fenced_by, by);
	a->generation = next;
	return 0;
}

enum ebb_access_action ebb_access_step(struct ebb_attachment *t)
{
	switch (t->export) {
	case EBB_ACCESS_CLOSED:
		if (!may_write(t))
			return EBB_ACCESS_NOTHING;
		t->export = EBB_ACCESS_OPENING;
		return EBB_ACCESS_MAKE;
	case EBB_ACCESS_OPENING:
	case EBB_ACCESS_OPEN:
		if (may_write(t))
			return EBB_ACCESS_NOTHING;
		t->export = EBB_ACCESS_CLOSING;
		return EBB_ACCESS_REMOVE;
	default:
		return EBB_ACCESS_NOTHING;
	}
}

bool ebb_access_start(struct ebb_attachment *t)
{
	if (may_write(t))
		t->export = EBB_ACCESS_OPENING;
	return may_write(t);
}

void ebb_access_opened(struct ebb_attachment *t)
{
	if (t->export == EBB_ACCESS_OPENING)
		t->export = EBB_ACCESS_OPEN;
	else if (t->export == EBB_ACCESS_LOST)
		t->export = EBB_ACCESS_CLOSED;
}

void ebb_access_made(struct ebb_attachment *t, bool is_refused)
{
	if (t->export == EBB_ACCESS_OPENING)
		t->export = is_refused ? EBB_ACCESS_CLOSED : EBB_ACCESS_OPEN;
}

void ebb_access_not_removed(struct ebb_attachment *t)
{
	if (t->export == EBB_ACCESS_CLOSING)
		t->export = EBB_ACCESS_OPEN;
}

void ebb_access_removed(struct ebb_attachment *t)
{
	if (t->export != EBB_ACCESS_LOST)
		t->export = EBB_ACCESS_CLOSED;
}

void ebb_access_lost(struct ebb_attachment *t)
{
	if (t->export != EBB_ACCESS_CLOSED)
		t->export = EBB_ACCESS_LOST;
}

bool ebb_access_is_settled(const struct ebb_attachment *t)
{
	return t->export == (may_write(t) ? EBB_ACCESS_OPEN : EBB_ACCESS_CLOSED);
}

void ebb_access_drop_closed(struct ebb_access *a)
{
	size_t num = 0;

	for (size_t i = 0; i < a->num; i++)
		if (!a->all[i].is_leaving || a->all[i].export != EBB_ACCESS_CLOSED)
			a->all[num++] = a->all[i];
	a->num = num;
}
