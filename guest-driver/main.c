// SPDX-License-Identifier: GPL-2.0-only
/*
 * Driver of the virtio-ebb device: finding it, losing it, hearing of its status.
 * Here all is put together: nothing else knows struct ebb_dev.
 */
#include <linux/acpi.h>
#include <linux/atomic.h>
#include <linux/crash_dump.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/virtio_config.h>

#include "files/chardev.h"
#include "hotplug/hotplug.h"
#include "objects/blocks.h"
#include "objects/claim.h"
#include "objects/limits.h"
#include "objects/pool.h"
#include "objects/vcpu.h"
#include "transport/queues.h"

struct ebb_dev {
	struct ebb_ref ref;		/* of the virtio device, every open file and queued work */
	struct virtio_device *vdev;	/* its memory is kept until ref is 0 */
	struct ebb_wire_config cfg;	/* constant after probe */
	struct ebb_queues queues;
	struct ebb_limit_state limits;
	struct ebb_vcpus vcpus;
	struct ebb_control control;
	struct ebb_chardev chardev;
};

/* There is one /dev/ebb, and a VM has one device. */
static atomic_t ebb_is_in_use = ATOMIC_INIT(0);

/* Ordered: work of one device never meets.  Of the module: see ebb_queues_stop(). */
static struct workqueue_struct *ebb_wq;
static struct workqueue_struct *mem_wq;

static struct ebb_dev *dev_of_queues(struct ebb_queues *q)
{
	return container_of(q, struct ebb_dev, queues);
}

static void release_dev(struct kref *kref)
{
	struct ebb_dev *ebb = container_of(kref, struct ebb_dev, ref.kref);

	put_device(&ebb->vdev->dev);
	ebb_vcpus_free(&ebb->vcpus);
	ebb_queues_free(&ebb->queues);
	kfree(ebb);
}

/* Under the event queue's lock. */
static int take_event(struct ebb_queues *q, const struct ebb_wire_event *event)
{
	struct ebb_dev *ebb = dev_of_queues(q);
	int rc;

	switch (event->type) {
	case VIRTIO_EBB_EVENT_LIMITS:
		ebb_limits_take(&ebb->limits, event, ebb->cfg.num_nodes);
		return 0;
	case VIRTIO_EBB_EVENT_MEM_REVOKED:
	case VIRTIO_EBB_EVENT_MEM_LEAVING:
		ebb_revoke_received(&ebb->control, event);
		return 0;
	default:
		rc = ebb_vcpus_take_event(&ebb->vcpus, &event->cpu);
		/* Programs that compare limits with their CPUs must read both again. */
		if (!rc)
			ebb_limits_changed(&ebb->limits);
		/* It may have left while the event was on its way. */
		return rc == -ENOENT ? 0 : rc;
	}
}

static void queues_stopped(struct ebb_queues *q)
{
	struct ebb_dev *ebb = dev_of_queues(q);

	ebb_vcpus_stop(&ebb->vcpus);
	ebb_limits_wake(&ebb->limits);
}

static const struct ebb_queues_ops queues_ops = {
	.event = take_event,
	.stopped = queues_stopped,
};

static void memory_changed(struct ebb_control *control)
{
	ebb_limits_changed(&container_of(control, struct ebb_dev, control)->limits);
}

static const struct ebb_control_ops control_ops = { .changed = memory_changed };

static void read_status(struct ebb_dev *ebb)
{
	__le32 status;

	/* Not virtio_cread_le(), which may sleep: this is also called in the interrupt. */
	ebb->vdev->config->get(ebb->vdev, offsetof(struct virtio_ebb_config, status), &status,
			       sizeof(status));
	ebb_vcpus_set_agent(&ebb->vcpus, le32_to_cpu(status) & VIRTIO_EBB_S_AGENT_UP);
}

static void ebb_config_changed(struct virtio_device *vdev)
{
	struct ebb_dev *ebb = dev_of_queues(vdev->priv);

	if (vdev->config->get_status(vdev) & VIRTIO_CONFIG_S_NEEDS_RESET)
		ebb_queues_fail(&ebb->queues, "the device needs a reset");
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
	cfg->has_baseline = virtio_has_feature(vdev, VIRTIO_EBB_F_BASELINE) &&
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
		cfg->linux_node[i] = pxm_to_node(i);
	ebb_wire_fill_nodes(cfg->linux_node, cfg->num_nodes);
	return 0;
}

