/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client of QMP, the monitor protocol of QEMU and its storage daemon, on a connected socket.
 * Commands are answered in the order in which they were sent.
 */
#ifndef EBB_VOLUMED_QMP_H
#define EBB_VOLUMED_QMP_H

#include <jansson.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct ebb_qmp;

/*
 * The answer to a command: result is borrowed; NULL: it was refused, and error says why.  Called
 * once for each command, at the latest by ebb_qmp_destroy(), with an error.  It may send commands,
 * but not destroy the client.
 */
typedef void (*ebb_qmp_done)(void *ctx, const json_t *result, const char *error);

struct ebb_qmp_config {
	int fd;				/* taken, also when creating fails */
	/* An event; data is borrowed and may be NULL.  May send commands. */
	void (*event)(void *ctx, const char *name, const json_t *data);
	/* The connection has ended, or what comes makes no sense.  Not to destroy the client. */
	void (*lost)(void *ctx);
	void *ctx;
};

int ebb_qmp_create(sd_event *event, const struct ebb_qmp_config *cfg, struct ebb_qmp **ret);
void ebb_qmp_destroy(struct ebb_qmp *q);

/* Takes the reference of arguments, which may be NULL, as may done. */
void ebb_qmp_send(struct ebb_qmp *q, const char *command, json_t *arguments, ebb_qmp_done done,
		  void *ctx);

/*
 * For how long the peer has left a command unanswered without answering any other, microseconds; 0:
 * it has answered all.
 */
uint64_t ebb_qmp_silence(const struct ebb_qmp *q);

#endif
