// SPDX-License-Identifier: GPL-2.0-or-later
/* See io_queue.h. */
#include <errno.h>

#include "io_queue.h"

#define TRIES_MAX	4u

int io_queue_init(struct io_queue *io, int fd, uint32_t depth, const struct io_hook *hook,
		  struct io_meters *meters)
{
	int rc;

	*io = (struct io_queue){ .fd = fd, .hook = hook, .meters = meters, .depth = depth };
	/* No interrupt of the thread for each completion: it will look by itself. */
	rc = io_uring_queue_init(depth, &io->ring,
				 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
	if (rc == -EINVAL)
		rc = io_uring_queue_init(depth, &io->ring, 0);
	return rc;
}

void io_queue_finish(struct io_queue *io)
{
	io_uring_queue_exit(&io->ring);
}

/* By the hook of its file, at once. */
static void read_by_hook(struct io_queue *io, struct io_request *request)
{
	const struct io_files *files = &request->file->files;

	request->result = (int)files->ops->pread(files->ctx, request->file->fd, request->buffer,
						 request->bytes, request->offset);
	request->next_read = io->read;
	io->read = request;
}

static void hand_in(struct io_queue *io, struct io_request *request)
{
	const int fd = request->file ? request->file->fd : io->fd;
	struct io_uring_sqe *sqe;

	if (request->file && !io_files_are_real(&request->file->files)) {
		read_by_hook(io, request);
		return;
	}
	/* There is room: the ring has as many entries as may be in flight. */
	sqe = io_uring_get_sqe(&io->ring);
	if (request->is_write)
		io_uring_prep_write(sqe, fd, request->buffer, request->bytes, request->offset);
	else
		io_uring_prep_read(sqe, fd, request->buffer, request->bytes, request->offset);
	io_uring_sqe_set_data(sqe, request);
	io->unsent++;
}

void io_queue_add(struct io_queue *io, struct io_request *request)
{
	io_count(io->meters, request->class, request->bytes);
	request->tries = 0;
	io->in_flight++;
	hand_in(io, request);
}

int io_queue_flush(struct io_queue *io)
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

/* One that has ended, as the disk or the hook of its file says; NULL: none. */
static struct io_request *take(struct io_queue *io, int32_t *ret_result)
{
	struct io_request *request = io->read;
	struct io_uring_cqe *cqe;

	if (request) {
		io->read = request->next_read;
		*ret_result = request->result;
		return request;
	}
	if (io->in_flight == io->unsent || io_uring_peek_cqe(&io->ring, &cqe))
		return NULL;
	request = io_uring_cqe_get_data(cqe);
	*ret_result = cqe->res;
	io_uring_cqe_seen(&io->ring, cqe);
	return request;
}

struct io_request *io_queue_next(struct io_queue *io)
{
	struct io_request *request;
	int32_t result;

	while ((request = take(io, &result))) {
		if (io->hook)
			result = io->hook->result(io->hook->ctx, request, result);
		if ((result == -EINTR || result == -EAGAIN ||
		     (result >= 0 && (uint32_t)result < request->bytes)) &&
		    ++request->tries < TRIES_MAX) {
			hand_in(io, request);
			io_queue_flush(io);
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

void io_queue_wait(struct io_queue *io, uint64_t timeout_ns)
{
	struct __kernel_timespec timeout = { (long long)(timeout_ns / 1000000000),
					     (long long)(timeout_ns % 1000000000) };
	struct io_uring_cqe *cqe;

	io_queue_flush(io);
	if (!io->read && io->in_flight > io->unsent)
		io_uring_wait_cqe_timeout(&io->ring, &cqe, &timeout);
}

int io_queue_run(struct io_queue *io, struct io_request *request)
{
	io_queue_add(io, request);
	while (io_queue_next(io) != request)
		io_queue_wait(io, 1000000000ull);
	return request->result;
}
