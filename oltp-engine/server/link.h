/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * link.h - the stream socket between the two nodes of a relocation, until it is handed over.
 * Addresses: "A.B.C.D:PORT", "[IPV6]:PORT" or "unix:PATH"; names are not looked up.
 */
#ifndef OLTP_SERVER_LINK_H
#define OLTP_SERVER_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a descriptor that does not block. Errors: -EINVAL, -EADDRINUSE, those of bind, listen. */
int server_link_listen(const char *address);

/* Returns a connected descriptor. Waits 1 s at most. Errors: -EINVAL, -ETIMEDOUT, connect(2)'s. */
int server_link_connect(const char *address);

/* A descriptor of somebody who waits. Errors: those of accept(2). */
int server_link_accept(int listen_fd);

/*
 * 1: that can be connected to from this machine only (a unix socket, 127.0.0.0/8, ::1); 0: from
 * others, too. Error: -EINVAL.
 */
int server_link_is_local(const char *address);

/* Whether the connected socket's other end is what listens at listen_fd, in this process. */
bool server_link_is_own(int fd, int listen_fd);

/* This end's host as text, an address of IPv6 in brackets; "127.0.0.1" for a unix socket. */
void server_link_host(int fd, char *ret, size_t room);

/* All n bytes, until then (CLOCK_MONOTONIC). Errors: -EPIPE (it has ended), -ETIMEDOUT, -errno. */
int server_link_read(int fd, void *bytes, size_t n, uint64_t until_ns);

/* All n bytes, within about a second. Errors: as above. */
int server_link_write(int fd, const void *bytes, size_t n);

#endif
