/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See when.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/when.h"

bool when_parse(const char *text, double *ret_ts)
{
	static const char units[] = "smhd";
	static const double seconds[] = { 1, 60, 3600, 86400 };
	struct tm tm = { .tm_isdst = -1 };
	const char *unit;
	char *end;
	double n;

	if (text[0] == '@') {
		*ret_ts = strtod(text + 1, &end);
		return end != text + 1 && !*end && isfinite(*ret_ts);
	}
	n = strtod(text, &end);
	unit = end != text && *end && !end[1] ? strchr(units, *end) : NULL;
	if (unit && isfinite(n) && n >= 0) {
		*ret_ts = (double)time(NULL) - n * seconds[unit - units];
		return true;
	}
	end = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
	if (!end || *end) {
		tm = (struct tm){ .tm_isdst = -1 };
		end = strptime(text, "%Y-%m-%d %H:%M", &tm);
	}
	*ret_ts = (double)mktime(&tm);
	return end && !*end;
}

void when_print(double ts, char *text)
{
	const time_t seconds = (time_t)ts;
	char when[32];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(when, sizeof(when), "%m-%d %H:%M:%S", &tm);
	snprintf(text, WHEN_SIZE, "%s.%03d", when, (int)((ts - (double)seconds) * 1000));
}
