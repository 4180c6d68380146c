// SPDX-License-Identifier: GPL-2.0-or-later
/* See growth.h. */
#include "growth.h"

void growth_init(struct growth *growth, uint64_t n, uint64_t max)
{
	growth->max = max;
	atomic_init(&growth->next, n);
	atomic_init(&growth->frontier, n);
	for (uint32_t i = 0; i < GROWTH_AHEAD; i++)
		atomic_init(&growth->done[i], 0);
}

bool growth_take(struct growth *growth, uint64_t *ret_number)
{
	uint64_t number = atomic_load_explicit(&growth->next, memory_order_relaxed);

	do {
		/* No entry of done is used for two numbers at once. */
		if (number >= growth->max || number >= growth_frontier(growth) + GROWTH_AHEAD)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&growth->next, &number, number + 1,
							memory_order_relaxed,
							memory_order_relaxed));
	*ret_number = number;
	return true;
}

void growth_commit(struct growth *growth, uint64_t number)
{
	uint64_t at;

	/* Sequentially consistent: of two that commit at once, one at least sees the other's. */
	atomic_store(&growth->done[number % GROWTH_AHEAD], number + 1);
	at = atomic_load(&growth->frontier);
	while (atomic_load(&growth->done[at % GROWTH_AHEAD]) == at + 1) {
		/* If another thread was faster, at is where the frontier is now. */
		if (atomic_compare_exchange_strong(&growth->frontier, &at, at + 1))
			at++;
	}
}
