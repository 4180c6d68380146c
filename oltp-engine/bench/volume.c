// SPDX-License-Identifier: GPL-2.0-or-later
/* See volume.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "oltp_volume.h"
#include "volume.h"

int bench_volume_format(const struct bench_log_options *o)
{
	int rc = o->volume_format ? oltp_volume_format(o->volume, o->is_forced) : 0;

	if (rc)
		fprintf(stderr, "oltp: --volume-format: %s: %s%s\n", o->volume,
			oltp_volume_strerror(rc),
			rc == -EEXIST || rc == -ENOTEMPTY ? "; see --force" : "");
	return rc;
}

const char *bench_volume_strerror(const struct bench_log_options *o, int rc)
{
	return o->volume ? oltp_volume_strerror(rc) : strerror(-rc);
}
