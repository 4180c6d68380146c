# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call check_step,placed,vm,900,build,tests/placed/run build/host/bin))
