/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Has the storage daemon follow what access.h says: an export for each attachment of a shared
 * volume that may write, none for the others.
 */
#ifndef EBB_VOLUMED_ATTACH_H
#define EBB_VOLUMED_ATTACH_H

#include "volumed/server.h"

/* Sends the commands for a volume's changed attachments to the storage daemon, if it is there. */
void ebb_attach_advance(struct ebb_server *s, struct ebb_volume *v);

/* A storage daemon has opened the volume; it died; it says that an export is not there any more. */
void ebb_attach_opened(struct ebb_server *s, struct ebb_volume *v);
void ebb_attach_lost(struct ebb_volume *v);
void ebb_attach_removed(struct ebb_server *s, struct ebb_volume *v, uint32_t attachment);

/*
 * done() is called once, maybe at once, when the attachment is settled (ebb_access_is_settled) or
 * gone; with an error if the storage daemon refuses to make its export, or there is none any more.
 */
void ebb_attach_wait(struct ebb_server *s, const struct ebb_volume *v, uint32_t attachment,
		     ebb_server_done done, void *ctx);

/* Ends waits for which there is no reason any more. */
void ebb_attach_settle(struct ebb_server *s);

/* Ends all waits, with an error: there will be no storage daemon any more. */
void ebb_attach_give_up(struct ebb_server *s);

#endif
