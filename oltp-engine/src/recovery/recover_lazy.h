/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lazy recovery: of the newest checkpoint only its directory is read (checkpoint_directory.h), and
 * the index gets a stub for each row (cold/cold_checkpoint.h). The log is then redone as ever. A
 * row is read when somebody wants it, as a cold record is; the rest is loaded in the background
 * (lazy_load.h), and in the end all is as after an ordinary recovery.
 *
 *   - A scan must be right from the first transaction on, so ordered indexes get all rows at once:
 *     the directory has their sort keys. If those were made in another way than now (an index that
 *     is new, or of another key_version) the table is loaded at once. So are tables whose records
 *     are too long to be cold.
 *   - A damaged row is found when it is read: the transaction gets OLTP_IO. An ordinary recovery
 *     would have failed.
 *   - The file of the checkpoint stays until no row is needed from it, also when there is a newer
 *     one: checkpoints that are made meanwhile read the rows from it.
 */
#ifndef OLTP_RECOVER_LAZY_H
#define OLTP_RECOVER_LAZY_H

#include "recover_read.h"

/*
 * In place of recover_read_checkpoint. 1: it cannot be done, nothing was done, and
 * figures.not_lazy says why. Errors: as of that.
 */
int recover_lazy(struct recover_read *read);

#endif
