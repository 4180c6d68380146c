/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A core is free after its deadline, not before, and whatever else goes on: the loop, the core and
 * the worker pool of the daemon, and the cgroups of an emulated host with threads in them.  Only
 * libvirt and the device are played; calls that do not end keep all workers busy but one.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/agent.h"
#include "backend/emulated/emuhost.h"
#include "util/clock.h"
#include "util/heap.h"
#include "util/log.h"

#define NUM_TRIALS	200
#define NUM_VCPUS	2
#define NUM_WORKERS	4
#define DEADLINE_MSEC	10u
/* A hang, not slowness. */
#define PATIENCE_USEC	(60 * EBB_USEC_PER_SEC)

static const uint8_t uuid[16] = { 0xeb };

struct bench {
	struct ebb_agent agent;
	struct ebb_state_config cfg;
	struct ebb_host host;
	struct ebb_emuhost *emuhost;
	struct ebb_workers *workers;
	pthread_t threads[NUM_VCPUS];
	pid_t tids[NUM_VCPUS];
	pthread_barrier_t started;
	bool are_calls_ending, are_vcpus_ending;
	uint64_t next_tag;
	unsigned int num_granted, num_removed; /* answers that came */
	usec_t home_at;			/* last move home, or 0 */
};

struct bench_job {
	struct ebb_job job;
	struct bench *b;
	struct ebb_action action;	/* id 0: a call that does not end */
	usec_t ended_at;
};

/* ---- what the agent drives ---- */

static void wait_for(const bool *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_RELAXED))
		usleep(1000);
}

static int run_job(struct ebb_job *job)
{
	struct bench_job *j = (struct bench_job *)job;
	const struct ebb_action *a = &j->action;
	int rc = 0;

	if (a->id == 0)
		wait_for(&j->b->are_calls_ending);
	else if (a->type == EBB_ACTION_PLACE || a->type == EBB_ACTION_HOME)
		rc = ebb_emuhost_place(j->b->emuhost, getpid(), j->b->tids[a->u.vcpu.vcpu],
				       a->u.vcpu.thread, 0);
	j->ended_at = ebb_clock_mono_usec();
	return rc;
}

static void job_done(struct ebb_job *job, int err)
{
	struct bench_job *j = (struct bench_job *)job;
	struct ebb_fact fact = {
		.type = EBB_FACT_ACTION_DONE,
		.u.action_done = { .id = j->action.id, .type = j->action.type,
				   .err = err },
	};

	if (j->action.id == 0)
		return;
	if (j->action.type == EBB_ACTION_HOME && err == 0)
		j->b->home_at = j->ended_at;
	ebb_agent_report(&j->b->agent, &fact);
}

static void job_release(struct ebb_job *job)
{
	free(job);
}

static void submit_job(struct bench *b, const struct ebb_action *action, uint8_t lane)
{
	struct bench_job *j = calloc(1, sizeof(*j));

	j->job.lane[0] = lane;
	j->job.is_urgent = action->id && action->type == EBB_ACTION_HOME;
	j->job.deadline = EBB_TIME_NEVER;
	j->job.run = run_job;
	j->job.done = job_done;
	j->job.release = job_release;
	j->b = b;
	j->action = *action;
	ebb_workers_submit(b->workers, &j->job);
}

static void backend_submit(void *be, usec_t now, const struct ebb_action *action)
{
	struct bench *b = be;

	(void)now;
	if (action->id)
		submit_job(b, action, 0);
	if (action->type != EBB_ACTION_RESPONSE)
		return;
	assert_int_equal(action->u.response.status, VIRTIO_EBB_ACK);
	b->num_granted += action->u.response.type == VIRTIO_EBB_REQ_CPU_ADD;
	b->num_removed += action->u.response.type == VIRTIO_EBB_REQ_CPU_REMOVE;
}

static const struct ebb_backend_ops backend_ops = { .name = "bench", .submit = backend_submit };

/* ---- what happens to it ---- */

