# SPDX-License-Identifier: GPL-2.0-or-later
#
# Guest monitor: libebb (static and shared), ebb-monitord, the example.

LIBEBB_SRC := $(addprefix guest-monitor/libebb/,ebb.c cpu.c stats.c shares.c view.c link.c proto.c dev.c clock.c \
	mem.c lease.c release.c pool.c guard.c vom.c values.c ask.c)
MONITORD_SRC := $(addprefix guest-monitor/monitord/,monitor.c client.c server.c divide.c fill.c cut.c store.c \
	collect.c proc.c log.c isolate.c sweep.c)
EBB_RIG_SRC := $(addprefix tests/lib/,ebb_rig.c ebb_clock.c fake_ebb_dev.c fake_ebb_vm.c fake_ebb_mem.c \
	fake_ebb_map.c fake_ebb_open.c)

$(eval $(call lib,libebb,$(LIBEBB_SRC),))
$(eval $(call lib,monitord,$(MONITORD_SRC),))
$(eval $(call prog,ebb-monitord,guest-monitor/monitord/main.c,monitord libebb,,))
$(eval $(call prog,ebb-elastic,guest-monitor/examples/elastic.c,libebb,,))
$(eval $(call prog,ebb-elastic-mem,guest-monitor/examples/elastic_mem.c,libebb,,))

# The shared library has objects of its own (position-independent), made in one step.  A static
# or sanitizer build has no use for it.
ifeq ($(STATIC)$(SAN),)
LIBEBB_SO := $(B)/lib/libebb.so.1
LIBS += $(LIBEBB_SO)
$(LIBEBB_SO): $(LIBEBB_SRC) $(wildcard guest-monitor/*.h guest-monitor/libebb/*.h \
		guest-driver/include/uapi/linux/*.h) guest-monitor/libebb/libebb.map $(B)/.flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -shared $(ALL_LDFLAGS) -Wl,-soname,libebb.so.1 \
		-Wl,--version-script=guest-monitor/libebb/libebb.map -Wl,-z,defs -o $@ $(LIBEBB_SRC)
	$(Q)ln -sf libebb.so.1 $(B)/lib/libebb.so
endif

# Exactly what ebb.h declares may be seen from outside, and the documentation compiles.
$(eval $(call check_step,guest-monitor-api,cpu,120,build,guest-monitor/check-api))

$(eval $(call unit_test_single,test_ebb_view,,libebb))
$(eval $(call unit_test_single,test_ebb_divide,,monitord libebb))
$(eval $(call unit_test_single,test_ebb_fill,,monitord))
$(eval $(call unit_test_single,test_ebb_cut,,monitord))
$(eval $(call unit_test,test_ebb_ask,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test_single,test_ebb_proc,,monitord))
$(eval $(call unit_test_single,test_ebb_isolate,,monitord))
$(eval $(call unit_test_single,test_ebb_sweep,,monitord libebb))
$(eval $(call unit_test_single,test_ebb_store,,monitord libebb))
$(eval $(call unit_test,test_ebb_handle,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test,test_ebb_monitor,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test_single,test_ebb_server,,monitord libebb))
$(eval $(call unit_test,test_ebb_hostile,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test,test_ebb_alone,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test,test_ebb_promise,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test,test_ebb_threads,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test_single,test_ebb_pool,,libebb))
$(eval $(call unit_test_single,test_ebb_vom,,libebb))
$(eval $(call unit_test,test_ebb_guard,,libebb))
$(eval $(call unit_test,test_ebb_mem,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test,test_ebb_mem_hostile,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test,test_ebb_mem_threads,$(EBB_RIG_SRC),monitord libebb))
$(eval $(call unit_test,test_ebb_monitor_mem,$(EBB_RIG_SRC),monitord libebb))
