// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A driver whose answers about memory make no sense: they are refused, nothing is
 * kept of them, and the process lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/libebb/view.h"
#include "tests/lib/chance.h"
#include "tests/lib/ebb_rig.h"

#define BLOCK		FAKE_EBB_BLOCK_BYTES
#define RANDOM_ROUNDS	3000

/* What is done to the answers of the simulated device; NULL: nothing. */
static struct {
	void (*add)(struct ebb_mem_add *add);
	void (*mem_info)(struct ebb_mem_info *info);
	void (*lease_info)(struct ebb_lease_info *info);
	int release_r;			/* instead of asking; 0: ask */
} spoil;

static int num_closed;
static int closed_fd;
static void *spoilt_dev;

static int spoilt_ioctl(void *dev, unsigned long cmd, void *arg)
{
	int r = fake_ebb_dev_ops.ioctl(dev, cmd, arg);

	spoilt_dev = dev;
	if (r == 0 && cmd == EBB_IOC_MEM_ADD && spoil.add)
		spoil.add(arg);
	if (r == 0 && cmd == EBB_IOC_MEM_INFO && spoil.mem_info)
		spoil.mem_info(arg);
	return r;
}

static int spoilt_lease_ioctl(void *dev, int lease_fd, unsigned long cmd, void *arg)
{
	int r;

	if (cmd == EBB_IOC_LEASE_RELEASE && spoil.release_r)
		return spoil.release_r;
	r = fake_ebb_dev_ops.lease_ioctl(dev, lease_fd, cmd, arg);
	if (r == 0 && cmd == EBB_IOC_LEASE_INFO && spoil.lease_info)
		spoil.lease_info(arg);
	return r;
}

static void spoilt_lease_close(void *dev, int lease_fd)
{
	num_closed++;
	closed_fd = lease_fd;
	fake_ebb_dev_ops.lease_close(dev, lease_fd);
}

static struct ebb *spoilt_open(struct ebb_rig *rig)
{
	static struct ebb_dev_ops ops;
	struct ebb_options options = {
		.app_name = "a", .device = rig->dev_path, .flags = EBB_OPEN_NO_MONITOR,
	};
	struct ebb *ebb;

	memset(&spoil, 0, sizeof(spoil));
	ops = fake_ebb_dev_ops;
	ops.ioctl = spoilt_ioctl;
	ops.lease_ioctl = spoilt_lease_ioctl;
	ops.lease_close = spoilt_lease_close;
	fake_ebb_dev_set_pool(rig->dev, 0, 64 * BLOCK);
	fake_ebb_dev_set_pool(rig->dev, 1, 64 * BLOCK);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 64 * BLOCK, 0);
	assert_int_equal(ebb_open_dev(&options, &ops, &ebb), 0);
	return ebb;
}

static int other_fd = -1, true_fd;

static void add_nothing(struct ebb_mem_add *a) { a->granted_bytes = 0; }
static void add_more(struct ebb_mem_add *a) { a->granted_bytes += BLOCK; }
static void add_all(struct ebb_mem_add *a) { a->granted_bytes = UINT64_MAX - BLOCK + 1; }
static void add_part(struct ebb_mem_add *a) { a->granted_bytes -= 4096; }
static void add_node(struct ebb_mem_add *a) { a->granted_node = 1; }
static void add_no_node(struct ebb_mem_add *a) { a->granted_node = EBB_MAX_NODES; }
static void add_any_node(struct ebb_mem_add *a) { a->granted_node = EBB_NODE_ANY; }
static void add_no_block(struct ebb_mem_add *a) { a->block_bytes = 0; }
static void add_small_block(struct ebb_mem_add *a) { a->block_bytes = 4096; }
static void add_odd_block(struct ebb_mem_add *a) { a->block_bytes = 3 << 20; }
static void add_huge_block(struct ebb_mem_add *a) { a->block_bytes = 1u << 31; }
static void add_other_block(struct ebb_mem_add *a) { a->block_bytes = 4 << 20; }

