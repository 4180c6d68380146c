/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Errors of libvirt. */
#ifndef EBB_IO_VIRT_ERROR_H
#define EBB_IO_VIRT_ERROR_H

#include "util/err.h"

/*
 * The last error of libvirt on this thread as -errno, and with what was tried as text: -ENOENT no
 * such domain, -ETIMEDOUT, -ENOTCONN, -EBUSY not in this state of the domain or of the host,
 * -EOPNOTSUPP never with this driver, else -EIO.
 */
int ebb_virt_error(struct ebb_err *err, const char *what);

#endif