static struct ebb_dev *create_dev(struct virtio_device *vdev)
{
	struct ebb_dev *ebb = kzalloc(sizeof(*ebb), GFP_KERNEL);

	if (!ebb)
		return NULL;
	kref_init(&ebb->ref.kref);
	ebb->ref.release = release_dev;
	get_device(&vdev->dev);
	ebb->vdev = vdev;
	ebb_queues_setup(&ebb->queues, vdev, &ebb->cfg, &queues_ops, &ebb->ref, ebb_wq);
	ebb_limits_init(&ebb->limits);
	ebb_vcpus_setup(&ebb->vcpus, &ebb->queues);
	ebb_control_setup(&ebb->control, &ebb->queues, &control_ops);
	ebb->chardev.queues = &ebb->queues;
	ebb->chardev.vcpus = &ebb->vcpus;
	ebb->chardev.limits = &ebb->limits;
	return ebb;
}

static void stop_dev(struct ebb_dev *ebb)
{
	ebb_queues_stop(&ebb->queues);
	ebb_claim_set_control(NULL);
	ebb_queues_stop_events(&ebb->queues);
	virtio_reset_device(ebb->vdev);
	ebb_queues_finish(&ebb->queues);
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
	rc = ebb_vcpus_init(&ebb->vcpus);
	if (rc)
		goto out_put;
	rc = ebb_queues_init(&ebb->queues);
	if (rc)
		goto out_put;

	/*
	 * Before the device knows that there is a driver of pools: it offers
	 * memory from then on, and another driver would plug it.
	 */
	ebb_claim_set_control(&ebb->control);
	virtio_device_ready(vdev);
	rc = ebb_queues_fill_events(&ebb->queues);
	if (rc)
		goto out_stop;
	rc = ebb_vcpus_read_state(&ebb->vcpus);
	if (rc) {
		dev_err(&vdev->dev, "can not read which CPUs the VM has: %d\n", rc);
		goto out_stop;
	}
	read_status(ebb);
	rc = ebb_chardev_register(&ebb->chardev);
	if (rc)
		goto out_stop;
	dev_info(&vdev->dev,
		 "%u of at most %u CPUs, %u nodes, %u CPUs to be returned, %u lent, %u pools\n",
		 ebb->cfg.num_startup_cpus, ebb->cfg.max_cpus, ebb->cfg.num_nodes,
		 ebb_cpuset_num_hotplug(&ebb->vcpus.cpuset),
		 ebb_cpuset_num_lent(&ebb->vcpus.cpuset),
		 ebb->cfg.num_pools);
	ebb_vcpus_kick(&ebb->vcpus, 0);
	return 0;

out_stop:
	stop_dev(ebb);
out_put:
	ebb_ref_put(&ebb->ref);
out_unused:
	atomic_set(&ebb_is_in_use, 0);
	return rc;
}

static void ebb_remove(struct virtio_device *vdev)
{
	struct ebb_dev *ebb = dev_of_queues(vdev->priv);

	ebb_chardev_unregister(&ebb->chardev);
	ebb_vcpus_close(&ebb->vcpus);
	ebb_limits_wake(&ebb->limits);
	/* Pulled out without asking: there is nobody to return anything to. */
	if (virtqueue_is_broken(ebb->queues.vqs[VIRTIO_EBB_VQ_REQUEST]))
		ebb_queues_stop(&ebb->queues);
	ebb_vcpus_return_all(&ebb->vcpus);
	stop_dev(ebb);
	ebb_ref_put(&ebb->ref);
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
	VIRTIO_EBB_F_BASELINE,
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
	mem_wq = alloc_workqueue("ebb_mem", WQ_HIGHPRI | WQ_UNBOUND, 0);
	if (!mem_wq) {
		rc = -ENOMEM;
		goto out_wq;
	}
	rc = ebb_hotplug_init();
	if (rc)
		goto out_mem_wq;
	rc = ebb_pool_init(mem_wq);
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
	destroy_workqueue(mem_wq);
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
	destroy_workqueue(mem_wq);
	destroy_workqueue(ebb_wq);
	ebb_hotplug_exit();
}
module_exit(ebb_exit);

MODULE_DESCRIPTION("Elastic CPUs and memory from the host, over virtio-ebb");
MODULE_LICENSE("GPL");
