# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call prog,ebbt-plug,tests/vm/guest/plug-bench.c,,,))
$(eval $(call prog,ebbt-membench,tests/vm/guest/ebb-membench.c,,,))
$(eval $(call prog,ebbt-memhold,tests/vm/guest/ebb-memhold.c,,,))
$(eval $(call prog,ebbt-baseline,tests/vm/guest/ebb-baseline.c,,,))
$(eval $(call prog,ebbt-tour,tests/vm/guest/ebb-tour.c,,,))
$(eval $(call prog,ebbt-cpubench,tests/vm/guest/ebb-cpubench.c,liboltp-bench liboltp libebb))

# Whole VMs with libvirt and the agent.
$(eval $(call check_step,vm,vm,2400,build qemu guest-image,tests/vm/run --not test_evil))
$(eval $(call check_step,vm-evil,vm,1800,build qemu guest-image,tests/vm/run --lab evil test_evil))

include tests/vm/bootsect/module.mk
