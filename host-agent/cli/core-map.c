/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A column for each thread, a row for each VM; the darker, the more it uses of the thread:
 *
 *   shared    8 threads 61% used, 3 VMs, 24 vCPUs; 2 moved so far
 *
 *   node 0    8    9   10   11
 *   db1       @    @    .    .
 *   db2       .    .    @    @
 *   all     92!  91!   88   87
 *
 * "!": hot; "!!": and nothing helps.
 */
#include <stdio.h>
#include <string.h>

#include "cli/core-map.h"
#include "cli/ctl.h"
#include "util/text.h"

#define COLUMNS		12		/* threads in a line */
#define NAME_COLUMNS	16
#define MAX_VMS		1024

struct map {
	const json_t *threads[COLUMNS];	/* "shared" of each */
	json_int_t cpus[COLUMNS];
	size_t count;
	json_int_t node;
	const json_t *vms[MAX_VMS];	/* a member of "vcpus" of each VM on any of them */
	size_t num_vms;
};

/* Of nothing, up to a tenth, a quarter, a half, three quarters, more. */
static char shade(json_int_t permille)
{
	static const json_int_t bounds[] = { 0, 100, 250, 500, 750 };
	static const char shades[] = " .:+#@";
	size_t i = 0;

	while (i < sizeof(bounds) / sizeof(bounds[0]) && permille > bounds[i])
		i++;
	return shades[i];
}

static bool is_of(const json_t *vcpu, const json_t *vm)
{
	return strcmp(ctl_str(vcpu, "uuid"), ctl_str(vm, "uuid")) == 0;
}

static void note_vms(struct map *m, const json_t *shared)
{
	json_t *vcpu;
	size_t i, k;

	json_array_foreach(json_object_get(shared, "vcpus"), i, vcpu) {
		for (k = 0; k < m->num_vms && !is_of(vcpu, m->vms[k]); k++)
			;
		if (k == m->num_vms && k < MAX_VMS)
			m->vms[m->num_vms++] = vcpu;
	}
}

/* -1: the VM is not there. */
static json_int_t use_of(const json_t *shared, const json_t *vm)
{
	json_int_t use = -1;
	json_t *vcpu;
	size_t i;

	json_array_foreach(json_object_get(shared, "vcpus"), i, vcpu)
		if (is_of(vcpu, vm))
			use = (use < 0 ? 0 : use) + ctl_int(vcpu, "use_permille");
	return use;
}

static void print_name(const char *name)
{
	const struct ebb_text_label label = ebb_text_label(name, NAME_COLUMNS);
	size_t column = 0;

	for (const char *s = label.text; *s; s += ebb_text_char(s))
		column++;
	printf("%s%*s", label.text, (int)(NAME_COLUMNS - column), "");
}

static void flush(struct map *m)
{
	if (m->count == 0)
		return;
	printf("\nnode %-11lld", m->node);
	for (size_t i = 0; i < m->count; i++)
		printf("%5lld", m->cpus[i]);
	putchar('\n');
	for (size_t k = 0; k < m->num_vms; k++) {
		print_name(ctl_str(m->vms[k], "vm"));
		for (size_t i = 0; i < m->count; i++) {
			const json_int_t use = use_of(m->threads[i], m->vms[k]);
			/* Idle there is not the same as not there. */
			const char c = use < 0 ? ' ' : use == 0 ? '_' : shade(use);

			printf("  %c%c%c", c, c, c);
		}
		putchar('\n');
	}
	print_name("used %");
	for (size_t i = 0; i < m->count; i++)
		printf("%3lld%-2s", ctl_int(m->threads[i], "use_permille") / 10,
		       ctl_bool(m->threads[i], "stuck") ? "!!" :
		       ctl_bool(m->threads[i], "hot") ? "!" : "");
	putchar('\n');
	m->count = m->num_vms = 0;
}

void core_map_print(const json_t *host)
{
	const json_t *all = json_object_get(host, "shared");
	static struct map m;
	json_t *core, *thread;
	size_t i, k;

	if (!json_is_object(all))
		return;
	m.count = m.num_vms = 0;
	printf("\nshared    %lld threads, %lld%% used%s, %lld VMs with %lld vCPUs; %lld moves of "
	       "VMs so far\n", ctl_int(all, "threads"), ctl_int(all, "use_permille") / 10,
	       ctl_bool(all, "hot") ? " (hot)" : "", ctl_int(all, "vms"), ctl_int(all, "vcpus"),
	       ctl_int(all, "moved_vms"));
	json_array_foreach(json_object_get(host, "cores"), i, core) {
		json_array_foreach(json_object_get(core, "threads"), k, thread) {
			const json_t *shared = json_object_get(thread, "shared");

			if (!json_is_object(shared))
				continue;
			if (m.count == COLUMNS || m.node != ctl_int(core, "node"))
				flush(&m);
			m.node = ctl_int(core, "node");
			m.cpus[m.count] = ctl_int(thread, "cpu");
			m.threads[m.count++] = shared;
			note_vms(&m, shared);
		}
	}
	flush(&m);
}
