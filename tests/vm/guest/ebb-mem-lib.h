/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that test leases in a guest have in common. */
#ifndef EBB_TESTS_MEM_LIB_H
#define EBB_TESTS_MEM_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/ebb_ioctl.h>

#include "ebb-guest.h"

#define PAGE_BYTES	UINT64_C(4096)
#define BLOCK_BYTES	(UINT64_C(2) << 20)

struct lease {
	int fd;
	uint32_t node;
	uint64_t bytes;
	uint64_t id;		/* of its content */
	char *map;		/* of all of it; NULL: not mapped */
};

extern int ebb_fd;		/* /dev/ebb */

/* Opens /dev/ebb and installs the handler of the guard; exits if it can not. */
void mem_init(void);

/* Counts and prints a test as cmocka does. */
void expect(const char *what, bool is_good);
void expect_errno(const char *what, int is, int want);

/* The last lines; what main() returns. */
int end_of_tests(void);

/* All return 0 or an errno. */
int lease_add(struct lease *l, uint64_t bytes, uint32_t node);
int lease_map(struct lease *l);
int lease_release(const struct lease *l, uint64_t offset, uint64_t bytes,
		  struct ebb_lease_release *ret);
void lease_close(struct lease *l);

/* Adds and maps, or ends the program with a message. */
struct lease need_lease(uint64_t bytes, uint32_t node);

/* Sums of all pools. */
struct mem_totals {
	uint64_t held_bytes, leased_bytes, draining_bytes;
};
struct mem_totals mem_totals(void);

/* For what must come: a machine that runs tests may be busy. */
#define PATIENCE_NS	UINT64_C(120000000000)

/* Waits for that much to be leased and to drain; false after PATIENCE_NS. */
bool wait_totals(uint64_t leased_bytes, uint64_t draining_bytes);

/* The same, with nothing to drain. */
bool wait_leased(uint64_t leased_bytes);

/*
 * What comes next returns 0, or the signal (SIGBUS, SIGSEGV) that the memory
 * raised; guard_addr has its address then.
 */
extern _Thread_local void *volatile guard_addr;

/* Reads, writes a byte. */
int touch(const volatile char *p);
int poke(volatile char *p, char value);

/* As fill() and first_wrong(); ret_is_good only if there was no signal. */
int guarded_fill(char *p, uint64_t bytes, uint64_t id, uint64_t offset);
int guarded_check(const char *p, uint64_t bytes, uint64_t id, uint64_t offset, bool *ret_is_good);

/* A number in each 64th byte, so that a page that is somewhere else is seen. */
void fill(char *p, uint64_t bytes, uint64_t id, uint64_t offset);

/* Index of the first byte that is wrong, or bytes. */
uint64_t first_wrong(const char *p, uint64_t bytes, uint64_t id, uint64_t offset);

/* As first_wrong(), but a byte that is zero is right, too. */
uint64_t first_foreign(const char *p, uint64_t bytes, uint64_t id, uint64_t offset);
bool is_zero(const char *p, uint64_t bytes);

#endif /* EBB_TESTS_MEM_LIB_H */
