/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tests of ebbt-mem; each returns what main() returns. */
#ifndef EBB_TESTS_MEM_TEST_H
#define EBB_TESTS_MEM_TEST_H

#include "ebb-mem-lib.h"

int test_bad_input(void);
int test_use(void);
int test_first_touch(bool is_small);	/* is_small: by pages of 4 KiB */
int test_io(const char *disk);
int do_watch(uint64_t bytes, uint32_t node, const char *disk);

#endif /* EBB_TESTS_MEM_TEST_H */
