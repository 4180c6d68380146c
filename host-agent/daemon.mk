# SPDX-License-Identifier: GPL-2.0-or-later
#
# The outer half of the host agent: util, service, backends, the daemon and its command line client.
EBB_IO_PKGS := hwloc libsystemd libvirt libxml-2.0
EBB_DAEMON_PKGS := inih jansson libmicrohttpd libsystemd libvirt sqlite3

$(eval $(call lib,ebb-util,$(wildcard host-agent/util/*.c),libsystemd))
# The common base of ebbd and ebb-volumed: start, configuration, control socket.
$(eval $(call lib,ebb-service,$(wildcard host-agent/service/*.c),inih jansson libsystemd))
$(eval $(call lib,ebb-io,$(wildcard $(addprefix host-agent/backend/,emulated/*.c real/*.c)),$(EBB_IO_PKGS)))
$(eval $(call lib,ebb-volumes,$(wildcard host-agent/backend/volumes/*.c),jansson libsystemd))
$(eval $(call lib,ebb-simulate,$(wildcard host-agent/simulate/*.c),sqlite3 zlib))
$(eval $(call lib,ebb-daemon,$(filter-out host-agent/daemon/ebbd.c,$(wildcard host-agent/daemon/*.c)), \
	$(EBB_DAEMON_PKGS)))

# For programs and tests that link parts of the daemon.
EBB_DAEMON_LIBS := ebb-daemon ebb-service ebb-volumes ebb-io ebb-fake ebb-core ebb-util

$(eval $(call prog,ebbd,host-agent/daemon/ebbd.c,$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS),))

$(eval $(call prog,ebbctl,$(wildcard host-agent/cli/*.c), \
	ebb-placed ebb-service ebb-simulate ebb-place ebb-tags ebb-fake ebb-core ebb-util, \
	inih jansson libsystemd libxml-2.0))

$(eval $(call unit_test_single,test_io_linkproto,tests/fuzz/fuzz_io_linkproto.c tests/lib/link_frames.c,ebb-io ebb-util))
$(eval $(call unit_test_long,test_io_emuhost,$(addprefix tests/lib/,emuhost_check.c emureserve_check.c busy_threads.c), \
	ebb-io ebb-util,,))
$(eval $(call unit_test_single,test_io_emureserve,,ebb-io ebb-util))
$(eval $(call unit_test_single,test_io_metadata,tests/fuzz/fuzz_io_metadata.c,ebb-io ebb-core ebb-util))
$(eval $(call unit_test_single,test_io_hosttopo,,ebb-io ebb-core ebb-util))
$(eval $(call unit_test_single,test_io_link,tests/lib/fake_device.c \
	tests/lib/link_frames.c,ebb-io ebb-util,,))
$(eval $(call unit_test_single,test_io_volumes,volumes_rig.c,ebb-volumes ebb-core ebb-util,,))
$(eval $(call unit_test_single,test_io_virt_pool,,ebb-io ebb-util,libvirt))
$(eval $(call unit_test,test_io_workers,,ebb-io ebb-util))
$(eval $(call unit_test_single,test_io_qemuproc,,ebb-io ebb-util))
$(foreach t,config http server,$(eval $(call unit_test,test_ctl_$(t),,$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS))))

$(foreach t,cmds names quorum volumes,$(eval $(call unit_test,test_ctl_$(t),ctl_rig.c,$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS))))
$(foreach t,charge charge_lost history ledger,$(eval $(call unit_test,test_ctl_$(t), \
	core_script.c history_rig.c, \
	$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS))))
$(eval $(call unit_test,test_ctl_watch,core_script.c,$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS)))

$(eval $(call unit_test_single,test_ctl_pressure,core_script.c, \
	$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS),))

$(eval $(call unit_test_single,test_simulate,,ebb-simulate ebb-fake ebb-core ebb-util,sqlite3))
$(eval $(call unit_test_single,test_simulate_refused,,ebb-simulate ebb-fake \
	ebb-core ebb-util,sqlite3,$(foreach f,ebb_fake_create ebb_fake_run ebb_state_report,-Xlinker --wrap=$(f))))
$(eval $(call unit_test_native,test_simulate_shared,,ebb-simulate ebb-core ebb-util,zlib))
$(foreach t,placed placed_world,$(eval $(call unit_test_single,test_simulate_$(t),,ebb-simulate ebb-util,zlib)))
$(eval $(call unit_test_native,test_simulate_placed_decide,,ebb-simulate ebb-place ebb-util,zlib))
$(eval $(call unit_test_native,test_simulate_brokered,,ebb-simulate ebb-core ebb-util,sqlite3))
$(eval $(call unit_test_single,test_simulate_reserved,,ebb-simulate ebb-tags))
$(eval $(call unit_test_native,test_simulate_promised,,ebb-simulate ebb-core ebb-util,sqlite3))
# It writes histories as the daemon does.
$(eval $(call unit_test_single,test_simulate_replay,,ebb-simulate $(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS)))

$(eval $(call unit_test_native,test_ctl_deadline,,$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS)))

# It runs the programs, which lie beside it.
$(eval $(call unit_test,test_ctl_cli,,ebb-util))
$(B)/tests/test_ctl_cli: $(B)/bin/ebbd $(B)/bin/ebbctl

# Static, it is part of the guest image: guests have cgroup version 2.
$(eval $(call prog,ebbt-emuhost,tests/vm/guest/emuhost-test.c \
	$(addprefix tests/lib/,emuhost_check.c emureserve_check.c busy_threads.c) \
	$(wildcard host-agent/backend/emulated/*.c) \
	$(addprefix host-agent/util/,err.c fs.c),,,))

$(eval $(call check_step,fuzz,vm,900,,tests/fuzz/run))
