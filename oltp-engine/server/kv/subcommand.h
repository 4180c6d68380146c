/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that have subcommands, such as CLIENT and CONFIG. */
#ifndef OLTP_KV_SUBCOMMAND_H
#define OLTP_KV_SUBCOMMAND_H

#include "oltp-engine/server/kv/private.h"

struct subcommand {
	const char *name;		/* upper case */
	int16_t arity;			/* as in struct command, both words included */
	enum oltp_rc (*run)(struct call *c);
};

/* Runs the one that args[1] names, or answers that there is none. */
enum oltp_rc subcommand_run(struct call *c, const struct subcommand *all, uint32_t n);

#endif
