# SPDX-License-Identifier: GPL-2.0-or-later
#
# The pure half of the host agent (core and policies), and the fake backend.
#   ebb-core  core/, policies/: no I/O, no clock, no allocation of its own
#   ebb-fake  io/fake*.c

EBB_CORE_SOURCES := $(addprefix host-agent/core/,advance.c arbiter.c broker.c charge.c conduct.c cores.c cputime.c define.c done.c \
	explain.c explain-vom.c force.c gather.c lend.c link.c mem.c mem-act.c pack.c plan.c pressure.c reconcile.c record.c request.c run.c \
	sla-text.c state.c threads.c types.c vcpu.c vom.c want.c) \
	$(addprefix host-agent/policies/,balloon.c broker.c broker-offer.c equal.c fair.c \
	fill.c isolate.c level.c list.c mem-share.c proportional.c spot.c strict.c taking.c vom.c)
EBB_CORE_SOURCES += $(addprefix host-agent/core/,rebalance.c share.c share-move.c)
EBB_CORE_SOURCES += $(addprefix host-agent/core/,move.c violation.c violation-step.c)

$(eval $(call lib,ebb-core,$(EBB_CORE_SOURCES),))
$(eval $(call lib,ebb-fake,$(addprefix host-agent/io/,fake.c fake-device.c fake-events.c \
	fake-load.c fake-guest.c fake-host.c fake-mem.c fake-need.c fake-vom.c),))
$(eval $(call unit_test_single,test_core_sim,$(addprefix tests/sim/,test_core_sim.c world.c \
	world-check.c world-pressure.c),ebb-fake ebb-core,,))
$(eval $(call unit_test_single,test_fake_need,tests/unit/test_fake_need.c \
	$(addprefix tests/sim/,world.c world-check.c world-pressure.c),ebb-fake ebb-core,,))
$(foreach t,advance arbiter charge conduct define explain force lend mem leave plan rebalance request restart \
	violation,$(eval \
	$(call unit_test_single,test_core_$(t),tests/unit/test_core_$(t).c tests/unit/core_script.c, \
	ebb-core,,)))
$(foreach t,broker vom,$(eval $(call unit_test_single,test_core_$(t),tests/unit/test_core_$(t).c \
	tests/unit/broker_rig.c tests/unit/core_script.c,ebb-core,,)))
$(eval $(call unit_test_single,test_core_share,tests/unit/test_core_share.c,ebb-core,,))
$(foreach t,fair strict,$(eval $(call unit_test_single,test_policy_$(t),tests/unit/test_policy_$(t).c, \
	ebb-core,,)))
$(foreach t,isolate spot,$(eval $(call unit_test_single,test_policy_$(t),tests/unit/test_policy_$(t).c \
	tests/unit/policy_bench.c,ebb-core,,)))
$(foreach t,broker vom,$(eval $(call unit_test_single,test_policy_$(t),tests/unit/test_policy_$(t).c \
	tests/unit/broker_bench.c,ebb-core,,)))
$(eval $(call unit_test_native,test_core_scale,tests/unit/test_core_scale.c,ebb-core,,))
