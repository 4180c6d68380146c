# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the build and lab scripts themselves.
$(eval $(call check_step,tools,cpu,300,,tests/tools/run))
$(eval $(call check_step,options,cpu,60,build,tests/tools/options build/host/bin))
$(eval $(call check_step,net,vm,900,build,tests/net/server build/host/bin))
$(eval $(call check_step,lab,vm,600,qemu,tests/lab/run))
# Two VMs fill a core of the machine, and what is beside them may be slow: long limits.
$(eval $(call check_step,throttle,vm,900,build qemu,tests/lab/throttle))
# VMs that do nothing.
$(eval $(call check_step,shares,vm,600,build qemu,tests/lab/shares))
