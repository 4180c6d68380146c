/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An emulated host made of cgroups. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/emulated/cgroup.h"
#include "backend/emulated/emugroup.h"
#include "backend/emulated/emuhost.h"
#include "backend/emulated/emureserve.h"
#include "backend/emulated/emuslice.h"
#include "util/fs.h"

#define MAX_MOUNTINFO	(1 << 20)
/* Of a group that a thread came from; longer ones are not kept. */
#define FOLDER_SIZE	512

/* Where a thread was before it was placed for the first time. */
struct origin {
	pid_t pid, tid;
	char folder[FOLDER_SIZE];
};

struct ebb_emuhost {
	struct ebb_cgroup cg;
	char folder[PATH_MAX];
	uint32_t num_cores, num_threads; /* num_threads: of a core */
	struct ebb_emuspec_quota quota;	/* of a hardware thread */
	pthread_mutex_t lock;		/* of the origins */
	struct origin *origins;
	size_t num_origins, size_origins;
};

static int find_cgroup(struct ebb_cgroup *ret, struct ebb_err *err)
{
	char *text;
	int rc = ebb_fs_read_all("/proc/self/mountinfo", MAX_MOUNTINFO, &text);

	if (rc < 0)
		return ebb_err_set(err, rc, "can not read /proc/self/mountinfo: %s", strerror(-rc));
	rc = ebb_cgroup_find(text, ret, err);
	free(text);
	return rc;
}

