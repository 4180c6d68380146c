// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/kv/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool number_parse_unsigned(const char *text, uint32_t n, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (n == 0 || n > NUMBER_MAX || (text[0] == '0' && n > 1))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t digit = (uint64_t)(unsigned char)text[i] - '0';

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret_value = value;
	return true;
}

bool number_parse(const char *text, uint32_t n, int64_t *ret_value)
{
	bool is_negative = n > 0 && text[0] == '-';
	uint64_t value;

	if (!number_parse_unsigned(text + is_negative, n - is_negative, &value))
		return false;
	if (is_negative && (value == 0 || value > (uint64_t)INT64_MAX + 1))
		return false;
	if (!is_negative && value > INT64_MAX)
		return false;
	*ret_value = is_negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

uint32_t number_print(char *to, int64_t value)
{
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	char text[NUMBER_MAX];
	uint32_t at = NUMBER_MAX;

	do {
		text[--at] = (char)('0' + left % 10);
		left /= 10;
	} while (left > 0);
	if (value < 0)
		text[--at] = '-';
	memcpy(to, text + at, NUMBER_MAX - at);
	return NUMBER_MAX - at;
}

bool number_parse_float(const char *text, uint32_t n, long double *ret_value)
{
	char copy[NUMBER_FLOAT_MAX + 1];
	long double value;
	char *end;

	if (n == 0 || n > NUMBER_FLOAT_MAX || isspace((unsigned char)text[0]))
		return false;
	memcpy(copy, text, n);
	copy[n] = '\0';
	errno = 0;
	value = strtold(copy, &end);
	if (end != copy + n || isnan(value) ||
	    (errno == ERANGE && (value == 0 || isinf(value))))
		return false;
	*ret_value = value;
	return true;
}

uint32_t number_print_float(char *to, long double value)
{
	char text[NUMBER_FLOAT_MAX];
	int n = snprintf(text, sizeof(text), "%.17Lf", value);

	while (n > 1 && text[n - 1] == '0')
		n--;
	if (n > 1 && text[n - 1] == '.')
		n--;
	if (n == 2 && !memcmp(text, "-0", 2)) {
		text[0] = '0';
		n = 1;
	}
	memcpy(to, text, (size_t)n);
	return (uint32_t)n;
}
