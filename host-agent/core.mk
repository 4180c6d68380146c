# SPDX-License-Identifier: GPL-2.0-or-later
#
# The pure half of the host agent (core and policies), and the fake backend.
#   ebb-core  core/, policies/: no I/O, no clock, no allocation of its own
#   ebb-fake  io/fake*.c

EBB_CORE_SOURCES := $(addprefix host-agent/core/,arbiter.c cores.c define.c done.c explain.c \
	link.c plan.c reconcile.c record.c request.c run.c state.c types.c vcpu.c) \
	host-agent/policies/fair.c host-agent/policies/strict.c

$(eval $(call lib,ebb-core,$(EBB_CORE_SOURCES),))
