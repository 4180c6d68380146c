// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The simulated VM: CPUs, limits and ioctls by the letter of ebb_ioctl.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_ebb_vm.h"

void fake_ebb_vm_init(struct fake_ebb_vm *vm, uint32_t num_nodes, const uint32_t *startup,
		      const uint32_t *max)
{
	uint32_t cpu = 0;

	memset(vm, 0, sizeof(*vm));
	pthread_mutex_init(&vm->lock, NULL);
	vm->abi_version = EBB_ABI_VERSION;
	vm->num_nodes = num_nodes;
	fake_ebb_mem_init(vm);
	for (size_t i = 0; i < FAKE_EBB_MAX_OPENS; i++)
		vm->opens[i].fd = vm->opens[i].notify_fd = -1;
	for (uint32_t node = 0; node < num_nodes; node++) {
		vm->nodes[node].startup = startup[node];
		vm->nodes[node].max = max[node];
		vm->nodes[node].limit = startup[node];
		for (uint32_t i = 0; i < max[node]; i++, cpu++) {
			vm->cpus[cpu].node = node;
			vm->cpus[cpu].is_present = i < startup[node];
			vm->cpus[cpu].flags = i < startup[node] ? EBB_CPU_STARTUP : 0;
		}
	}
}

void fake_ebb_open_notify(struct fake_ebb_open *open)
{
	if (open->notify_fd >= 0)
		send(open->notify_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void fake_ebb_vm_publish(struct fake_ebb_vm *vm)
{
	if (!vm->has_limits || vm->is_delayed)
		return;
	vm->generation++;
	for (size_t i = 0; i < FAKE_EBB_MAX_OPENS; i++)
		fake_ebb_open_notify(&vm->opens[i]);
}

static void cpu_take(struct fake_ebb_cpu *cpu)
{
	cpu->is_present = 0;
	cpu->owner = NULL;
	cpu->flags = 0;
}

/* Nobody's, and without a core. */
static void cpu_lend(struct fake_ebb_cpu *cpu, uint32_t parked)
{
	cpu->owner = NULL;
	cpu->flags = EBB_CPU_LENT | parked;
}

static void open_free(struct fake_ebb_vm *vm, struct fake_ebb_open *open)
{
	close(open->fd);
	if (open->notify_fd >= 0)
		close(open->notify_fd);
	open->fd = open->notify_fd = -1;
	for (size_t i = 0; i < FAKE_EBB_MAX_CPUS; i++)
		if (vm->cpus[i].owner == open && vm->can_lend) {
			cpu_lend(&vm->cpus[i], 0);
			vm->num_lent++;
		} else if (vm->cpus[i].owner == open) {
			cpu_take(&vm->cpus[i]);
			vm->num_removed++;
		}
}

void fake_ebb_vm_close(struct fake_ebb_vm *vm, struct fake_ebb_open *open)
{
	open_free(vm, open);
	fake_ebb_vm_publish(vm);
}

void fake_ebb_vm_hang_up(struct fake_ebb_vm *vm)
{
	for (size_t i = 0; i < FAKE_EBB_MAX_OPENS; i++)
		if (vm->opens[i].notify_fd >= 0) {
			close(vm->opens[i].notify_fd);
			vm->opens[i].notify_fd = -1;
		}
	for (size_t i = 0; i < FAKE_EBB_MAX_CPUS; i++)
		if (!(vm->cpus[i].flags & EBB_CPU_STARTUP))
			cpu_take(&vm->cpus[i]);
	fake_ebb_mem_hang_up(vm);
}

void fake_ebb_vm_finish(struct fake_ebb_vm *vm)
{
	for (size_t i = 0; i < FAKE_EBB_MAX_OPENS; i++)
		if (vm->opens[i].fd >= 0)
			open_free(vm, &vm->opens[i]);
	fake_ebb_mem_finish(vm);
	pthread_mutex_destroy(&vm->lock);
}

static uint32_t count_cpus(const struct fake_ebb_vm *vm, uint32_t node, uint32_t without_flags)
{
	uint32_t num = 0;

	for (size_t i = 0; i < FAKE_EBB_MAX_CPUS; i++)
		num += vm->cpus[i].is_present && vm->cpus[i].node == node &&
		       !(vm->cpus[i].flags & without_flags);
	return num;
}

uint32_t fake_ebb_vm_held(const struct fake_ebb_vm *vm, uint32_t node)
{
	return count_cpus(vm, node, EBB_CPU_FORCED | EBB_CPU_LENT);
}

static uint32_t cpu_flags(const struct fake_ebb_cpu *cpu, const struct fake_ebb_open *open)
{
	return cpu->flags | (cpu->owner == open ? EBB_CPU_OWNED : 0);
}

static int info_do(struct fake_ebb_vm *vm, struct fake_ebb_open *open, struct ebb_info *info)
{
	if (info->size != sizeof(*info) || info->flags)
		return -EINVAL;
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->abi_version = vm->abi_version;
	info->proto = VIRTIO_EBB_PROTO;
	info->status = EBB_INFO_AGENT_UP;
	info->num_nodes = vm->num_nodes;
	for (uint32_t node = 0; node < vm->num_nodes; node++) {
		info->max_cpus += vm->nodes[node].max;
		info->num_startup_cpus += vm->nodes[node].startup;
		info->num_hotplug_cpus += count_cpus(vm, node, EBB_CPU_STARTUP | EBB_CPU_LENT);
	}
	for (size_t i = 0; i < FAKE_EBB_MAX_CPUS; i++)
		info->num_owned_cpus += vm->cpus[i].owner == open;
	if (vm->can_lend)
		info->features |= 1ull << VIRTIO_EBB_F_LEND;
	return 0;
}

void fake_ebb_vm_limits(const struct fake_ebb_vm *vm, struct ebb_limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	limits->size = sizeof(*limits);
	limits->generation = vm->generation;
	limits->num_nodes = vm->generation ? vm->num_nodes : 0;
	limits->vom_seq = vm->vom_seq;
	limits->mem_promise_mib = vm->mem_promise_mib;
	for (uint32_t node = 0; node < limits->num_nodes; node++) {
		struct ebb_node_limit *n = &limits->nodes[node];

		n->node = node;
		n->cpus_held = fake_ebb_vm_held(vm, node);
		n->cpus_limit = vm->nodes[node].limit;
		n->tier = vm->nodes[node].tier;
		if (n->cpus_held > n->cpus_limit)
			n->deadline_ns = vm->nodes[node].deadline_ns;
	}
	fake_ebb_mem_limits(vm, limits);
}

static int limits_do(const struct fake_ebb_vm *vm, struct ebb_limits *limits)
{
	if (limits->size != sizeof(*limits) || limits->flags)
		return -EINVAL;
	if (vm->is_delayed)
		*limits = vm->delayed;
	else
		fake_ebb_vm_limits(vm, limits);
	return 0;
}

/* The node to add a CPU on, or -errno. */
static int add_node_choose(const struct fake_ebb_vm *vm, const struct ebb_cpu_add *add)
{
	int r = -ERANGE;

	for (uint32_t node = 0; node < vm->num_nodes; node++) {
		if (add->node != EBB_NODE_ANY && add->node != node)
			continue;
		if (count_cpus(vm, node, EBB_CPU_LENT) >= vm->nodes[node].max)
			continue;
		if (fake_ebb_vm_held(vm, node) < vm->nodes[node].limit)
			return (int)node;
		r = -EDQUOT;
	}
	return r;
}

/* One that is lent, or else one that is not there; the node has either. */
static uint32_t add_cpu_choose(const struct fake_ebb_vm *vm, uint32_t node)
{
	uint32_t absent = FAKE_EBB_MAX_CPUS;

	for (uint32_t i = 0; i < FAKE_EBB_MAX_CPUS; i++) {
		if (vm->cpus[i].node != node)
			continue;
		if (vm->cpus[i].flags & EBB_CPU_LENT)
			return i;
		if (!vm->cpus[i].is_present && absent == FAKE_EBB_MAX_CPUS)
			absent = i;
	}
	return absent;
}

static int add_do(struct fake_ebb_vm *vm, struct fake_ebb_open *open, struct ebb_cpu_add *add)
{
	int node = 0;

	if (add->size != sizeof(*add) || (add->flags & ~EBB_ADD_ALLOW_HT) || add->count == 0 ||
	    add->count > EBB_MAX_REQ_CPUS || add->timeout_ms > EBB_TIMEOUT_MAX_MS)
		return -EINVAL;
	if (add->node != EBB_NODE_ANY && add->node >= vm->num_nodes)
		return -ENXIO;
	add->granted = 0;
	while (add->granted < add->count) {
		uint32_t cpu;

		node = add_node_choose(vm, add);
		if (node < 0)
			break;
		cpu = add_cpu_choose(vm, (uint32_t)node);
		vm->cpus[cpu].is_present = 1;
		vm->cpus[cpu].flags = 0;
		vm->cpus[cpu].owner = open;
		vm->num_added++;
		add->cpus[add->granted++] = (struct ebb_cpu) {
			.cpu = cpu,
			.node = (uint32_t)node,
			.flags = EBB_CPU_OWNED,
		};
	}
	if (add->granted == 0)
		return node;
	add->host_ns = 1000;
	add->online_ns = 2000;
	fake_ebb_vm_publish(vm);
	return 0;
}

/* A CPU that the open may give back; those that are lent are anybody's. */
static int cpu_find(struct fake_ebb_vm *vm, struct fake_ebb_open *open, uint32_t number,
		    struct fake_ebb_cpu **ret)
{
	struct fake_ebb_cpu *cpu;

	if (number >= FAKE_EBB_MAX_CPUS || !vm->cpus[number].is_present)
		return -ENOENT;
	cpu = &vm->cpus[number];
	if (cpu->flags & EBB_CPU_STARTUP)
		return -EPERM;
	if (cpu->owner != open && !(cpu->flags & EBB_CPU_LENT))
		return -EACCES;
	*ret = cpu;
	return 0;
}

static int remove_do(struct fake_ebb_vm *vm, struct fake_ebb_open *open,
		     struct ebb_cpu_remove *remove)
{
	struct fake_ebb_cpu *cpu;
	int r;

	if (remove->size != sizeof(*remove) || remove->flags ||
	    remove->timeout_ms > EBB_TIMEOUT_MAX_MS)
		return -EINVAL;
	r = cpu_find(vm, open, remove->cpu, &cpu);
	if (r < 0)
		return r;
	cpu_take(cpu);
	vm->num_removed++;
	remove->host_ns = 3000;
	remove->offline_ns = 4000;
	fake_ebb_vm_publish(vm);
	return 0;
}

static int lend_do(struct fake_ebb_vm *vm, struct fake_ebb_open *open, struct ebb_cpu_lend *lend)
{
	uint32_t parked = lend->flags & EBB_LEND_PARK ? EBB_CPU_PARKED : 0;
	struct fake_ebb_cpu *cpu;
	int r;

	if (lend->size != sizeof(*lend) || (lend->flags & ~EBB_LEND_PARK) ||
	    lend->timeout_ms > EBB_TIMEOUT_MAX_MS)
		return -EINVAL;
	if (!vm->can_lend)
		return -EOPNOTSUPP;
	r = cpu_find(vm, open, lend->cpu, &cpu);
	if (r < 0)
		return r;
	/* One that is parked can only be had again. */
	if ((cpu->flags & EBB_CPU_PARKED) && !parked)
		return -EBUSY;
	cpu_lend(cpu, parked);
	vm->num_lent++;
	lend->host_ns = 5000;
	lend->offline_ns = parked ? 6000 : 0;
	fake_ebb_vm_publish(vm);
	return 0;
}

static int list_do(struct fake_ebb_vm *vm, struct fake_ebb_open *open, struct ebb_cpu_list *list)
{
	if (list->size != sizeof(*list) || list->flags || list->reserved)
		return -EINVAL;
	list->count = list->total = 0;
	/* Startup set first. */
	for (int is_startup = 1; is_startup >= 0; is_startup--)
		for (uint32_t i = 0; i < FAKE_EBB_MAX_CPUS; i++) {
			const struct fake_ebb_cpu *cpu = &vm->cpus[i];

			if (!cpu->is_present || !!(cpu->flags & EBB_CPU_STARTUP) != is_startup)
				continue;
			if (list->total++ < list->start || list->count == EBB_MAX_REQ_CPUS)
				continue;
			list->cpus[list->count++] = (struct ebb_cpu) {
				.cpu = i,
				.node = cpu->node,
				.flags = cpu_flags(cpu, open),
			};
		}
	return 0;
}

static int telemetry_do(struct fake_ebb_vm *vm, const struct ebb_telemetry *telemetry)
{
	const struct virtio_ebb_telemetry *report = &telemetry->report;

	if (telemetry->size != sizeof(*telemetry) || telemetry->flags || report->reserved ||
	    report->reserved2)
		return -EINVAL;
	if (!vm->mem_promise_mib &&
	    (report->baseline_ios || report->actual_ios || report->baseline_mib))
		return -EINVAL;
	vm->telemetry = *report;
	vm->num_telemetry++;
	return 0;
}

/* As the driver checks it. */
static int vom_do(struct fake_ebb_vm *vm, const struct ebb_vom *vom)
{
	vm->num_vom++;
	if (vm->vom_error)
		return vm->vom_error;
	if (vom->size != sizeof(*vom) || vom->flags || !vom->seq ||
	    vom->num_buckets > EBB_VOM_MAX_BUCKETS)
		return -EINVAL;
	for (uint32_t i = 0; i < vom->num_buckets; i++) {
		const struct ebb_vom_bucket *b = &vom->buckets[i];

		if (b->node >= vm->num_nodes || !b->kib || b->reserved ||
		    (i && (b->node < b[-1].node ||
			   (b->node == b[-1].node && b->value <= b[-1].value))))
			return -EINVAL;
	}
	vm->vom = *vom;
	return 0;
}

int fake_ebb_vm_ioctl(struct fake_ebb_vm *vm, struct fake_ebb_open *open, unsigned long cmd,
		      void *arg)
{
	/* Hung up: the open is of a device that is gone. */
	if (open->notify_fd < 0)
		return -ENODEV;
	switch (cmd) {
	case EBB_IOC_INFO:
		return info_do(vm, open, arg);
	case EBB_IOC_LIMITS:
		return limits_do(vm, arg);
	case EBB_IOC_CPU_ADD:
		return add_do(vm, open, arg);
	case EBB_IOC_CPU_REMOVE:
		return remove_do(vm, open, arg);
	case EBB_IOC_CPU_LEND:
		return lend_do(vm, open, arg);
	case EBB_IOC_CPU_LIST:
		return list_do(vm, open, arg);
	case EBB_IOC_VOM:
		return vom_do(vm, arg);
	case EBB_IOC_TELEMETRY:
		return telemetry_do(vm, arg);
	case EBB_IOC_MEM_INFO:
		return fake_ebb_mem_info_do(vm, arg);
	default:
		return -ENOTTY;
	}
}
