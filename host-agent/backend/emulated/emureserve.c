// SPDX-License-Identifier: GPL-2.0-or-later
/* See emureserve.h. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/emulated/emugroup.h"
#include "backend/emulated/emureserve.h"
#include "util/fs.h"

/* One of them is there; making the rest anew gives it the other name. */
#define REST		"rest"
#define REST_ANEW	"rest2"

static int join(char ret[PATH_MAX], const char *path, const char *name)
{
	return snprintf(ret, PATH_MAX, "%s/%s", path, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool ebb_emureserve_has(const char *core_path, const char *folder)
{
	const size_t len = strlen(core_path);

	return strncmp(core_path, folder, len) == 0 &&
	       (folder[len] == '\0' || (folder[len] == '/' && folder[len + 1] == 'r'));
}

/* ---- real CPUs ----------------------------------------------------------- */

/* The agent itself may run on some CPUs only: then its threads choose among these. */
static void restrict_to_one(pid_t tid, uint32_t number)
{
	cpu_set_t all, one;
	uint32_t nth;

	if (sched_getaffinity(getpid(), sizeof(all), &all) < 0 || CPU_COUNT(&all) == 0)
		return;
	nth = number % (uint32_t)CPU_COUNT(&all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || nth-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(tid, sizeof(one), &one);
		return;
	}
}

void ebb_emureserve_leave(pid_t tid)
{
	cpu_set_t all;

	if (sched_getaffinity(getpid(), sizeof(all), &all) == 0)
		sched_setaffinity(tid, sizeof(all), &all);
}

/* ---- groups -------------------------------------------------------------- */

/* There with this weight, whether it was there before or not. */
static int have_group(const struct ebb_cgroup *cg, const char *path, bool has_children,
		      uint16_t permille)
{
	const struct ebb_emuspec_quota none = { 0 };
	int rc = 0;

	if (!is_folder(path))
		rc = ebb_emugroup_create(cg, path, none, has_children, NULL);
	return rc < 0 ? rc : ebb_emugroup_set_weight(cg, path, permille);
}

/* First the real CPU, so that the group never has load on another one. */
static int move(const struct ebb_emureserve_core *core, const char *to, pid_t tid)
{
	restrict_to_one(tid, core->number);
	return ebb_emugroup_move_thread(core->cg, to, tid);
}

/* Threads that are in one group itself, not below it, go to another on the same core. */
static int gather(const struct ebb_emureserve_core *core, const char *from, const char *to)
{
	pid_t *tids;
	size_t num;
	int rc = ebb_emugroup_threads(core->cg, from, &tids, &num);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < num && (rc == 0 || rc == -ESRCH); i++)
		rc = move(core, to, tids[i]);
	free(tids);
	return rc == -ESRCH ? 0 : rc;
}

/* The group of a thread that has ended is of no use; one that is not empty stays by itself. */
static int remove_dead(void *ctx, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char proc[64];

	(void)ctx;
	snprintf(proc, sizeof(proc), "/proc/%.20s", name + 1);
	if (strcmp(name, REST) == 0 || strcmp(name, REST_ANEW) == 0)
		ebb_fs_for_each_folder(path, remove_dead, NULL);
	else if (!is_folder(proc))
		rmdir(path);
	return 0;
}

void ebb_emureserve_sweep(const char *core_path)
{
	ebb_fs_for_each_folder(core_path, remove_dead, NULL);
}

/* The rest under the name that it has now. */
static int rest_group(const struct ebb_emureserve_core *core, char rest[PATH_MAX])
{
	const int rc = join(rest, core->path, REST_ANEW);

	return rc < 0 || is_folder(rest) ? rc : join(rest, core->path, REST);
}

static int own_groups(const struct ebb_emureserve_core *core, pid_t tid, char rest[PATH_MAX],
		      char kept[PATH_MAX], char capped[PATH_MAX])
{
	char name[24];
	int rc = rest_group(core, rest);

	snprintf(name, sizeof(name), "r%d", tid);
	if (rc == 0)
		rc = join(kept, core->path, name);
	return rc < 0 ? rc : join(capped, rest, name);
}

/* ---- making the rest anew ------------------------------------------------- */

struct renewal {
	const struct ebb_emureserve_core *core;
	const char *to;
};

/* A group with a maximum, below the old rest: it goes below the new one. */
static int renew_capped(void *ctx, const char *path)
{
	const struct renewal *r = ctx;
	char to[PATH_MAX];
	int rc = join(to, r->to, strrchr(path, '/') + 1);

	if (rc == 0)
		rc = have_group(r->core->cg, to, false, EBB_EMUGROUP_USUAL);
	if (rc == 0)
		rc = ebb_emugroup_copy_quota(r->core->cg, path, to);
	if (rc == 0)
		rc = gather(r->core, path, to);
	if (rc == 0)
		rmdir(path);
	return rc;
}

/* An earlier renewal was interrupted. */
static bool is_halfway(const struct ebb_emureserve_core *core)
{
	char a[PATH_MAX], b[PATH_MAX];

	return join(a, core->path, REST) == 0 && join(b, core->path, REST_ANEW) == 0 &&
	       is_folder(a) && is_folder(b);
}

/* The rest becomes a new group; one that was interrupted is carried to an end. */
static int renew_rest(const struct ebb_emureserve_core *core, uint16_t permille)
{
	char now[PATH_MAX], old[PATH_MAX], anew[PATH_MAX];
	struct renewal r = { .core = core, .to = anew };
	bool is_second;
	int rc = rest_group(core, now);

	if (rc < 0)
		return rc;
	is_second = !is_halfway(core) && strcmp(strrchr(now, '/') + 1, REST_ANEW) == 0;
	rc = join(old, core->path, is_second ? REST_ANEW : REST);
	if (rc == 0)
		rc = join(anew, core->path, is_second ? REST : REST_ANEW);
	if (rc == 0)
		rc = have_group(core->cg, anew, true, permille);
	if (rc == 0)
		rc = gather(core, old, anew);
	if (rc == 0)
		rc = ebb_fs_for_each_folder(old, renew_capped, &r);
	return rc < 0 ? rc : ebb_emugroup_remove(old);
}

static int set_max(const struct ebb_emureserve_core *core, const char *path, uint16_t permille)
{
	struct ebb_emuspec_quota q = core->quota;

	q.quota_usec = (uint32_t)((uint64_t)q.quota_usec * permille / 1000);
	/* The kernel takes no less. */
	if (permille > 0 && q.quota_usec < 1000)
		q.quota_usec = 1000;
	return ebb_emugroup_set_quota(core->cg, path, q);
}

int ebb_emureserve_set(const struct ebb_emureserve_core *core, pid_t tid,
		       const struct ebb_emureserve *r)
{
	char rest[PATH_MAX], kept[PATH_MAX], capped[PATH_MAX];
	const char *to = rest;
	bool is_new;
	int rc = own_groups(core, tid, rest, kept, capped);

	if (rc < 0)
		return rc;
	/* Of a core without a promise or a maximum all threads are in its group itself. */
	if (!r->keep && !r->max && !is_folder(rest))
		return 0;
	ebb_emureserve_sweep(core->path);
	if (core->cg->version == 2)
		rc = ebb_emugroup_give_cpu(core->path, NULL);
	is_new = r->keep && !is_folder(kept);
	if (rc == 0 && is_new)
		rc = have_group(core->cg, kept, false, r->keep);
	if (rc == 0 && ((is_new && is_folder(rest)) || is_halfway(core)))
		rc = renew_rest(core, r->rest);
	if (rc == 0)
		rc = own_groups(core, tid, rest, kept, capped);
	if (rc == 0)
		rc = have_group(core->cg, rest, true, r->rest);
	if (rc == 0)
		rc = gather(core, core->path, rest);
	if (rc == 0 && (r->keep || r->max)) {
		to = r->keep ? kept : capped;
		/* Among the rest a vCPU with a maximum weighs as much as one without. */
		rc = have_group(core->cg, to, false, r->keep ? r->keep : EBB_EMUGROUP_USUAL);
		if (rc == 0)
			rc = set_max(core, to, r->max);
	}
	if (rc == 0)
		rc = move(core, to, tid);
	/* It has ended meanwhile, and its group is new. */
	if (rc == -ESRCH)
		ebb_emureserve_sweep(core->path);
	if (rc < 0)
		return rc;
	if (to != kept)
		rmdir(kept);
	if (to != capped)
		rmdir(capped);
	return 0;
}

int ebb_emureserve_enter(const struct ebb_emureserve_core *core, pid_t tid)
{
	char rest[PATH_MAX], kept[PATH_MAX], capped[PATH_MAX];
	int rc = own_groups(core, tid, rest, kept, capped);
	const char *to = is_folder(kept) ? kept : is_folder(capped) ? capped : rest;

	if (rc < 0)
		return rc;
	if (!is_folder(rest))
		return ebb_emugroup_move_thread(core->cg, core->path, tid);
	return move(core, to, tid);
}
