/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * greeting.h - what the two nodes of a relocation agree on before the first frame of
 * relocate/wire.h, and how each proves that it has the secret of the link. Numbers are
 * little-endian, what is reserved is zero. No I/O: handshake.h sends and reads.
 *
 *	source			target
 *	  hello   ------------->	version, nonce
 *		  <-------------  welcome	version, nonce, proof
 *	  offer	  ------------->	of the database; proof
 *		  <-------------  answer	whether it takes it; proof
 *
 * Every message of the target begins with a head, and ends with it if the status is not WELCOME.
 * A proof is the HMAC of a word for the message, both nonces and the message, by the secret of the
 * link; without such a secret it is zero. So a proof counts for one message of one connection.
 */
#ifndef OLTP_GREETING_H
#define OLTP_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp-engine/server/auth/hmac.h"

#define GREETING_VERSION	4u
#define GREETING_NONCE_BYTES	32u
#define GREETING_ADDRESS_BYTES	256u	/* of clients, 0 included */
#define GREETING_VOLUME_BYTES	16u	/* uuid of struct oltp_volume_info */

enum greeting_status {
	GREETING_WELCOME = 0,
	GREETING_OTHER_VERSION,
	GREETING_OTHER_UNITS,	/* another number of them */
	GREETING_OTHER_DATABASE,	/* it has keys already */
	GREETING_FULL,
	GREETING_OTHER_RELOCATION,	/* it is in another one, or knows nothing of this one */
	GREETING_OTHER_SECRET,	/* of the link; or only one node has one */
	GREETING_STATUSES,
};

struct greeting_head {
	uint8_t magic[8];
	uint32_t version;
	uint32_t status;	/* enum greeting_status */
};

struct greeting_hello {
	struct greeting_head head;
	uint8_t nonce[GREETING_NONCE_BYTES];
	uint32_t has_secret;	/* 0 or 1 */
	uint32_t reserved;
};

struct greeting_welcome {
	struct greeting_head head;
	uint8_t nonce[GREETING_NONCE_BYTES];
	uint8_t proof[HMAC_BYTES];
};

#define GREETING_RESUMES	1u	/* it began before: the target must know its number */
#define GREETING_GOES_BACK	2u	/* it is cancelled: the target shall give all back */

struct greeting_offer {
	uint32_t unit_bits;
	uint32_t flags;		/* GREETING_RESUMES, GREETING_GOES_BACK */
	/* Of the hash of keys (kv.h, K4); masked if the link has a secret. */
	uint64_t secret[2];
	uint64_t relocation;	/* its number, never 0 */
	uint64_t bytes;		/* of records, about */
	uint64_t limit_ns;	/* struct drain_config, for clients that go back */
	uint32_t speed_percent;
	uint32_t fixed_per_s;
	char clients[GREETING_ADDRESS_BYTES];	/* where clients find the source; "": unknown */
	/* Which volume the source can read as the target's; 0: none. */
	uint8_t reads[GREETING_VOLUME_BYTES];
	uint8_t proof[HMAC_BYTES];
};

struct greeting_answer {
	struct greeting_head head;
	char clients[GREETING_ADDRESS_BYTES];	/* where clients find the target; "": unknown */
	uint8_t reads[GREETING_VOLUME_BYTES];	/* as of an offer, the other way */
	uint8_t proof[HMAC_BYTES];
};

_Static_assert(sizeof(struct greeting_head) == 16, "head");
_Static_assert(sizeof(struct greeting_hello) == 56, "hello");
_Static_assert(sizeof(struct greeting_welcome) == 80, "welcome");
_Static_assert(sizeof(struct greeting_offer) == 360, "offer");
_Static_assert(sizeof(struct greeting_answer) == 320, "answer");

/* The secret of the link and the nonces of one connection. */
struct greeting_link {
	const uint8_t *key;	/* NULL: the link has no secret */
	size_t key_bytes;
	uint8_t nonces[2][GREETING_NONCE_BYTES];	/* of the source, of the target */
};

struct greeting_head greeting_head(enum greeting_status status);

/* The status; -EPROTO: it is no head. OTHER_VERSION also where that follows from the version. */
int greeting_check_head(const struct greeting_head *head);

/* Of a hello whose head is good: WELCOME, OTHER_SECRET, -EPROTO. */
int greeting_check_hello(const struct greeting_hello *hello, const struct greeting_link *link);

/* Fill in proofs and mask the database's secret, once all else is set. */
void greeting_seal_welcome(struct greeting_welcome *welcome, const struct greeting_link *link);
void greeting_seal_offer(struct greeting_offer *offer, const struct greeting_link *link);
void greeting_seal_answer(struct greeting_answer *answer, const struct greeting_link *link);

/*
 * Check proofs; of the offer all else too, and unmask. Return WELCOME, OTHER_SECRET; the offer also
 * OTHER_UNITS, -EPROTO.
 */
int greeting_open_welcome(const struct greeting_welcome *welcome,
			  const struct greeting_link *link);
int greeting_open_offer(struct greeting_offer *offer, const struct greeting_link *link,
			uint32_t unit_bits);
int greeting_open_answer(const struct greeting_answer *answer, const struct greeting_link *link);

/* For a person. */
const char *greeting_status_text(enum greeting_status status);

#endif
