/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The version of ebbd and ebbctl. */
#ifndef EBB_UTIL_VERSION_H
#define EBB_UTIL_VERSION_H

#define EBB_VERSION	"0.1.0"

#endif
