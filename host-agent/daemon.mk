# SPDX-License-Identifier: GPL-2.0-or-later
#
# The outer half of the host agent: util, io, the daemon and its command line client.
EBB_UTIL_SRCS := $(addprefix host-agent/util/,err.c fs.c log.c uuid.c)
EBB_IO_SRCS := $(addprefix host-agent/io/,cgroup.c emuspec.c linkproto.c linkproto-encode.c)

$(eval $(call lib,ebb-util,$(EBB_UTIL_SRCS),))
$(eval $(call lib,ebb-io,$(EBB_IO_SRCS),))

$(eval $(call unit_test,test_io_linkproto,tests/unit/test_io_linkproto.c \
	tests/fuzz/fuzz_io_linkproto.c tests/lib/link_frames.c,ebb-io ebb-util,,))
