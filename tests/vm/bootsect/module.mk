# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call check_step,park,vm,900,qemu,tests/vm/bootsect/run))
