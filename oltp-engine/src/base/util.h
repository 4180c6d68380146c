/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The few macros that every part of the engine needs. */
#ifndef OLTP_UTIL_H
#define OLTP_UTIL_H

#include <stdatomic.h>
#include <stdint.h>

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define CACHE_LINE_BYTES	64u
/* The hardware fetches lines in pairs, so data that two threads write is kept this far apart. */
#define CACHE_PAD_BYTES		128u

#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)

/*
 * Of a function that runs where an access to memory fails, in the handler of SIGBUS. In an atomic
 * access ThreadSanitizer holds a lock of its own; if that access fails, one in the handler would
 * wait for the lock for ever. So it leaves such a function alone.
 */
#if __has_attribute(disable_sanitizer_instrumentation)
#define IN_SIGBUS_HANDLER	__attribute__((disable_sanitizer_instrumentation))
#else
#define IN_SIGBUS_HANDLER	__attribute__((no_sanitize("thread")))
#endif

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * Prefetches a line that will be written: takes it from other CPUs as well, which
 * __builtin_prefetch does not do on plain x86-64. CPUs without the instruction ignore it.
 */
static inline void prefetch_to_write(const void *addr)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)addr));
#else
	__builtin_prefetch(addr, 1);
#endif
}

/* For qsort, ascending. */
static inline int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* One writer, any readers: a plain add, without the locked instruction of an atomic one. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline uint64_t counter_read(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
