/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests about who may write a shared volume, as docs/volume-protocol.md has them. */
#ifndef EBB_VOLUMED_VACCESS_H
#define EBB_VOLUMED_VACCESS_H

#include "volumed/vctl.h"

void ebb_vaccess_attachments(struct ebb_vctl *ctl, struct ebb_ctl_request *r);
void ebb_vaccess_attach(struct ebb_vctl *ctl, struct ebb_ctl_request *r);
void ebb_vaccess_detach(struct ebb_vctl *ctl, struct ebb_ctl_request *r);
void ebb_vaccess_fence(struct ebb_vctl *ctl, struct ebb_ctl_request *r);

#endif
