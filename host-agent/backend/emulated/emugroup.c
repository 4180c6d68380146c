/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One CPU cgroup of an emulated host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "backend/emulated/emugroup.h"
#include "util/fs.h"

#define MAX_TASKS_FILE	(1 << 20)

static int write_file(const char *path, const char *file, const char *text)
{
	char full[PATH_MAX];

	if ((size_t)snprintf(full, sizeof(full), "%s/%s", path, file) >= sizeof(full))
		return -ENAMETOOLONG;
	return ebb_fs_write(full, text);
}

static int read_file(const char *path, const char *file, char *buf, size_t size)
{
	char full[PATH_MAX];

	if ((size_t)snprintf(full, sizeof(full), "%s/%s", path, file) >= sizeof(full))
		return -ENAMETOOLONG;
	return ebb_fs_read(full, buf, size, NULL);
}

static bool has_controller(const char *path, const char *file)
{
	char text[256], *save = NULL;

	if (read_file(path, file, text, sizeof(text)) < 0)
		return false;
	for (char *w = strtok_r(text, " \n", &save); w; w = strtok_r(NULL, " \n", &save))
		if (strcmp(w, "cpu") == 0)
			return true;
	return false;
}

int ebb_emugroup_give_cpu(const char *path, struct ebb_err *err)
{
	int rc;

	if (has_controller(path, "cgroup.subtree_control"))
		return 0;
	if (!has_controller(path, "cgroup.controllers"))
		return ebb_err_set(err, -ENOENT,
				   "%s has no cpu controller to give on; is it mounted as cgroup "
				   "version 1, or not delegated?",
				   path);
	rc = write_file(path, "cgroup.subtree_control", "+cpu");
	if (rc < 0)
		return ebb_err_set(err, rc, "can not write +cpu to %s/cgroup.subtree_control: %s",
				   path, strerror(-rc));
	return 0;
}

static int make_folder(const char *path, struct ebb_err *err)
{
	if (mkdir(path, 0755) < 0)
		return ebb_err_set(
			err, -errno, "can not create the cgroup %s: %s%s", path, strerror(errno),
			errno == EACCES || errno == EPERM ? " (emulated hosts need root)" : "");
	return 0;
}

/*
 * The most that the kernel takes.  A core is to have its share of a real CPU however busy the
 * machine is with other things; the quotas below say how much that is.
 */
#define MAX_SHARES	262144		/* version 1 */
#define MAX_WEIGHT	10000		/* version 2 */

static int write_weight(const struct ebb_cgroup *cg, const char *path, uint32_t weight)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", weight);
	return write_file(path, cg->version == 2 ? "cpu.weight" : "cpu.shares", text);
}

static int set_most(const struct ebb_cgroup *cg, const char *path, struct ebb_err *err)
{
	int rc = write_weight(cg, path, cg->version == 2 ? MAX_WEIGHT : MAX_SHARES);

	if (rc < 0)
		return ebb_err_set(err, rc, "can not write the weight of %s: %s", path,
				   strerror(-rc));
	return 0;
}

/* Both versions give this weight to a new group, and to a thread. */
#define USUAL_SHARES	1024u
#define USUAL_WEIGHT	100u

int ebb_emugroup_set_weight(const struct ebb_cgroup *cg, const char *path, uint16_t permille)
{
	if (permille == EBB_EMUGROUP_USUAL)
		return write_weight(cg, path, cg->version == 2 ? USUAL_WEIGHT : USUAL_SHARES);
	/* Both versions can tell thousandths apart, down to one. */
	return write_weight(cg, path, permille * 10u);
}

int ebb_emugroup_set_quota(const struct ebb_cgroup *cg, const char *path,
			   struct ebb_emuspec_quota q)
{
	char text[48];
	int rc;

	if (cg->version == 2) {
		if (q.quota_usec == 0)
			return write_file(path, "cpu.max", "max");
		snprintf(text, sizeof(text), "%u %u", q.quota_usec, q.period_usec);
		return write_file(path, "cpu.max", text);
	}
	if (q.quota_usec == 0)
		return write_file(path, "cpu.cfs_quota_us", "-1");
	snprintf(text, sizeof(text), "%u", q.period_usec);
	rc = write_file(path, "cpu.cfs_period_us", text);
	if (rc < 0)
		return rc;
	snprintf(text, sizeof(text), "%u", q.quota_usec);
	return write_file(path, "cpu.cfs_quota_us", text);
}

static int copy_file(const char *from, const char *to, const char *file)
{
	char text[64];
	const int rc = read_file(from, file, text, sizeof(text));

	return rc < 0 ? rc : write_file(to, file, text);
}

