/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client that reads. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "util/clock.h"
#include "util/random.h"
#include "volumed/probe.h"

#define GREETING	0x4e42444d41474943ull	/* "NBDMAGIC" */
#define OPTIONS		0x49484156454f5054ull	/* "IHAVEOPT" */
#define REQUEST		0x25609513u
#define REPLY		0x67446698u
#define OPT_EXPORT_NAME	1
#define FLAGS		3			/* fixed newstyle, no zeroes after the handshake */
#define CMD_READ	0
#define MAX_LINKS	(EBB_PROBE_MAX_DEPTH / EBB_PROBE_PER_CONNECTION)
#define MAX_SAMPLES	1000000

struct link {
	int fd;
	uint64_t sent_at[EBB_PROBE_PER_CONNECTION];
};

struct run {
	const struct ebb_probe *probe;
	struct link links[MAX_LINKS];
	struct pollfd polls[MAX_LINKS];
	size_t num;
	uint64_t blocks;		/* of the volume, in requests */
	uint64_t random;
	char *buf;
	uint32_t *samples;		/* microseconds */
	size_t num_samples;
	uint64_t sum_usec;
};

/* A call that ran into the time limit of its socket says EAGAIN. */
static int error_of(int err)
{
	return err == EAGAIN ? -ETIMEDOUT : -err;
}

static int send_all(int fd, const void *data, size_t len)
{
	const ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

	/* A request is far smaller than the socket's buffer, so it is sent as a whole. */
	return n == (ssize_t)len ? 0 : n < 0 ? error_of(errno) : -EIO;
}

static int receive_all(int fd, void *data, size_t len)
{
	for (size_t got = 0; got < len;) {
		const ssize_t n = recv(fd, (char *)data + got, len - got, 0);

		if (n <= 0)
			return n < 0 ? error_of(errno) : -ECONNRESET;
		got += (size_t)n;
	}
	return 0;
}

static int negotiate(struct run *r, int fd)
{
	struct __attribute__((packed)) {
		uint64_t magic, options;
		uint16_t flags;
	} hello;
	struct __attribute__((packed)) {
		uint32_t flags;
		uint64_t options;
		uint32_t option, len;
	} ask = { htobe32(FLAGS), htobe64(OPTIONS), htobe32(OPT_EXPORT_NAME),
		  htobe32(strlen(r->probe->export)) };
	struct __attribute__((packed)) {
		uint64_t size;
		uint16_t flags;
	} is;
	int rc = receive_all(fd, &hello, sizeof(hello));

	if (rc == 0 && (be64toh(hello.magic) != GREETING || be64toh(hello.options) != OPTIONS))
		rc = -EPROTO;
	if (rc == 0)
		rc = send_all(fd, &ask, sizeof(ask));
	if (rc == 0)
		rc = send_all(fd, r->probe->export, strlen(r->probe->export));
	if (rc == 0)
		rc = receive_all(fd, &is, sizeof(is));
	if (rc == 0)
		r->blocks = be64toh(is.size) / r->probe->bytes;
	return rc;
}

