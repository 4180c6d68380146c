// SPDX-License-Identifier: GPL-2.0-or-later
/* See notes.h. */
#include "notes.h"
#include "txn.h"

/* A scan that was disturbed reads a leaf again at once: what it noted is among the last. */
#define LOOK_BACK	8u

enum oltp_rc notes_add(struct oltp_worker *worker, const _Atomic uint64_t *word, uint64_t version,
		       uint64_t mask)
{
	uint32_t n = worker->n_notes;

	version &= mask;
	for (uint32_t i = n; i && n - i < LOOK_BACK; i--) {
		const struct note *note = &worker->notes[i - 1];

		if (note->word != word)
			continue;
		return note->version == version ? OLTP_OK : txn_doom(worker, OLTP_CONFLICT);
	}
	if (n == worker->engine->txn_records_max)
		return txn_doom(worker, OLTP_FULL);
	worker->notes[worker->n_notes++] = (struct note){ word, version, mask };
	return OLTP_OK;
}

enum oltp_rc notes_carry(struct oltp_worker *worker, const _Atomic uint64_t *word, uint64_t before,
			 uint64_t after, const _Atomic uint64_t *new_word, uint64_t new_version)
{
	uint32_t n = worker->n_notes;
	uint64_t mask = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct note *note = &worker->notes[i];

		if (note->word != word)
			continue;
		/* Somebody else was here since: it will not hold, so why go on. */
		if (note->version != before)
			return txn_doom(worker, OLTP_CONFLICT);
		note->version = after;
		mask = note->mask;
	}
	return mask && new_word ? notes_add(worker, new_word, new_version, mask) : OLTP_OK;
}

bool notes_hold(const struct oltp_worker *worker)
{
	for (uint32_t i = 0; i < worker->n_notes; i++) {
		const struct note *note = &worker->notes[i];

		if ((atomic_load_explicit(note->word, memory_order_seq_cst) & note->mask) !=
		    note->version)
			return false;
	}
	return true;
}
