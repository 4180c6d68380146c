/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of the fake backend:
 *
 *   fake.c         the world: definitions, starts, stops, restarts of the agent
 *   fake-events.c  chance and the queue of what is to happen
 *   fake-host.c    what libvirt does: plug, unplug, place
 *   fake-device.c  the virtio-ebb device and its link
 *   fake-guest.c   what a guest wants
 *   fake-mem.c     pools, and what a guest does with them
 *   fake-need.c    how much of them it needs
 *   fake-vom.c     what it says that they are worth
 *   fake-load.c    what its vCPUs compute
 */
#ifndef EBB_IO_FAKE_H
#define EBB_IO_FAKE_H

#include <stddef.h>

#include "backend/backend.h"

#define FAKE_DEVICE_TIMEOUT	(15 * EBB_USEC_PER_SEC)	/* as request_timeout_ms of the device */

enum fake_event_type {
	FAKE_EVENT_ACTION_END,		/* a host action takes effect */
	FAKE_EVENT_TO_DEVICE,		/* a link message arrives at the device */
	FAKE_EVENT_HELLO,		/* the device's HELLO arrives at the agent */
	FAKE_EVENT_MEM,			/* its MEM does */
	FAKE_EVENT_VOM,			/* a histogram of the guest arrives there */
	FAKE_EVENT_REQUEST,		/* a REQUEST arrives at the agent */
	FAKE_EVENT_CONNECT,		/* the device tries to connect */
	FAKE_EVENT_DRIVER,		/* the guest has booted far enough */
	FAKE_EVENT_THINK,		/* the guest looks at what it has and may have */
};

struct fake_event {
	usec_t at;
	uint64_t seq;			/* order among events of the same time */
	enum fake_event_type type;
	struct fake_vm *vm;
	uint64_t run;			/* of the VM, or the event is void */
	uint64_t connection;		/* of the link, for messages, or the event is void */
	struct fake_hello *hello;	/* HELLO, MEM (pools only); owned */
	struct fake_vom *vom;		/* VOM; owned */
	struct ebb_action action;	/* ACTION_END, TO_DEVICE */
	struct ebb_fact_request request; /* REQUEST */
};

/* As it was when the device sent it. */
struct fake_hello {
	struct ebb_fact_hello h;
	struct ebb_hello_cpu cpus[EBB_MAX_VCPUS];
	struct ebb_pool_fact pools[EBB_MAX_GUEST_NODES];
};

struct fake_vom {
	struct ebb_fact_vom f;
	struct ebb_vom_bucket buckets[EBB_MAX_VOM_BUCKETS];
};

struct fake_pool {
	struct ebb_fake_pool pub;
	uint32_t mirrored;		/* requested size as libvirt knows it */
	usec_t due_at;			/* deadline of a demand as the guest was told, or 0 */
};

struct fake_vcpu {
	struct ebb_fake_vcpu pub;
	uint64_t granted;		/* order of grants */
	uint64_t cpu_usec, wait_usec;	/* fake-load.c */
};

struct fake_request {
	bool is_used;
	struct ebb_fact_request r;
	usec_t sent_at;
};

struct fake_vm {
	uint8_t uuid[16];
	char name[EBB_NAME_SIZE];
	struct ebb_sla sla;
	enum ebb_fake_guest guest;
	bool is_running, is_connected, is_welcome, has_driver, is_thinking;
	bool can_lend, can_vom;		/* the driver that runs, or ran last */
	uint32_t vom_seq;		/* last number that this boot has answered */
	bool must_clear;		/* the driver found CPUs of an earlier boot */
	uint64_t run, connection, resets, order;
	uint16_t want[EBB_MAX_GUEST_NODES]; /* of a guest that is EBB_FAKE_WANTING */
	bool is_asking[EBB_MAX_GUEST_NODES]; /* it has not asked beyond its limit yet */
	usec_t reset_at;		/* of the device: no driver since, unless has_driver */
	usec_t job_until;		/* libvirt does one thing at a time for a domain */
	usec_t to_device_at, to_agent_at; /* messages do not overtake each other */
	struct fake_pool pools[EBB_MAX_GUEST_NODES];
	uint32_t need[EBB_MAX_GUEST_NODES]; /* blocks; UINT32_MAX: all that there are */
	uint64_t cap_bytes;		/* 0: never set */
	uint16_t load, throttle;	/* thousandths of a core, of each vCPU; throttle 0: none */
	bool has_limits;
	struct ebb_action_limits limits;
	uint16_t num_vcpus;
	struct fake_vcpu vcpus[EBB_MAX_VCPUS];
	struct fake_request requests[VIRTIO_EBB_MAX_INFLIGHT];
};

