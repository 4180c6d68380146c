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

$(eval $(call unit_test_single,test_ebb_view,tests/unit/guest-monitor/test_ebb_view.c,libebb,,))
$(eval $(call unit_test_single,test_ebb_divide,tests/unit/guest-monitor/test_ebb_divide.c,monitord libebb,,))
$(eval $(call unit_test_single,test_ebb_fill,tests/unit/guest-monitor/test_ebb_fill.c,monitord,,))
$(eval $(call unit_test_single,test_ebb_cut,tests/unit/guest-monitor/test_ebb_cut.c,monitord,,))
$(eval $(call unit_test,test_ebb_ask,tests/unit/guest-monitor/test_ebb_ask.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test_single,test_ebb_proc,tests/unit/guest-monitor/test_ebb_proc.c,monitord,,))
$(eval $(call unit_test_single,test_ebb_isolate,tests/unit/guest-monitor/test_ebb_isolate.c,monitord,,))
$(eval $(call unit_test_single,test_ebb_sweep,tests/unit/guest-monitor/test_ebb_sweep.c,monitord libebb,,))
$(eval $(call unit_test_single,test_ebb_store,tests/unit/guest-monitor/test_ebb_store.c,monitord libebb))
$(eval $(call unit_test,test_ebb_handle,tests/unit/guest-monitor/test_ebb_handle.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test,test_ebb_monitor,tests/unit/guest-monitor/test_ebb_monitor.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test_single,test_ebb_server,tests/unit/guest-monitor/test_ebb_server.c,monitord libebb,,))
$(eval $(call unit_test,test_ebb_hostile,tests/unit/guest-monitor/test_ebb_hostile.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test,test_ebb_alone,tests/unit/guest-monitor/test_ebb_alone.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test,test_ebb_promise,tests/unit/guest-monitor/test_ebb_promise.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test,test_ebb_threads,tests/unit/guest-monitor/test_ebb_threads.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test_single,test_ebb_pool,tests/unit/guest-monitor/test_ebb_pool.c,libebb,,))
$(eval $(call unit_test_single,test_ebb_vom,tests/unit/guest-monitor/test_ebb_vom.c,libebb))
$(eval $(call unit_test,test_ebb_guard,tests/unit/guest-monitor/test_ebb_guard.c,libebb,,))
$(eval $(call unit_test,test_ebb_mem,tests/unit/guest-monitor/test_ebb_mem.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test,test_ebb_mem_hostile,tests/unit/guest-monitor/test_ebb_mem_hostile.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test,test_ebb_mem_threads,tests/unit/guest-monitor/test_ebb_mem_threads.c $(EBB_RIG_SRC),monitord libebb,,))
$(eval $(call unit_test,test_ebb_monitor_mem,tests/unit/guest-monitor/test_ebb_monitor_mem.c $(EBB_RIG_SRC),monitord libebb,,))
