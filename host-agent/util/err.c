/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Errors with a text for people. */
#include <stdarg.h>
#include <stdio.h>
#include "util/err.h"
#include "util/text.h"

int ebb_err_set(struct ebb_err *err, int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	/* What others sent may hold line breaks; one error is one log line. */
	for (char *p = err->text; *p; p++)
		if ((unsigned char)*p < 0x20)
			*p = ' ';
	ebb_text_clean(err->text);
	return rc;
}
