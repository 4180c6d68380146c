/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as text, with the forms that Redis takes and gives. Pure. */
#ifndef OLTP_KV_NUMBER_H
#define OLTP_KV_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#define NUMBER_MAX		20u	/* characters of an integer */
#define NUMBER_FLOAT_MAX	5120u	/* of a float: a long double has up to 4933 digits */

/*
 * "-12": an optional minus and digits, no blank, no plus, no zero in front; within 64 bits. False:
 * anything else.
 */
bool number_parse(const char *text, uint32_t n, int64_t *ret_value);

/* Without a sign. */
bool number_parse_unsigned(const char *text, uint32_t n, uint64_t *ret_value);

/* to has room for NUMBER_MAX characters; returns how many were written. */
uint32_t number_print(char *to, int64_t value);

/* What strtold takes, all of it, without blanks in front, not a NaN. */
bool number_parse_float(const char *text, uint32_t n, long double *ret_value);

/*
 * 17 digits behind the point, zeros at the end cut off. to has room for NUMBER_FLOAT_MAX; value is
 * finite.
 */
uint32_t number_print_float(char *to, long double value);

#endif
