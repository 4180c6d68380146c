/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free slots for records to come, while memory is short. All tables together give up the records
 * not used for longest, whatever table they are of (division.h). For the manager's thread.
 */
#ifndef OLTP_MAKE_ROOM_H
#define OLTP_MAKE_ROOM_H

#include "shrink.h"

/*
 * Makes so many slots of the table free. Its records go to disk as far as they belong to the oldest
 * of all tables. If these are too few, or if another table keeps much older ones, and may_grow, the
 * other one gives it a block by the deadline (ns of CLOCK_MONOTONIC). Where none can, the table's
 * own oldest records go. shrink->evict->error says what stood in the way, if it was the disk.
 */
void make_room_in(struct shrink *shrink, struct oltp_table *table, uint64_t slots, bool may_grow,
		  uint64_t deadline_ns);

#endif
