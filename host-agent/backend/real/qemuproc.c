/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QEMU processes and their vCPU threads. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/types.h"
#include "backend/real/qemuproc.h"
#include "util/fs.h"
#include "util/uuid.h"

#define MAX_CMDLINE	(256 << 10)

/* Was the process started with "-uuid <text>"? */
static bool has_uuid(const char *proc, pid_t pid, const char *text)
{
	char path[PATH_MAX], *buf = malloc(MAX_CMDLINE);
	bool found = false, is_value = false;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/%d/cmdline", proc, pid);
	if (!buf || ebb_fs_read(path, buf, MAX_CMDLINE, &len) < 0)
		len = 0;
	for (size_t at = 0; at < len && !found; at += strlen(buf + at) + 1) {
		found = is_value && strcmp(buf + at, text) == 0;
		is_value = strcmp(buf + at, "-uuid") == 0;
	}
	free(buf);
	return found;
}

struct search {
	const char *proc, *text;
	pid_t found;			/* 0: none yet, -1: several */
};

static int search_one(void *ctx, const char *path)
{
	struct search *s = ctx;
	const char *name = strrchr(path, '/') + 1;
	pid_t pid;

	if (name[strspn(name, "0123456789")] != '\0')
		return 0;
	pid = atoi(name);
	if (has_uuid(s->proc, pid, s->text))
		s->found = s->found ? -1 : pid;
	return 0;
}

pid_t ebb_qemuproc_find(const char *proc, const char *libvirt_run_dir, const char *name,
			const uint8_t uuid[16])
{
	char path[PATH_MAX], text[EBB_UUID_TEXT_SIZE], number[32];
	struct search s = { .proc = proc, .text = text };
	int rc;

	ebb_uuid_format(uuid, text);
	snprintf(path, sizeof(path), "%s/qemu/%s.pid", libvirt_run_dir, name);
	rc = strchr(name, '/') ? -ENOENT : ebb_fs_read(path, number, sizeof(number), NULL);
	if (rc == 0) {
		pid_t pid = atoi(number);

		/* A pid file may outlive its process, and the number be somebody else's by now. */
		return pid > 0 && has_uuid(proc, pid, text) ? pid : -ESRCH;
	}
	rc = ebb_fs_for_each_folder(proc, search_one, &s);
	if (rc < 0)
		return rc;
	if (s.found < 0)
		return -ENOTUNIQ;
	return s.found ? s.found : -ESRCH;
}

/* "CPU 3/KVM" or "CPU 3/TCG", as QEMU names the threads of vCPUs when libvirt asks it to. */
static int vcpu_of_comm(const char *path)
{
	char text[32], kind[8];
	unsigned int vcpu;

	if (ebb_fs_read(path, text, sizeof(text), NULL) < 0 ||
	    sscanf(text, "CPU %u/%7[A-Z]", &vcpu, kind) != 2 || vcpu >= EBB_MAX_VCPUS)
		return -1;
	return strcmp(kind, "KVM") == 0 || strcmp(kind, "TCG") == 0 ? (int)vcpu : -1;
}

struct listing {
	struct ebb_qemuproc_thread *threads;
	size_t num, size;
};

static int list_one(void *ctx, const char *path)
{
	struct listing *l = ctx;
	char comm[PATH_MAX];
	int vcpu;

	if ((size_t)snprintf(comm, sizeof(comm), "%s/comm", path) >= sizeof(comm))
		return 0;
	vcpu = vcpu_of_comm(comm);
	if (vcpu < 0 || l->num == l->size)
		return 0;
	l->threads[l->num].vcpu = vcpu;
	l->threads[l->num++].tid = atoi(strrchr(path, '/') + 1);
	return 0;
}

int ebb_qemuproc_vcpus(const char *proc, pid_t pid, struct ebb_qemuproc_thread *ret, size_t size)
{
	struct listing l = { .threads = ret, .size = size };
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/%d/task", proc, pid);
	rc = ebb_fs_for_each_folder(path, list_one, &l);
	return rc < 0 ? rc : (int)l.num;
}

int ebb_qemuproc_usage(const char *proc, pid_t pid, pid_t tid, uint64_t *ret_cpu_usec,
		       uint64_t *ret_num_runs, uint64_t *ret_wait_usec)
{
	char path[PATH_MAX], text[128];
	unsigned long long ns, wait_ns, runs;
	int rc;

	snprintf(path, sizeof(path), "%s/%d/task/%d/schedstat", proc, pid, tid);
	rc = ebb_fs_read(path, text, sizeof(text), NULL);
	if (rc < 0)
		return rc;
	if (sscanf(text, "%llu %llu %llu", &ns, &wait_ns, &runs) != 3)
		return -EOPNOTSUPP;
	*ret_cpu_usec = ns / 1000;
	*ret_num_runs = runs;
	*ret_wait_usec = wait_ns / 1000;
	return 0;
}

pid_t ebb_qemuproc_vcpu(const char *proc, pid_t pid, uint16_t vcpu, pid_t guess)
{
	struct ebb_qemuproc_thread *threads;
	char path[PATH_MAX];
	pid_t tid = -ESRCH;
	int num;

	snprintf(path, sizeof(path), "%s/%d/task/%d/comm", proc, pid, guess);
	if (guess > 0 && vcpu_of_comm(path) == vcpu)
		return guess;
	threads = calloc(EBB_MAX_VCPUS, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	num = ebb_qemuproc_vcpus(proc, pid, threads, EBB_MAX_VCPUS);
	for (int i = 0; i < num; i++)
		if (threads[i].vcpu == vcpu)
			tid = threads[i].tid;
	free(threads);
	return tid;
}
