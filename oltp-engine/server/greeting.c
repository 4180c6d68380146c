// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/greeting.h"

#include <errno.h>
#include <string.h>

#include "oltp-engine/relocate/drain.h"
#include "oltp-engine/relocate/wire.h"

static const uint8_t magic[8] = { 'E', 'B', 'B', 'M', 'O', 'V', 'E', '\n' };

struct greeting_head greeting_head(enum greeting_status status)
{
	struct greeting_head head = { .version = GREETING_VERSION, .status = status };

	memcpy(head.magic, magic, sizeof(magic));
	return head;
}

int greeting_check_head(const struct greeting_head *head)
{
	if (memcmp(head->magic, magic, sizeof(magic)) != 0)
		return -EPROTO;
	if (head->version != GREETING_VERSION)
		return GREETING_OTHER_VERSION;
	return head->status < GREETING_STATUSES ? (int)head->status : -EPROTO;
}

int greeting_check_hello(const struct greeting_hello *hello, const struct greeting_link *link)
{
	if (hello->head.status || hello->reserved || hello->has_secret > 1)
		return -EPROTO;
	return hello->has_secret == (link->key != NULL) ? GREETING_WELCOME : GREETING_OTHER_SECRET;
}

/* word: which message it is, so that no proof counts for another one. */
static void prove(const struct greeting_link *link, const char *word, const void *bytes, size_t n,
		  uint8_t ret[HMAC_BYTES])
{
	const struct hmac_part parts[] = { { word, strlen(word) + 1 },
					   { link->nonces, sizeof(link->nonces) },
					   { bytes, n } };

	memset(ret, 0, HMAC_BYTES);
	if (link->key)
		hmac_sha256(link->key, link->key_bytes, parts, 3, ret);
}

static int check(const struct greeting_link *link, const char *word, const void *bytes, size_t n,
		 const uint8_t proof[HMAC_BYTES])
{
	uint8_t right[HMAC_BYTES];

	prove(link, word, bytes, n, right);
	return hmac_is_same(right, proof, HMAC_BYTES) ? GREETING_WELCOME : GREETING_OTHER_SECRET;
}

/* With a key stream that only this connection has; twice is not at all. */
static void mask(const struct greeting_link *link, uint64_t secret[2])
{
	uint8_t stream[HMAC_BYTES];
	uint64_t words[2];

	prove(link, "mask", NULL, 0, stream);
	memcpy(words, stream, sizeof(words));
	secret[0] ^= words[0];
	secret[1] ^= words[1];
}

void greeting_seal_welcome(struct greeting_welcome *welcome, const struct greeting_link *link)
{
	prove(link, "welcome", NULL, 0, welcome->proof);
}

int greeting_open_welcome(const struct greeting_welcome *welcome, const struct greeting_link *link)
{
	return check(link, "welcome", NULL, 0, welcome->proof);
}

void greeting_seal_offer(struct greeting_offer *offer, const struct greeting_link *link)
{
	mask(link, offer->secret);
	prove(link, "offer", offer, offsetof(struct greeting_offer, proof), offer->proof);
}

int greeting_open_offer(struct greeting_offer *offer, const struct greeting_link *link,
			uint32_t unit_bits)
{
	int rc = check(link, "offer", offer, offsetof(struct greeting_offer, proof), offer->proof);

	if (rc)
		return rc;
	if (offer->flags & ~(GREETING_RESUMES | GREETING_GOES_BACK) || !offer->relocation ||
	    offer->relocation > WIRE_NUMBER_MAX || !offer->speed_percent ||
	    offer->speed_percent > DRAIN_SPEED_PERCENT_MAX ||
	    offer->clients[GREETING_ADDRESS_BYTES - 1])
		return -EPROTO;
	mask(link, offer->secret);
	return offer->unit_bits == unit_bits ? GREETING_WELCOME : GREETING_OTHER_UNITS;
}

void greeting_seal_answer(struct greeting_answer *answer, const struct greeting_link *link)
{
	prove(link, "answer", answer, offsetof(struct greeting_answer, proof), answer->proof);
}

int greeting_open_answer(const struct greeting_answer *answer, const struct greeting_link *link)
{
	int rc = check(link, "answer", answer, offsetof(struct greeting_answer, proof),
		       answer->proof);

	if (!rc && answer->clients[GREETING_ADDRESS_BYTES - 1])
		return -EPROTO;
	return rc;
}

const char *greeting_status_text(enum greeting_status status)
{
	static const char *const texts[GREETING_STATUSES] = {
		[GREETING_WELCOME] = "it takes the database",
		[GREETING_OTHER_VERSION] = "it is of another version",
		[GREETING_OTHER_UNITS] = "it divides keys into another number of units",
		[GREETING_OTHER_DATABASE] = "it has another database",
		[GREETING_FULL] = "it has no room",
		[GREETING_OTHER_RELOCATION] = "it is in another relocation, or knows nothing of "
					      "this one",
		[GREETING_OTHER_SECRET] = "it has another secret (--relocate-secret), or only one "
					  "node has one",
	};

	return status < GREETING_STATUSES ? texts[status] : "unknown";
}
