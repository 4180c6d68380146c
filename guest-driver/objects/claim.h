/* SPDX-License-Identifier: GPL-2.0-only */
/* Which virtio-mem devices are pools, and what pools know of the control device. */
#ifndef EBB_CLAIM_H
#define EBB_CLAIM_H

#include <linux/device.h>
#include <linux/spinlock.h>

#include "pure/wire.h"
#include "transport/queues.h"

struct ebb_control;

struct ebb_control_ops {
	/* Memory came back: programs that wait for limits must look again.  Process context. */
	void (*changed)(struct ebb_control *control);
};

/* Blocks that the host names: a level, and what of it has not been acted on yet. */
struct ebb_range_level {
	u32 count;		/* of ranges */
	struct ebb_wire_range ranges[VIRTIO_EBB_MAX_RANGES];
};

/* The control device, as pools see it. */
struct ebb_control {
	struct ebb_queues *queues;	/* whose reference is the control device's */
	const struct ebb_wire_config *cfg;
	const struct ebb_control_ops *ops;

	spinlock_t lock;		/* what follows */
	struct ebb_range_level revoked;	/* the host took them */
	struct ebb_range_level leaving;	/* it wants them unplugged at once */
};

/* Call this before all other functions of this file; control is zeroed. */
void ebb_control_setup(struct ebb_control *control, struct ebb_queues *queues,
		       const struct ebb_control_ops *ops);

/*
 * The control device is there: pools are claimed when this returns.  Or (NULL) it
 * is about to go: nothing uses it when this returns.
 */
void ebb_claim_set_control(struct ebb_control *control);

/* The control device with a reference, or NULL. */
struct ebb_control *ebb_control_get(void);
void ebb_control_put(struct ebb_control *control);

/*
 * From when the driver of pools is registered, before it is offered a device, until
 * just before it goes: looks for pools that other drivers get, and after devices
 * that are not pools.
 */
int ebb_claim_start(const struct device_driver *driver);
void ebb_claim_stop(const struct device_driver *driver);

/* The control device lists a pool with the region of this device: -ENODEV if not. */
int ebb_claim_check(struct virtio_device *vdev);

/* Programs that wait for limits must look again: memory came back. */
void ebb_claim_wake(void);

#endif /* EBB_CLAIM_H */
