# SPDX-License-Identifier: GPL-2.0-or-later
include host-agent/core.mk
-include host-agent/daemon.mk
-include host-agent/volumed.mk
-include host-agent/place.mk
-include host-agent/placed.mk
