/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decision records: what the core tells the history of what it decided, and of promises. */
#ifndef EBB_MODEL_RECORD_H
#define EBB_MODEL_RECORD_H

#include "model/ledger.h"
#include "model/types.h"

enum ebb_event {
	EBB_EVENT_JOIN,			/* a VM started, or was found running */
	EBB_EVENT_LEAVE,
	EBB_EVENT_REQUEST,		/* the guest asks for CPUs; cpus: how many */
	EBB_EVENT_GRANT,		/* cpus were granted, asked were asked for */
	EBB_EVENT_REFUSE,		/* nothing granted or released; code says why */
	EBB_EVENT_RELEASE,		/* the guest gave a CPU back; cpus 0: it had no
					 * core any more */
	EBB_EVENT_OFFER,		/* the limit of a node rose to cpus */
	EBB_EVENT_DEMAND,		/* the limit fell to cpus, below what is held */
	EBB_EVENT_FORCE,		/* the host took cores away on its own */
	EBB_EVENT_UNFORCE,		/* a forced CPU has a core again */
	EBB_EVENT_RECLAIM,		/* a plugged vCPU that nobody holds is unplugged */
	EBB_EVENT_LINK,			/* HELLO or loss of the link */
	EBB_EVENT_SLA,			/* definition or SLA changed */
	EBB_EVENT_POLICY,		/* policy changed, or a plan of it was clamped */
	EBB_EVENT_ERROR,		/* an action failed, or a VM cannot be managed */
	EBB_EVENT_MEM_OFFER,		/* the memory limit of a node rose to bytes */
	EBB_EVENT_MEM_DEMAND,		/* it fell to bytes */
	EBB_EVENT_MEM_RELEASE,		/* the guest gave bytes back */
	EBB_EVENT_MEM_REVOKE,		/* the host took bytes; times count from the deadline */
	EBB_EVENT_LEND,			/* the guest gave a core back and keeps the CPU;
					 * cpus 0: there was none any more */
	EBB_EVENT_CHARGE,		/* what a run of a VM has held so far: charge[] */
	EBB_EVENT_CONDUCT,		/* a verdict on the guest begins or ends */
	EBB_EVENT_BROKER,		/* memory ran short: the bytes that the VM is asked for on a
					 * node, and why this VM (broker) */
	EBB_EVENT_VIOLATION,		/* a resource of the host is beyond its threshold, or no
					 * more: code; memory: bytes held; at the end: total_usec */
	EBB_EVENT_MOVE,			/* the VM should move to another host, or need not any more:
					 * code; bytes to copy; at the end: total_usec */
	EBB_EVENT_REBALANCE,		/* cpus vCPUs of the VM change shared cores; or, of the
					 * host: its shared cores are hot and no change of places
					 * helps, or that is over */
	EBB_EVENT_THROTTLE,		/* each vCPU of the VM may use cpus thousandths of a
					 * shared core; 1000: as much as it likes */
	EBB_EVENT_VOLUME,		/* the volume server keeps another promise; or, of the
					 * host: it answers again */
	EBB_EVENT_LEDGER,		/* what a promise to a VM has come to so far: ledger; code:
					 * enum ebb_cause, text: why, if this interval broke it */
	EBB_EVENT_QUORUM,		/* the host has lost the quorum of its cluster, or has it
					 * again */
	EBB_EVENT_MAX,
};

/* Resources that are promised to VMs and metered. */
enum ebb_promise {
	EBB_PROMISE_CPU,		/* units: microseconds of CPU time */
	EBB_PROMISE_MEM,		/* a cache; units: I/Os, see core/promise/cache.h */
	EBB_PROMISE_IO,			/* of a volume; units: docs/volume-protocol.md, "meters" */
	EBB_PROMISE_MAX,
};

