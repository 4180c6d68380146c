/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histograms of the value of memory.  The device has checked their form, so that an error here is
 * one of the device.  What a guest claims to hold may still be anything: the core judges that.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include "backend/real/linkproto-vom.h"

VIRTIO_EBB_ASSERT(EBB_MAX_VOM_BUCKETS == VIRTIO_EBB_VOM_MAX_BUCKETS, "as many in a fact");
/* Buckets are converted in place. */
VIRTIO_EBB_ASSERT(sizeof(struct ebb_vom_bucket) <= sizeof(struct virtio_ebb_vom_bucket),
		  "a bucket is no larger than on the wire");

bool ebb_linkproto_is_vom_len(size_t len)
{
	const size_t head = sizeof(struct virtio_ebb_vom);
	const size_t bucket = sizeof(struct virtio_ebb_vom_bucket);

	return len >= head && len <= head + VIRTIO_EBB_VOM_MAX_BUCKETS * bucket &&
	       (len - head) % bucket == 0;
}

static int decode_bucket(const struct virtio_ebb_vom_bucket *in, uint16_t num_nodes,
			 struct ebb_vom_bucket *ret, struct ebb_err *err)
{
	*ret = (struct ebb_vom_bucket){
		.value = le64toh(in->value),
		.kib = le32toh(in->kib),
		.node = le16toh(in->node),
	};
	if (in->reserved)
		return ebb_err_set(err, -EPROTO, "reserved field of a bucket is %#x",
				   le16toh(in->reserved));
	if (ret->node >= num_nodes)
		return ebb_err_set(err, -EPROTO, "node of a bucket is %u, the VM has nodes 0 to %u",
				   ret->node, num_nodes - 1);
	if (ret->kib == 0)
		return ebb_err_set(err, -EPROTO, "a bucket of node %u has 0 KiB", ret->node);
	return 0;
}

static bool is_after(const struct ebb_vom_bucket *b, const struct ebb_vom_bucket *before)
{
	return b->node > before->node || (b->node == before->node && b->value > before->value);
}

int ebb_linkproto_decode_vom(void *payload, size_t len, uint16_t num_nodes,
			     struct ebb_fact_vom *ret, struct ebb_err *err)
{
	const struct virtio_ebb_vom *v = payload;
	const struct virtio_ebb_vom_bucket *in = (const void *)(v + 1);
	struct ebb_vom_bucket *out = (void *)((uint8_t *)payload + sizeof(*v));
	uint16_t num_buckets = le16toh(v->num_buckets);

	if (v->reserved)
		return ebb_err_set(err, -EPROTO, "reserved field of a histogram is %#" PRIx64,
				   le64toh(v->reserved));
	if (len != sizeof(*v) + num_buckets * sizeof(*in))
		return ebb_err_set(err, -EPROTO, "a histogram of %u buckets has %zu bytes",
				   num_buckets, len);
	for (uint16_t i = 0; i < num_buckets; i++) {
		struct virtio_ebb_vom_bucket wire = in[i];
		int rc = decode_bucket(&wire, num_nodes, &out[i], err);

		if (rc < 0)
			return rc;
		if (i > 0 && !is_after(&out[i], &out[i - 1]))
			return ebb_err_set(err, -EPROTO, "bucket %u of a histogram (node %u, "
					   "value %" PRIu64 ") does not come after the one before",
					   i, out[i].node, out[i].value);
	}
	*ret = (struct ebb_fact_vom){
		.seq = le32toh(v->seq),
		.num_buckets = num_buckets,
		.buckets = out,
	};
	return 0;
}
