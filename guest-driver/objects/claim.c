// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which virtio-mem devices are pools: those that the control device lists.
 * Control device and pools may come in any order, and the in-tree driver may be
 * faster than this one, since it was loaded earlier; what it has taken and not
 * used is taken away from it.
 */
#include "objects/claim.h"

#include <linux/device.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_mem.h>

#include "objects/pool.h"

static DEFINE_MUTEX(control_lock);
static struct ebb_control *current_control;

static void claim_all(struct work_struct *work);
static DECLARE_WORK(claim_work, claim_all);

void ebb_control_setup(struct ebb_control *control, struct ebb_queues *queues,
		       const struct ebb_control_ops *ops)
{
	control->queues = queues;
	control->cfg = queues->cfg;
	control->ops = ops;
	spin_lock_init(&control->lock);
}

struct ebb_control *ebb_control_get(void)
{
	struct ebb_control *control;

	mutex_lock(&control_lock);
	control = current_control;
	if (control)
		ebb_ref_get(control->queues->ref);
	mutex_unlock(&control_lock);
	return control;
}

void ebb_control_put(struct ebb_control *control)
{
	ebb_ref_put(control->queues->ref);
}

int ebb_claim_check(struct virtio_device *vdev)
{
	struct ebb_control *control = ebb_control_get();
	u64 addr, size_bytes, block_bytes;
	int rc = -ENODEV;
	u16 pxm;
	u32 i;

	if (!control)
		return -ENODEV;
	virtio_cread_le(vdev, struct virtio_mem_config, addr, &addr);
	virtio_cread_le(vdev, struct virtio_mem_config, region_size, &size_bytes);
	virtio_cread_le(vdev, struct virtio_mem_config, block_size, &block_bytes);
	virtio_cread_le(vdev, struct virtio_mem_config, node_id, &pxm);
	for (i = 0; i < control->cfg->num_pools; i++) {
		const struct ebb_wire_pool *p = &control->cfg->pools[i];

		if (p->addr == addr && p->size_bytes == size_bytes &&
		    p->block_bytes == block_bytes && p->pxm == pxm)
			rc = 0;
	}
	ebb_control_put(control);
	return rc;
}

void ebb_claim_wake(void)
{
	struct ebb_control *control = ebb_control_get();

	if (!control)
		return;
	control->ops->changed(control);
	ebb_control_put(control);
}

/* Takes a listed device away from another driver, if that has nothing plugged. */
static int take_away(struct device *dev, void *data)
{
	struct virtio_device *vdev = dev_to_virtio(dev);
	u64 plugged_bytes = 0;
	bool is_others;

	if (vdev->id.device != VIRTIO_ID_MEM)
		return 0;
	device_lock(dev);
	is_others = dev->driver && !ebb_pool_is_driver(dev->driver) && !ebb_claim_check(vdev);
	if (is_others)
		virtio_cread_le(vdev, struct virtio_mem_config, plugged_size, &plugged_bytes);
	device_unlock(dev);
	if (!is_others)
		return 0;
	if (plugged_bytes) {
		dev_err(dev, "a pool, but it stays with another driver, that plugged %llu MiB\n",
			plugged_bytes >> 20);
		return 0;
	}
	dev_info(dev, "is a pool, taking it from the driver that has it\n");
	device_release_driver(dev);
	return 0;
}

static void claim_all(struct work_struct *work)
{
	struct ebb_control *control = ebb_control_get();

	if (!control)
		return;
	if (control->cfg->num_pools) {
		bus_for_each_dev(control->queues->vdev->dev.bus, NULL, NULL, take_away);
		ebb_pool_attach_all();
	}
	ebb_control_put(control);
}

/*
 * The driver of pools has refused a device, which Linux took for its failure and
 * told the device.  The driver that it is for is to find it as it was.
 */
static void forget_failure(struct virtio_device *vdev)
{
	virtio_reset_device(vdev);
	virtio_add_status(vdev, VIRTIO_CONFIG_S_ACKNOWLEDGE);
}

static int driver_changed(struct notifier_block *nb, unsigned long action, void *data)
{
	struct device *dev = data;
	struct virtio_device *vdev = dev_to_virtio(dev);

	if (vdev->id.device != VIRTIO_ID_MEM)
		return NOTIFY_OK;
	if (action == BUS_NOTIFY_BOUND_DRIVER && !ebb_pool_is_driver(dev->driver))
		schedule_work(&claim_work);
	else if (action == BUS_NOTIFY_DRIVER_NOT_BOUND && ebb_pool_is_driver(dev->driver) &&
		 ebb_claim_check(vdev))
		forget_failure(vdev);
	return NOTIFY_OK;
}

static struct notifier_block driver_changed_nb = {
	.notifier_call = driver_changed,
};

int ebb_claim_start(const struct device_driver *driver)
{
	return bus_register_notifier(driver->bus, &driver_changed_nb);
}

void ebb_claim_stop(const struct device_driver *driver)
{
	bus_unregister_notifier(driver->bus, &driver_changed_nb);
	cancel_work_sync(&claim_work);
}

void ebb_claim_set_control(struct ebb_control *control)
{
	struct ebb_control *old;

	mutex_lock(&control_lock);
	old = current_control;
	current_control = control;
	if (control)
		ebb_ref_get(control->queues->ref);
	mutex_unlock(&control_lock);

	if (control)
		schedule_work(&claim_work);
	flush_work(&claim_work);
	if (!old)
		return;
	flush_workqueue(ebb_mem_wq);
	ebb_control_put(old);
}