int ebb_emugroup_copy_quota(const struct ebb_cgroup *cg, const char *from, const char *to)
{
	int rc;

	if (cg->version == 2)
		return copy_file(from, to, "cpu.max");
	rc = copy_file(from, to, "cpu.cfs_period_us");
	return rc < 0 ? rc : copy_file(from, to, "cpu.cfs_quota_us");
}

static int set_quota(const struct ebb_cgroup *cg, const char *path, struct ebb_emuspec_quota q,
		     struct ebb_err *err)
{
	int rc = ebb_emugroup_set_quota(cg, path, q);

	if (rc < 0)
		return ebb_err_set(err, rc, "can not set the quota of %s to %u of %u us: %s", path,
				   q.quota_usec, q.period_usec, strerror(-rc));
	return 0;
}

int ebb_emugroup_create_host(const struct ebb_cgroup *cg, const char *path,
			     struct ebb_emuspec_quota quota, struct ebb_err *err)
{
	int rc;

	if (cg->version == 2) {
		rc = ebb_emugroup_give_cpu(cg->mount, err);
		if (rc < 0)
			return rc;
	}
	rc = make_folder(path, err);
	if (rc < 0)
		return rc;
	rc = set_most(cg, path, err);
	if (rc == 0 && quota.quota_usec > 0)
		rc = set_quota(cg, path, quota, err);
	if (rc == 0 && cg->version == 2)
		rc = ebb_emugroup_give_cpu(path, err);
	if (rc < 0)
		rmdir(path);
	return rc;
}

int ebb_emugroup_create(const struct ebb_cgroup *cg, const char *path,
			struct ebb_emuspec_quota quota, bool has_children, struct ebb_err *err)
{
	int rc = make_folder(path, err);

	if (rc < 0)
		return rc;
	if (cg->version == 2) {
		rc = write_file(path, "cgroup.type", "threaded");
		if (rc < 0) {
			ebb_err_set(err, rc, "can not make %s a threaded cgroup: %s", path,
				    strerror(-rc));
			goto out_remove;
		}
		rc = has_children ? ebb_emugroup_give_cpu(path, err) : 0;
		if (rc < 0)
			goto out_remove;
	}
	if (quota.quota_usec > 0)
		rc = set_quota(cg, path, quota, err);
	if (rc < 0)
		goto out_remove;
	return 0;

out_remove:
	rmdir(path);
	return rc;
}

bool ebb_emugroup_matches(const struct ebb_cgroup *cg, const char *path, struct ebb_emuspec_quota q)
{
	char want[48], have[64];

	if (cg->version == 2) {
		snprintf(want, sizeof(want), "%u %u\n", q.quota_usec, q.period_usec);
		return read_file(path, "cpu.max", have, sizeof(have)) == 0 &&
		       strcmp(want, have) == 0;
	}
	snprintf(want, sizeof(want), "%u\n", q.quota_usec);
	if (read_file(path, "cpu.cfs_quota_us", have, sizeof(have)) < 0 || strcmp(want, have) != 0)
		return false;
	snprintf(want, sizeof(want), "%u\n", q.period_usec);
	return read_file(path, "cpu.cfs_period_us", have, sizeof(have)) == 0 &&
	       strcmp(want, have) == 0;
}

static const char *threads_file(const struct ebb_cgroup *cg)
{
	return cg->version == 2 ? "cgroup.threads" : "tasks";
}

int ebb_emugroup_move_thread(const struct ebb_cgroup *cg, const char *path, pid_t tid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", tid);
	return write_file(path, threads_file(cg), text);
}

int ebb_emugroup_move_process(const char *path, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return write_file(path, "cgroup.procs", text);
}

int ebb_emugroup_threads(const struct ebb_cgroup *cg, const char *path, pid_t **ret_tids,
			 size_t *ret_num)
{
	char full[PATH_MAX], *text, *save = NULL;
	size_t num = 0;
	pid_t *tids;
	int rc;

	if ((size_t)snprintf(full, sizeof(full), "%s/%s", path, threads_file(cg)) >= sizeof(full))
		return -ENAMETOOLONG;
	rc = ebb_fs_read_all(full, MAX_TASKS_FILE, &text);
	if (rc < 0)
		return rc;
	/* A number and its newline take two bytes or more. */
	tids = calloc(strlen(text) / 2 + 1, sizeof(*tids));
	if (!tids) {
		free(text);
		return -ENOMEM;
	}
	for (char *w = strtok_r(text, "\n", &save); w; w = strtok_r(NULL, "\n", &save))
		tids[num++] = atoi(w);
	free(text);
	*ret_tids = tids;
	*ret_num = num;
	return 0;
}

int ebb_emugroup_remove(const char *path)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };

	for (int tries = 0; rmdir(path) < 0; tries++) {
		if (errno == ENOENT)
			return 0;
		if (errno != EBUSY || tries == 100)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}
