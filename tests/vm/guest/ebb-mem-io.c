/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: direct I/O, io_uring and pages in pipes, of leased memory. */
#include "ebb-mem-test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <liburing.h>

static void test_direct(int disk, struct lease *l)
{
	fill(l->map, BLOCK_BYTES, l->id, 0);
	expect("direct write", pwrite(disk, l->map, BLOCK_BYTES, 0) == (ssize_t)BLOCK_BYTES);
	expect("direct read", pread(disk, l->map + BLOCK_BYTES, BLOCK_BYTES, 0) ==
	       (ssize_t)BLOCK_BYTES);
	expect("of the same", first_wrong(l->map + BLOCK_BYTES, BLOCK_BYTES, l->id, 0) ==
	       BLOCK_BYTES);
	expect("direct write of pages in the middle",
	       pwrite(disk, l->map + 5 * PAGE_BYTES, 3 * PAGE_BYTES, BLOCK_BYTES) ==
	       (ssize_t)(3 * PAGE_BYTES) &&
	       pread(disk, l->map + BLOCK_BYTES, 3 * PAGE_BYTES, BLOCK_BYTES) ==
	       (ssize_t)(3 * PAGE_BYTES) &&
	       first_wrong(l->map + BLOCK_BYTES, 3 * PAGE_BYTES, l->id, 5 * PAGE_BYTES) ==
	       3 * PAGE_BYTES);
	lease_release(l, 2 * BLOCK_BYTES, BLOCK_BYTES, NULL);
	expect_errno("direct write of what is released",
		     pwrite(disk, l->map + 2 * BLOCK_BYTES, PAGE_BYTES, 0) < 0 ? errno : 0, EFAULT);
	expect_errno("direct read into what is released",
		     pread(disk, l->map + 2 * BLOCK_BYTES, PAGE_BYTES, 0) < 0 ? errno : 0, EFAULT);
}

/* A result of io_uring: bytes or -errno. */
static int uring_rw(struct io_uring *ring, int disk, bool is_write, void *p, unsigned int bytes)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int rc;

	if (is_write)
		io_uring_prep_write(sqe, disk, p, bytes, 0);
	else
		io_uring_prep_read(sqe, disk, p, bytes, 0);
	if (io_uring_submit(ring) != 1 || io_uring_wait_cqe(ring, &cqe))
		return -EIO;
	rc = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return rc;
}

static void test_uring(int disk, struct lease *l)
{
	struct iovec iov = { l->map, BLOCK_BYTES };
	struct io_uring ring;
	int rc = io_uring_queue_init(8, &ring, 0);

	expect_errno("io_uring", -rc, 0);
	if (rc)
		return;
	fill(l->map, BLOCK_BYTES, l->id + 1000, 0);
	expect("io_uring write", uring_rw(&ring, disk, true, l->map, BLOCK_BYTES) ==
	       (int)BLOCK_BYTES);
	expect("io_uring read", uring_rw(&ring, disk, false, l->map + BLOCK_BYTES, BLOCK_BYTES) ==
	       (int)BLOCK_BYTES);
	expect("of the same", first_wrong(l->map + BLOCK_BYTES, BLOCK_BYTES, l->id + 1000, 0) ==
	       BLOCK_BYTES);
	expect_errno("io_uring read into what is released",
		     -uring_rw(&ring, disk, false, l->map + 2 * BLOCK_BYTES, PAGE_BYTES), EFAULT);
	/* A pin that never ends would keep memory that the host took. */
	expect_errno("registering buffers", -io_uring_register_buffers(&ring, &iov, 1), EOPNOTSUPP);
	iov.iov_len = PAGE_BYTES;
	expect_errno("registering a small buffer", -io_uring_register_buffers(&ring, &iov, 1),
		     EOPNOTSUPP);
	io_uring_queue_exit(&ring);
}

static void test_pages_in_a_pipe(void)
{
	struct lease l = need_lease(3 * BLOCK_BYTES, 0);
	struct iovec iov = { l.map + BLOCK_BYTES + 2 * PAGE_BYTES, 4 * PAGE_BYTES };
	char *copy = malloc(4 * PAGE_BYTES);
	struct ebb_lease_release r = { .size = 0 };
	struct lease other;
	int pipes[2];

	if (!copy || pipe(pipes))
		exit(1);
	fill(l.map, l.bytes, l.id, 0);
	expect("vmsplice()", vmsplice(pipes[1], &iov, 1, 0) == (ssize_t)(4 * PAGE_BYTES));
	expect("release of all", !lease_release(&l, 0, l.bytes, &r));
	expect("the block in the pipe drains", r.draining_bytes == BLOCK_BYTES);
	expect("and counts as held", mem_totals().held_bytes == BLOCK_BYTES &&
	       mem_totals().draining_bytes == BLOCK_BYTES && !mem_totals().leased_bytes);
	expect("it can not be touched", touch(iov.iov_base) == SIGBUS);
	other = need_lease(4 * BLOCK_BYTES, 0);
	fill(other.map, other.bytes, other.id, 0);
	usleep(300000);
	expect("it is there as long as it is in the pipe",
	       read(pipes[0], copy, 4 * PAGE_BYTES) == (ssize_t)(4 * PAGE_BYTES) &&
	       first_wrong(copy, 4 * PAGE_BYTES, l.id, BLOCK_BYTES + 2 * PAGE_BYTES) ==
	       4 * PAGE_BYTES);
	expect("then it goes", wait_leased(other.bytes));
	lease_close(&l);

	/* A lease that is closed with pages in a pipe, and a pipe that is closed. */
	iov.iov_base = other.map;
	expect("vmsplice()", vmsplice(pipes[1], &iov, 1, 0) == (ssize_t)(4 * PAGE_BYTES));
	lease_close(&other);
	expect("a closed lease drains", wait_totals(0, BLOCK_BYTES));
	close(pipes[0]);
	close(pipes[1]);
	expect("until the pipe is closed", wait_leased(0));
	free(copy);
}

int test_io(const char *disk_path)
{
	int disk = open(disk_path, O_RDWR | O_DIRECT);
	struct lease l;

	expect_errno(disk_path, disk < 0 ? errno : 0, 0);
	if (disk < 0)
		return end_of_tests();
	l = need_lease(3 * BLOCK_BYTES, 0);
	test_direct(disk, &l);
	test_uring(disk, &l);
	lease_close(&l);
	expect("nothing is left of it", wait_leased(0));
	test_pages_in_a_pipe();
	close(disk);
	return end_of_tests();
}
