/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Both ends of the client of ebb-volumed: the agent, whose facts are kept, and a volume server that
 * says whatever the test wants.
 */
#ifndef EBB_TEST_VOLUMES_RIG_H
#define EBB_TEST_VOLUMES_RIG_H

#include "backend/volumes/volumes.h"

#define HANG_USEC	(60 * EBB_USEC_PER_SEC)
#define MSEC		EBB_USEC_PER_MSEC
#define MAX_FACTS	64
#define OK		"{\"ok\":true}\n"
/* What the server is. */
#define SERVER		"{\"ok\":true,\"server\":{\"capacity_iops\":500," \
			"\"capacity_bytes\":0,\"promised_iops\":-7,\"promised_bytes\":9," \
			"\"allow_overbooking\":true}," \
			"\"volumes\":[],\"more\":false}\n"
#define ASKED_OWNED(after)	"{\"cmd\":\"volumes\",\"owner\":\"me\",\"brief\":true," \
				"\"after\":" #after ",\"most\":256}\n"
#define ASKED_CLAIM		"{\"cmd\":\"claim\",\"owner\":\"me\"}\n"
#define ASKED_SERVER		"{\"cmd\":\"volumes\",\"most\":0}\n"

struct seen {
	enum ebb_fact_type type;
	uint64_t id;
	int err;
	char text[EBB_TEXT_SIZE];
};

struct volumes_rig {
	sd_event *event;
	struct ebb_volumes_config cfg;
	struct ebb_volumes *volumes;
	struct ebb_backend backend;
	char folder[64], path[96];
	int listen_fd, fd;		/* -1: none */
	struct seen facts[MAX_FACTS];
	size_t num_facts, num_read;
	struct ebb_fact_volumes_meters meters;
	struct ebb_volume_reading readings[2];
	unsigned int num_inner;
	bool is_submitting;
};

/* For cmocka: *state is a rig without a server, whose client has not begun. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* ---- the agent's end */

void rig_begin(struct volumes_rig *f);
void rig_submit(struct volumes_rig *f, uint64_t id, const char *name, struct ebb_sla_io io);
/* One turn of the loop. */
void rig_pump(struct volumes_rig *f);
/* The next fact is of this kind, and has this in its text. */
void rig_expect(struct volumes_rig *f, enum ebb_fact_type type, const char *text);
void rig_expect_done(struct volumes_rig *f, uint64_t id, int err, const char *text);
/* No fact comes in that time. */
void rig_expect_nothing(struct volumes_rig *f, usec_t wait);

/* ---- the server's end */

/* Listens; hangs up; the same, and ends. */
void rig_serve(struct volumes_rig *f);
void rig_hang_up(struct volumes_rig *f);
void rig_stop(struct volumes_rig *f);
/* A client comes; and claims its name; and has asked for its volumes, of which there are none. */
void rig_let_in(struct volumes_rig *f);
void rig_greet(struct volumes_rig *f);
void rig_bring_up(struct volumes_rig *f);
/* The next request, which is the only one; it has these words in it. */
void rig_read_line(struct volumes_rig *f, char *line, size_t size);
void rig_asked(struct volumes_rig *f, const char *words);
void rig_answer(struct volumes_rig *f, const char *text);

#endif /* EBB_TEST_VOLUMES_RIG_H */