static void *vcpu_thread(void *arg)
{
	struct bench *b = arg;

	pthread_barrier_wait(&b->started);
	for (int i = 0; i < NUM_VCPUS; i++)
		if (pthread_equal(b->threads[i], pthread_self()))
			b->tids[i] = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&b->started);
	wait_for(&b->are_vcpus_ending);
	return NULL;
}

static void report(struct bench *b, struct ebb_fact *fact)
{
	memcpy(fact->uuid, uuid, sizeof(uuid));
	assert_int_equal(ebb_agent_report(&b->agent, fact), 0);
}

static struct ebb_sla sla_of(uint16_t max)
{
	return (struct ebb_sla){
		.class = EBB_CLASS_SPOT, .weight = 100, .deadline_ms = DEADLINE_MSEC,
		.num_nodes = 1, .nodes = { { .startup = 1, .reserved = 1, .max = max } },
		.io = { .weight = 100, .penalty = 1 },
	};
}

static void boot(struct bench *b)
{
	static const struct ebb_vcpu_def vcpus[NUM_VCPUS] = { { 0, true }, { 0, false } };
	static const struct ebb_vcpu_fact plugged = { .thread = EBB_THREAD_NONE };
	static const struct ebb_hello_cpu startup = { .flags = VIRTIO_EBB_CPU_F_STARTUP };
	struct ebb_fact fact = { .type = EBB_FACT_LOADED };

	report(b, &fact);
	fact = (struct ebb_fact){ .type = EBB_FACT_VM_DEFINED };
	strcpy(fact.u.vm_defined.name, "bench");
	fact.u.vm_defined.sla = sla_of(NUM_VCPUS);
	fact.u.vm_defined.num_vcpus = NUM_VCPUS;
	fact.u.vm_defined.vcpus = vcpus;
	report(b, &fact);
	fact = (struct ebb_fact){ .type = EBB_FACT_VM_RUNNING };
	fact.u.vm_running = (struct ebb_fact_vm_running){
		.order = 1, .as_of = ebb_clock_mono_usec(), .num_plugged = 1, .plugged = &plugged,
	};
	report(b, &fact);
	fact = (struct ebb_fact){ .type = EBB_FACT_HELLO };
	fact.u.hello = (struct ebb_fact_hello){
		.is_first = true, .has_driver = true, .num_nodes = 1, .max_cpus = NUM_VCPUS,
		.num_cpus = 1, .cpus = &startup,
	};
	report(b, &fact);
}

static void set_max(struct bench *b, uint16_t max)
{
	struct ebb_fact fact = { .type = EBB_FACT_SLA_SET, .u.sla_set = sla_of(max) };

	report(b, &fact);
}

static void request(struct bench *b, uint16_t type)
{
	struct ebb_fact fact = {
		.type = EBB_FACT_REQUEST,
		.u.request = { .tag = ++b->next_tag, .type = type, .count = 1, .vcpu = 1 },
	};

	report(b, &fact);
}

static const struct ebb_vm_node *node_of(const struct bench *b)
{
	return &ebb_state_vm(b->agent.state, uuid)->nodes[0];
}

#define RUN_UNTIL(b, cond)                                                                         \
	do {                                                                                       \
		const usec_t end = ebb_clock_mono_usec() + PATIENCE_USEC;                          \
		while (!(cond)) {                                                                  \
			assert_true(ebb_clock_mono_usec() < end);                                  \
			assert_true(sd_event_run((b)->agent.event, 100000) >= 0);                  \
		}                                                                                  \
	} while (0)

