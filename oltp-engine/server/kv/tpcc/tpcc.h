/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tpcc.h - a TPC-C-like workload on keys: what is stored, and the steps that its procedures share.
 * Columns are those of the TPC-C specification, revision 5.11, section 1.3; amounts are in cents,
 * rates in 1/10000, dates in seconds since 1970 (0: null). No result of it is a TPC-C result.
 *
 * Every key is a hash, so a row and what belongs to it are in one unit:
 *
 *	tpcc:w:W	a warehouse: a struct tpcc_warehouse, x the rest of its columns
 *	tpcc:d:W:D	a district: a struct tpcc_district, x, and for each new order O that is not
 *			delivered a field nO
 *	tpcc:n:W:D	customers of a district by last name: field N of the name's number has their
 *			numbers (uint16_t) in the order of first names; never changes
 *	tpcc:c:W:D:C	a customer: a struct tpcc_customer, x struct tpcc_person, t C_DATA, and for
 *			the n-th payment a field hN, struct tpcc_history
 *	tpcc:o:W:D:O	an order: a struct tpcc_order, fields 1 to 15 its lines, struct tpcc_line
 *	tpcc:s:W:I	stock: a struct tpcc_stock, x struct tpcc_goods. That has a copy of the
 *			item's columns, which never change (1.4 allows to replicate tables)
 *
 * Structs are values in the byte order of the machine. Hot columns are apart from the rest: a field
 * that is changed goes to the log as a whole.
 */
#ifndef OLTP_KV_TPCC_H
#define OLTP_KV_TPCC_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/server/kv/hash.h"
#include "oltp-engine/src/base/tpcc_scale.h"

#define TPCC_KEY_BYTES	64u

struct tpcc_warehouse {
	int64_t ytd;
	uint32_t tax;
	char name[10];
	char pad[2];
};

struct tpcc_district {
	int64_t ytd;
	uint32_t next_o;
	uint32_t next_delivery;		/* the oldest new order, or next_o */
	uint32_t tax;
	char name[10];
	char pad[2];
};

struct tpcc_customer {
	int64_t balance;
	int64_t ytd_payment;
	uint32_t payments;
	uint32_t deliveries;
	uint32_t last_o;		/* 0: none */
	uint32_t discount;
	char credit[2];			/* "GC" or "BC" */
	char pad[6];
};

struct tpcc_person {
	char last[16], first[16], middle[2], phone[16];
	char address[71];		/* street_1, street_2, city, state and zip */
	char pad[7];
	int64_t since, credit_limit;
};

struct tpcc_history {
	int64_t date;
	uint32_t amount;
	uint16_t w;			/* where it was paid */
	uint8_t d;
	char pad;
	char data[24];
};

struct tpcc_order {
	int64_t entry_date;
	uint32_t c;
	uint8_t carrier;		/* 0: null */
	uint8_t lines;
	uint8_t all_local;
	char pad;
};

struct tpcc_line {
	int64_t delivery_date;
	uint32_t item;
	uint32_t amount;
	uint16_t supply_w;
	uint8_t quantity;
	char dist_info[24];
	char pad[5];
};

struct tpcc_stock {
	int64_t ytd;
	int32_t quantity;
	uint32_t orders;
	uint32_t remotes;
	char pad[4];
};

struct tpcc_goods {
	uint32_t price;
	char item_name[24], item_data[50];
	char data[50];
	char dist[TPCC_DISTRICTS][24];
};

/* A hash of this workload that a procedure has open, and its name. */
struct tpcc_row {
	struct hash hash;
	char key[TPCC_KEY_BYTES];
	struct resp_arg name;
};

/* Of a key, in row->name. */
void tpcc_name(struct tpcc_row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * As call_need, of a key that a procedure will open later: keys whose names follow from its
 * arguments are needed before the first is opened, so that their units come together.
 */
enum oltp_rc tpcc_need(struct call *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Opens the hash of row->name, whose unit is pinned first: returns also what call_need returns. It
 * may be that there is none: hash.head.id is 0.
 */
enum oltp_rc tpcc_open(struct call *c, struct tpcc_row *row, bool exclusive);

/* The same, but KV_ANSWERED, with an error that names the key, if there is none. */
enum oltp_rc tpcc_must_open(struct call *c, struct tpcc_row *row, bool exclusive);

/* A field of exactly so many bytes. KV_ANSWERED: it is not there, or of another size. */
enum oltp_rc tpcc_get(struct call *c, struct tpcc_row *row, const char *field, void *ret,
		      uint32_t bytes);

/* The field, in a hash that is open exclusively; hash_close is to follow. */
enum oltp_rc tpcc_put(struct call *c, struct tpcc_row *row, const char *field, const void *from,
		      uint32_t bytes);

/* Removes the field; KV_ANSWERED: it is not there. */
enum oltp_rc tpcc_drop(struct call *c, struct tpcc_row *row, const char *field);

/* That rows do not fit together, or are not there: an error that names the key. */
enum oltp_rc tpcc_bad_row(struct call *c, const struct tpcc_row *row);

/*
 * Arguments behind the keys as numbers, each from 0 to the UINT32_MAX; at least min and at most
 * max of them. *ret_n of them are in ret. KV_ANSWERED: they are not.
 */
enum oltp_rc tpcc_numbers(struct call *c, uint32_t n_keys, uint32_t min, uint32_t max,
			  uint32_t *ret, uint32_t *ret_n);

/* KV_ANSWERED: no such warehouse or district. */
enum oltp_rc tpcc_check_district(struct call *c, uint32_t w, uint32_t d);

/*
 * The customer by number, or, if that is 0, the one in the middle of those with that last name,
 * rounded up (2.5.2.2). KV_ANSWERED: nobody has that name.
 */
enum oltp_rc tpcc_find_customer(struct call *c, uint32_t w, uint32_t d, uint32_t number,
				uint32_t last_name, uint32_t *ret_number);

int64_t tpcc_now(void);

/* The procedures: docs/kv-commands.md says what they take and return. */
enum oltp_rc tpcc_new_order(struct call *c, uint32_t n_keys);
enum oltp_rc tpcc_payment(struct call *c, uint32_t n_keys);
enum oltp_rc tpcc_order_status(struct call *c, uint32_t n_keys);
enum oltp_rc tpcc_delivery(struct call *c, uint32_t n_keys);
enum oltp_rc tpcc_stock_level(struct call *c, uint32_t n_keys);
enum oltp_rc tpcc_load_part(struct call *c, uint32_t n_keys);
enum oltp_rc tpcc_check(struct call *c, uint32_t n_keys);

#endif