static void nonsense_about_a_new_lease_is_refused(void **state)
{
	/* Of three blocks on node 0, so that a block of 4 MiB does not go into it. */
	static void (*const all[])(struct ebb_mem_add *add) = {
		add_nothing, add_more, add_all, add_part, add_node, add_no_node, add_any_node,
		add_no_block, add_small_block, add_odd_block, add_huge_block, add_other_block,
	};
	struct ebb_rig *rig = *state;
	struct ebb *ebb = spoilt_open(rig);
	struct ebb_lease lease = { .fd = -7 };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		num_closed = 0;
		spoil.add = all[i];
		if (ebb_mem_add(ebb, 3 * BLOCK, 0, &lease) != -EIO || num_closed != 1)
			fail_msg("taken: %zu", i);
		assert_int_equal(lease.fd, -7);
		assert_int_equal(ebb_dispatch(ebb), 0);
		assert_true(ebb_rig_share(ebb, 0).mem_owned_bytes == 0);
	}
	spoil.add = NULL;
	assert_int_equal(ebb_mem_add(ebb, 64 * BLOCK, 0, &lease), 0);
	assert_true(lease.bytes == 64 * BLOCK);
	ebb_close(ebb);
}

static void add_other_fd(struct ebb_mem_add *a)
{
	true_fd = a->lease_fd;
	a->lease_fd = other_fd;
}

static void file_that_is_no_lease_is_refused(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = spoilt_open(rig);
	struct ebb_lease lease;
	int event_fd = eventfd(0, EFD_CLOEXEC), read_only_fd = open("/proc/self/exe", O_RDONLY);
	const int fds[] = { -1, 100000, event_fd, read_only_fd };

	spoil.add = add_other_fd;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		num_closed = 0;
		other_fd = fds[i];
		if (ebb_mem_add(ebb, BLOCK, 0, &lease) != -EIO)
			fail_msg("taken: %zu", i);
		assert_int_equal(num_closed, fds[i] >= 0);
		assert_true(num_closed == 0 || closed_fd == fds[i]);
		fake_ebb_dev_ops.lease_close(spoilt_dev, true_fd);
	}
	close(event_fd);
	close(read_only_fd);
	ebb_close(ebb);
}

static void pools_too_many(struct ebb_mem_info *i) { i->num_pools = EBB_MAX_NODES + 1; }
static void pools_huge(struct ebb_mem_info *i) { i->num_pools = UINT32_MAX; }
static void pool_node(struct ebb_mem_info *i) { i->pools[1].node = EBB_MAX_NODES; }
static void pool_no_block(struct ebb_mem_info *i) { i->pools[0].block_bytes = 0; }
static void pool_odd_block(struct ebb_mem_info *i) { i->pools[0].block_bytes = 5 << 20; }
static void pool_small_block(struct ebb_mem_info *i) { i->pools[0].block_bytes = 1 << 20; }
static void pool_part(struct ebb_mem_info *i) { i->pools[0].leased_bytes = 4096; }

static void nonsense_about_pools_is_refused(void **state)
{
	static void (*const all[])(struct ebb_mem_info *info) = {
		pools_too_many, pools_huge, pool_node, pool_no_block, pool_odd_block,
		pool_small_block, pool_part,
	};
	struct ebb_rig *rig = *state;
	struct ebb *ebb = spoilt_open(rig);
	struct ebb_mem_info info;

	assert_int_equal(ebb_dispatch(ebb), 0);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		spoil.mem_info = all[i];
		if (ebb_dispatch(ebb) != -EIO)
			fail_msg("taken: %zu", i);
	}
	spoil.mem_info = pools_huge;
	assert_int_equal(ebb_mem_info_get(ebb, &info), -EIO);
	spoil.mem_info = NULL;
	assert_int_equal(ebb_dispatch(ebb), 0);
	assert_true(ebb_rig_share(ebb, 0).mem_offered_bytes == 64 * BLOCK);
	ebb_close(ebb);
}

static void lease_no_count(struct ebb_lease_info *i) { i->count = 0; }
static void lease_count(struct ebb_lease_info *i) { i->count = 11; }
static void lease_count_max(struct ebb_lease_info *i) { i->count = UINT32_MAX; }
static void lease_start(struct ebb_lease_info *i) { i->start++; }
static void lease_block(struct ebb_lease_info *i) { i->block_bytes *= 2; }
static void lease_bytes(struct ebb_lease_info *i) { i->bytes += BLOCK; }

