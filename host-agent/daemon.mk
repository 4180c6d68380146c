# SPDX-License-Identifier: GPL-2.0-or-later
#
# The outer half of the host agent: util, io, the daemon and its command line client.
EBB_UTIL_SRCS := $(addprefix host-agent/util/,err.c fs.c log.c uuid.c)
EBB_IO_SRCS := $(addprefix host-agent/io/,cgroup.c emugroup.c emuhost.c emuslice.c emuspec.c \
	hostshare.c hosttopo.c link.c linkproto.c linkproto-encode.c linkproto-pools.c linkproto-vom.c metadata.c metadata-mem.c \
	metadata-vcpus.c metadata-xml.c placer.c \
	qemuproc.c virt.c virt-domain.c virt-error.c virt-throttle.c workers.c)
EBB_IO_PKGS := hwloc libsystemd libvirt libxml-2.0
EBB_DAEMON_SRCS := $(addprefix host-agent/daemon/,agent.c config.c ctl.c ctl-cmds.c ctl-set.c metrics.c \
	dryrun.c history.c history-charge.c history-db.c http.c real.c real-jobs.c real-look.c \
	view.c view-pressure.c view-shared.c view-vom.c watch.c)
EBB_DAEMON_PKGS := inih jansson libmicrohttpd libsystemd libvirt sqlite3

$(eval $(call lib,ebb-util,$(EBB_UTIL_SRCS),))
$(eval $(call lib,ebb-io,$(EBB_IO_SRCS),$(EBB_IO_PKGS)))
$(eval $(call lib,ebb-simulate,$(addprefix host-agent/simulate/,brokered-db.c brokered-run.c \
	generate.c measure.c replay.c \
	shared-load.c shared-run.c trace.c world.c),sqlite3 zlib))
$(eval $(call lib,ebb-daemon,$(EBB_DAEMON_SRCS),$(EBB_DAEMON_PKGS)))

# For programs and tests that link parts of the daemon.
EBB_DAEMON_LIBS := ebb-daemon ebb-io ebb-fake ebb-core ebb-util

$(eval $(call prog,ebbd,host-agent/daemon/ebbd.c,$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS),))

$(eval $(call prog,ebbctl,$(addprefix host-agent/cli/,client.c cmd-histogram.c cmd-history.c cmd-host.c \
	cmd-simulate.c cmd-top.c cmd-vms.c core-map.c ebbctl.c simulate-broker.c \
	simulate-print.c simulate-shared.c table.c), \
	ebb-simulate ebb-fake ebb-core ebb-util,jansson))

$(eval $(call unit_test_single,test_io_linkproto,tests/unit/test_io_linkproto.c \
	tests/fuzz/fuzz_io_linkproto.c tests/lib/link_frames.c,ebb-io ebb-util,,))
$(eval $(call unit_test,test_io_emuhost,tests/unit/test_io_emuhost.c tests/lib/emuhost_check.c, \
	ebb-io ebb-util,,))
$(eval $(call unit_test_single,test_io_metadata,tests/unit/test_io_metadata.c \
	tests/fuzz/fuzz_io_metadata.c,ebb-io ebb-core ebb-util,,))
$(eval $(call unit_test_single,test_io_hosttopo,tests/unit/test_io_hosttopo.c,ebb-io ebb-core ebb-util,,))
$(eval $(call unit_test_single,test_io_link,tests/unit/test_io_link.c tests/lib/fake_device.c \
	tests/lib/link_frames.c,ebb-io ebb-util,,))
$(eval $(call unit_test,test_io_workers,tests/unit/test_io_workers.c,ebb-io ebb-util,,))
$(eval $(call unit_test_single,test_io_qemuproc,tests/unit/test_io_qemuproc.c,ebb-io ebb-util,,))
$(foreach t,config history http server,$(eval $(call unit_test,test_ctl_$(t), \
	tests/unit/test_ctl_$(t).c,$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS),)))

$(foreach t,cmds names,$(eval $(call unit_test,test_ctl_$(t),tests/unit/test_ctl_$(t).c \
	tests/unit/ctl_rig.c,$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS),)))
$(foreach t,charge charge_lost watch,$(eval $(call unit_test,test_ctl_$(t),tests/unit/test_ctl_$(t).c \
	tests/unit/core_script.c,$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS))))

$(eval $(call unit_test_single,test_ctl_pressure,tests/unit/test_ctl_pressure.c tests/unit/core_script.c, \
	$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS),))

$(eval $(call unit_test_single,test_simulate,tests/unit/test_simulate.c,ebb-simulate ebb-fake ebb-core \
	ebb-util,sqlite3))
$(eval $(call unit_test_native,test_simulate_shared,tests/unit/test_simulate_shared.c, \
	ebb-simulate ebb-core ebb-util,zlib))
$(eval $(call unit_test_native,test_simulate_brokered,tests/unit/test_simulate_brokered.c, \
	ebb-simulate ebb-core ebb-util,sqlite3))
# It writes histories as the daemon does.
$(eval $(call unit_test_single,test_simulate_replay,tests/unit/test_simulate_replay.c, \
	ebb-simulate $(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS)))

$(eval $(call unit_test_native,test_ctl_deadline,tests/unit/test_ctl_deadline.c, \
	$(EBB_DAEMON_LIBS),$(EBB_DAEMON_PKGS),))

# It runs the programs, which lie beside it.
$(eval $(call unit_test,test_ctl_cli,tests/unit/test_ctl_cli.c,ebb-util,,))
$(B)/tests/test_ctl_cli: $(B)/bin/ebbd $(B)/bin/ebbctl

# Static, it is part of the guest image: guests have cgroup version 2.
$(eval $(call prog,ebbt-emuhost,tests/vm/guest/emuhost-test.c tests/lib/emuhost_check.c \
	$(addprefix host-agent/io/,cgroup.c emugroup.c emuhost.c emuslice.c emuspec.c) \
	$(addprefix host-agent/util/,err.c fs.c),,,))

$(eval $(call check_step,fuzz,cpu,300,,tests/fuzz/run 15))
