# SPDX-License-Identifier: GPL-2.0-or-later
#
# The volume server: what is around the storage daemon (qemu-patches/ has what is inside).
EBB_VOLUMED_PKGS := inih jansson libsystemd

# Pure; compiled into the storage daemon, too.
EBB_TAGS := $(addprefix host-agent/volumed/,flow.c meter.c tags.c)

$(eval $(call lib,ebb-tags,$(EBB_TAGS),))
$(eval $(call lib,ebb-volumed,$(filter-out $(EBB_TAGS) host-agent/volumed/volumed.c, \
	$(wildcard host-agent/volumed/*.c)),$(EBB_VOLUMED_PKGS)))
$(eval $(call prog,ebb-volumed,host-agent/volumed/volumed.c,ebb-volumed ebb-tags ebb-service \
	ebb-util,$(EBB_VOLUMED_PKGS),))

$(foreach t,bounds flushes tags,$(eval $(call unit_test_single,test_volumed_$(t), \
	tags_rig.c,ebb-tags,,)))
$(eval $(call unit_test_single,test_volumed_meter,meter_reckon.c,ebb-simulate ebb-tags))
$(eval $(call unit_test_single,test_volumed_vmeter,,ebb-volumed ebb-tags,jansson))
$(eval $(call unit_test,test_volumed_access,,ebb-volumed))
$(eval $(call unit_test,test_volumed_probe,,ebb-volumed ebb-util))
$(foreach t,admit config qmp vctl vstate,$(eval $(call unit_test_single,test_volumed_$(t),,ebb-volumed ebb-tags ebb-service ebb-util, \
	$(EBB_VOLUMED_PKGS))))
