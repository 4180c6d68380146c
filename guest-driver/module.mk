# SPDX-License-Identifier: GPL-2.0-or-later
#
# The guest driver itself is built by guest-driver/Makefile, once per kernel. Here: its pure files,
# compiled a second time for user space and tested there.

$(eval $(call lib,ebbdriver,$(addprefix guest-driver/pure/,abi.c cpuset.c wire.c region.c leasemap.c),))

$(eval $(call unit_test_single,test_ebb_abi,,ebbdriver))
$(eval $(call unit_test_single,test_ebb_cpuset,cpuset_fixture.c,ebbdriver))
$(eval $(call unit_test_single,test_ebb_lend,cpuset_fixture.c,ebbdriver))
$(eval $(call unit_test_single,test_ebb_wire,,ebbdriver))
$(eval $(call unit_test,test_ebb_wire_mem,,ebbdriver))
$(eval $(call unit_test_single,test_ebb_wire_vom,,ebbdriver))
$(eval $(call unit_test_single,test_ebb_region,,ebbdriver))
$(eval $(call unit_test_single,test_ebb_leasemap,,ebbdriver))

# Runs in a guest: the driver's commands for shell scripts.
$(eval $(call prog,ebbt-cpu,tests/vm/guest/ebb-cpu-test.c,,,))
$(eval $(call prog,ebbt-vom,tests/vm/guest/ebb-vom-test.c,,,))
$(eval $(call prog,ebbt-evil,tests/vm/guest/ebb-evil.c,,,))
$(eval $(call prog,ebbt-mem,$(addprefix tests/vm/guest/ebb-mem-,test.c bad.c use.c io.c watch.c lib.c),,liburing,))
$(eval $(call prog,ebbt-mem-stress,$(addprefix tests/vm/guest/ebb-mem-,stress.c lib.c),,liburing,))

# The driver itself, in VMs with the real device: all tests on one kernel, a few on a second one in
# `make check`, and all on every kernel in `make check-full`.
$(eval $(call check_step,vm-driver,vm,1800,qemu guest-image,tests/vm/driver --lend off 6.1))
$(eval $(call check_step,vm-lend,vm,1800,qemu guest-image,tests/vm/driver --lend on 6.1))
$(eval $(call check_step,vm-smoke,vm,900,qemu guest-image,tests/vm/driver 6.12 test_abi \
	test_add_remove_20 test_mem_use test_mem_partial_and_any test_mem_failed test_mem_unload \
	test_lend_20 test_park_10))
$(eval $(call check_step_full,vm-driver-6.12,vm,1800,qemu guest-image,tests/vm/driver --lend off 6.12))
$(eval $(call check_step_full,vm-lend-6.12,vm,1800,qemu guest-image,tests/vm/driver --lend on 6.12))
$(eval $(call check_step_full,vm-driver-7.3,vm,1800,qemu guest-image-7.3,tests/vm/driver --lend off 7.3))
$(eval $(call check_step_full,vm-lend-7.3,vm,1800,qemu guest-image-7.3,tests/vm/driver --lend on 7.3))
