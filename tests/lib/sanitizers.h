/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which sanitizer a test is built with, for those that do less then. Compilers say it in two ways.
 */
#ifndef EBB_TEST_SANITIZERS_H
#define EBB_TEST_SANITIZERS_H

#if defined(__has_feature)
#define HAS_ASAN	__has_feature(address_sanitizer)
#define HAS_TSAN	__has_feature(thread_sanitizer)
#else
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN	1
#else
#define HAS_ASAN	0
#endif
#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN	1
#else
#define HAS_TSAN	0
#endif
#endif

#endif
