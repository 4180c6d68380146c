# SPDX-License-Identifier: GPL-2.0-or-later
#
# Placement of VMs on hosts: pure, used by the simulator, by ebbctl place and by ebb-placed.
$(eval $(call lib,ebb-place,$(wildcard host-agent/place/*.c),))

$(foreach t,cost create demand reserve rules, \
	$(eval $(call unit_test_single,test_place_$(t),place_rig.c,ebb-place,,)))
$(eval $(call unit_test_long,test_place_search,place_rig.c place_exact.c,ebb-place,,))
