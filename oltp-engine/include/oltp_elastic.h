/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * oltp_elastic.h - which CPUs the engine's worker pool runs on, and when. Included by oltp.h.
 *
 * One thread at a time may call the functions of an elastic control; the pool is its own from
 * oltp_elastic_create to oltp_elastic_destroy, but for reading figures on the same thread.
 */
#ifndef OLTP_ELASTIC_PUBLIC_H
#define OLTP_ELASTIC_PUBLIC_H

#include "oltp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OLTP_MOVE_MAX	64u	/* CPUs moved at once */

struct oltp_cpu {
	uint32_t cpu;
	uint32_t node;
};

/* What may be taken and must be given back on one node, now. */
struct oltp_node_share {
	uint32_t node;
	uint32_t cpus_offered;
	uint32_t cpus_demanded;
	uint64_t deadline_ns;	/* CLOCK_MONOTONIC, of the demand; 0: none */
};

struct oltp_cpu_view {
	uint32_t n_nodes;
	struct oltp_node_share nodes[OLTP_NODES_MAX];
	uint32_t n_forced;	/* CPUs whose core the host took away: useless, to be given back */
	uint32_t forced[OLTP_MOVE_MAX];
};

/* How a CPU is away, from the nearest on; what its source does not tell apart is NONE. */
enum oltp_tier {
	OLTP_TIER_NONE = 0,
	OLTP_TIER_LEND = 1,	/* plugged, online and idle */
	OLTP_TIER_PARK = 2,	/* plugged, offline */
	OLTP_TIER_UNPLUG = 3,
};
#define OLTP_TIERS	4u

/* What a source tells of a move: how long its two sides took (0: not known), and its tier. */
struct oltp_move_times {
	uint64_t host_ns;	/* the host's answer */
	uint64_t kernel_ns;	/* Linux bringing the CPU online or taking it offline */
	enum oltp_tier tier;	/* add: where the CPUs came from, the farthest; remove: where to */
};

/*
 * Where CPUs come from. add and remove may wait and are called on a thread of their own, one at a
 * time, while the other hooks are called on the thread of oltp_elastic_run. All are required.
 */
struct oltp_cpu_source_ops {
	/* CPUs held from the start, never given back; returns how many (at most max), or -errno. */
	int (*startup)(void *source, struct oltp_cpu *ret_cpus, uint32_t max);
	/* Polls readable when view has news; -1: never. */
	int (*fd)(void *source);
	/* 0, or -errno when the source is gone for good. */
	int (*view)(void *source, struct oltp_cpu_view *ret_view);
	/* Returns how many were added, 1 to count, or -errno. count <= OLTP_MOVE_MAX. */
	int (*add)(void *source, uint32_t node, uint32_t count, struct oltp_cpu *ret_cpus,
		   struct oltp_move_times *ret_times);
	/* 0 or -errno. -EINPROGRESS: it is on its way and no longer ours. */
	int (*remove)(void *source, uint32_t cpu, struct oltp_move_times *ret_times);
	/* 0 or -errno; not being heard is no reason to stop. */
	int (*publish)(void *source, const struct oltp_sample *sample);
};

enum oltp_elastic_mode {
	OLTP_ELASTIC_FOLLOW = 0,	/* take all offers, meet all demands */
	OLTP_ELASTIC_STEP = 1,	/* one CPU every step up to the ceiling, then one every step back */
	OLTP_ELASTIC_ADAPT = 2,	/* take only CPUs that pay: found by trying */
};

/* One call of add or remove that has ended. */
struct oltp_move {
	bool is_add;
	int rc;			/* 0 or -errno */
	uint32_t node;
	uint32_t n_cpus;
	uint32_t cpus[OLTP_MOVE_MAX];
	uint64_t start_ns;	/* CLOCK_MONOTONIC, of the call */
	uint64_t call_ns;	/* how long it took */
	uint64_t stop_ns;	/* remove: from asking the worker to stop to its end */
	uint64_t start_workers_ns;	/* add: from the end of the call until all workers run */
	struct oltp_move_times times;
};

struct oltp_elastic_config {
	struct oltp_pool *pool;
	const struct oltp_cpu_source_ops *ops;
	void *source;
	enum oltp_elastic_mode mode;
	uint32_t max_cpus;	/* never hold more, startup set included; 0: no bound */
	uint64_t step_ns;	/* OLTP_ELASTIC_STEP: time between two steps */
	void (*on_move)(void *ctx, const struct oltp_move *move);	/* may be NULL */
	void *on_move_ctx;
};

struct oltp_elastic;

/*
 * Starts a worker on every startup CPU. Errors: -EINVAL, -ENOMEM, -EMFILE, -EAGAIN (no thread),
 * those of startup and of oltp_pool_add.
 */
int oltp_elastic_create(const struct oltp_elastic_config *config,
			struct oltp_elastic **ret_elastic);

/*
 * Stops all workers, gives every CPU back that is not of the startup set and frees everything but
 * pool and source. Accepts NULL.
 */
void oltp_elastic_destroy(struct oltp_elastic *elastic);

/* Stops the workers and gives CPUs back, as destroy; the figures can still be read. */
void oltp_elastic_stop(struct oltp_elastic *elastic);

/* Poll these for reading and call oltp_elastic_run when one is; -1: not used. */
void oltp_elastic_fds(const struct oltp_elastic *elastic, int ret_fds[2]);

/*
 * Looks at the source, finishes moves that have ended and starts moves that are due. Never waits
 * for the source, only for workers that end their last transaction. *ret_wake_ns: call again then,
 * also if nothing happens; UINT64_MAX: no need. ADAPT looks at throughput every 50 ms, with
 * arrivals at the queue every 10 ms. Error: that of view.
 */
int oltp_elastic_run(struct oltp_elastic *elastic, uint64_t now_ns, uint64_t *ret_wake_ns);

struct oltp_latency_summary {
	uint64_t n;		/* calls that succeeded */
	double median_ms, p95_ms;
};

struct oltp_elastic_figures {
	uint64_t cpus_added, cpus_removed;
	uint64_t adds_failed, removes_failed;
	struct oltp_latency_summary add, remove;
	/* The same of those of one tier, by enum oltp_tier; not for OLTP_TIER_NONE. */
	struct oltp_latency_summary tier_add[OLTP_TIERS], tier_remove[OLTP_TIERS];
	bool is_step_done;	/* OLTP_ELASTIC_STEP: up and down again */
};

void oltp_elastic_figures_get(const struct oltp_elastic *elastic,
			      struct oltp_elastic_figures *ret_figures);

/*
 * A source without a host: a list of CPUs, all of one node, of which the first n_startup are the
 * startup set and the others can be had at once, up to a limit that may be changed at any time from
 * any thread. The limit starts at n_cpus. Errors: -EINVAL (n_startup is 0, or above n_cpus),
 * -ENOMEM, -EMFILE. destroy accepts NULL.
 */
extern const struct oltp_cpu_source_ops oltp_source_fixed_ops;
int oltp_source_fixed_create(const uint32_t *cpus, uint32_t n_cpus, uint32_t n_startup,
			     void **ret_source);
void oltp_source_fixed_destroy(void *source);
void oltp_source_fixed_set_limit(void *source, uint32_t limit);

#ifdef __cplusplus
}
#endif

#endif
