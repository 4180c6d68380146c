/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections to libvirt for calls, each used by one thread at a time.  libvirt before 10.4 may
 * crash a program of which several threads call over one connection (CVE-2024-4418): a look at the
 * socket that another thread's call ended early stays behind, and points into a stack that has
 * gone.  A connection's own keepalive does the same in a call that takes long, so after such a call
 * the connection is not used again.  All from any thread.
 */
#ifndef EBB_IO_VIRT_POOL_H
#define EBB_IO_VIRT_POOL_H

#include <libvirt/libvirt.h>
#include "model/types.h"

/* A libvirtd that does not answer 3 probes in a row is gone. */
#define EBB_VIRT_KEEPALIVE_SEC		5
#define EBB_VIRT_KEEPALIVE_COUNT	3

struct ebb_virt_pool;

/*
 * longest_usec: a connection that was lent for so long is not lent again; less than the keepalive's
 * interval.  NULL: no memory.
 */
struct ebb_virt_pool *ebb_virt_pool_create(const char *uri, usec_t longest_usec);

/* All connections have been given back.  NULL is fine. */
void ebb_virt_pool_destroy(struct ebb_virt_pool *p);

/* libvirt answers from now on. */
void ebb_virt_pool_open(struct ebb_virt_pool *p);

/* It does not: nothing is lent, and what is lent is closed when it is given back. */
void ebb_virt_pool_shut(struct ebb_virt_pool *p);

/* A connection for the caller alone, or NULL: shut, or libvirt lets nobody in. */
virConnectPtr ebb_virt_pool_get(struct ebb_virt_pool *p);

/* Gives it back. */
void ebb_virt_pool_put(struct ebb_virt_pool *p, virConnectPtr conn);

#endif
