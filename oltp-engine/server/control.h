/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server's control channel: a unix stream socket, or standard input, on which lines are read.
 *
 *   stop	end the run; answered "ok"
 *   audit	look over the whole table; answered "ok", the result is a line of the output
 *   rate R	from now on R transactions arrive per second (0: none); answered "ok"
 *   relocate NODE CLIENTS [fast|fixed N|adaptive] [limit-s N]
 *		move the database to the node that listens at NODE; clients are told CLIENTS.
 *		Answered once NODE has, or after 12 s; others are answered meanwhile
 *   relocate-status	how far that is: a JSON object
 *   take-over	shut the other node out now and take its part of the database
 *
 * Anything else is answered "error: ..." and changes nothing. On standard input there are no
 * answers, and its end means only that nothing more will come.
 */
#ifndef OLTP_CONTROL_H
#define OLTP_CONTROL_H

#include "oltp-engine/bench/session.h"

struct control;
struct relocation;

/*
 * path: of the socket, made accessible to its owner only; one that nobody listens on any more is
 * replaced; "-" is standard input. Errors: -EADDRINUSE (somebody listens), -ENAMETOOLONG, and
 * those of socket, bind and listen.
 */
int control_open(const char *path, struct session *session, struct control **ret_control);

/* Where relocate goes; NULL: nowhere. Must outlive the session's last session_run. */
void control_set_relocation(struct control *control, struct relocation *relocation);

/* After the session's last session_run. Accepts NULL. */
void control_close(struct control *control);

#endif
