// SPDX-License-Identifier: GPL-2.0-only
/* Driver of the virtio-ebb device: finding it, losing it, hearing of its status. */
#include "dev.h"
#include "objects/pool.h"

#include <linux/acpi.h>
#include <linux/atomic.h>
#include <linux/crash_dump.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/virtio_config.h>

/* There is one /dev/ebb, and a VM has one device. */
static atomic_t ebb_is_in_use = ATOMIC_INIT(0);

struct workqueue_struct *ebb_wq;
struct workqueue_struct *ebb_mem_wq;

static void release_dev(struct kref *ref)
{
	struct ebb_dev *ebb = container_of(ref, struct ebb_dev, ref);

	put_device(&ebb->vdev->dev);
	kvfree(ebb->cpuset.entries);
	kfree(ebb->events);
	kfree(ebb->telemetry);
	kfree(ebb->vom);
	kfree(ebb);
}

void ebb_dev_put(struct ebb_dev *ebb)
{
	kref_put(&ebb->ref, release_dev);
}

void ebb_dev_fail(struct ebb_dev *ebb, const char *why)
{
	if (READ_ONCE(ebb->is_dead))
		return;
	dev_err(&ebb->vdev->dev, "%s: device not used any more, reload the driver to reset it\n",
		why);
	ebb_vq_stop(ebb);
	ebb_limits_wake(ebb);
}

static void read_status(struct ebb_dev *ebb)
{
	unsigned long irqflags;
	bool is_up, is_back;
	__le32 status;

	/* Not virtio_cread_le(), which may sleep: this is also called in the interrupt. */
	ebb->vdev->config->get(ebb->vdev, offsetof(struct virtio_ebb_config, status), &status,
			       sizeof(status));
	is_up = le32_to_cpu(status) & VIRTIO_EBB_S_AGENT_UP;

	spin_lock_irqsave(&ebb->lock, irqflags);
	is_back = is_up && !ebb->is_agent_up;
	ebb->is_agent_up = is_up;
	if (is_back)
		ebb_cpuset_retry_now(&ebb->cpuset);
	spin_unlock_irqrestore(&ebb->lock, irqflags);
	if (is_back)
		ebb_kick_returns(ebb, 0);
	wake_up_all(&ebb->returned_wait);
}

static void ebb_config_changed(struct virtio_device *vdev)
{
	struct ebb_dev *ebb = vdev->priv;

	if (vdev->config->get_status(vdev) & VIRTIO_CONFIG_S_NEEDS_RESET)
		ebb_dev_fail(ebb, "the device needs a reset");
	else
		read_status(ebb);
}

static int read_pools(struct ebb_dev *ebb)
{
	struct ebb_wire_config *cfg = &ebb->cfg;
	struct virtio_device *vdev = ebb->vdev;
	struct virtio_ebb_pool pool;
	u32 i;
	int rc = 0;

	virtio_cread_le(vdev, struct virtio_ebb_config, num_pools, &cfg->num_pools);
	if (cfg->num_pools > VIRTIO_EBB_MAX_NODES ||
	    (cfg->num_pools && !virtio_has_feature(vdev, VIRTIO_EBB_F_MEM)))
		return -EPROTO;
	for (i = 0; i < cfg->num_pools && !rc; i++) {
		virtio_cread_bytes(vdev, offsetof(struct virtio_ebb_config, pools[i]), &pool,
				   sizeof(pool));
		rc = ebb_wire_read_pool(&pool, &cfg->pools[i]);
	}
	return rc;
}

