# SPDX-License-Identifier: GPL-2.0-or-later
#
# ebb-placed: what runs beside ebbd on each host of a cluster.
EBB_PLACED_PKGS := inih jansson libsystemd libxml-2.0

$(eval $(call lib,ebb-placed,$(filter-out host-agent/placed/placed.c, \
	$(wildcard host-agent/placed/*.c)),$(EBB_PLACED_PKGS)))
$(eval $(call prog,ebb-placed,host-agent/placed/placed.c,ebb-placed ebb-place ebb-service ebb-util, \
	$(EBB_PLACED_PKGS),))

$(foreach t,decide facts rules,$(eval $(call unit_test_single,test_placed_$(t),,ebb-placed ebb-place ebb-service ebb-util, \
	$(EBB_PLACED_PKGS))))
