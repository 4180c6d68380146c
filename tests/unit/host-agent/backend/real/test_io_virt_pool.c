// SPDX-License-Identifier: GPL-2.0-or-later
/* Connections to libvirt, with its test driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <libvirt/virterror.h>
#include "backend/real/virt-pool.h"

#define URI	"test:///default"

static void be_quiet(void *ctx, virErrorPtr error)
{
	(void)ctx;
	(void)error;
}

static struct ebb_virt_pool *open_pool(const char *uri, usec_t longest_usec)
{
	struct ebb_virt_pool *p = ebb_virt_pool_create(uri, longest_usec);

	virSetErrorFunc(NULL, be_quiet);
	assert_non_null(p);
	assert_null(ebb_virt_pool_get(p));
	ebb_virt_pool_open(p);
	return p;
}

/* So that its address is not that of a later one. */
static virConnectPtr hold(virConnectPtr conn)
{
	assert_non_null(conn);
	assert_int_equal(virConnectRef(conn), 0);
	return conn;
}

static void test_one_user_each(void **state)
{
	struct ebb_virt_pool *p = open_pool(URI, UINT64_MAX);
	virConnectPtr a = ebb_virt_pool_get(p), b = ebb_virt_pool_get(p);

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_ptr_not_equal(a, b);
	ebb_virt_pool_put(p, a);
	/* What was given back is used again. */
	assert_ptr_equal(ebb_virt_pool_get(p), a);
	ebb_virt_pool_put(p, b);
	ebb_virt_pool_put(p, a);
	ebb_virt_pool_destroy(p);
}

static void test_lent_for_long(void **state)
{
	struct ebb_virt_pool *p = open_pool(URI, 0);
	virConnectPtr a = hold(ebb_virt_pool_get(p)), b;

	(void)state;
	ebb_virt_pool_put(p, a);
	b = ebb_virt_pool_get(p);
	assert_ptr_not_equal(a, b);
	ebb_virt_pool_put(p, b);
	/* The pool has closed it: ours was the last reference. */
	assert_int_equal(virConnectClose(a), 0);
	ebb_virt_pool_destroy(p);
}

static void test_shut(void **state)
{
	struct ebb_virt_pool *p = open_pool(URI, UINT64_MAX);
	virConnectPtr idle = hold(ebb_virt_pool_get(p)), lent = hold(ebb_virt_pool_get(p)), now;

	(void)state;
	ebb_virt_pool_put(p, idle);
	ebb_virt_pool_shut(p);
	assert_null(ebb_virt_pool_get(p));
	assert_int_equal(virConnectClose(idle), 0);
	ebb_virt_pool_open(p);
	/* From before, so it is not used again. */
	ebb_virt_pool_put(p, lent);
	now = ebb_virt_pool_get(p);
	assert_ptr_not_equal(now, lent);
	assert_int_equal(virConnectClose(lent), 0);
	ebb_virt_pool_put(p, now);
	ebb_virt_pool_destroy(p);
}

static void test_refused(void **state)
{
	struct ebb_virt_pool *p = open_pool("test:///nonexistent/file.xml", UINT64_MAX);

	(void)state;
	assert_null(ebb_virt_pool_get(p));
	ebb_virt_pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_user_each),
		cmocka_unit_test(test_lent_for_long),
		cmocka_unit_test(test_shut),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
