/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of the link protocol's parser that reads ACCOUNT. */
#ifndef EBB_IO_LINKPROTO_ACCOUNT_H
#define EBB_IO_LINKPROTO_ACCOUNT_H

#include "model/types.h"
#include "util/err.h"

/* payload: a struct virtio_ebb_link_account.  0, or -EPROTO with err. */
int ebb_linkproto_decode_account(const void *payload, struct ebb_account *ret,
				 struct ebb_err *err);

#endif