struct ebb_fake {
	struct ebb_fake_config cfg;
	struct ebb_sink sink;
	uint64_t chance;
	uint64_t next_seq, next_tag, next_order, next_grant;
	bool has_agent;
	size_t num_vms;
	struct fake_vm *vms[EBB_MAX_VMS];
	size_t num_events, max_events;
	struct fake_event *events;	/* heap, earliest first */
	char violation[EBB_TEXT_SIZE];
};

/* fake-events.c */
uint64_t fake_chance(struct ebb_fake *f, uint64_t below);
bool fake_permille(struct ebb_fake *f, uint32_t permille);
usec_t fake_between(struct ebb_fake *f, const usec_t *range);
/* The new event, to be filled in before the next call; NULL: out of memory, the event is lost. */
struct fake_event *fake_event_add(struct ebb_fake *f, usec_t at, enum fake_event_type type,
				  struct fake_vm *vm);
void fake_event_finish(struct fake_event *e);	/* frees what it owns */
bool fake_event_pop(struct ebb_fake *f, usec_t now, struct fake_event *ret_event);
/* Takes the earliest event of a type, whatever its time. */
bool fake_event_take(struct ebb_fake *f, enum fake_event_type type, struct fake_event *ret_event);
/* No event is about the VM any more. */
void fake_event_forget(struct ebb_fake *f, const struct fake_vm *vm);
void fake_violate(struct ebb_fake *f, const struct fake_vm *vm, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* fake.c */
void fake_report(struct ebb_fake *f, usec_t now, const struct fake_vm *vm, struct ebb_fact *fact);

/* fake-host.c */
void fake_host_submit(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		      const struct ebb_action *action);
/* Carries the action out; 0 or -errno for its ACTION_DONE. */
int fake_host_end(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		  const struct ebb_action *action);

/* fake-device.c */
void fake_device_submit(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
			const struct ebb_action *action);
void fake_device_receive(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
			 const struct ebb_action *action);
void fake_device_connect(struct ebb_fake *f, usec_t now, struct fake_vm *vm);
void fake_device_disconnect(struct ebb_fake *f, usec_t now, struct fake_vm *vm, bool report);
void fake_device_reset(struct ebb_fake *f, usec_t now, struct fake_vm *vm);
void fake_device_mem(struct ebb_fake *f, usec_t now, struct fake_vm *vm);
void fake_device_vom(struct ebb_fake *f, usec_t now, struct fake_vm *vm);
void fake_device_hello(struct ebb_fake *f, usec_t now, struct fake_vm *vm, bool is_first);
void fake_device_request(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
			 const struct ebb_fact_request *request);

/* fake-mem.c */
void fake_mem_define(const struct ebb_fake *f, struct fake_vm *vm);
/* The VM starts, or has gone: nothing is plugged. */
void fake_mem_clear(struct fake_vm *vm);
/* Nothing is plugged after a reset of the machine, or once a driver has begun anew. */
void fake_mem_unplug_all(struct ebb_fake *f, usec_t now, struct fake_vm *vm);
uint16_t fake_mem_list(const struct fake_vm *vm, struct ebb_pool_fact *ret_pools);
void fake_mem_limits(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		     const struct ebb_action_limits *limits);
void fake_mem_revoke(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		     const struct ebb_action_pool *revoke);
/* libvirt sets the requested size. */
int fake_mem_mirror(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		    const struct ebb_action_pool *mirror);
/* Returns whether the guest has more to do. */
bool fake_mem_think(struct ebb_fake *f, usec_t now, struct fake_vm *vm);

/* fake-need.c */
void fake_need_define(struct fake_vm *vm);
/* Blocks that it would take of the guest node if it were offered them. */
uint32_t fake_need_left(const struct fake_vm *vm, uint16_t g);

/* fake-vom.c */
/* The guest has a number to answer; and its answer, NULL: out of memory. */
bool fake_vom_is_asked(const struct fake_vm *vm);
struct fake_vom *fake_vom_make(struct ebb_fake *f, struct fake_vm *vm);

/* fake-guest.c */
void fake_guest_wake(struct ebb_fake *f, usec_t now, struct fake_vm *vm);
/* A boot is over: nothing that it had is in use any more. */
void fake_guest_forget(struct ebb_fake_vcpu *v);
void fake_guest_think(struct ebb_fake *f, usec_t now, struct fake_vm *vm);

#endif /* EBB_IO_FAKE_H */
