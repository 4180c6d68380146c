/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts the TPC-C-like transactions that were acknowledged, and compares them with what the tables
 * say before and after the run. Pure.
 */
#ifndef LOAD_BOOKS_H
#define LOAD_BOOKS_H

#include "counts.h"
#include "tpcc_check.h"

enum load_book {
	LOAD_BOOK_ORDERS,
	LOAD_BOOK_PAYMENTS,
	LOAD_BOOK_DELIVERIES,	/* orders that were delivered */
	LOAD_BOOKS,
};

struct load_books {
	struct load_count counts[LOAD_BOOKS];	/* acknowledged and unknown, until the verdict */
	uint64_t rolled_back;	/* new orders with an item that does not exist */
	struct load_tpcc_sums before, after;
};

struct load_books_verdict {
	uint64_t violations;	/* of the consistency conditions, after the run */
	struct load_counts_verdict books[LOAD_BOOKS];
};

/* A request was answered; value: of its answer (struct load_answer). Other kinds: nothing. */
void load_books_done(struct load_books *books, enum load_kind kind, int64_t value);

/* A request that the server may have executed has failed. */
void load_books_unknown(struct load_books *books, enum load_kind kind);

void load_books_judge(struct load_books *books, struct load_books_verdict *ret_verdict);

bool load_books_are_good(const struct load_books_verdict *verdict);

#endif
