// SPDX-License-Identifier: GPL-2.0-or-later
/* See books.h. */
#include "books.h"

void load_books_done(struct load_books *books, enum load_kind kind, int64_t value)
{
	switch (kind) {
	case LOAD_NEW_ORDER:
		books->counts[LOAD_BOOK_ORDERS].acknowledged += (uint64_t)value;
		books->rolled_back += !value;
		break;
	case LOAD_PAYMENT:
		books->counts[LOAD_BOOK_PAYMENTS].acknowledged += (uint64_t)value;
		break;
	case LOAD_DELIVERY:
		books->counts[LOAD_BOOK_DELIVERIES].acknowledged += (uint64_t)value;
		break;
	default:
		break;
	}
}

void load_books_unknown(struct load_books *books, enum load_kind kind)
{
	if (kind == LOAD_NEW_ORDER)
		books->counts[LOAD_BOOK_ORDERS].unknown++;
	else if (kind == LOAD_PAYMENT)
		books->counts[LOAD_BOOK_PAYMENTS].unknown++;
	else if (kind == LOAD_DELIVERY)
		books->counts[LOAD_BOOK_DELIVERIES].unknown += TPCC_DISTRICTS;
}

static void look(struct load_count *counts, const struct load_tpcc_sums *before,
		 const struct load_tpcc_sums *after)
{
	counts[LOAD_BOOK_ORDERS].before = before->orders;
	counts[LOAD_BOOK_ORDERS].after = after->orders;
	counts[LOAD_BOOK_PAYMENTS].before = before->payments;
	counts[LOAD_BOOK_PAYMENTS].after = after->payments;
	counts[LOAD_BOOK_DELIVERIES].before = before->deliveries;
	counts[LOAD_BOOK_DELIVERIES].after = after->deliveries;
}

void load_books_judge(struct load_books *books, struct load_books_verdict *ret_verdict)
{
	look(books->counts, &books->before, &books->after);
	ret_verdict->violations = books->after.violations;
	for (uint32_t i = 0; i < LOAD_BOOKS; i++)
		load_counts_judge(&books->counts[i], 1, &ret_verdict->books[i]);
}

bool load_books_are_good(const struct load_books_verdict *verdict)
{
	uint64_t bad = verdict->violations;

	for (uint32_t i = 0; i < LOAD_BOOKS; i++)
		bad += verdict->books[i].lost + verdict->books[i].extra;
	return !bad;
}
