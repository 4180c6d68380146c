/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Allocations that fail. For programs linked with --wrap=malloc, calloc, realloc and aligned_alloc,
 * so that it is the engine's calls that fail and not those of the C library.
 */
#ifndef TESTS_ALLOC_FAULTS_H
#define TESTS_ALLOC_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* The nth allocation from now on fails (0: the next one), and so many in all. */
void alloc_fail_from(uint64_t nth, uint64_t n);

/* No more. True: there was such an allocation. */
bool alloc_fail_end(void);

/* Allocations for which it returns true are the test's own: they neither fail nor count. */
void alloc_fail_except(bool (*is_own)(void));

#endif
