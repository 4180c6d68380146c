// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/kv/match.h"

/*
 * The byte c against the set that begins behind "["; *ret_next: behind its "]". A set that does not
 * end takes all that is left of the pattern.
 */
static bool in_set(const char *at, const char *end, unsigned char c, const char **ret_next)
{
	bool is_negated = at < end && *at == '^', is_in = false;

	at += is_negated;
	while (at < end && *at != ']') {
		unsigned char first, last;

		if (*at == '\\' && end - at >= 2)
			at++;
		first = (unsigned char)*at++;
		last = first;
		if (end - at >= 2 && *at == '-') {
			last = (unsigned char)at[1];
			at += 2;
		}
		if (first <= last ? c >= first && c <= last : c >= last && c <= first)
			is_in = true;
	}
	*ret_next = at < end ? at + 1 : at;
	return is_in != is_negated;
}

/* One byte against what stands at the pattern, which is no *. *ret_next: behind that. */
static bool match_one(const char *at, const char *end, unsigned char c, const char **ret_next)
{
	switch (*at) {
	case '?':
		*ret_next = at + 1;
		return true;
	case '[':
		return in_set(at + 1, end, c, ret_next);
	case '\\':
		at += end - at >= 2;
		break;
	}
	*ret_next = at + 1;
	return (unsigned char)*at == c;
}

/*
 * After a mismatch the last * takes one byte more; those before it need not be looked at again, as
 * what they would take the last one can take as well.
 */
bool match_pattern(const char *pattern, uint32_t n_pattern, const char *text, uint32_t n_text)
{
	const char *end = pattern + n_pattern, *text_end = text + n_text;
	const char *star = NULL, *star_text = NULL, *next;

	while (text < text_end) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			star_text = text;
		} else if (pattern < end &&
			   match_one(pattern, end, (unsigned char)*text, &next)) {
			pattern = next;
			text++;
		} else if (star) {
			pattern = star;
			text = ++star_text;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}
