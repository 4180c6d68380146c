/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a volume is described to the storage daemon.  Pure: JSON from what a volume is. */
#ifndef EBB_VOLUMED_BLOCKDEV_H
#define EBB_VOLUMED_BLOCKDEV_H

#include <jansson.h>
#include "volumed/server.h"

#define EBB_BLOCKDEV_ID_SIZE	16

/* Names of the node and of the export; QEMU takes at most 31 characters, so ids stand for names. */
void ebb_blockdev_node(const struct ebb_volume *v, char ret[EBB_BLOCKDEV_ID_SIZE]);
void ebb_blockdev_export_id(const struct ebb_volume *v, char ret[EBB_BLOCKDEV_ID_SIZE]);
void ebb_blockdev_attachment_id(const struct ebb_attachment *t, char ret[EBB_BLOCKDEV_ID_SIZE]);

/* Arguments of blockdev-add and block-export-add. */
json_t *ebb_blockdev_node_args(const struct ebb_vconf *conf, const struct ebb_volume *v);
json_t *ebb_blockdev_export_args(const struct ebb_volume *v);
/* The export of an attachment, VOLUME@ATTACHMENT, in the place of that of a volume. */
json_t *ebb_blockdev_attachment_args(const struct ebb_volume *v, const struct ebb_attachment *t);

/* Arguments of ebb-volume-set: all numbers; 0 stands for none. */
json_t *ebb_blockdev_promise_args(const struct ebb_volspec *spec);

#endif
