/* SPDX-License-Identifier: GPL-2.0-or-later */
/* procedure.h - what FCALL runs: a table for each family of procedures. */
#ifndef OLTP_KV_PROCEDURE_H
#define OLTP_KV_PROCEDURE_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/server/kv/private.h"

struct procedure {
	const char *name;	/* upper case */
	bool is_read_only;
	/* Keys begin at args[3], other arguments behind them. */
	enum oltp_rc (*run)(struct call *c, uint32_t n_keys);
};

#define TPCC_PROCEDURES		7u
extern const struct procedure tpcc_procedures[TPCC_PROCEDURES];

#endif
