// SPDX-License-Identifier: GPL-2.0-or-later
/* See gate.h. */
#include <assert.h>

#include "gate.h"

void gate_open(struct gate *gate)
{
	gate->is_open = true;
}

bool gate_close(struct gate *gate)
{
	gate->is_open = false;
	return !gate->pins;
}

bool gate_pin(struct gate *gate)
{
	if (gate->is_open)
		gate->pins++;
	return gate->is_open;
}

bool gate_unpin(struct gate *gate)
{
	assert(gate->pins);
	gate->pins--;
	return !gate->is_open && !gate->pins;
}

uint32_t gates_pin(struct gate *gates, const uint32_t *units, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!gates[units[i]].is_open)
			return i;
	}
	for (uint32_t i = 0; i < n; i++)
		gate_pin(&gates[units[i]]);
	return n;
}

uint64_t gate_birth(uint64_t now_us, bool is_target)
{
	return (now_us + 1) << 1 | is_target;
}

bool gate_is_older(uint64_t birth, uint64_t other)
{
	return birth && (!other || birth < other);
}
