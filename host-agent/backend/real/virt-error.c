/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See virt-error.h. */
#include <errno.h>
#include <libvirt/virterror.h>
#include "backend/real/virt-error.h"

int ebb_virt_error(struct ebb_err *err, const char *what)
{
	virErrorPtr e = virGetLastError();
	int rc;

	switch (e ? e->code : 0) {
	case VIR_ERR_NO_DOMAIN:
		rc = -ENOENT;
		break;
	case VIR_ERR_OPERATION_TIMEOUT:
		rc = -ETIMEDOUT;
		break;
	case VIR_ERR_NO_CONNECT:
	case VIR_ERR_RPC:
		rc = -ENOTCONN;
		break;
	case VIR_ERR_OPERATION_INVALID:
		rc = -EBUSY;
		break;
	case VIR_ERR_NO_SUPPORT:
	case VIR_ERR_OPERATION_UNSUPPORTED:
		rc = -EOPNOTSUPP;
		break;
	default:
		rc = -EIO;
	}
	return ebb_err_set(err, rc, "%s: %s", what, virGetLastErrorMessage());
}
