/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What tests of promises of I/O share: VMs with disks, promises, and what is shown of them. */
#ifndef TESTS_UNIT_HOST_AGENT_IO_SCRIPT_H
#define TESTS_UNIT_HOST_AGENT_IO_SCRIPT_H

#include "core/io/io.h"
#include "tests/unit/host-agent/core/core_script.h"

#define IO_NODES	"1/1"

/* A running VM with these disks (NULL: none), without any promise of I/O. */
void io_boot(struct script *s, char vm, uint64_t order, const char *disk, const char *other);

/* Sets the I/O half of the VM's SLA; of the second one, requests per second. */
void io_set(struct script *s, char vm, struct ebb_sla_io io);
void io_promise(struct script *s, char vm, uint32_t iops);

/* The VM's k-th volume is shown so, with this text in what is said of it ("": nothing is said). */
void io_assert_view(const struct script *s, char vm, uint16_t k, enum ebb_io_state state,
		    const char *text);
/* One of the lines that explain the VM has these words. */
void io_assert_explained(const struct script *s, char vm, const char *words);

#endif /* TESTS_UNIT_HOST_AGENT_IO_SCRIPT_H */
