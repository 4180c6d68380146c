# SPDX-License-Identifier: GPL-2.0-or-later
#
# The pure half of the host agent (model, core and policies), and the fake backend.
#   ebb-core  model/, core/, policies/: no I/O, no clock, no allocation of its own
#   ebb-fake  backend/fake/, and the loop between core and backend (backend/runner.c)

EBB_TEST := tests/unit/host-agent
EBB_WORLD := $(addprefix tests/sim/,world.c world-check.c world-pressure.c)

$(eval $(call lib,ebb-core,$(wildcard $(addprefix host-agent/,model/*.c core/*.c core/*/*.c \
	policies/*.c policies/*/*.c)),))
$(eval $(call lib,ebb-fake,$(wildcard host-agent/backend/*.c host-agent/backend/fake/*.c),))

$(eval $(call unit_test_model,test_core_sim,tests/sim/test_core_sim.c $(EBB_WORLD), \
	ebb-fake ebb-core,,))
$(eval $(call unit_test_single,test_fake_need,$(EBB_TEST)/test_fake_need.c $(EBB_WORLD), \
	ebb-fake ebb-core,,))
$(foreach t,advance arbiter beyond charge conduct define explain floor force lend mem leave migrate plan promise quorum \
	rebalance request reserve restart violation,$(eval \
	$(call unit_test_single,test_core_$(t),$(EBB_TEST)/test_core_$(t).c $(EBB_TEST)/core_script.c, \
	ebb-core,,)))
$(foreach t,io io_restart,$(eval $(call unit_test_single,test_core_$(t), \
	$(EBB_TEST)/test_core_$(t).c $(EBB_TEST)/io_script.c $(EBB_TEST)/core_script.c,ebb-core,,)))
$(foreach t,broker vom,$(eval $(call unit_test_single,test_core_$(t),$(EBB_TEST)/test_core_$(t).c \
	$(EBB_TEST)/broker_rig.c $(EBB_TEST)/core_script.c,ebb-core,,)))
$(foreach t,level relio shortage sla,$(eval $(call unit_test_single,test_model_$(t),$(EBB_TEST)/test_model_$(t).c, \
	ebb-core,,)))
$(eval $(call unit_test_single,test_promise_cache,$(EBB_TEST)/test_promise_cache.c \
	$(EBB_TEST)/core_script.c,ebb-core,,))
$(eval $(call unit_test_single,test_promise_reckon,$(EBB_TEST)/test_promise_reckon.c,ebb-core,,))
$(eval $(call unit_test_single,test_core_sets,$(EBB_TEST)/test_core_sets.c,ebb-core,,))
$(eval $(call unit_test_single,test_core_share,$(EBB_TEST)/test_core_share.c,ebb-core,,))
$(foreach t,fair pairs strict,$(eval $(call unit_test_single,test_policy_$(t), \
	$(EBB_TEST)/test_policy_$(t).c,ebb-core,,)))
$(foreach t,isolate spot,$(eval $(call unit_test_single,test_policy_$(t), \
	$(EBB_TEST)/test_policy_$(t).c $(EBB_TEST)/policy_bench.c,ebb-core,,)))
$(eval $(call unit_test_model,test_policy_broker,$(EBB_TEST)/test_policy_broker.c \
	$(EBB_TEST)/broker_bench.c,ebb-core,,))
$(eval $(call unit_test_single,test_policy_vom,$(EBB_TEST)/test_policy_vom.c \
	$(EBB_TEST)/broker_bench.c,ebb-core,,))
$(eval $(call unit_test_native,test_core_scale,$(EBB_TEST)/test_core_scale.c,ebb-core,,))
