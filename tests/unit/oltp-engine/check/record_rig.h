/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records a history in memory and has it checked. */
#ifndef RECORD_RIG_H
#define RECORD_RIG_H

#include "oltp-engine/check/check.h"
#include "oltp-engine/check/record.h"

/* Both have to work. ret_result: for check_result_finish. */
void record_rig_run(const struct record_config *config, struct record_stats *ret_stats,
		    struct check_result *ret_result);

/* Strictly serializable, and with nearly everything known; what is not fails the test. */
void record_rig_expect_clean(const struct record_config *config, struct record_stats *ret_stats);

#endif
