/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers of the TPC-C specification, revision 5.11, which the engine's own workload, the server's
 * procedures and the load generator share. Amounts are in cents, rates in 1/10000.
 */
#ifndef OLTP_TPCC_SCALE_H
#define OLTP_TPCC_SCALE_H

/* Sizes (1.2.1, 4.3.3.1). */
#define TPCC_WAREHOUSES_MAX	65535u
#define TPCC_DISTRICTS		10u	/* of a warehouse */
#define TPCC_CUSTOMERS		3000u	/* of a district, and orders that it begins with */
#define TPCC_ITEMS		100000u
#define TPCC_LINES_MIN		5u	/* of an order */
#define TPCC_LINES_MAX		15u
#define TPCC_LAST_NAMES		1000u
#define TPCC_CARRIERS		10u
#define TPCC_RECENT_ORDERS	20u	/* that Stock-Level looks at (2.8.2.2) */
#define TPCC_PAID_CENTS		1000	/* by each customer, before the run */
#define TPCC_DELIVERED(orders)	((orders) * 7 / 10)	/* before the run, the oldest ones */

/* How often, in percent (2.4.1, 2.5.1, 2.6.1). */
#define TPCC_UNUSED_ITEM_PERCENT	1u	/* of new orders: the last item does not exist */
#define TPCC_REMOTE_LINE_PERCENT	1u	/* of lines: another warehouse supplies */
#define TPCC_HOME_CUSTOMER_PERCENT	85u	/* of payments: the customer is of the warehouse */
#define TPCC_BY_NAME_PERCENT		60u	/* of customers, but for those of new orders */

/* The constants A of NURand (2.1.6). */
#define TPCC_NURAND_LAST_NAME	255u
#define TPCC_NURAND_CUSTOMER	1023u
#define TPCC_NURAND_ITEM	8191u

#endif
