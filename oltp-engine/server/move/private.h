/* SPDX-License-Identifier: GPL-2.0-or-later */
/* private.h - the state of a move. All but gates and what is under the lock is the thread's. */
#ifndef OLTP_MOVE_PRIVATE_H
#define OLTP_MOVE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "oltp-engine/relocate/units.h"
#include "oltp-engine/relocate/wire.h"
#include "oltp-engine/server/kv/page.h"
#include "oltp-engine/server/kv/record.h"
#include "oltp-engine/server/kv/unit.h"
#include "oltp-engine/server/move/channel.h"
#include "oltp-engine/server/move/facts.h"
#include "oltp-engine/server/move/gates.h"
#include "oltp-engine/server/move/move.h"
#include "oltp-engine/server/move/trace.h"

enum draining {
	DRAIN_NONE = 0,
	DRAIN_PINS,	/* its gate is closed, commands run */
	DRAIN_LOG,	/* until epoch is on disk */
};

/* What the thread knows of a unit beside units.h. */
struct place {
	uint64_t epoch;		/* DRAIN_LOG */
	uint8_t drain;		/* enum draining */
	uint32_t drain_at;	/* in move.draining */
	bool is_left;		/* mine by the log at the start */
	bool has_junk;		/* there may be records that are not this node's */
	/* Records that came for generation put_gen. */
	bool is_full;		/* and could not be put: no memory */
	bool is_spoilt;		/* and do not count: they belong to others, which are gone */
	bool is_unread;		/* and lack values that could not be read at the peer's volume */
	bool wants_values;	/* has been unread: what REFUSE says */
	uint32_t n_put;
	uint64_t put_gen;
	struct kv_unit_put put;
	/* Records that go, or went by sent_gen on the connection of that number. */
	struct kv_unit_reader *reader;	/* of those that have not gone yet, or of a page */
	bool is_delta;			/* only what has changed goes */
	bool sends_values;		/* not references: the peer could not read them */
	bool sends_stale;		/* pages from page_at on have not gone yet; GIVE follows */
	uint32_t page_at;
	uint32_t n_sent;
	uint64_t sent_gen, sent_on;
	/*
	 * While this node owns the unit by generation ahead_gen, its marked pages are those that
	 * the peer may not have (0: not known). The peer has all others, if records of the unit
	 * went ahead, or the unit came, on connection ahead_on; 0: it has none.
	 */
	uint64_t ahead_gen, ahead_on;
	/*
	 * Records came ahead, or were kept, while the peer owns the unit by this generation; 0:
	 * none.
	 */
	uint64_t came_gen;
	struct trace taking, giving;
};

/* A UNITS_LOG_ action that is being forced. */
struct forced {
	struct units_action action;
	uint64_t epoch;
	bool has_failed;
};

#define NEVER	UINT64_MAX

/* Records of a page, before it is known whether they fit together. */
struct page {
	uint8_t *bytes;
	size_t n, room;
	uint64_t fields_left;	/* that the last hash lacks */
};

/* Records of one unit, next to one another, for one transaction. */
struct collected {
	uint8_t *bytes;
	size_t n;
	uint32_t n_records;
};

/* copy.c */
struct copy {
	bool is_on;		/* begun on the connection of that number, and not stopped */
	uint64_t on;
	bool is_told;
	struct precopy_config config;
	struct precopy precopy;
	bool is_watching;	/* kv_pages_watch */
	bool has_kept;		/* there may be units with came_gen */
	uint32_t *pages;	/* unit << KV_PAGE_BITS | page, in the order in which they go */
	uint32_t n, at;
	struct page page;
	uint64_t stale_pages;
};

enum references_state {
	REFERENCES_NONE = 0,	/* the frame has none, or was not looked at */
	REFERENCES_WAITING,	/* for reads of an earlier frame */
	REFERENCES_READING,
	REFERENCES_READ,
	REFERENCES_FAILED,	/* none of them */
};

#define MOVE_REFERENCES_MAX	256u	/* in one frame */

/* references.c: of the frame that has come and is handled next. */
struct references {
	struct oltp_places *places;	/* the peer's volume; NULL: not opened yet */
	struct oltp_place_read *reads;	/* MOVE_REFERENCES_MAX */
	uint8_t *record;		/* the last one with its value: KV_RECORD_MAX bytes */
	uint32_t at;			/* in reads: the next one to put */
	uint8_t state;			/* enum references_state */
	bool is_stuck;			/* the last reads took too long, and have not ended */
	int error;			/* FAILED: -errno */
	uint64_t since_ns;		/* when the frame was looked at first */
};

/* RECORDS frames, one of them open at a time. */
struct sender {
	struct move *m;
	struct units_message give;
	uint32_t flags;		/* of the frames */
	uint8_t *frame;		/* NULL: none is open */
	uint32_t bytes;		/* of it */
	uint32_t n_references;	/* in it */
	uint64_t n_records, n_bytes, n_refer;
};

