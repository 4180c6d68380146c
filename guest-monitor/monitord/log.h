/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines on stderr.  What applications can cause is limited to EBB_LOG_BURST
 * lines a second, so that none of them can fill a disk.
 */
#ifndef EBB_LOG_H
#define EBB_LOG_H

#define EBB_LOG_BURST	10

__attribute__((format(printf, 1, 2))) void ebb_log(const char *format, ...);

#endif /* EBB_LOG_H */
