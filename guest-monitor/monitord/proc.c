// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading /proc/stat and /proc/meminfo: see proc.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc.h"

#define NS_PER_SEC	1000000000ull

/* Reads a number and moves on; -ENODATA if there is none. */
static int number_read(const char **p, uint64_t *ret)
{
	unsigned long long value;
	char *end;

	while (**p == ' ' || **p == '\t')
		(*p)++;
	/* strtoull() would take a sign. */
	if (**p < '0' || **p > '9')
		return -ENODATA;
	errno = 0;
	value = strtoull(*p, &end, 10);
	if (errno)
		return -ENODATA;
	*p = end;
	*ret = value;
	return 0;
}

/* user nice system idle iowait irq softirq: what is idle and what the host stole is not ours. */
static int busy_parse(const char *p, uint64_t *ret)
{
	uint64_t fields[7];

	for (int i = 0; i < 7; i++) {
		int r = number_read(&p, &fields[i]);

		if (r < 0)
			return r;
	}
	*ret = fields[0] + fields[1] + fields[2] + fields[5] + fields[6];
	return 0;
}

int ebb_proc_cpu_read(const char *path, struct ebb_proc_cpu *ret)
{
	struct ebb_proc_cpu cpu = { 0 };
	bool has_total = false;
	char *line = NULL;
	size_t room = 0;
	FILE *f;
	int r = 0;

	f = fopen(path, "re");
	if (!f)
		return -errno;
	/* The lines of the CPUs come first, and only those online have one. */
	while (r == 0 && getline(&line, &room, f) > 0 && strncmp(line, "cpu", 3) == 0) {
		if (line[3] == ' ') {
			r = busy_parse(line + 3, &cpu.busy_ticks);
			has_total = true;
		} else {
			cpu.cpus_online++;
		}
	}
	if (r == 0 && (!has_total || cpu.cpus_online == 0))
		r = -ENODATA;
	free(line);
	fclose(f);
	if (r == 0)
		*ret = cpu;
	return r;
}

/* "MemTotal:   16303428 kB" */
static bool mem_parse(const char *line, const char *key, uint64_t *ret_bytes)
{
	size_t len = strlen(key);
	const char *p = line + len;
	uint64_t kb;

	if (strncmp(line, key, len) != 0 || number_read(&p, &kb) < 0 || kb > UINT64_MAX / 1024)
		return false;
	*ret_bytes = kb * 1024;
	return true;
}

int ebb_proc_mem_read(const char *path, struct ebb_proc_mem *ret)
{
	bool has_total = false, has_available = false;
	struct ebb_proc_mem mem = { 0 };
	char *line = NULL;
	size_t room = 0;
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!(has_total && has_available) && getline(&line, &room, f) > 0) {
		has_total |= mem_parse(line, "MemTotal:", &mem.total_bytes);
		has_available |= mem_parse(line, "MemAvailable:", &mem.available_bytes);
	}
	free(line);
	fclose(f);
	if (!has_total || !has_available)
		return -ENODATA;
	*ret = mem;
	return 0;
}

void ebb_usage_add(struct ebb_usage *usage, uint64_t now_ns, uint64_t busy_ticks)
{
	usage->newest = (usage->newest + 1) % EBB_USAGE_SAMPLES;
	usage->samples[usage->newest].at_ns = now_ns;
	usage->samples[usage->newest].busy_ticks = busy_ticks;
	if (usage->num < EBB_USAGE_SAMPLES)
		usage->num++;
}

uint32_t ebb_usage_permille(const struct ebb_usage *usage, uint64_t window_ns,
			    uint64_t ticks_per_sec)
{
	size_t to = usage->newest, from = to;
	uint64_t ns, ticks;
	double permille;

	for (size_t back = 1; back < usage->num; back++) {
		from = (to + EBB_USAGE_SAMPLES - back) % EBB_USAGE_SAMPLES;
		if (usage->samples[to].at_ns - usage->samples[from].at_ns >= window_ns)
			break;
	}
	ns = usage->samples[to].at_ns - usage->samples[from].at_ns;
	/* Linux may count a little back when a CPU goes offline. */
	if (ns == 0 || usage->samples[to].busy_ticks < usage->samples[from].busy_ticks)
		return 0;
	ticks = usage->samples[to].busy_ticks - usage->samples[from].busy_ticks;
	permille = 1000.0 * ((double)ticks / (double)ticks_per_sec) /
		   ((double)ns / (double)NS_PER_SEC);
	return permille < (double)UINT32_MAX ? (uint32_t)permille : UINT32_MAX;
}