static int group_path(const struct ebb_emuhost *h, uint32_t core, uint32_t rank, char *ret,
		      size_t size)
{
	int n;

	if (h->num_threads > 1)
		n = snprintf(ret, size, "%s/c%u/t%u", h->folder, core, rank);
	else
		n = snprintf(ret, size, "%s/c%u", h->folder, core);
	return (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* ---- origins ---- */

static bool is_alive(pid_t pid, pid_t tid)
{
	return tgkill(pid, tid, 0) == 0 || errno != ESRCH;
}

static struct origin *origin_find(struct ebb_emuhost *h, pid_t pid, pid_t tid)
{
	for (size_t i = 0; i < h->num_origins; i++)
		if (h->origins[i].tid == tid && h->origins[i].pid == pid)
			return &h->origins[i];
	return NULL;
}

static int origins_reserve(struct ebb_emuhost *h)
{
	size_t live = 0, size = h->size_origins ? h->size_origins * 2 : 64;
	struct origin *o;

	if (h->num_origins < h->size_origins)
		return 0;
	for (size_t i = 0; i < h->num_origins; i++)
		if (is_alive(h->origins[i].pid, h->origins[i].tid))
			h->origins[live++] = h->origins[i];
	h->num_origins = live;
	if (live < h->size_origins / 2)
		return 0;
	o = reallocarray(h->origins, size, sizeof(*o));
	if (!o)
		return -ENOMEM;
	h->origins = o;
	h->size_origins = size;
	return 0;
}

static bool is_inside(const struct ebb_emuhost *h, const char *folder)
{
	size_t len = strlen(h->folder);

	return strncmp(folder, h->folder, len) == 0 && (folder[len] == '/' || folder[len] == '\0');
}

/* Take note of where a thread is, unless it is in this host already, as which it will be soon. */
static int origin_note(struct ebb_emuhost *h, pid_t pid, pid_t tid)
{
	char folder[PATH_MAX];
	struct origin *o;
	int rc = ebb_cgroup_of_thread(&h->cg, tid, "cpu", folder, sizeof(folder));

	if (rc == -ESRCH)
		return rc;
	if (rc < 0 || is_inside(h, folder) || strlen(folder) >= FOLDER_SIZE)
		return 0;
	o = origin_find(h, pid, tid);
	if (!o) {
		rc = origins_reserve(h);
		if (rc < 0)
			return rc;
		o = &h->origins[h->num_origins++];
		o->pid = pid;
		o->tid = tid;
	}
	strcpy(o->folder, folder);
	/* Without it everything works, only later. */
	ebb_emuslice_set(tid, EBB_EMUSLICE_NSEC);
	return 0;
}

static pid_t process_of(pid_t tid)
{
	char path[64], text[4096], *line;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (ebb_fs_read(path, text, sizeof(text), NULL) < 0)
		return -1;
	line = strstr(text, "\nTgid:");
	return line && sscanf(line, "\nTgid: %d", &pid) == 1 ? pid : -1;
}

/*
 * Where to send a thread back to: its origin; else, with version 1, the group that it has for
 * another controller, since libvirt uses the same groups for all; else the outermost group.
 */
static void origin_folder(struct ebb_emuhost *h, pid_t pid, pid_t tid, char *ret, size_t size)
{
	static const char *const others[] = { "cpuset", "cpuacct", "memory", "devices" };
	struct origin *o = origin_find(h, pid, tid);
	struct stat st;

	if (o && stat(o->folder, &st) == 0) {
		snprintf(ret, size, "%s", o->folder);
		return;
	}
	for (size_t i = 0; h->cg.version == 1 && i < sizeof(others) / sizeof(others[0]); i++)
		if (ebb_cgroup_of_thread(&h->cg, tid, others[i], ret, size) == 0 &&
		    !is_inside(h, ret) && stat(ret, &st) == 0)
			return;
	snprintf(ret, size, "%s", h->cg.mount);
}

/* ---- creation and removal ---- */

static int usual_slice(void *ctx, const char *path)
{
	(void)ctx;
	ebb_emuslice_set(atoi(strrchr(path, '/') + 1), 0);
	return 0;
}

static int send_back(struct ebb_emuhost *h, pid_t tid, bool was_restricted)
{
	char folder[PATH_MAX], tasks[64];
	pid_t pid = process_of(tid);
	int rc;

	if (pid < 0)
		return -ESRCH;
	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	ebb_fs_for_each_folder(tasks, usual_slice, NULL);
	if (was_restricted)
		ebb_emureserve_leave(tid);
	if (h->cg.version == 2) {
		/* The process leaves this domain as a whole; its threads are spread afterwards. */
		origin_folder(h, pid, pid, folder, sizeof(folder));
		rc = ebb_emugroup_move_process(folder, pid);
		for (size_t i = 0; rc == 0 && i < h->num_origins; i++)
			if (h->origins[i].pid == pid && strcmp(h->origins[i].folder, folder) != 0)
				rc = ebb_emugroup_move_thread(&h->cg, h->origins[i].folder,
							      h->origins[i].tid);
	} else {
		origin_folder(h, pid, tid, folder, sizeof(folder));
		rc = ebb_emugroup_move_thread(&h->cg, folder, tid);
	}
	if (rc < 0 && rc != -ESRCH && strcmp(folder, h->cg.mount) != 0)
		rc = h->cg.version == 2 ? ebb_emugroup_move_process(h->cg.mount, pid) :
		     ebb_emugroup_move_thread(&h->cg, h->cg.mount, tid);
	return rc;
}

/* Empty a group and those below it, then remove them. */
static int remove_tree(void *ctx, const char *path)
{
	struct ebb_emuhost *h = ctx;
	const bool is_promise = strrchr(path, '/')[1] == 'r' && strcmp(path, h->folder) != 0;
	size_t num = 1;
	int rc = ebb_fs_for_each_folder(path, remove_tree, h);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	/* Again while there are some: a thread may have started another. */
	for (int tries = 0; num && tries < 100; tries++) {
		pid_t *tids;

		rc = ebb_emugroup_threads(&h->cg, path, &tids, &num);
		if (rc < 0)
			return rc == -ENOENT ? 0 : rc;
		for (size_t i = 0; i < num; i++)
			send_back(h, tids[i], is_promise);
		free(tids);
	}
	return ebb_emugroup_remove(path);
}

static struct ebb_emuhost *host_alloc(const char *group, struct ebb_err *err)
{
	struct ebb_emuhost *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	if (find_cgroup(&h->cg, err) < 0) {
		free(h);
		return NULL;
	}
	if ((size_t)snprintf(h->folder, sizeof(h->folder), "%s/%s", h->cg.mount, group) >=
	    sizeof(h->folder)) {
		ebb_err_set(err, -ENAMETOOLONG, "the name of the emulated host is too long");
		free(h);
		return NULL;
	}
	pthread_mutex_init(&h->lock, NULL);
	return h;
}

void ebb_emuhost_abandon(struct ebb_emuhost *h)
{
	if (!h)
		return;
	pthread_mutex_destroy(&h->lock);
	free(h->origins);
	free(h);
}

/* Of the groups of cores and their threads; those of promises come and go. */
static int count_child(void *ctx, const char *path)
{
	const char first = strrchr(path, '/')[1];

	*(uint32_t *)ctx += first == 'c' || first == 't';
	return 0;
}

/* Do the groups that are there describe exactly this host? */
static bool is_same_host(const struct ebb_emuhost *h, const struct ebb_emuspec *spec)
{
	uint32_t count = 0;
	char path[PATH_MAX + 32];

	if (ebb_fs_for_each_folder(h->folder, count_child, &count) < 0 || count != h->num_cores)
		return false;
	for (uint32_t c = 0; c < h->num_cores; c++) {
		snprintf(path, sizeof(path), "%s/c%u", h->folder, c);
		if (!ebb_emugroup_matches(&h->cg, path, ebb_emuspec_core_quota(spec)))
			return false;
		count = 0;
		ebb_fs_for_each_folder(path, count_child, &count);
		if (count != (h->num_threads > 1 ? h->num_threads : 0))
			return false;
		for (uint32_t t = 0; t < count; t++) {
			if (group_path(h, c, t, path, sizeof(path)) < 0 ||
			    !ebb_emugroup_matches(&h->cg, path, ebb_emuspec_thread_quota(spec)))
				return false;
		}
	}
	return true;
}

static int create_groups(struct ebb_emuhost *h, const struct ebb_emuspec *spec, struct ebb_err *err)
{
	const long num_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char path[PATH_MAX + 32];
	int rc = ebb_emugroup_create_host(&h->cg, h->folder,
					  ebb_emuspec_host_quota(spec, num_cpus > 0 ? num_cpus : 1),
					  err);

	for (uint32_t c = 0; rc == 0 && c < h->num_cores; c++) {
		snprintf(path, sizeof(path), "%s/c%u", h->folder, c);
		rc = ebb_emugroup_create(&h->cg, path, ebb_emuspec_core_quota(spec),
					 h->num_threads > 1, err);
		for (uint32_t t = 0; rc == 0 && h->num_threads > 1 && t < h->num_threads; t++) {
			rc = group_path(h, c, t, path, sizeof(path));
			if (rc == 0)
				rc = ebb_emugroup_create(
					&h->cg, path, ebb_emuspec_thread_quota(spec), false, err);
		}
	}
	if (rc < 0)
		remove_tree(h, h->folder);
	return rc;
}

int ebb_emuhost_create(const struct ebb_emuspec *spec, const char *group, struct ebb_emuhost **ret,
		       struct ebb_err *err)
{
	struct ebb_emuhost *h = host_alloc(group, err);
	struct stat st;
	int rc = 0;

	if (!h)
		return -ENOENT;
	h->num_cores = spec->sockets * spec->cores;
	h->num_threads = spec->threads;
	h->quota = spec->threads > 1 ? ebb_emuspec_thread_quota(spec) :
				       ebb_emuspec_core_quota(spec);
	if (stat(h->folder, &st) == 0) {
		if (is_same_host(h, spec))
			goto out;
		rc = remove_tree(h, h->folder);
		if (rc < 0) {
			ebb_err_set(err, rc, "can not remove the left over cgroup %s: %s",
				    h->folder, strerror(-rc));
			goto out_free;
		}
	}
	rc = create_groups(h, spec, err);
	if (rc < 0)
		goto out_free;
out:
	*ret = h;
	return 0;
out_free:
	ebb_emuhost_abandon(h);
	return rc;
}

int ebb_emuhost_destroy(struct ebb_emuhost *h, struct ebb_err *err)
{
	int rc;

	if (!h)
		return 0;
	pthread_mutex_lock(&h->lock);
	rc = remove_tree(h, h->folder);
	pthread_mutex_unlock(&h->lock);
	if (rc < 0)
		ebb_err_set(err, rc, "can not remove the cgroup %s: %s", h->folder, strerror(-rc));
	ebb_emuhost_abandon(h);
	return rc;
}

int ebb_emuhost_cleanup(const char *group, struct ebb_err *err)
{
	struct ebb_emuhost *h = host_alloc(group, err);

	return h ? ebb_emuhost_destroy(h, err) : -ENOENT;
}

/* ---- use ---- */

struct adoption {
	struct ebb_emuhost *host;
	pid_t pid;
	const char *folder;	/* where the process is */
};

/*
 * Version 1: only threads that are where the process is, which is where libvirt has those that
 * serve devices; each vCPU has a group of its own and is placed by itself.
 */
static int adopt_task(void *ctx, const char *path)
{
	const struct adoption *a = ctx;
	struct ebb_emuhost *h = a->host;
	pid_t tid = atoi(strrchr(path, '/') + 1);
	char folder[PATH_MAX];
	int rc = origin_note(h, a->pid, tid);

	if (rc == 0 && h->cg.version == 1) {
		rc = ebb_cgroup_of_thread(&h->cg, tid, "cpu", folder, sizeof(folder));
		if (rc == 0 && strcmp(folder, a->folder) == 0)
			rc = ebb_emugroup_move_thread(&h->cg, h->folder, tid);
	}
	return rc == -ESRCH ? 0 : rc;
}

/*
 * QEMU's other threads, which serve devices, become part of the host, beside the cores and without
 * a quota.  Elsewhere they would wait up to tenths of a second for cores, which outweigh
 * everything outside.  Version 2 demands it, too: a process is in one domain with all its threads.
 */
static int adopt_process(struct ebb_emuhost *h, pid_t pid)
{
	struct adoption a = { .host = h, .pid = pid };
	char folder[PATH_MAX], tasks[64];
	int rc = ebb_cgroup_of_thread(&h->cg, pid, "cpu", folder, sizeof(folder));

	if (rc == -ESRCH || (rc == 0 && is_inside(h, folder)))
		return rc;
	a.folder = folder;
	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	rc = ebb_fs_for_each_folder(tasks, adopt_task, &a);
	if (rc == 0 && h->cg.version == 2)
		rc = ebb_emugroup_move_process(h->folder, pid);
	return rc;
}

static int core_of(const struct ebb_emuhost *h, uint32_t core, uint32_t rank, char path[PATH_MAX],
		   struct ebb_emureserve_core *ret)
{
	if (core >= h->num_cores || rank >= h->num_threads)
		return -EINVAL;
	*ret = (struct ebb_emureserve_core){
		.cg = &h->cg, .path = path, .quota = h->quota,
		.number = core * h->num_threads + rank,
	};
	return group_path(h, core, rank, path, PATH_MAX);
}

/* Whether the thread is in a group that promises made, where it has one real CPU. */
static bool is_restricted(struct ebb_emuhost *h, pid_t tid)
{
	char folder[PATH_MAX];

	return ebb_cgroup_of_thread(&h->cg, tid, "cpu", folder, sizeof(folder)) == 0 &&
	       is_inside(h, folder) && strstr(folder + strlen(h->folder), "/r");
}

int ebb_emuhost_place(struct ebb_emuhost *h, pid_t pid, pid_t tid, uint32_t core, uint32_t rank)
{
	struct ebb_emureserve_core c;
	char path[PATH_MAX];
	bool was_restricted;
	int rc = core_of(h, core, rank, path, &c);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&h->lock);
	was_restricted = is_restricted(h, tid);
	rc = origin_note(h, pid, tid);
	if (rc == 0)
		rc = adopt_process(h, pid);
	if (rc == 0)
		rc = ebb_emureserve_enter(&c, tid);
	if (rc == 0 && was_restricted && !is_restricted(h, tid))
		ebb_emureserve_leave(tid);
	pthread_mutex_unlock(&h->lock);
	return rc;
}

int ebb_emuhost_reserve(struct ebb_emuhost *h, pid_t tid, uint32_t core, uint32_t rank,
			const struct ebb_emureserve *reserve)
{
	struct ebb_emureserve_core c;
	uint32_t is_core, is_rank;
	char path[PATH_MAX];
	int rc = core_of(h, core, rank, path, &c);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&h->lock);
	rc = ebb_emuhost_where(h, tid, &is_core, &is_rank);
	if (rc == 0 && (is_core != core || is_rank != rank))
		rc = -ENOENT;
	if (rc == 0)
		rc = ebb_emureserve_set(&c, tid, reserve);
	pthread_mutex_unlock(&h->lock);
	return rc;
}

