// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/move/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int channel_init(struct channel *c)
{
	*c = (struct channel){ .fd = -1, .in = malloc(CHANNEL_IN_BYTES) };
	return c->in ? 0 : -ENOMEM;
}

void channel_finish(struct channel *c)
{
	channel_close(c);
	free(c->in);
	free(c->out);
}

void channel_close(struct channel *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->in_from = c->n_in = c->n_out = c->n_sent = 0;
}

void channel_connect(struct channel *c, int fd)
{
	channel_close(c);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	c->fd = fd;
	c->number++;
}

uint8_t *channel_reserve(struct channel *c, size_t bytes)
{
	if (channel_backlog(c) > CHANNEL_OUT_MAX)
		return NULL;
	if (c->n_sent > 0 && c->n_sent == c->n_out)
		c->n_sent = c->n_out = 0;
	if (c->n_sent > 0 && c->out_room - c->n_out < bytes) {
		memmove(c->out, c->out + c->n_sent, c->n_out - c->n_sent);
		c->n_out -= c->n_sent;
		c->n_sent = 0;
	}
	if (c->out_room - c->n_out < bytes) {
		size_t room = 2 * c->out_room + bytes;
		uint8_t *out = realloc(c->out, room);

		if (!out)
			return NULL;
		c->out = out;
		c->out_room = room;
	}
	return c->out + c->n_out;
}

void channel_add(struct channel *c, size_t bytes)
{
	c->n_out += bytes;
}

bool channel_read(struct channel *c)
{
	/* Not each time, as frames are short and the buffer is not. */
	if (c->in_from > CHANNEL_IN_BYTES / 2) {
		memmove(c->in, c->in + c->in_from, c->n_in - c->in_from);
		c->n_in -= c->in_from;
		c->in_from = 0;
	}
	while (c->n_in < CHANNEL_IN_BYTES) {
		ssize_t n = recv(c->fd, c->in + c->n_in, CHANNEL_IN_BYTES - c->n_in, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			return false;
		c->n_in += (size_t)n;
		c->received_bytes += (uint64_t)n;
	}
	return true;
}

bool channel_write(struct channel *c)
{
	while (c->n_sent < c->n_out) {
		ssize_t n = send(c->fd, c->out + c->n_sent, c->n_out - c->n_sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0)
			return false;
		c->n_sent += (size_t)n;
		c->sent_bytes += (uint64_t)n;
	}
	return true;
}

size_t channel_backlog(const struct channel *c)
{
	return c->n_out - c->n_sent;
}

void channel_used(struct channel *c, size_t bytes)
{
	c->in_from += bytes;
	if (c->in_from == c->n_in)
		c->in_from = c->n_in = 0;
}
