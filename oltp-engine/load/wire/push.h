/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The RESP3 push "ebb-relocate": docs/relocation-client.md has the contract. Pure. */
#ifndef LOAD_PUSH_H
#define LOAD_PUSH_H

#include <stddef.h>
#include <stdint.h>

#define PUSH_ADDRESS_BYTES	256u

struct push_relocate {
	char address[PUSH_ADDRESS_BYTES];
	uint32_t count;		/* connections to move; 0: all */
};

/*
 * bytes[0..n) are a whole push. Returns 1 if it is a relocation, 0 if it is of another kind, which
 * a client ignores, or -EPROTO: a relocation of the wrong form.
 */
int push_parse(const char *bytes, size_t n, struct push_relocate *ret_push);

#endif