struct move {
	struct move_config config;
	struct units_config units_config;
	struct wire_terms terms;
	struct oltp_engine *engine;
	struct oltp_worker *worker;
	/* Its worker reads units that are given, and removes junk: without waiting for the disk. */
	struct kv_cold_reads reads;
	struct kv_cold_wait junk_wait;
	struct kv *kv;
	struct facts facts;
	struct gates gates;
	struct units units;
	struct unit *list;
	struct units_entry *table;	/* of a HELLO, or of a peer that was fenced */
	struct units_actions actions;
	struct place *places;
	uint32_t *draining;		/* units that drain, in no order */
	uint32_t n_drains, n_junk, n_sends;
	bool has_new_drains;		/* nobody has looked whether they have ended already */
	uint32_t send_at;		/* the unit that sent a part last */
	struct forced *forced;		/* a ring, in the order of the actions */
	uint32_t forced_at, n_forced, forced_room;
	struct channel channel;
	bool has_frames;		/* there may be whole ones that have come */
	bool keeps_asked;		/* keeps asked units for older transactions here */
	bool refers;			/* the peer can read this node's volume */
	struct references references;
	bool is_peer_fenced;		/* its messages do not count any more */
	uint64_t check_ns, fence_ns;	/* when fence ops are called next; NEVER: need not be */
	uint64_t full_ns;		/* until then no unit is taken; 0: there is room */
	struct copy copy;
	struct collected collected;
	uint64_t left_ns;		/* when it was told to leave; 0: it was not */
	struct hist phases[MOVE_PHASES];
	/* TIMES that are due, and the epoch that has to be durable before; 0: none are. */
	struct drain_times beat_times;
	uint64_t beat_epoch, beat_ns;	/* since when */
	uint64_t heard_ns;		/* the last TIMES or HELLO, or the connection */
	int event_fd;
	struct oltp_durable_watch *watch;	/* tells event_fd */
	uint64_t hurried_epoch;		/* the log was told to hurry for it */
	pthread_t thread;
	bool has_thread;
	_Atomic bool is_whole;
	pthread_mutex_t lock;
	/* Under it. */
	bool is_told_quit, is_told_share, is_told_leave, is_told_stay, is_told_take_over,
	     has_times;
	uint64_t told_name;		/* 0: none */
	bool is_told_at_once, is_told_copy;
	struct precopy_config told_config;
	struct drain_times times;
	int new_fd;			/* -1: none */
	bool new_refers;
	struct move_stats stats;
};

uint64_t move_now_ns(void);

/* Carries out what the last event has led to. */
void move_act(struct move *m);

/* What was drained or forced is reported. */
void move_settle(struct move *m);

/* The first epoch that move_settle waits for; 0: none. */
uint64_t move_awaited_epoch(const struct move *m);

/* The node cannot go on. */
void move_stop(struct move *m, int error);
void move_note_error(struct move *m, int error);

/* What came on the connection: all of it, or frames up to one that took time (has_frames). */
void move_receive(struct move *m);

/*
 * references.c: reads the values that a RECORDS frame refers to. 1: the frame is to be handled
 * again. -EPROTO: too many.
 */
int move_references_read(struct move *m, const struct wire_message *message);

/* Then, for one record of the frame after the other: itself, or with its value; NULL: not read. */
const uint8_t *move_references_next(struct move *m, const uint8_t *record, uint32_t *bytes);

/* The frame was handled, or does not count any more. */
void move_references_end(struct move *m);

/* A frame is to be handled, and waits for the peer's disk. */
bool move_references_wait(const struct move *m);
void move_references_finish(struct move *m);

/* send.c: values of the unit that are on this node's volume stay there. */
bool move_refers(const struct move *m, const struct place *place);

/* send.c: a UNITS_SEND_ action. GIVE goes when the records have gone. */
void move_send(struct move *m, const struct units_action *action);

/* The unit is not given now, or has been taken. */
void move_send_stop(struct move *m, uint32_t unit);

/* There are records in memory that have to go, and the socket takes them. Then: some of them. */
bool move_can_send(const struct move *m);
void move_send_parts(struct move *m);

/* Cold records are being read: how long until move_cold_poll is to look; else NEVER. */
uint64_t move_cold_wait_ns(const struct move *m);
void move_cold_poll(struct move *m);

/* A record for the frames of a struct sender; the last frame; both are counted. */
int move_send_record(void *sender, const uint8_t *record, uint32_t bytes);
void move_end_frame(struct sender *s);
void move_count_sent(const struct sender *s);

/* copy.c: sends ahead what may be sent now. */
void move_copy_some(struct move *m);

/* The unit has come by gen, or gone by gen: both nodes have its records as they are now. */
void move_copy_came(struct move *m, uint32_t unit, uint64_t gen);
void move_copy_keep(struct move *m, uint32_t unit, uint64_t gen);

/* Removes a kept unit, but not this one. False: there is none. */
bool move_copy_make_room(struct move *m, uint32_t but_unit);

/* How long it has nothing to do; NEVER: by itself it will not. */
uint64_t move_copy_wait_ns(const struct move *m);

/*
 * Records of some pages of the unit, from place->page_at on, that the peer does not have as they
 * are now. Returns 1 if there may be more, 0, -EAGAIN as kv_unit_read_part, or another -errno.
 */
int move_send_stale(struct sender *s, struct place *place);

/* Tells the decisions who waits for the unit here, and carries out what that leads to. */
void move_here(struct move *m, uint32_t unit);

/* A phase of the unit has ended: see trace.h. */
void move_end_giving(struct move *m, uint32_t unit, enum move_phase phase);
void move_end_taking(struct move *m, uint32_t unit, enum move_phase phase);

/* Counts a lost connection. */
void move_lost(struct move *m, int error);

void move_mark_junk(struct move *m, uint32_t unit);
void move_unmark_junk(struct move *m, uint32_t unit);
int move_remove(struct move *m, uint32_t unit);
/* Some records of the unit: returns 1 if there may be more. */
int move_remove_part(struct move *m, uint32_t unit);

/* beat.c: TIMES are due; they go once it is clear that the disk answers. */
void move_beat_begin(struct move *m, const struct drain_times *times);
/* Sends beats; drops the connection if the peer, or this node's disk, gives no sign of life. */
void move_beat(struct move *m);
/* The node's own disk has not answered for silence_ns. */
bool move_is_stalled(const struct move *m);

/* fence.c: calls the fence ops that are due, and takes over from a peer that is fenced. */
void move_fence(struct move *m);

#endif
