/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What inserts need of scans. */
#ifndef OLTP_TXN_SCAN_H
#define OLTP_TXN_SCAN_H

#include "ordered.h"

/*
 * Has another row this sort key? OLTP_EXISTS: yes, and a shared lock is held on it. OLTP_OK: no,
 * but the next moment there may be one. Anything else dooms.
 */
enum oltp_rc txn_scan_other(struct oltp_worker *worker, struct oltp_index *index,
			    struct tree_key key);

#endif
