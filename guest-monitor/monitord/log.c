// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Log lines with a limit on their rate: see log.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "guest-monitor/libebb/link.h"
#include "log.h"

#define NS_PER_SEC	1000000000ull

void ebb_log(const char *format, ...)
{
	static uint64_t second_ns;
	static unsigned int num_lines, num_lost;
	uint64_t now_ns = ebb_now_ns();
	char line[512];
	va_list args;

	if (now_ns - second_ns >= NS_PER_SEC) {
		if (num_lost > 0)
			fprintf(stderr, "ebb-monitord: %u more lines left out\n", num_lost);
		second_ns = now_ns;
		num_lines = 0;
		num_lost = 0;
	}
	if (num_lines >= EBB_LOG_BURST) {
		num_lost++;
		return;
	}
	num_lines++;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "ebb-monitord: %s\n", line);
}
