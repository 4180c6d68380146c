/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The I/O half of an SLA.  <ebb:io> has one value of each attribute for the whole VM, which are
 * rows of the table in model/sla.h like all others.  A volume may have values of its own for any of
 * the same rows; where it has none, the VM's value counts, also after that has changed.
 */
#ifndef EBB_MODEL_SLA_IO_H
#define EBB_MODEL_SLA_IO_H

#include "model/sla.h"

/* 1 to EBB_VOLUME_NAME_SIZE - 1 letters, digits, ".", "_" and "-". */
bool ebb_volume_name_usable(const char *name);
/* The name, and zeros up to the end, as SLAs and lists of volumes are compared as a whole. */
void ebb_volume_name_copy(char ret[EBB_VOLUME_NAME_SIZE], const char *name);

/* NULL: the SLA does not name the volume. */
const struct ebb_sla_volume *ebb_sla_volume(const struct ebb_sla *sla, const char *name);

/* Finds or adds the volume; NULL: the name is not usable, or there are EBB_MAX_VOLUMES others. */
struct ebb_sla_volume *ebb_sla_volume_get(struct ebb_sla *sla, const char *name);

/* One of the I/O rows: sets the volume's own value; takes it away, so that the VM's counts. */
void ebb_sla_volume_put(struct ebb_sla_volume *v, const struct ebb_sla_key *key, uint64_t value);
void ebb_sla_volume_clear(struct ebb_sla_volume *v, const struct ebb_sla_key *key);
/* False: the volume has no value of its own. */
bool ebb_sla_volume_value(const struct ebb_sla_volume *v, const struct ebb_sla_key *key,
			  uint64_t *ret);

/* The SLA no longer names the volume; no effect if it did not. */
void ebb_sla_volume_drop(struct ebb_sla *sla, const char *name);

/* The promise to a volume: its own in the SLA, or the one for all volumes. */
void ebb_sla_io_of(const struct ebb_sla *sla, const char *name, struct ebb_sla_io *ret);
/* The promise to a volume that no SLA speaks of: none. */
void ebb_sla_io_default(struct ebb_sla_io *ret);
/* The volume server is to be told the same of both: `cold` does not count. */
bool ebb_sla_io_is_same(const struct ebb_sla_io *a, const struct ebb_sla_io *b);

/*
 * The SLA says something about the volume: it names it, or promises all volumes something.  Of
 * others the agent leaves alone what the volume server was told by somebody else.
 */
bool ebb_sla_io_covers(const struct ebb_sla *sla, const char *name);

/* The SLA says something about I/O: a value that is not the default, or a volume's name. */
bool ebb_sla_has_io(const struct ebb_sla *sla);

/* -EINVAL: ret_text (EBB_TEXT_SIZE bytes) names attribute, value and what is allowed. */
int ebb_sla_io_check(const struct ebb_sla *sla, char *ret_text);

#endif /* EBB_MODEL_SLA_IO_H */
