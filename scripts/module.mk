# SPDX-License-Identifier: GPL-2.0-or-later
#
# What benchmarks need besides VMs.
$(eval $(call prog,ebb-bench-agent,$(addprefix scripts/bench/,agent.c agent-broker.c agent-decide.c \
	agent-telemetry.c) tests/lib/link_frames.c, \
	ebb-daemon ebb-io ebb-fake ebb-core ebb-util,inih jansson libsystemd libvirt sqlite3,))
