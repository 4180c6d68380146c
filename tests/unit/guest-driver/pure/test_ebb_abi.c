/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: which ioctls of older and newer programs the guest driver takes (abi.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/ebb_ioctl.h>

#include "guest-driver/pure/abi.h"

/* As if EBB_IOC_INFO had grown by two fields of 8 bytes, one after the other. */
struct info_now {
	struct ebb_info first;
	uint64_t second, third;
};

#define IOC_NOW		_IOWR(EBB_IOC_MAGIC, 0x00, struct info_now)
#define IOC_OF(bytes)	_IOC(_IOC_READ | _IOC_WRITE, EBB_IOC_MAGIC, 0x00, bytes)

static const struct ebb_abi info_abi = { IOC_NOW, EBB_INFO_SIZE_VER0 };

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(ebb_abi_bytes(IOC_NOW), sizeof(struct info_now));
	assert_true(ebb_abi_is(&info_abi, IOC_NOW));
	/* Of a program that was compiled when there was one field less, or none of them. */
	assert_true(ebb_abi_is(&info_abi, IOC_OF(sizeof(struct info_now) - 8)));
	assert_true(ebb_abi_is(&info_abi, EBB_IOC_INFO));
	/* Of one that knows more, up to what a number can say. */
	assert_true(ebb_abi_is(&info_abi, IOC_OF(sizeof(struct info_now) + 8)));
	assert_true(ebb_abi_is(&info_abi, IOC_OF(_IOC_SIZEMASK)));
	/* No such structure was ever published. */
	assert_false(ebb_abi_is(&info_abi, IOC_OF(EBB_INFO_SIZE_VER0 - 8)));
	assert_false(ebb_abi_is(&info_abi, IOC_OF(0)));
}

static void test_other_numbers(void **state)
{
	uint32_t bytes = sizeof(struct info_now);

	(void)state;
	assert_false(ebb_abi_is(&info_abi, EBB_IOC_LIMITS));
	assert_false(ebb_abi_is(&info_abi, _IOC(_IOC_READ | _IOC_WRITE, 'x', 0x00, bytes)));
	assert_false(ebb_abi_is(&info_abi, _IOC(_IOC_READ, EBB_IOC_MAGIC, 0x00, bytes)));
	assert_false(ebb_abi_is(&info_abi, _IOC(_IOC_WRITE, EBB_IOC_MAGIC, 0x00, bytes)));
	assert_false(ebb_abi_is(&info_abi, _IOC(_IOC_NONE, EBB_IOC_MAGIC, 0x00, bytes)));
}

/* The size in the structure is the one in the number, whichever that is. */
static void test_head(void **state)
{
	uint32_t bytes = sizeof(struct info_now);

	(void)state;
	assert_int_equal(ebb_abi_check(IOC_NOW, bytes, 0, 0), 0);
	assert_int_equal(ebb_abi_check(IOC_NOW, bytes - 8, 0, 0), -EINVAL);
	assert_int_equal(ebb_abi_check(IOC_NOW, bytes + 8, 0, 0), -EINVAL);
	assert_int_equal(ebb_abi_check(IOC_NOW, 0, 0, 0), -EINVAL);
	assert_int_equal(ebb_abi_check(EBB_IOC_INFO, EBB_INFO_SIZE_VER0, 0, 0), 0);
	assert_int_equal(ebb_abi_check(IOC_OF(bytes + 8), bytes + 8, 0, 0), 0);
	assert_int_equal(ebb_abi_check(IOC_NOW, bytes, 1, 1), 0);
	assert_int_equal(ebb_abi_check(IOC_NOW, bytes, 1, 2), -EINVAL);
	assert_int_equal(ebb_abi_check(IOC_NOW, bytes, 1u << 31, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_other_numbers),
		cmocka_unit_test(test_head),
	};

	return cmocka_run_group_tests_name("ebb_abi", tests, NULL, NULL);
}