/* Milliseconds from the deadline to the core being free: to be printed, not judged. */
static double trial(struct bench *b, unsigned int i)
{
	usec_t due;

	set_max(b, NUM_VCPUS);
	RUN_UNTIL(b, node_of(b)->limit == NUM_VCPUS);
	request(b, VIRTIO_EBB_REQ_CPU_ADD);
	RUN_UNTIL(b, b->num_granted > i);
	b->home_at = 0;
	due = ebb_clock_mono_usec() + DEADLINE_MSEC * EBB_USEC_PER_MSEC;
	set_max(b, 1);
	RUN_UNTIL(b, b->home_at != 0);
	assert_true(b->home_at >= due);
	request(b, VIRTIO_EBB_REQ_CPU_REMOVE);
	RUN_UNTIL(b, b->num_removed > i);
	return (double)(b->home_at - due) / EBB_USEC_PER_MSEC;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void start(struct bench *b)
{
	const struct ebb_emuspec spec = { 1, 4, 1, 250, 10 };
	struct ebb_err err = { "" };
	char group[48];

	assert_int_equal(sd_event_new(&b->agent.event), 0);
	assert_int_equal(ebb_workers_create(b->agent.event, NUM_WORKERS, &b->workers), 0);
	assert_int_equal(ebb_history_open(NULL, 1000, b->workers, b->agent.event,
					  &b->agent.history, &err), 0);
	assert_int_equal(ebb_host_emulate(1, 4, 1, 250, &b->host), 0);
	ebb_state_config_default(&b->cfg);
	b->cfg.request_usec = PATIENCE_USEC;
	b->cfg.alloc = (struct ebb_alloc){ .alloc = ebb_heap_alloc, .free = ebb_heap_free };
	b->agent.state = ebb_state_create(&b->cfg, &b->host, &ebb_policy_fair);
	assert_non_null(b->agent.state);
	b->agent.backend = (struct ebb_backend){ .ops = &backend_ops, .be = b };
	assert_int_equal(ebb_agent_init(&b->agent), 0);
	pthread_barrier_init(&b->started, NULL, NUM_VCPUS + 1);
	for (int i = 0; i < NUM_VCPUS; i++)
		assert_int_equal(pthread_create(&b->threads[i], NULL, vcpu_thread, b), 0);
	/* All threads are known; then what each of them is called. */
	pthread_barrier_wait(&b->started);
	pthread_barrier_wait(&b->started);
	snprintf(group, sizeof(group), "ebb-deadline-unit-%d", getpid());
	if (ebb_emuhost_create(&spec, group, &b->emuhost, &err) < 0)
		fail_msg("%s", err.text);
}

static void finish(struct bench *b)
{
	struct ebb_err err = { "" };

	__atomic_store_n(&b->are_calls_ending, true, __ATOMIC_RELAXED);
	assert_int_equal(ebb_workers_destroy(b->workers, PATIENCE_USEC), 0);
	ebb_agent_finish(&b->agent);
	ebb_history_close(b->agent.history);
	ebb_state_destroy(b->agent.state);
	sd_event_unref(b->agent.event);
	if (ebb_emuhost_destroy(b->emuhost, &err) < 0)
		fail_msg("%s", err.text);
	__atomic_store_n(&b->are_vcpus_ending, true, __ATOMIC_RELAXED);
	for (int i = 0; i < NUM_VCPUS; i++)
		pthread_join(b->threads[i], NULL);
	pthread_barrier_destroy(&b->started);
}

static void test_deadline(void **state)
{
	const struct ebb_action stuck = { .id = 0 };
	static double msec[NUM_TRIALS];
	static struct bench b;

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: creating CPU cgroups needs root\n");
		skip();
	}
	ebb_log_set_level(LOG_WARNING);
	start(&b);
	boot(&b);
	for (uint8_t i = 1; i <= NUM_WORKERS - 1; i++)
		submit_job(&b, &stuck, i);
	for (unsigned int i = 0; i < NUM_TRIALS; i++)
		msec[i] = trial(&b, i);
	qsort(msec, NUM_TRIALS, sizeof(msec[0]), compare);
	print_message("deadline to free core, %u trials: median %.3f ms, p99 %.3f ms, most %.3f "
		      "ms\n", NUM_TRIALS, msec[NUM_TRIALS / 2], msec[NUM_TRIALS * 99 / 100],
		      msec[NUM_TRIALS - 1]);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deadline),
	};

	return cmocka_run_group_tests_name("ctl/deadline", tests, NULL, NULL);
}
