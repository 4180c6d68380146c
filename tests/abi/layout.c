/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Description: sizes, offsets and numbers of the shared headers against the
 * published ones.  tests/abi/layout compiles it in several ways.
 */
#include <stddef.h>
#include <stdio.h>

#include <backend/real/virtio_ebb_link.h>
#include <linux/ebb_ioctl.h>

static unsigned int failed, passed;

static void check(const char *what, unsigned long long is, unsigned long long want)
{
	if (is == want) {
		passed++;
		return;
	}
	failed++;
	fprintf(stderr, "%s is %#llx, published as %#llx\n", what, is, want);
}

#define STRUCT(type, bytes) \
	check("size of " #type, sizeof(struct type), bytes);
#define FIELD(type, field, at, bytes) \
	check("offset of " #type "." #field, offsetof(struct type, field), at); \
	check("size of " #type "." #field, sizeof(((struct type *)0)->field), bytes);
#define CONST(name, value) \
	check(#name, (unsigned long long)(name), value);

int main(void)
{
#include "abi.inc"
	printf("%u as published, %u different\n", passed, failed);
	return failed || !passed;
}
