/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of parts of rows into the log. They are short, and there are several in each transaction:
 * a call of memcpy, which first finds out how short, costs as much as the copy itself. (Not so for
 * before-images, where the row has yet to come from memory: there memcpy was measured to be no
 * worse.)
 */
#ifndef OLTP_SPAN_COPY_H
#define OLTP_SPAN_COPY_H

#include <stdint.h>
#include <string.h>

#define SPAN_COPY_STEP		16u
#define SPAN_COPY_INLINE_MAX	256u

/* They do not overlap. */
static inline void span_copy(void *to, const void *from, uint32_t bytes)
{
	const uint8_t *source = from;
	uint8_t *target = to;

	if (bytes == sizeof(uint64_t)) {
		memcpy(target, source, sizeof(uint64_t));
		return;
	}
	if (bytes < SPAN_COPY_STEP || bytes > SPAN_COPY_INLINE_MAX) {
		memcpy(target, source, bytes);
		return;
	}
	/* The last step ends with the span, and may cover a part of the one before. */
	for (uint32_t at = 0; at < bytes - SPAN_COPY_STEP; at += SPAN_COPY_STEP)
		memcpy(target + at, source + at, SPAN_COPY_STEP);
	memcpy(target + bytes - SPAN_COPY_STEP, source + bytes - SPAN_COPY_STEP, SPAN_COPY_STEP);
}

#endif
