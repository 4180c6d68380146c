// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which threads are kept to the startup set: see isolate.h. Pure.
 */
#include <errno.h>

#include "isolate.h"

void ebb_isolate_set_add(struct ebb_isolate_set *set, uint32_t cpu)
{
	if (cpu < EBB_ISOLATE_MAX_CPUS)
		set->words[cpu / 64] |= 1ull << cpu % 64;
}

bool ebb_isolate_set_is_within(const struct ebb_isolate_set *set,
			       const struct ebb_isolate_set *other)
{
	for (size_t i = 0; i < EBB_ISOLATE_WORDS; i++)
		if (set->words[i] & ~other->words[i])
			return false;
	return true;
}

/* Of the startup set, what is online; false if nothing is. */
static bool home_find(const struct ebb_isolate_cpus *cpus, struct ebb_isolate_set *ret)
{
	uint64_t any = 0;

	for (size_t i = 0; i < EBB_ISOLATE_WORDS; i++) {
		ret->words[i] = cpus->startup.words[i] & cpus->online.words[i];
		any |= ret->words[i];
	}
	return any != 0;
}

bool ebb_isolate_must_narrow(const struct ebb_isolate_cpus *cpus,
			     const struct ebb_isolate_set *allowed)
{
	struct ebb_isolate_set home;

	return home_find(cpus, &home) && ebb_isolate_set_is_within(&cpus->online, allowed);
}

bool ebb_isolate_must_let_go(const struct ebb_isolate_cpus *cpus,
			     const struct ebb_isolate_set *allowed, bool is_engine)
{
	struct ebb_isolate_set home;

	/* What the kernel tells of a thread may leave CPUs out that are not online. */
	return !is_engine && home_find(cpus, &home) &&
	       ebb_isolate_set_is_within(allowed, &cpus->startup) &&
	       ebb_isolate_set_is_within(&home, allowed);
}

/* Reads a number and moves on; -EINVAL if there is none or it is beyond all CPUs. */
static int cpu_read(const char **p, uint32_t *ret)
{
	uint32_t cpu = 0;

	if (**p < '0' || **p > '9')
		return -EINVAL;
	for (; **p >= '0' && **p <= '9'; (*p)++) {
		cpu = cpu * 10 + (uint32_t)(**p - '0');
		if (cpu >= EBB_ISOLATE_MAX_CPUS)
			return -EINVAL;
	}
	*ret = cpu;
	return 0;
}

int ebb_isolate_list_parse(const char *text, struct ebb_isolate_set *ret)
{
	struct ebb_isolate_set set = { { 0 } };
	const char *p = text;
	uint32_t from, to;

	while (*p && *p != '\n') {
		if (p > text && *p++ != ',')
			return -EINVAL;
		if (cpu_read(&p, &from) < 0)
			return -EINVAL;
		to = from;
		if (*p == '-') {
			p++;
			if (cpu_read(&p, &to) < 0 || to < from)
				return -EINVAL;
		}
		for (uint32_t cpu = from; cpu <= to; cpu++)
			ebb_isolate_set_add(&set, cpu);
	}
	*ret = set;
	return 0;
}

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

int ebb_isolate_mask_parse(const char *text, struct ebb_isolate_set *ret)
{
	struct ebb_isolate_set set = { { 0 } };
	uint32_t digits = 0;
	size_t len = 0;

	while (text[len] && text[len] != '\n')
		len++;
	for (size_t i = len; i-- > 0;) {
		int value = digit_value(text[i]);

		if (text[i] == ',')
			continue;
		if (value < 0 || digits >= EBB_ISOLATE_MAX_CPUS / 4)
			return -EINVAL;
		set.words[digits / 16] |= (uint64_t)value << digits % 16 * 4;
		digits++;
	}
	if (digits == 0)
		return -EINVAL;
	*ret = set;
	return 0;
}

void ebb_isolate_mask_format(const struct ebb_isolate_set *set, char *text)
{
	bool is_begun = false;

	for (uint32_t digits = EBB_ISOLATE_MAX_CPUS / 4; digits-- > 0;) {
		unsigned int value = set->words[digits / 16] >> digits % 16 * 4 & 15;

		if (!is_begun && value == 0 && digits > 0)
			continue;
		is_begun = true;
		*text++ = "0123456789abcdef"[value];
		if (digits > 0 && digits % 8 == 0)
			*text++ = ',';
	}
	*text = 0;
}
