// SPDX-License-Identifier: GPL-2.0-or-later
/* See taker_rig.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "taker_rig.h"

static int taker_add(void *ctx, uint64_t bytes, uint32_t node, void **ret_addr, uint64_t *ret_bytes)
{
	struct taker *t = ctx;
	uint8_t *raw, *addr;
	int fd;

	(void)bytes;
	(void)node;
	if (t->n == t->n_max)
		return -ENOMEM;
	fd = memfd_create("block", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, OLTP_MEM_BLOCK_BYTES))
		return -ENOMEM;
	raw = mmap(NULL, 2 * OLTP_MEM_BLOCK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	addr = (uint8_t *)(((uintptr_t)raw + OLTP_MEM_BLOCK_BYTES - 1) &
			   ~(OLTP_MEM_BLOCK_BYTES - 1));
	if (mmap(addr, OLTP_MEM_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 0) == MAP_FAILED)
		return -ENOMEM;
	t->fds[t->n] = fd;
	t->addrs[t->n] = addr;
	t->n++;
	*ret_addr = addr;
	*ret_bytes = OLTP_MEM_BLOCK_BYTES;
	return 0;
}

static void taker_release(void *ctx, void *addr, uint64_t bytes)
{
	struct taker *t = ctx;

	munmap(addr, bytes);
	/* Whatever is mapped there next is somebody else's. */
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->addrs[i] == addr)
			t->addrs[i] = NULL;
	}
}

static const struct oltp_block_ops taker_ops = { taker_add, taker_release };

void taker_open(struct taker *t, struct rig *rig, uint32_t n_max, const struct oltp_config *config)
{
	struct oltp_config all = config ? *config : (struct oltp_config){ .cold_dir = rig_dir() };

	*t = (struct taker){ .n_max = n_max };
	*rig = (struct rig){ 0 };
	all.node = 0;
	all.blocks = &taker_ops;
	all.blocks_ctx = t;
	assert_int_equal(oltp_engine_open(&all, &rig->engine), 0);
	oltp_memory_limit(rig->engine, 0, n_max * OLTP_MEM_BLOCK_BYTES, 0);
	assert_int_equal(oltp_memory_catch_revokes(rig->engine), 0);
	if (all.durability != OLTP_DURABILITY_OFF)
		return;
	assert_int_equal(oltp_table_create(rig->engine, RIG_RECORD_BYTES, 20000, &rig->table), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
}

void taker_close(struct taker *t, struct rig *rig)
{
	oltp_worker_destroy(rig->w);
	oltp_engine_close(rig->engine);
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->addrs[i])
			munmap(t->addrs[i], OLTP_MEM_BLOCK_BYTES);
		close(t->fds[i]);
	}
}

void taker_take(struct taker *t, uint32_t block)
{
	assert_int_equal(ftruncate(t->fds[block], 0), 0);
}

void taker_tell(struct taker *t, struct rig *rig, uint32_t block)
{
	oltp_memory_revoked(rig->engine, t->addrs[block], OLTP_MEM_BLOCK_BYTES);
}