static int read_config(struct ebb_dev *ebb)
{
	struct ebb_wire_config *cfg = &ebb->cfg;
	struct virtio_device *vdev = ebb->vdev;
	u16 proto, num_nodes;
	u32 i;

	virtio_cread_le(vdev, struct virtio_ebb_config, proto, &proto);
	virtio_cread_le(vdev, struct virtio_ebb_config, num_nodes, &num_nodes);
	virtio_cread_le(vdev, struct virtio_ebb_config, max_cpus, &cfg->max_cpus);
	virtio_cread_le(vdev, struct virtio_ebb_config, num_startup_cpus, &cfg->num_startup_cpus);
	virtio_cread_le(vdev, struct virtio_ebb_config, request_timeout_ms,
			&cfg->request_timeout_ms);
	cfg->proto = proto;
	cfg->num_nodes = num_nodes;
	cfg->can_lend = virtio_has_feature(vdev, VIRTIO_EBB_F_LEND);
	cfg->has_vom = virtio_has_feature(vdev, VIRTIO_EBB_F_VOM) &&
		virtio_has_feature(vdev, VIRTIO_EBB_F_MEM);
	cfg->can_leave = virtio_has_feature(vdev, VIRTIO_EBB_F_LEAVE) &&
		virtio_has_feature(vdev, VIRTIO_EBB_F_MEM);

	if (proto != VIRTIO_EBB_PROTO) {
		dev_err(&vdev->dev, "the device speaks protocol %u, this driver %u\n", proto,
			VIRTIO_EBB_PROTO);
		return -EPROTO;
	}
	if (read_pools(ebb) || ebb_wire_check_config(cfg)) {
		dev_err(&vdev->dev,
			"impossible: %u nodes, %u CPUs, %u at start, timeout %u ms, %u pools\n",
			num_nodes, cfg->max_cpus, cfg->num_startup_cpus, cfg->request_timeout_ms,
			cfg->num_pools);
		return -EPROTO;
	}

	for (i = 0; i < cfg->num_nodes; i++)
		ebb->linux_node[i] = pxm_to_node(i);
	ebb_wire_fill_nodes(ebb->linux_node, cfg->num_nodes);
	return 0;
}

static struct ebb_dev *create_dev(struct virtio_device *vdev)
{
	struct ebb_dev *ebb = kzalloc(sizeof(*ebb), GFP_KERNEL);

	if (!ebb)
		return NULL;
	kref_init(&ebb->ref);
	spin_lock_init(&ebb->lock);
	spin_lock_init(&ebb->event_lock);
	init_waitqueue_head(&ebb->limits_wait);
	init_waitqueue_head(&ebb->returned_wait);
	get_device(&vdev->dev);
	ebb->vdev = vdev;
	vdev->priv = ebb;
	return ebb;
}

static int create_cpuset(struct ebb_dev *ebb)
{
	/*
	 * Twice as many as the VM can have: a CPU may be granted again before
	 * this side has heard that the host took it back.
	 */
	unsigned int capacity = 2 * ebb->cfg.max_cpus;
	struct ebb_cpu_entry *storage = kvcalloc(capacity, sizeof(*storage), GFP_KERNEL);

	if (!storage)
		return -ENOMEM;
	ebb_cpuset_init(&ebb->cpuset, storage, capacity, ebb->cfg.can_lend);
	return 0;
}

static void stop_dev(struct ebb_dev *ebb)
{
	ebb_vq_stop(ebb);
	ebb_claim_set_control(NULL);
	ebb_event_stop(ebb);
	virtio_reset_device(ebb->vdev);
	ebb_vq_finish(ebb);
	/* Nobody would know any more when to end it. */
	ebb_hotplug_hold_none();
}

static int ebb_validate(struct virtio_device *vdev)
{
	if (virtio_has_feature(vdev, VIRTIO_F_VERSION_1))
		return 0;
	dev_err(&vdev->dev, "a legacy device can not be\n");
	return -EINVAL;
}

static int ebb_probe(struct virtio_device *vdev)
{
	struct ebb_dev *ebb;
	int rc;

	if (atomic_cmpxchg(&ebb_is_in_use, 0, 1)) {
		dev_err(&vdev->dev, "there is a virtio-ebb device already\n");
		return -EBUSY;
	}
	ebb = create_dev(vdev);
	if (!ebb) {
		rc = -ENOMEM;
		goto out_unused;
	}
	rc = read_config(ebb);
	if (rc)
		goto out_put;
	rc = create_cpuset(ebb);
	if (rc)
		goto out_put;
	rc = ebb_vq_init(ebb);
	if (rc)
		goto out_put;

	/*
	 * Before the device knows that there is a driver of pools: it offers
	 * memory from then on, and another driver would plug it.
	 */
	ebb_claim_set_control(ebb);
	virtio_device_ready(vdev);
	rc = ebb_event_fill(ebb);
	if (rc)
		goto out_stop;
	rc = ebb_cpu_read_state(ebb);
	if (rc) {
		dev_err(&vdev->dev, "can not read which CPUs the VM has: %d\n", rc);
		goto out_stop;
	}
	read_status(ebb);
	rc = ebb_chardev_register(ebb);
	if (rc)
		goto out_stop;
	dev_info(&vdev->dev,
		 "%u of at most %u CPUs, %u nodes, %u CPUs to be returned, %u lent, %u pools\n",
		 ebb->cfg.num_startup_cpus, ebb->cfg.max_cpus, ebb->cfg.num_nodes,
		 ebb_cpuset_num_hotplug(&ebb->cpuset), ebb_cpuset_num_lent(&ebb->cpuset),
		 ebb->cfg.num_pools);
	ebb_kick_returns(ebb, 0);
	return 0;

out_stop:
	stop_dev(ebb);
out_put:
	ebb_dev_put(ebb);
out_unused:
	atomic_set(&ebb_is_in_use, 0);
	return rc;
}

