# SPDX-License-Identifier: GPL-2.0-or-later
#
# The steps of `make check` that belong to no part. Builds come first, since tests need them.
# Sanitizers slow a test down up to ten times, and a busy machine any of them.
CHECK_MAKE := make --no-print-directory -j$(CORES)
CHECK_SLOW := EBB_TEST_SECONDS=600 $(CHECK_MAKE)

$(eval $(call check_step,style,cpu,300,,scripts/check-style))
$(eval $(call check_step,header-sync,cpu,60,,scripts/qemu-header-sync --check))
$(eval $(call check_step,build,cpu,900,,$(CHECK_MAKE) WERROR=1 all))
$(eval $(call check_step,build-tests,cpu,900,build,$(CHECK_MAKE) WERROR=1 all tests-build))
$(eval $(call check_step,layers,cpu,120,build-tests,scripts/check-layers build/host))
$(eval $(call check_step,unit,cpu,1200,build-tests,$(CHECK_SLOW) WERROR=1 check-unit))
# By clang, whose warnings are errors here, too: its sanitizers find more, and its TSan is quicker.
$(eval $(call check_step,asan-ubsan,cpu,1800,,$(CHECK_SLOW) B=build/asan CC=clang SAN=address$(comma)undefined WERROR=1 all tests-build check-unit))
$(eval $(call check_step,tsan,cpu,1800,,$(CHECK_SLOW) B=build/tsan CC=clang SAN=thread check-unit))
$(eval $(call check_step,qemu,cpu,1800,,scripts/qemu-build))
# With the options of the step build: the compiler's cache has what that has compiled.
$(eval $(call check_step,guest-image,cpu,900,,WERROR=1 scripts/guest-image))
$(eval $(call check_step,modules,cpu,600,guest-image,scripts/check-modules))
$(eval $(call check_step_full,guest-image-7.3,cpu,900,guest-image,scripts/guest-image 7.3))
$(eval $(call check_step_full,modules-7.3,cpu,600,guest-image-7.3,scripts/check-modules 7.3))
$(eval $(call check_step,qtest,vm,1200,qemu,scripts/qemu-qtest))
$(eval $(call check_step,bench-agent,cpu,120,build,build/host/bin/ebb-bench-agent 1 0.05 10))

# Programs that benchmarks need besides VMs.
$(eval $(call prog,ebb-bench-agent,$(addprefix scripts/bench/,agent.c agent-broker.c agent-decide.c \
	agent-telemetry.c agent-volumes.c) tests/lib/link_frames.c, \
	ebb-volumes ebb-daemon ebb-io ebb-fake ebb-core ebb-util,inih jansson libsystemd libvirt sqlite3,))
$(eval $(call prog,ebb-bench-reserve,scripts/bench/reserve.c tests/lib/busy_threads.c \
	$(wildcard host-agent/backend/emulated/*.c),ebb-util,,))
$(eval $(call prog,ebb-bench-place,scripts/bench/place.c $(call unit_src,place_rig.c), \
	ebb-place,,))
$(eval $(call prog,ebb-bench-volumed,scripts/bench/volumed.c,ebb-tags,,))
