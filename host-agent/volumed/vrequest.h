/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of the control socket that wait for an answer, and their answers: for all commands. */
#ifndef EBB_VOLUMED_VREQUEST_H
#define EBB_VOLUMED_VREQUEST_H

#include "volumed/vctl.h"

/* A request that waits for the storage daemon, or to be begun. */
struct ebb_waiting {
	struct ebb_waiting *next;
	struct ebb_vctl *ctl;
	struct ebb_ctl_request *request; /* NULL: the client was told that no answer came in time */
	sd_event_source *timer;		/* until then */
	bool has_volume;		/* it is about one: */
	uint32_t volume;		/* its id; its name may be another volume's by now */
	uint32_t attachment;		/* its id, if it is about one of the volume; 0: it is not */
	bool is_meters, is_brief;	/* it asks for meters */
	bool is_queued;			/* waits for the end of another change of the volume */
};

/*
 * v: NULL: it is about none, or all.  patience: when late() ends it, or answers it and lets it go
 * on; microseconds.  NULL: the client was told that there is no memory.
 */
struct ebb_waiting *ebb_vrequest_wait(struct ebb_vctl *ctl, struct ebb_ctl_request *r,
				      const struct ebb_volume *v, uint64_t patience,
				      sd_event_time_handler_t late);
void ebb_vrequest_end(struct ebb_waiting *w);

/* Takes the reference of answer.  For both: nothing is sent where the client knows of no answer. */
void ebb_vrequest_reply(struct ebb_waiting *w, json_t *answer);
void ebb_vrequest_refuse(const struct ebb_waiting *w, const char *code, const char *hint,
			 const char *text);

/* The volume that the request names, or NULL and an answer. */
struct ebb_volume *ebb_vrequest_volume(struct ebb_server *s, struct ebb_ctl_request *r);

/* Writes the state; -errno with a message, also in the log. */
int ebb_vrequest_save(const struct ebb_server *s, struct ebb_err *err);

#endif
