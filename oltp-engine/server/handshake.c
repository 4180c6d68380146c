// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/handshake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "oltp-engine/server/link.h"
#include "oltp-engine/src/base/clock.h"

/*
 * For each message of the target, and for both of the source: until these have come the target does
 * not know who it is that keeps its thread.
 */
#define MESSAGE_NS	1000000000ull

static int make_nonce(uint8_t nonce[GREETING_NONCE_BYTES])
{
	ssize_t n = getrandom(nonce, GREETING_NONCE_BYTES, 0);

	if (n < 0)
		return -errno;
	return n == (ssize_t)GREETING_NONCE_BYTES ? 0 : -EIO;
}

/* A message that begins with a head, and ends with it if that is not good. */
static int read_message(int fd, struct greeting_head *message, size_t bytes, uint64_t until_ns)
{
	int rc = server_link_read(fd, message, sizeof(*message), until_ns);

	if (!rc)
		rc = greeting_check_head(message);
	if (rc)
		return rc;
	return server_link_read(fd, message + 1, bytes - sizeof(*message), until_ns);
}

int handshake_offer(int fd, struct greeting_link *link, struct greeting_offer offer,
		    struct greeting_answer *ret_answer)
{
	struct greeting_hello hello = { .head = greeting_head(GREETING_WELCOME),
					.has_secret = link->key != NULL };
	struct greeting_welcome welcome;
	int rc = make_nonce(hello.nonce);

	if (!rc)
		rc = server_link_write(fd, &hello, sizeof(hello));
	if (!rc)
		rc = read_message(fd, &welcome.head, sizeof(welcome),
				  clock_now_ns() + MESSAGE_NS);
	if (rc)
		return rc;
	memcpy(link->nonces[0], hello.nonce, GREETING_NONCE_BYTES);
	memcpy(link->nonces[1], welcome.nonce, GREETING_NONCE_BYTES);
	rc = greeting_open_welcome(&welcome, link);
	if (rc)
		return rc;
	greeting_seal_offer(&offer, link);
	rc = server_link_write(fd, &offer, sizeof(offer));
	if (!rc)
		rc = read_message(fd, &ret_answer->head, sizeof(*ret_answer),
				  clock_now_ns() + MESSAGE_NS);
	return rc ?: greeting_open_answer(ret_answer, link);
}

/* status is above 0. Returns it, or -errno. */
static int refuse(int fd, int status)
{
	struct greeting_head head = greeting_head((enum greeting_status)status);

	return server_link_write(fd, &head, sizeof(head)) ?: status;
}

int handshake_take(int fd, struct greeting_link *link, uint32_t unit_bits,
		   struct greeting_offer *ret_offer)
{
	struct greeting_welcome welcome = { .head = greeting_head(GREETING_WELCOME) };
	const uint64_t until_ns = clock_now_ns() + MESSAGE_NS;
	struct greeting_hello hello;
	int rc = read_message(fd, &hello.head, sizeof(hello), until_ns);

	if (!rc)
		rc = greeting_check_hello(&hello, link);
	if (!rc)
		rc = make_nonce(welcome.nonce);
	if (rc)
		return rc > 0 ? refuse(fd, rc) : rc;
	memcpy(link->nonces[0], hello.nonce, GREETING_NONCE_BYTES);
	memcpy(link->nonces[1], welcome.nonce, GREETING_NONCE_BYTES);
	greeting_seal_welcome(&welcome, link);
	rc = server_link_write(fd, &welcome, sizeof(welcome));
	if (!rc)
		rc = server_link_read(fd, ret_offer, sizeof(*ret_offer), until_ns);
	if (!rc)
		rc = greeting_open_offer(ret_offer, link, unit_bits);
	return rc > 0 ? refuse(fd, rc) : rc;
}

int handshake_answer(int fd, const struct greeting_link *link, enum greeting_status status,
		     const char *clients, const uint8_t reads[GREETING_VOLUME_BYTES])
{
	struct greeting_answer answer = { .head = greeting_head(status) };

	if (status)
		return refuse(fd, (int)status);
	snprintf(answer.clients, sizeof(answer.clients), "%s", clients);
	memcpy(answer.reads, reads, sizeof(answer.reads));
	greeting_seal_answer(&answer, link);
	return server_link_write(fd, &answer, sizeof(answer));
}
