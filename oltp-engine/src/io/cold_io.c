// SPDX-License-Identifier: GPL-2.0-or-later
/* See cold_io.h. */
#include <errno.h>

#include "cold_io.h"

#define TRIES_MAX	4u

int cold_io_init(struct cold_io *io, int fd, uint32_t depth, const struct cold_hook *hook)
{
	int rc;

	*io = (struct cold_io){ .fd = fd, .hook = hook, .depth = depth };
	/* No interrupt of the thread for each completion: it will look by itself. */
	rc = io_uring_queue_init(depth, &io->ring,
				 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
	if (rc == -EINVAL)
		rc = io_uring_queue_init(depth, &io->ring, 0);
	return rc;
}

void cold_io_finish(struct cold_io *io)
{
	io_uring_queue_exit(&io->ring);
}

static void hand_in(struct cold_io *io, struct cold_request *request)
{
	/* There is room: the ring has as many entries as may be in flight. */
	struct io_uring_sqe *sqe = io_uring_get_sqe(&io->ring);

	if (request->is_write)
		io_uring_prep_write(sqe, io->fd, request->buffer, request->bytes, request->offset);
	else
		io_uring_prep_read(sqe, io->fd, request->buffer, request->bytes, request->offset);
	io_uring_sqe_set_data(sqe, request);
	io->unsent++;
}

void cold_io_add(struct cold_io *io, struct cold_request *request)
{
	request->tries = 0;
	io->in_flight++;
	hand_in(io, request);
}

int cold_io_flush(struct cold_io *io)
{
	int n;

	if (!io->unsent)
		return 0;
	n = io_uring_submit(&io->ring);
	if (n < 0)
		return n;
	io->unsent -= (uint32_t)n < io->unsent ? (uint32_t)n : io->unsent;
	return 0;
}

struct cold_request *cold_io_next(struct cold_io *io)
{
	struct cold_request *request;
	struct io_uring_cqe *cqe;
	int32_t result;

	while (io->in_flight > io->unsent && !io_uring_peek_cqe(&io->ring, &cqe)) {
		request = io_uring_cqe_get_data(cqe);
		result = cqe->res;
		io_uring_cqe_seen(&io->ring, cqe);
		if (io->hook)
			result = io->hook->result(io->hook->ctx, request, result);
		if ((result == -EINTR || result == -EAGAIN ||
		     (result >= 0 && (uint32_t)result < request->bytes)) &&
		    ++request->tries < TRIES_MAX) {
			hand_in(io, request);
			cold_io_flush(io);
			continue;
		}
		io->in_flight--;
		if (result >= 0)
			result = (uint32_t)result < request->bytes ? -EIO : 0;
		request->result = result;
		return request;
	}
	return NULL;
}

void cold_io_wait(struct cold_io *io, uint64_t timeout_ns)
{
	struct __kernel_timespec timeout = { (long long)(timeout_ns / 1000000000),
					     (long long)(timeout_ns % 1000000000) };
	struct io_uring_cqe *cqe;

	cold_io_flush(io);
	if (io->in_flight > io->unsent)
		io_uring_wait_cqe_timeout(&io->ring, &cqe, &timeout);
}
