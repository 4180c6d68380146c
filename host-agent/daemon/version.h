/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef EBB_DAEMON_VERSION_H
#define EBB_DAEMON_VERSION_H

#define EBB_VERSION	"0.1.0"

#endif
