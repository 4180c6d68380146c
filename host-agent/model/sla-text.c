// SPDX-License-Identifier: GPL-2.0-or-later
/* The CPU half of an SLA as one line for the history. */
#include <stdio.h>
#include <string.h>

#include "model/types.h"

void ebb_sla_print(const struct ebb_sla *sla, char *ret_text)
{
	int len = snprintf(ret_text, EBB_SLA_TEXT_SIZE,
			   "class=%s priority=%u weight=%u deadline-ms=%u tier=%s plug=%s nodes=",
			   ebb_class_name(sla->class), sla->priority, sla->weight,
			   sla->deadline_ms, ebb_tier_name(sla->tier),
			   sla->plug_ahead ? "ahead" : "demand");

	for (uint16_t g = 0; g < sla->num_nodes; g++) {
		const struct ebb_sla_node *n = &sla->nodes[g];

		len += snprintf(ret_text + len, EBB_SLA_TEXT_SIZE - (size_t)len, "%s%u/%u/%u@%u",
				g ? "," : "", n->startup, n->reserved, n->max, n->host_node);
	}
}