void ebb_emuhost_sweep(struct ebb_emuhost *h)
{
	char path[PATH_MAX];

	pthread_mutex_lock(&h->lock);
	for (uint32_t c = 0; c < h->num_cores; c++)
		for (uint32_t t = 0; t < h->num_threads; t++)
			if (group_path(h, c, t, path, sizeof(path)) == 0)
				ebb_emureserve_sweep(path);
	pthread_mutex_unlock(&h->lock);
}

int ebb_emuhost_where(struct ebb_emuhost *h, pid_t tid, uint32_t *ret_core, uint32_t *ret_rank)
{
	char folder[PATH_MAX], path[PATH_MAX];
	uint32_t core, rank = 0;
	int rc = ebb_cgroup_of_thread(&h->cg, tid, "cpu", folder, sizeof(folder));

	if (rc < 0)
		return rc;
	if (!is_inside(h, folder) ||
	    sscanf(folder + strlen(h->folder), "/c%u/t%u", &core, &rank) < 1 ||
	    core >= h->num_cores || rank >= h->num_threads)
		return -ENOENT;
	/* The group of a core that has threads is none that a thread should be in. */
	if (group_path(h, core, rank, path, sizeof(path)) < 0 ||
	    !ebb_emureserve_has(path, folder))
		return -ENOENT;
	*ret_core = core;
	*ret_rank = rank;
	return 0;
}
