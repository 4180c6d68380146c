/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text that INFO answers: lines "name:value\r\n". Pure. */
#ifndef LOAD_INFO_H
#define LOAD_INFO_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The value of a line as a decimal number of at least 0, with or without a fraction. false: there
 * is no such line, or its value is no such number.
 */
bool info_number(const char *text, size_t n, const char *name, double *ret_value);

#endif
