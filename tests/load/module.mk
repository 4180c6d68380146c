# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call check_step,load,vm,300,build,tests/load/run))
