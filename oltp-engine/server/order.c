// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/order.h"

#include <string.h>

#define PER_SECOND_MAX	100000u
#define LIMIT_S_MAX	86400u
#define LIMIT_S		120u
#define SECOND_NS	1000000000u
/* Of a failover, unless other numbers are given. */
#define COPY_TIMEOUT_S	60u
#define COPY_MIB_S	64u
#define COPY_PAUSE_NS	100000000u
#define COPY_ROUNDS	30u
/*
 * Of an adaptive move: slower, as clients stay and are not to feel it. Once is enough, since units
 * follow one by one with what was written meanwhile.
 */
#define AHEAD_MIB_S	32u
#define AHEAD_ROUNDS	1u
#define MIB_MAX		(1u << 24)

static bool is_word(const char *text, const char *upper)
{
	while (*upper && (*text == *upper || (*text >= 'a' && *text - 'a' + 'A' == *upper))) {
		text++;
		upper++;
	}
	return *upper == *text;
}

/* From min to max, in digits. */
static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (!text || !*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || n > max)
			return false;
		n = 10 * n + (uint64_t)(*text - '0');
	}
	*ret = n;
	return n >= min && n <= max;
}

static bool parse_address(const char *text, char ret[ORDER_ADDRESS_BYTES])
{
	if (!text || !*text || strlen(text) >= ORDER_ADDRESS_BYTES)
		return false;
	memcpy(ret, text, strlen(text) + 1);
	return true;
}

/* The order as given, and its limit of time; FAST has none. */
struct parsed {
	struct relocation_order order;
	uint64_t limit_s;
	bool is_fast;
	bool has_rate;		/* FAST, FIXED, ADAPTIVE, SPEED or LIMIT-S was given */
	uint64_t timeout_s, max_mib, mib_s;
	bool has_copy;		/* one of these was given */
};

/*
 * An option of a failover. True: it was one; *ret_wrong is what is wrong with it, or NULL.
 */
static bool parse_copy(const char *word, const char *value, struct parsed *p,
		       const char **ret_wrong)
{
	bool is_good;

	if (is_word(word, "TIMEOUT-S"))
		is_good = parse_number(value, 0, LIMIT_S_MAX, &p->timeout_s);
	else if (is_word(word, "MAX-MIB"))
		is_good = parse_number(value, 0, MIB_MAX, &p->max_mib);
	else if (is_word(word, "MIB-S"))
		is_good = parse_number(value, 1, MIB_MAX, &p->mib_s);
	else
		return false;
	p->has_copy = true;
	*ret_wrong = is_good ? NULL : "TIMEOUT-S is a number of seconds from 0 to 86400, MAX-MIB "
				      "from 0 and MIB-S from 1 to 16777216 MiB";
	return true;
}

/* An option at *at, which goes behind it. Returns what is wrong. */
static const char *parse_option(char *const *words, uint32_t *at, struct parsed *p)
{
	const char *word = words[*at], *value = words[*at + 1], *wrong;
	uint64_t n;

	*at += 2;
	if (is_word(word, "CLIENTS"))
		return parse_address(value, p->order.clients) ? NULL :
		       "CLIENTS is an address of at most 255 bytes";
	if (is_word(word, "TO"))
		return parse_address(value, p->order.node) ? NULL :
		       "TO is an address of at most 255 bytes";
	if (parse_copy(word, value, p, &wrong))
		return wrong;
	p->order.has_drain = true;
	if (is_word(word, "FAILOVER")) {
		(*at)--;
		p->order.is_failover = true;
		return NULL;
	}
	p->has_rate = true;
	if (is_word(word, "LIMIT-S"))
		return parse_number(value, 0, LIMIT_S_MAX, &p->limit_s) ? NULL :
		       "LIMIT-S is a number of seconds from 0 to 86400";
	if (is_word(word, "FIXED")) {
		if (!parse_number(value, 1, PER_SECOND_MAX, &n))
			return "FIXED is a number of clients per second from 1 to 100000";
		p->order.drain.fixed_per_s = (uint32_t)n;
		p->is_fast = false;
		return NULL;
	}
	if (is_word(word, "SPEED")) {
		if (!parse_number(value, 1, DRAIN_SPEED_PERCENT_MAX, &n))
			return "SPEED is a percentage from 1 to 10000";
		p->order.drain.speed_percent = (uint32_t)n;
		return NULL;
	}
	(*at)--;
	p->order.drain.fixed_per_s = 0;
	p->is_fast = is_word(word, "FAST");
	if (p->is_fast || is_word(word, "ADAPTIVE"))
		return NULL;
	return "TO node [CLIENTS address] [FAST|FIXED n|ADAPTIVE] [LIMIT-S s] [SPEED percent], "
	       "TO node [CLIENTS address] FAILOVER [TIMEOUT-S s] [MAX-MIB n] [MIB-S n], or "
	       "CANCEL [TO node] ...";
}

const char *order_parse(char *const *words, uint32_t n, struct relocation_order *ret_order)
{
	struct parsed p = { .order.drain.speed_percent = 100, .limit_s = LIMIT_S,
			    .timeout_s = COPY_TIMEOUT_S, .mib_s = COPY_MIB_S };
	const char *wrong = NULL;
	uint32_t i = 0;

	if (n && is_word(words[0], "CANCEL")) {
		p.order.cancels = true;
		i = 1;
	} else if (!n || !is_word(words[0], "TO")) {
		return "the first word is TO or CANCEL";
	}
	while (!wrong && i < n)
		wrong = parse_option(words, &i, &p);
	if (wrong)
		return wrong;
	if (p.has_copy && !p.order.is_failover)
		return "TIMEOUT-S, MAX-MIB and MIB-S are of FAILOVER";
	if (p.order.is_failover && (p.has_rate || p.order.cancels))
		return "FAILOVER moves all clients at once, and is no way back";
	p.order.drain.limit_ns = p.is_fast || p.order.is_failover ? 0 : p.limit_s * SECOND_NS;
	p.order.copies = p.order.is_failover ||
			 (p.order.drain.limit_ns && !p.order.drain.fixed_per_s && !p.order.cancels);
	p.order.copy = (struct precopy_config){
		.bytes_per_s = (p.order.is_failover ? p.mib_s : AHEAD_MIB_S) << 20,
		.bytes_max = p.max_mib << 20,
		.timeout_ns = p.timeout_s * SECOND_NS,
		.pause_ns = p.order.is_failover ? COPY_PAUSE_NS : 0,
		.rounds_max = p.order.is_failover ? COPY_ROUNDS : AHEAD_ROUNDS,
		.is_in_order = !p.order.is_failover,
	};
	*ret_order = p.order;
	return NULL;
}
