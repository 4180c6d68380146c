/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server's control channel: a unix stream socket, or standard input, on which lines are read.
 *
 *   stop	end the run; answered "ok"
 *   audit	look over the whole table; answered "ok", the result is a line of the output
 *   rate R	from now on R transactions arrive per second (0: none); answered "ok"
 *
 * Anything else is answered "error: ..." and changes nothing. On standard input there are no
 * answers, and its end means only that nothing more will come.
 */
#ifndef OLTP_CONTROL_H
#define OLTP_CONTROL_H

#include "oltp-engine/bench/session.h"

struct control;

/*
 * path: of the socket, made accessible to its owner only; one that nobody listens on any more is
 * replaced; "-" is standard input. Errors: -EADDRINUSE (somebody listens), -ENAMETOOLONG, and
 * those of socket, bind and listen.
 */
int control_open(const char *path, struct session *session, struct control **ret_control);

/* After the session's last session_run. Accepts NULL. */
void control_close(struct control *control);

#endif
