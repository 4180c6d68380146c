/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calibration: reads a file at rising depths, as a volume of the tenant "system" that waits its
 * turn like all others, and finds out what the disk can do and with which depth.
 */
#ifndef EBB_VOLUMED_CALIBRATE_H
#define EBB_VOLUMED_CALIBRATE_H

#include <stddef.h>
#include "volumed/knee.h"
#include "volumed/server.h"

/* The volume that is there meanwhile. */
#define EBB_CALIBRATE_VOLUME	"system"
#define EBB_CALIBRATE_POINTS	8

struct ebb_calibration;

/*
 * Called once, unless the calibration is destroyed before.  error: why not, else NULL, and then the
 * server has the capacity and the depth.
 */
typedef void (*ebb_calibrate_done)(void *ctx, const struct ebb_knee_point *points, size_t num,
				   const char *error);

/*
 * -EBUSY: there is one already, or a volume of that name.  The file is only read.  It takes about
 * 12 s; meanwhile the depth of the server changes.
 */
int ebb_calibrate_start(struct ebb_server *s, const char *nbd_path, const char *file,
			const char *format, ebb_calibrate_done done, void *ctx,
			struct ebb_calibration **ret, struct ebb_err *err);

/* Before the server; NULL is fine, as is one that has ended. */
void ebb_calibrate_destroy(struct ebb_calibration *c);

bool ebb_calibrate_is_running(const struct ebb_calibration *c);

#endif
