# SPDX-License-Identifier: GPL-2.0-or-later
#
# Guest monitor: libebb (static and shared), ebb-monitord, the example.

LIBEBB_SRC := $(addprefix guest-monitor/libebb/,ebb.c cpu.c stats.c shares.c view.c link.c proto.c dev.c)
MONITORD_SRC := $(addprefix guest-monitor/monitord/,monitor.c client.c server.c divide.c store.c proc.c log.c)

$(eval $(call lib,libebb,$(LIBEBB_SRC),))
$(eval $(call lib,monitord,$(MONITORD_SRC),))
$(eval $(call prog,ebb-monitord,guest-monitor/monitord/main.c,monitord libebb,,))
