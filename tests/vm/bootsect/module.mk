# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call check_step,park,600,tests/vm/bootsect/run))
