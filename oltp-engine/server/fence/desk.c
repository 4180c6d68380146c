// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/fence/desk.h"

#include <errno.h>

#include "oltp-engine/server/fence/lines.h"

static const char *error_line(int rc)
{
	switch (rc) {
	case -ETIMEDOUT:
		return "error no question came in time\n";
	case -E2BIG:
		return "error the line is too long\n";
	case -EACCES:
		return "error the seal does not fit: another secret?\n";
	case -EPROTO:
		return "error a question is: is-fenced|fence OWN PEER NONCE SEAL\n";
	default:
		return "error the question cannot be taken\n";
	}
}

int fence_desk_serve(const struct fence_desk *desk, int fd, struct fence_question *ret_question,
		     enum move_fence *ret_answer)
{
	int64_t until = fence_now_ms() + desk->patience_ms;
	char line[FENCE_LINE_MAX + 1];
	struct fence_nonces nonces;
	int rc = fence_nonce(nonces.server);

	if (!rc) {
		fence_put_greeting(nonces.server, line);
		rc = fence_write_line(fd, line);
	}
	rc = rc ?: fence_read_line(fd, until, line);
	rc = rc ?: fence_get_question(&desk->secret, line, &nonces, ret_question);
	if (rc) {
		if (rc != -EPIPE)
			(void)fence_write_line(fd, error_line(rc));
		return rc;
	}
	*ret_answer = desk->ask(desk->ctx, ret_question);
	fence_put_answer(&desk->secret, &nonces, ret_question, *ret_answer, line);
	/* Should it not arrive: the client asks again. */
	(void)fence_write_line(fd, line);
	return 0;
}

void fence_desk_turn_away(int fd)
{
	(void)fence_write_line(fd, "error too many connections\n");
}