static void ebb_remove(struct virtio_device *vdev)
{
	struct ebb_dev *ebb = vdev->priv;

	ebb_chardev_unregister(ebb);
	spin_lock_irq(&ebb->lock);
	WRITE_ONCE(ebb->is_closing, true);
	spin_unlock_irq(&ebb->lock);
	ebb_limits_wake(ebb);
	/* Pulled out without asking: there is nobody to return anything to. */
	if (virtqueue_is_broken(ebb->vqs[VIRTIO_EBB_VQ_REQUEST]))
		ebb_vq_stop(ebb);
	ebb_return_all(ebb);
	stop_dev(ebb);
	ebb_dev_put(ebb);
	atomic_set(&ebb_is_in_use, 0);
}

#ifdef CONFIG_PM_SLEEP
/* The device does not know what it would have to keep for a guest that sleeps. */
static int ebb_freeze(struct virtio_device *vdev)
{
	dev_err(&vdev->dev, "suspend is not supported\n");
	return -EPERM;
}

static int ebb_restore(struct virtio_device *vdev)
{
	return -EPERM;
}
#endif

static const struct virtio_device_id ebb_ids[] = {
	{ VIRTIO_ID_EBB, VIRTIO_DEV_ANY_ID },
	{ 0 },
};
MODULE_DEVICE_TABLE(virtio, ebb_ids);

static const unsigned int ebb_features[] = {
	VIRTIO_EBB_F_MEM,
	VIRTIO_EBB_F_LEND,
	VIRTIO_EBB_F_VOM,
	VIRTIO_EBB_F_LEAVE,
};

static struct virtio_driver ebb_driver = {
	.driver.name = "virtio_ebb",
	.driver.owner = THIS_MODULE,
	.feature_table = ebb_features,
	.feature_table_size = ARRAY_SIZE(ebb_features),
	.id_table = ebb_ids,
	.validate = ebb_validate,
	.probe = ebb_probe,
	.remove = ebb_remove,
	.config_changed = ebb_config_changed,
#ifdef CONFIG_PM_SLEEP
	.freeze = ebb_freeze,
	.restore = ebb_restore,
#endif
};

static int __init ebb_init(void)
{
	int rc;

	/*
	 * The kernel that crashed used these devices, and this one saves its
	 * memory: what is plugged must stay, and no device may be reset.
	 */
	if (is_kdump_kernel()) {
		pr_info("ebb: crash kernel, its devices are left alone\n");
		return -ENODEV;
	}
	ebb_wq = alloc_ordered_workqueue("ebb", 0);
	if (!ebb_wq)
		return -ENOMEM;
	/* Unbound: no work waits for the CPU that another one happens to be on. */
	ebb_mem_wq = alloc_workqueue("ebb_mem", WQ_HIGHPRI | WQ_UNBOUND, 0);
	if (!ebb_mem_wq) {
		rc = -ENOMEM;
		goto out_wq;
	}
	rc = ebb_hotplug_init();
	if (rc)
		goto out_mem_wq;
	rc = ebb_pool_init();
	if (rc)
		goto out_hotplug;
	rc = register_virtio_driver(&ebb_driver);
	if (rc)
		goto out_pool;
	return 0;

out_pool:
	ebb_pool_exit();
out_hotplug:
	ebb_hotplug_exit();
out_mem_wq:
	destroy_workqueue(ebb_mem_wq);
out_wq:
	destroy_workqueue(ebb_wq);
	return rc;
}
module_init(ebb_init);

static void __exit ebb_exit(void)
{
	/* Pools first: what the host revoked in between is still heard of. */
	ebb_pool_exit();
	unregister_virtio_driver(&ebb_driver);
	destroy_workqueue(ebb_mem_wq);
	destroy_workqueue(ebb_wq);
	ebb_hotplug_exit();
}
module_exit(ebb_exit);

MODULE_DESCRIPTION("Elastic CPUs and memory from the host, over virtio-ebb");
MODULE_LICENSE("GPL");
