// SPDX-License-Identifier: GPL-2.0-or-later
/* See info.h. */
#include <stdint.h>
#include <string.h>

#include "info.h"

static bool parse(const char *text, size_t n, double *ret_value)
{
	double value = 0, unit = 1;
	bool has_point = false;

	for (size_t i = 0; i < n; i++) {
		if (text[i] == '.' && !has_point && i > 0) {
			has_point = true;
			continue;
		}
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (text[i] - '0');
		if (has_point)
			unit *= 10;
	}
	*ret_value = value / unit;
	return n > 0;
}

bool info_number(const char *text, size_t n, const char *name, double *ret_value)
{
	const char *end = text + n, *line_end;
	size_t name_n = strlen(name);

	for (const char *line = text; line < end; line = line_end + 1) {
		line_end = memchr(line, '\n', (size_t)(end - line));
		if (!line_end)
			line_end = end;
		if ((size_t)(line_end - line) > name_n && !memcmp(line, name, name_n) &&
		    line[name_n] == ':') {
			const char *value = line + name_n + 1;
			size_t value_n = (size_t)(line_end - value);

			if (value_n && value[value_n - 1] == '\r')
				value_n--;
			return parse(value, value_n, ret_value);
		}
	}
	return false;
}
