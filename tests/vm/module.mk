# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call prog,ebbt-plug,tests/vm/guest/plug-bench.c,,,))
