/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The core's work for a VM in the next cycle; rooms add to it by calls (room.h). */
#ifndef EBB_CORE_WORK_H
#define EBB_CORE_WORK_H

#include "model/types.h"

struct ebb_vm_work {
	uint16_t slot;			/* in ebb_state.slots; part of the ids of its actions */
	uint16_t place;			/* in core_env.active; EBB_MAX_VMS: it does not run */
	uint16_t view;			/* in the view and plan that are being made */
	bool is_found;			/* was running when the agent started */
	bool has_hello;			/* a HELLO came in this run */
	bool has_come;			/* from another host, in this run */
	bool counts_as_driven;		/* has a driver as far as planning goes */
	bool is_void;			/* the definition became invalid; the last SLA is in use */
	bool is_refused;		/* running, but its floor does not fit */
	bool is_welcome_due;
	bool is_close_due;
	bool is_account_due;		/* the device is to keep the counters of now */
	struct ebb_action_welcome welcome;
	usec_t wake_at;			/* while the VM is reconciled: when it has to be again, as
					 * far as is known; then it goes to ebb_state.wakes */
	uint16_t num_responses;
	struct ebb_action_response responses[VIRTIO_EBB_MAX_INFLIGHT];
};

#endif /* EBB_CORE_WORK_H */
