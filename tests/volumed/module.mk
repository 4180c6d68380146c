# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call check_step,volumed,vm,600,build qemu,tests/volumed/run))
