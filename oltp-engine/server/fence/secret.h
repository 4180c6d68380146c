/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * secret.h - seals by the secret that the nodes of a database and its ebb-fenced share: the
 * HMAC-SHA256 of a text with it, in hexadecimal digits.
 */
#ifndef OLTP_FENCE_SECRET_H
#define OLTP_FENCE_SECRET_H

#include <stdbool.h>

#include "oltp-engine/server/auth/secret_file.h"

#define FENCE_HEX		64u	/* digits of a seal, and of a nonce */

void fence_seal(const struct secret *secret, const char *text, char ret_hex[FENCE_HEX + 1]);

/* Whether this is the seal of the text. Takes as long wherever the first wrong digit is. */
bool fence_seal_fits(const struct secret *secret, const char *text, const char *hex);

/* A random number that never comes again. Errors: those of getrandom. */
int fence_nonce(char ret_hex[FENCE_HEX + 1]);

#endif
