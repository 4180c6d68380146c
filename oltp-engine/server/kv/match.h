/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Patterns of SCAN and its like. Pure. */
#ifndef OLTP_KV_MATCH_H
#define OLTP_KV_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether all of text fits the pattern: * any bytes, ? any byte, [abc] [a-c] [^a] one of a set or
 * none of it, \x the byte x. Takes time proportional to the product of both lengths at most.
 */
bool match_pattern(const char *pattern, uint32_t n_pattern, const char *text, uint32_t n_text);

#endif
