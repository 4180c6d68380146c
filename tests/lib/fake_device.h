/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device's end of a link, for tests of the agent without a QEMU: connects to a socket of the
 * agent, sends frames, takes frames apart.  Blocking calls give up after a minute.
 */
#ifndef EBB_TESTS_FAKE_DEVICE_H
#define EBB_TESTS_FAKE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/real/virtio_ebb_link.h"

struct fake_device {
	int fd;
	uint8_t uuid[16];
};

/* A frame as the agent sent it. */
struct fake_frame {
	uint16_t type;
	uint32_t len;
	_Alignas(8) uint8_t payload[2048];
};

/* 0 or -errno. */
int fake_device_connect(struct fake_device *d, const char *path, const uint8_t uuid[16]);
void fake_device_close(struct fake_device *d);
int fake_device_send(struct fake_device *d, const void *data, size_t len);
int fake_device_hello(struct fake_device *d, uint32_t max_cpus, uint32_t num_cpus, uint64_t resets);

/* -ECONNRESET when the agent closed, -EAGAIN when nothing came (wait false: at once). */
int fake_device_receive(struct fake_device *d, bool wait, struct fake_frame *ret);

#endif
