# SPDX-License-Identifier: GPL-2.0-or-later
#
# The pure half of the host agent (model, core and policies), and the fake backend.
#   ebb-core  model/, core/, policies/: no I/O, no clock, no allocation of its own
#   ebb-fake  backend/fake/, and the loop between core and backend (backend/runner.c)

EBB_WORLD := $(addprefix tests/sim/,world.c world-check.c world-pressure.c)

$(eval $(call lib,ebb-core,$(wildcard $(addprefix host-agent/,model/*.c core/*.c core/*/*.c \
	policies/*.c policies/*/*.c)),))
$(eval $(call lib,ebb-fake,$(wildcard host-agent/backend/*.c host-agent/backend/fake/*.c),))

$(eval $(call unit_test_long,test_core_sim,$(EBB_WORLD),ebb-fake ebb-core,,))
$(eval $(call unit_test_single,test_fake_need,$(EBB_WORLD),ebb-fake ebb-core,,))
$(foreach t,advance arbiter beyond charge conduct define explain floor force lend mem leave migrate plan promise quorum \
	rebalance request reserve restart violation,$(eval \
	$(call unit_test_single,test_core_$(t),core_script.c,ebb-core,,)))
$(foreach t,io io_restart,$(eval $(call unit_test_single,test_core_$(t), \
	io_script.c core_script.c,ebb-core,,)))
$(foreach t,broker vom,$(eval $(call unit_test_single,test_core_$(t),broker_rig.c core_script.c,ebb-core)))
$(foreach t,level relio shortage sla,$(eval $(call unit_test_single,test_model_$(t),,ebb-core)))
$(eval $(call unit_test_single,test_promise_cache,core_script.c,ebb-core))
$(eval $(call unit_test_single,test_promise_reckon,,ebb-core))
$(eval $(call unit_test_single,test_core_sets,,ebb-core))
$(eval $(call unit_test_single,test_core_share,,ebb-core))
$(foreach t,fair pairs strict,$(eval $(call unit_test_single,test_policy_$(t),,ebb-core)))
$(foreach t,isolate spot,$(eval $(call unit_test_single,test_policy_$(t), \
	policy_bench.c,ebb-core,,)))
$(eval $(call unit_test_long,test_policy_broker,broker_bench.c,ebb-core))
$(eval $(call unit_test_single,test_policy_vom,broker_bench.c,ebb-core))
$(eval $(call unit_test_native,test_core_scale,,ebb-core))