static int open_link(struct run *r)
{
	const struct timeval patience = { .tv_sec = r->probe->patience_usec / 1000000,
					  .tv_usec = r->probe->patience_usec % 1000000 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", r->probe->path);
	/* The second one is for connect(), too, which waits while too many clients do. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		rc = -errno;
	else if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		rc = error_of(errno);
	else
		rc = negotiate(r, fd);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	r->polls[r->num] = (struct pollfd){ .fd = fd, .events = POLLIN };
	r->links[r->num++].fd = fd;
	return 0;
}

/* Requests are spread over the volume, and each run reads the same places. */
static uint64_t next_block(struct run *r)
{
	return ebb_random(&r->random) % r->blocks;
}

static int submit(struct run *r, struct link *l, uint64_t slot)
{
	struct __attribute__((packed)) {
		uint32_t magic;
		uint16_t flags, command;
		uint64_t slot, offset;
		uint32_t len;
	} request = { htobe32(REQUEST), 0, htobe16(CMD_READ), htobe64(slot),
		      htobe64(next_block(r) * r->probe->bytes), htobe32(r->probe->bytes) };

	l->sent_at[slot] = ebb_clock_mono_usec();
	return send_all(l->fd, &request, sizeof(request));
}

/* Take the next reply of a connection; ret_slot is free then. */
static int complete(struct run *r, struct link *l, bool is_counted, uint64_t *ret_slot)
{
	struct __attribute__((packed)) {
		uint32_t magic, error;
		uint64_t slot;
	} reply;
	uint64_t slot, usec;
	int rc = receive_all(l->fd, &reply, sizeof(reply));

	if (rc < 0)
		return rc;
	slot = be64toh(reply.slot);
	if (be32toh(reply.magic) != REPLY || slot >= EBB_PROBE_PER_CONNECTION)
		return -EPROTO;
	if (reply.error)
		return -EIO;
	rc = receive_all(l->fd, r->buf, r->probe->bytes);
	if (rc < 0)
		return rc;
	usec = ebb_clock_mono_usec() - l->sent_at[slot];
	if (is_counted && r->num_samples < MAX_SAMPLES) {
		r->samples[r->num_samples++] = usec < UINT32_MAX ? usec : UINT32_MAX;
		r->sum_usec += usec;
	}
	*ret_slot = slot;
	return 0;
}

/* Until a reply has come: 0; -errno. */
static int wait_for_reply(struct run *r)
{
	const int n = poll(r->polls, r->num, (int)(r->probe->patience_usec / 1000));

	return n > 0 ? 0 : n < 0 ? -errno : -ETIMEDOUT;
}

/* A server that is left with requests open complains. */
static int drain(struct run *r, uint32_t open)
{
	uint64_t slot;
	int rc = 0;

	while (rc == 0 && open) {
		rc = wait_for_reply(r);
		for (size_t i = 0; rc == 0 && i < r->num; i++) {
			if (!r->polls[i].revents)
				continue;
			rc = complete(r, &r->links[i], false, &slot);
			open--;
		}
	}
	return rc;
}

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int measure(struct run *r, struct ebb_knee_point *ret)
{
	const uint64_t from = ebb_clock_mono_usec() + r->probe->usec / 4;
	const uint64_t end = from + r->probe->usec;
	uint64_t now, slot;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < r->probe->depth; i++)
		rc = submit(r, &r->links[i % r->num], i / r->num);
	while (rc == 0 && (now = ebb_clock_mono_usec()) < end) {
		rc = wait_for_reply(r);
		for (size_t i = 0; rc == 0 && i < r->num; i++) {
			if (!r->polls[i].revents)
				continue;
			rc = complete(r, &r->links[i], now >= from, &slot);
			if (rc == 0)
				rc = submit(r, &r->links[i], slot);
		}
	}
	if (rc == 0)
		rc = drain(r, r->probe->depth);
	if (rc < 0)
		return rc;
	if (!r->num_samples)
		return -ETIME;
	qsort(r->samples, r->num_samples, sizeof(r->samples[0]), compare);
	ret->depth = r->probe->depth;
	ret->iops = r->num_samples * 1000000 / r->probe->usec;
	ret->mean_us = r->sum_usec / r->num_samples;
	ret->p99_us = r->samples[r->num_samples * 99 / 100];
	return 0;
}

int ebb_probe_run(const struct ebb_probe *p, struct ebb_knee_point *ret, struct ebb_err *err)
{
	struct run r = { .probe = p };
	const size_t links = (p->depth + EBB_PROBE_PER_CONNECTION - 1) / EBB_PROBE_PER_CONNECTION;
	int rc = 0;

	r.buf = malloc(p->bytes);
	r.samples = calloc(MAX_SAMPLES, sizeof(r.samples[0]));
	if (!r.buf || !r.samples)
		rc = -ENOMEM;
	while (rc == 0 && r.num < links)
		rc = open_link(&r);
	if (rc == 0 && r.blocks < EBB_PROBE_MIN_BLOCKS)
		rc = -ENOSPC;
	if (rc == 0)
		rc = measure(&r, ret);
	for (size_t i = 0; i < r.num; i++)
		close(r.links[i].fd);
	free(r.buf);
	free(r.samples);
	if (rc == -ETIMEDOUT)
		return ebb_err_set(err, rc, "reading at depth %u: no answer in %u s: the storage "
				   "daemon hangs, or serves promises of others all the time",
				   p->depth, (unsigned)(p->patience_usec / 1000000));
	return rc < 0 ? ebb_err_set(err, rc, "reading at depth %u: %s", p->depth,
				    rc == -ENOSPC ? "the file is too small" :
				    rc == -ETIME ? "no request ended while it was measured" :
				    strerror(-rc)) : 0;
}
