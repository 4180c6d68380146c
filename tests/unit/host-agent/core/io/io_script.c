// SPDX-License-Identifier: GPL-2.0-or-later
/* See io_script.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/explain.h"
#include "model/sla-io.h"
#include "tests/unit/host-agent/core/io/io_script.h"

void io_boot(struct script *s, char vm, uint64_t order, const char *disk, const char *other)
{
	s->volumes = (struct ebb_vm_volumes){ 0 };
	if (disk)
		ebb_volume_name_copy(s->volumes.names[s->volumes.num++], disk);
	if (other)
		ebb_volume_name_copy(s->volumes.names[s->volumes.num++], other);
	script_boot(s, vm, order, IO_NODES);
}

void io_set(struct script *s, char vm, struct ebb_sla_io io)
{
	struct ebb_fact fact = { .type = EBB_FACT_SLA_SET, .uuid = { (uint8_t)vm } };

	fact.u.sla_set = script_vm(s, vm)->sla;
	fact.u.sla_set.io = io;
	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
}

void io_promise(struct script *s, char vm, uint32_t iops)
{
	io_set(s, vm, (struct ebb_sla_io){ .reserve_iops = iops, .weight = 100, .penalty = 1 });
}

void io_assert_view(const struct script *s, char vm, uint16_t k, enum ebb_io_state state,
		    const char *text)
{
	struct ebb_io_view view;

	ebb_state_volume(s->state, script_vm(s, vm), k, &view);
	assert_string_equal(ebb_io_state_name(view.state), ebb_io_state_name(state));
	if (!strstr(view.text, text) || (!text[0] && view.text[0]))
		fail_msg("\"%s\" is not in \"%s\"", text, view.text);
}

void io_assert_explained(const struct script *s, char vm, const char *words)
{
	struct ebb_explain e;

	ebb_explain_vm(s->state, script_vm(s, vm), s->now, &e);
	for (uint32_t i = 0; i < e.num_lines; i++)
		if (strstr(e.lines[i], words))
			return;
	fail_msg("no line has \"%s\"", words);
}
