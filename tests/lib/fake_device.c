/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device's end of a link. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "tests/lib/fake_device.h"
#include "tests/lib/link_frames.h"

#define PATIENCE_MSEC	60000

int fake_device_connect(struct fake_device *d, const char *path, const uint8_t uuid[16])
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	memcpy(d->uuid, uuid, 16);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		return -errno;
	if (connect(d->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int rc = -errno;

		fake_device_close(d);
		return rc;
	}
	return 0;
}

void fake_device_close(struct fake_device *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

int fake_device_send(struct fake_device *d, const void *data, size_t len)
{
	ssize_t n = send(d->fd, data, len, MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int fake_device_hello(struct fake_device *d, uint32_t max_cpus, uint32_t num_cpus, uint64_t resets)
{
	struct link_frame_hello f;

	return fake_device_send(d, &f, link_frame_hello(&f, d->uuid, max_cpus, num_cpus, resets));
}

static int receive_all(struct fake_device *d, bool wait, void *buf, size_t len)
{
	size_t have = 0;

	while (have < len) {
		struct pollfd p = { .fd = d->fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, wait || have ? PATIENCE_MSEC : 0) <= 0)
			return -EAGAIN;
		n = recv(d->fd, (uint8_t *)buf + have, len - have, 0);
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ECONNRESET;
		have += n;
	}
	return 0;
}

int fake_device_receive(struct fake_device *d, bool wait, struct fake_frame *ret)
{
	struct virtio_ebb_link_hdr h;
	int rc = receive_all(d, wait, &h, sizeof(h));

	if (rc < 0)
		return rc;
	ret->type = le16toh(h.type);
	ret->len = le32toh(h.len);
	if (le32toh(h.magic) != VIRTIO_EBB_LINK_MAGIC ||
	    le16toh(h.proto) != VIRTIO_EBB_LINK_PROTO || h.reserved ||
	    ret->len > sizeof(ret->payload))
		return -EPROTO;
	return receive_all(d, true, ret->payload, ret->len);
}
