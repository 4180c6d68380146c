/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: whatever a client sends, the parser gives requests within the limits, or fails for
 * good.  The first byte of the input chooses in which pieces the rest arrives; the requests, and
 * the error, must be the same as in one piece.  Each piece is in memory of its own, so that nothing
 * may be kept from one call to the next.
 */
#include <stdlib.h>
#include <string.h>
#include "oltp-engine/server/resp/parse.h"

#define REQUIRE(cond)	do { if (!(cond)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct resp_limits limits = { .args_max = 32, .bulk_bytes_max = 512,
					   .request_bytes_max = 4096 };

/* FNV-1a of all that the parser gave. */
static void mix(uint64_t *hash, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n; i++)
		*hash = (*hash ^ at[i]) * 0x100000001b3ull;
}

static void mix_request(uint64_t *hash, const struct resp_parser *p)
{
	REQUIRE(p->n_args <= limits.args_max);
	mix(hash, &p->n_args, sizeof(p->n_args));
	for (uint32_t i = 0; i < p->n_args; i++) {
		REQUIRE(p->args[i].n <= limits.bulk_bytes_max);
		mix(hash, &p->args[i].n, sizeof(p->args[i].n));
		mix(hash, p->args[i].bytes, p->args[i].n);
	}
}

static uint64_t run(const uint8_t *data, size_t size, size_t piece)
{
	enum resp_result result = RESP_MORE;
	uint64_t hash = 0xcbf29ce484222325ull;
	struct resp_parser p;
	size_t from = 0, to = 0;

	resp_parser_init(&p, &limits);
	while (to < size && result != RESP_ERROR) {
		to = size - to < piece ? size : to + piece;
		do {
			size_t n = to - from, used;
			char *copy = malloc(n + !n);

			REQUIRE(copy);
			memcpy(copy, data + from, n);
			result = resp_parse(&p, copy, n, &used);
			if (result == RESP_REQUEST) {
				REQUIRE(used && used <= n && used <= limits.request_bytes_max);
				mix_request(&hash, &p);
				from += used;
			} else {
				REQUIRE(!used);
			}
			free(copy);
		} while (result == RESP_REQUEST);
	}
	if (result == RESP_ERROR) {
		REQUIRE(!strncmp(p.error, "ERR ", 4) && !strpbrk(p.error, "\r\n"));
		mix(&hash, p.error, strlen(p.error));
	}
	resp_parser_finish(&p);
	return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	REQUIRE(run(data + 1, size - 1, data[0] % 64 + 1) == run(data + 1, size - 1, size));
	return 0;
}
