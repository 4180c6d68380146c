// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/fence/remote.h"

#include <stdio.h>
#include <unistd.h>

#include "oltp-engine/server/fence/lines.h"
#include "oltp-engine/server/link.h"

/* A little more than ebb-fenced waits for ebb-volumed. */
#define PATIENCE_MS	2500

static int talk(const struct fence_remote *f, int fd, const struct fence_question *question,
		enum move_fence *ret_answer)
{
	int64_t until = fence_now_ms() + PATIENCE_MS;
	char line[FENCE_LINE_MAX + 1];
	struct fence_nonces nonces;
	int rc = fence_read_line(fd, until, line);

	rc = rc ?: fence_get_greeting(line, nonces.server);
	rc = rc ?: fence_nonce(nonces.client);
	if (rc)
		return rc;
	fence_put_question(f->secret, &nonces, question, line);
	rc = fence_write_line(fd, line);
	rc = rc ?: fence_read_line(fd, until, line);
	return rc ?: fence_get_answer(f->secret, &nonces, question, line, ret_answer);
}

static enum move_fence ask(const struct fence_remote *f, bool fences)
{
	struct fence_question question = { .fences = fences };
	enum move_fence answer = MOVE_FENCE_LATER;
	int fd = server_link_connect(f->address);

	if (fd < 0)
		return MOVE_FENCE_LATER;
	snprintf(question.own, sizeof(question.own), "%s", f->own);
	snprintf(question.peer, sizeof(question.peer), "%s", f->peer);
	if (talk(f, fd, &question, &answer))
		answer = MOVE_FENCE_LATER;
	close(fd);
	return answer;
}

static enum move_fence is_fenced(void *ctx)
{
	return ask(ctx, false);
}

static enum move_fence fence(void *ctx)
{
	enum move_fence answer = ask(ctx, true);

	return answer == MOVE_FENCE_NONE ? MOVE_FENCE_LATER : answer;
}

static const struct oltp_config *peer_config(void *ctx)
{
	return ((struct fence_remote *)ctx)->peer_config;
}

const struct move_fence_ops fence_remote_ops = { is_fenced, fence, peer_config };
