# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call check_step,scripts,cpu,300,,scripts/run-tests tests/scripts/run))