/* Why a promise was broken: where most of the CPU time, memory or I/O was that the VM lacked. */
enum ebb_cause {
	EBB_CAUSE_NONE,			/* the promise was kept */
	EBB_CAUSE_OTHERS,		/* to other VMs */
	EBB_CAUSE_OVERBOOKED,		/* to other VMs: more is promised than there is */
	EBB_CAUSE_ITSELF,		/* to other vCPUs of the VM on the same core; memory: it
					 * had as much as was promised, or did not take it */
	EBB_CAUSE_LIMIT,		/* the VM was held to its maximum, or throttled */
	EBB_CAUSE_HOST,			/* to programs of the host that are no vCPUs; I/O: to
					 * nobody, the disk was slower than it can be */
	EBB_CAUSE_MAX,
};

/* One decision with the numbers that led to it. */
struct ebb_record {
	usec_t at;
	enum ebb_event event;
	uint8_t uuid[16];		/* all 0: about the host */
	char name[EBB_NAME_SIZE];	/* of the VM */
	uint16_t node;			/* guest node, or EBB_NODE_ANY; VIOLATION, MOVE: host's */
	uint16_t cpus;			/* by event */
	uint16_t asked;			/* GRANT, REFUSE: CPUs asked for */
	uint16_t code;			/* VIRTIO_EBB_REASON_*, or ebb_pressed_code() */
	uint64_t bytes;			/* MEM_*: by event */
	/*
	 * GRANT, RELEASE, LEND, REFUSE, MEM_REVOKE: microseconds; all 0 where the answer went out
	 * at once because nothing had to be done.  CHARGE: total_usec only, for how long charge[]
	 * was counted until `at`.
	 */
	usec_t agent_usec;		/* request received -> first action issued */
	usec_t libvirt_usec;		/* -> last plug or unplug ended */
	usec_t place_usec;		/* -> last placement ended */
	usec_t total_usec;		/* request received -> answer issued */
	uint64_t order;			/* CHARGE: of the VM's run (ebb_fact_vm_running.order) */
	/*
	 * CHARGE: counters by class.  CPUs up to ebb_sla_node.reserved and memory up to mem_min
	 * count as reserved, the rest as spot.  (For a VM of class spot `reserved` is its startup
	 * set.)
	 */
	struct {
		uint64_t core_usec;	/* microseconds times CPUs with a core */
		uint64_t mib_msec;	/* milliseconds times MiB of pool memory */
	} charge[EBB_CLASS_MAX];
	/* BROKER: as ebb_vom_bucket.value; 0 where the policy does not go by values. */
	struct {
		uint64_t cutoff;	/* memory worth less is asked for */
		uint64_t low, high;	/* least value that the other VMs on that node of the host
					 * keep: the lowest and the highest of them */
		uint32_t num_others;	/* VMs with memory on that node of the host */
		usec_t age;		/* of its histogram; EBB_TIME_NEVER: it has none */
	} broker;
	/*
	 * LEDGER: total_usec is for how long it was counted until `at`, as with CHARGE.  About the
	 * host: I/O that is charged to the tenant of its own work (name: EBB_SYSTEM_NAME).
	 */
	struct {
		enum ebb_promise promise;
		char volume[EBB_VOLUME_NAME_SIZE]; /* IO: its name; else "" */
		uint64_t rate;		/* promised units for each second of work, now; of a cache:
					 * its size in MiB */
		struct ebb_ledger sum;
	} ledger;
	struct ebb_sla sla;		/* event SLA: the new one; otherwise num_nodes is 0 */
	char text[EBB_TEXT_SIZE];	/* the reason, for people */
};

/* Lower-case name as in the history and the CLI; "?" for what is not known. */
const char *ebb_event_name(enum ebb_event event);
/* Of a promise, its name ("cpu") and unit ("usec"); of a cause ("others", "overbooked", ...). */
const char *ebb_promise_name(enum ebb_promise promise);
const char *ebb_promise_unit(enum ebb_promise promise);
const char *ebb_cause_name(enum ebb_cause cause);

/* Of a LEDGER record: "cpu", "memory", or of a volume "io/NAME".  ret: EBB_RESOURCE_SIZE bytes. */
#define EBB_RESOURCE_SIZE	(EBB_VOLUME_NAME_SIZE + 8)
void ebb_record_resource(const struct ebb_record *r, char *ret);

#endif /* EBB_MODEL_RECORD_H */
