/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An engine whose blocks of memory can be taken by force, for tests. */
#ifndef TAKER_RIG_H
#define TAKER_RIG_H

#include <stdint.h>

#include "oltp_memory_rig.h"

#define TAKER_BLOCKS	64u

/*
 * Each block is a file of its own: cut short, its pages are gone and touching them is a SIGBUS. The
 * engine adds some at any moment: those up to n are whole.
 */
struct taker {
	int fds[TAKER_BLOCKS];
	uint8_t *_Atomic addrs[TAKER_BLOCKS];	/* NULL: it was given back */
	_Atomic uint32_t n, n_max;		/* given so far; so many at most */
};

/*
 * Up to n_max blocks. config: what else is wanted; NULL: nothing. The engine catches revokes. There
 * is no table yet if the configuration has a log, since a recovery may come first.
 */
void taker_open(struct taker *t, struct rig *rig, uint32_t n_max, const struct oltp_config *config);
void taker_close(struct taker *t, struct rig *rig);

/* By force, without a word. */
void taker_take(struct taker *t, uint32_t block);

/* The word, after or before. */
void taker_tell(struct taker *t, struct rig *rig, uint32_t block);

#endif
