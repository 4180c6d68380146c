/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * State of ebb-volumed that outlives it and is in no configuration: volumes that were added over
 * the control socket, with their promises, who may write shared volumes, and the calibrated
 * capacity.  In <state_dir>/volumes.json, which is replaced as a whole.
 *
 * A volume of the configuration has the promise of the configuration after a restart.
 */
#ifndef EBB_VOLUMED_VSTATE_H
#define EBB_VOLUMED_VSTATE_H

#include "volumed/server.h"

/* Adds the volumes; no file is no error. -EBADMSG: it is no state; nothing is overwritten then. */
int ebb_vstate_load(struct ebb_server *s, struct ebb_err *err);

/* -errno with a message; the old file is still there then. */
int ebb_vstate_save(const struct ebb_server *s, struct ebb_err *err);

#endif