static void nonsense_about_a_lease_is_refused_once(void **state)
{
	static void (*const all[])(struct ebb_lease_info *info) = {
		lease_no_count, lease_count, lease_count_max, lease_start, lease_block, lease_bytes,
	};
	struct ebb_rig *rig = *state;
	struct ebb *ebb = spoilt_open(rig);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct ebb_lease_info info;
		struct ebb_lease lease;

		spoil.lease_info = NULL;
		assert_int_equal(ebb_mem_add(ebb, 10 * BLOCK, 0, &lease), 0);
		assert_int_equal(ebb_dispatch(ebb), 0);
		spoil.lease_info = all[i];
		assert_int_equal(ebb_lease_info_get(ebb, lease.addr, 0, &info), -EIO);
		assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, lease.addr, BLOCK), 0);
		if (ebb_dispatch(ebb) != -EIO)
			fail_msg("taken: %zu", i);
		/* That is no reason to be woken for ever. */
		assert_int_equal(ebb_dispatch(ebb), 0);
		/* Around the revoked one it would have to be asked where that is. */
		assert_int_equal(ebb_mem_release(ebb, lease.addr, 10 * BLOCK), -EIO);
		assert_int_equal(ebb_lease_close(ebb, lease.addr), 0);
	}
	ebb_close(ebb);
}

static void release_that_is_refused_for_ever_ends(void **state)
{
	static const struct { int said, r; } all[] = {
		{ -ENOENT, -EIO }, { -EINVAL, -EIO }, { -EBUSY, -EIO }, { -ENODEV, -ENODEV },
	};
	struct ebb_rig *rig = *state;
	struct ebb *ebb = spoilt_open(rig);
	struct ebb_lease lease;

	assert_int_equal(ebb_mem_add(ebb, 10 * BLOCK, 0, &lease), 0);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		spoil.release_r = all[i].said;
		assert_int_equal(ebb_mem_release(ebb, lease.addr, 4 * BLOCK), all[i].r);
		assert_int_equal(ebb_dispatch(ebb), 0);
		assert_true(ebb_rig_share(ebb, 0).mem_owned_bytes == 10 * BLOCK);
	}
	/* It is as it was: the next one that is answered well succeeds. */
	spoil.release_r = 0;
	*(char *)lease.addr = 1;
	assert_int_equal(ebb_mem_release(ebb, lease.addr, 4 * BLOCK), 0);
	assert_int_equal(ebb_dispatch(ebb), 0);
	assert_true(ebb_rig_share(ebb, 0).mem_owned_bytes == 6 * BLOCK);
	ebb_close(ebb);
}

/* ---- noise ---- */

static void flip(void *data, size_t bytes)
{
	unsigned char *p = data;

	if (roll(3) == 0)
		p[roll((uint32_t)bytes)] ^= (unsigned char)(1u << roll(8));
}

/* The file must stay one that the test may close. */
static void flip_add(struct ebb_mem_add *a)
{
	int fd = a->lease_fd;

	flip(a, sizeof(*a));
	a->lease_fd = fd;
}

static void flip_mem_info(struct ebb_mem_info *i) { flip(i, sizeof(*i)); }
static void flip_lease_info(struct ebb_lease_info *i) { flip(i, sizeof(*i)); }

/* Whatever is said: no crash (the sanitizers look), no address that is not ours. */
static void noise_does_no_harm(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = spoilt_open(rig);
	unsigned int num_added = 0, num_refused = 0;

	spoil.add = flip_add;
	spoil.mem_info = flip_mem_info;
	spoil.lease_info = flip_lease_info;
	for (int i = 0; i < RANDOM_ROUNDS; i++) {
		struct ebb_lease lease;
		int r = ebb_mem_add(ebb, (1 + roll(8)) * BLOCK, 0, &lease);

		if (r == 0) {
			num_added++;
			assert_true(lease.bytes > 0 && lease.bytes <= 8 * BLOCK);
			if (roll(2))
				fake_ebb_dev_revoke_at(rig->dev, lease.addr, BLOCK);
			r = ebb_dispatch(ebb);
			assert_true(r == 0 || r == -EIO);
			r = ebb_mem_release(ebb, lease.addr, BLOCK);
			assert_true(r == 0 || r == -EIO || r == -ENOENT);
			r = ebb_lease_close(ebb, lease.addr);
			assert_true(r == 0 || r == -ENOENT);
		} else {
			num_refused++;
			assert_int_equal(r, -EIO);
		}
	}
	assert_true(num_added > RANDOM_ROUNDS / 2 && num_refused > 0);
	ebb_close(ebb);
	assert_true(ebb_rig_until(NULL, 0, NULL, NULL, 0) == false);
	assert_true(fake_ebb_dev_leased_bytes(rig->dev, 0) == 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nonsense_about_a_new_lease_is_refused,
						ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(file_that_is_no_lease_is_refused, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(nonsense_about_pools_is_refused, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(nonsense_about_a_lease_is_refused_once,
						ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(release_that_is_refused_for_ever_ends,
						ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(noise_does_no_harm, ebb_rig_setup,
						ebb_rig_teardown),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests_name("ebb_mem_hostile", tests, NULL, NULL);
}
