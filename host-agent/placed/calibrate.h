/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Constants of the cost of a move from measured moves (place_calibrate()). */
#ifndef EBB_PLACED_CALIBRATE_H
#define EBB_PLACED_CALIBRATE_H

#include <stdio.h>
#include "util/err.h"

#define PLACED_MOVES_HEADER	"disk_mib,memory_mib,active,seconds"

/*
 * Reads a CSV file with that header and a line for each move: MiB, MiB, 0 or 1, seconds for which
 * clients were disturbed.  Prints lines for ebb-placed.conf.  -EINVAL: a line makes no sense;
 * -ENODATA: the moves do not determine the constants.
 */
int placed_calibrate(const char *path, FILE *out, struct ebb_err *err);

#endif
