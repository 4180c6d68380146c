/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The emulated host inside a guest, where cgroups are of version 2.  Exit code 0: it works. */
#include <stdio.h>
#include "tests/lib/emuhost_check.h"
#include "tests/lib/emureserve_check.h"

int main(void)
{
	char text[1024] = "";
	int rc = emuhost_check("ebb-emu-guest-test", text, sizeof(text));

	if (rc == 0) {
		printf("%s\n", text);
		rc = emureserve_check("ebb-emu-guest-test", 250, text, sizeof(text));
	}
	printf("ebbt-emuhost: %s: %s\n", rc == 0 ? "ok" : "FAILED", text);
	return rc == 0 ? 0 : 1;
}
