# SPDX-License-Identifier: GPL-2.0-or-later
#
# Guest monitor: libebb (static and shared), ebb-monitord, the example.

LIBEBB_SRC := $(addprefix guest-monitor/libebb/,ebb.c cpu.c stats.c shares.c view.c link.c proto.c dev.c)

$(eval $(call lib,libebb,$(LIBEBB_SRC),))
