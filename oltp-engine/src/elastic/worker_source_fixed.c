// SPDX-License-Identifier: GPL-2.0-or-later
/* A CPU source without a host: see oltp_source_fixed_create in oltp.h. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "oltp.h"

struct source_fixed {
	uint32_t n_cpus, n_startup;
	int event_fd;		/* readable when the limit changed */
	pthread_mutex_t lock;	/* all below */
	uint32_t limit;
	uint32_t n_held;
	struct {
		uint32_t cpu;
		bool is_held;
	} cpus[];
};

int oltp_source_fixed_create(const uint32_t *cpus, uint32_t n_cpus, uint32_t n_startup,
			     void **ret_source)
{
	struct source_fixed *source;

	if (!n_startup || n_startup > n_cpus)
		return -EINVAL;
	source = calloc(1, sizeof(*source) + n_cpus * sizeof(source->cpus[0]));
	if (!source)
		return -ENOMEM;
	source->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (source->event_fd < 0) {
		free(source);
		return -EMFILE;
	}
	pthread_mutex_init(&source->lock, NULL);
	source->n_cpus = source->limit = n_cpus;
	source->n_startup = source->n_held = n_startup;
	for (uint32_t i = 0; i < n_cpus; i++) {
		source->cpus[i].cpu = cpus[i];
		source->cpus[i].is_held = i < n_startup;
	}
	*ret_source = source;
	return 0;
}

void oltp_source_fixed_destroy(void *opaque)
{
	struct source_fixed *source = opaque;

	if (!source)
		return;
	pthread_mutex_destroy(&source->lock);
	close(source->event_fd);
	free(source);
}

void oltp_source_fixed_set_limit(void *opaque, uint32_t limit)
{
	struct source_fixed *source = opaque;
	const uint64_t one = 1;

	pthread_mutex_lock(&source->lock);
	source->limit = limit < source->n_cpus ? limit : source->n_cpus;
	pthread_mutex_unlock(&source->lock);
	/* Fails only when the counter is full, and then it is readable anyway. */
	if (write(source->event_fd, &one, sizeof(one)) < 0)
		return;
}

static int fixed_startup(void *opaque, struct oltp_cpu *ret_cpus, uint32_t max)
{
	struct source_fixed *source = opaque;

	if (source->n_startup > max)
		return -ENOSPC;
	for (uint32_t i = 0; i < source->n_startup; i++)
		ret_cpus[i] = (struct oltp_cpu){ .cpu = source->cpus[i].cpu };
	return (int)source->n_startup;
}

static int fixed_fd(void *opaque)
{
	struct source_fixed *source = opaque;

	return source->event_fd;
}

static int fixed_view(void *opaque, struct oltp_cpu_view *ret_view)
{
	struct source_fixed *source = opaque;
	struct oltp_node_share share = { 0 };
	uint64_t count;
	ssize_t got;

	/* Empties the counter before looking, so that no change is missed. */
	got = read(source->event_fd, &count, sizeof(count));
	(void)got;
	pthread_mutex_lock(&source->lock);
	if (source->n_held < source->limit)
		share.cpus_offered = source->limit - source->n_held;
	else
		share.cpus_demanded = source->n_held - source->limit;
	pthread_mutex_unlock(&source->lock);
	*ret_view = (struct oltp_cpu_view){ .n_nodes = 1, .nodes = { share } };
	return 0;
}

static int fixed_add(void *opaque, uint32_t node, uint32_t count, struct oltp_cpu *ret_cpus,
		     struct oltp_move_times *ret_times)
{
	struct source_fixed *source = opaque;
	int n = 0;

	if (node)
		return -ENXIO;
	*ret_times = (struct oltp_move_times){ 0 };
	pthread_mutex_lock(&source->lock);
	for (uint32_t i = 0; i < source->n_cpus && (uint32_t)n < count; i++) {
		if (source->cpus[i].is_held || source->n_held >= source->limit)
			continue;
		source->cpus[i].is_held = true;
		source->n_held++;
		ret_cpus[n++] = (struct oltp_cpu){ .cpu = source->cpus[i].cpu };
	}
	pthread_mutex_unlock(&source->lock);
	return n ? n : -EDQUOT;
}

static int fixed_remove(void *opaque, uint32_t cpu, struct oltp_move_times *ret_times)
{
	struct source_fixed *source = opaque;
	int rc = -ENOENT;

	*ret_times = (struct oltp_move_times){ 0 };
	pthread_mutex_lock(&source->lock);
	for (uint32_t i = 0; i < source->n_cpus; i++) {
		if (source->cpus[i].cpu != cpu || !source->cpus[i].is_held)
			continue;
		if (i < source->n_startup) {
			rc = -EPERM;
			break;
		}
		source->cpus[i].is_held = false;
		source->n_held--;
		rc = 0;
		break;
	}
	pthread_mutex_unlock(&source->lock);
	return rc;
}

static int fixed_publish(void *source, const struct oltp_sample *sample)
{
	(void)source;
	(void)sample;
	return 0;
}

const struct oltp_cpu_source_ops oltp_source_fixed_ops = {
	.startup = fixed_startup,
	.fd = fixed_fd,
	.view = fixed_view,
	.add = fixed_add,
	.remove = fixed_remove,
	.publish = fixed_publish,
};
