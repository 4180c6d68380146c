# SPDX-License-Identifier: GPL-2.0-or-later
#
# The outer half of the host agent: util, io, the daemon and its command line client.
EBB_UTIL_SRCS := $(addprefix host-agent/util/,err.c fs.c log.c uuid.c)
EBB_IO_SRCS := $(addprefix host-agent/io/,cgroup.c emugroup.c emuhost.c emuspec.c hosttopo.c link.c \
	linkproto.c linkproto-encode.c metadata.c metadata-vcpus.c metadata-xml.c workers.c)
EBB_IO_PKGS := hwloc libsystemd libxml-2.0

$(eval $(call lib,ebb-util,$(EBB_UTIL_SRCS),))
$(eval $(call lib,ebb-io,$(EBB_IO_SRCS),$(EBB_IO_PKGS)))

$(eval $(call unit_test,test_io_linkproto,tests/unit/test_io_linkproto.c \
	tests/fuzz/fuzz_io_linkproto.c tests/lib/link_frames.c,ebb-io ebb-util,,))
$(eval $(call unit_test,test_io_emuhost,tests/unit/test_io_emuhost.c tests/lib/emuhost_check.c, \
	ebb-io ebb-util,,))
$(eval $(call unit_test,test_io_metadata,tests/unit/test_io_metadata.c host-agent/core/types.c, \
	ebb-io ebb-util,,))
$(eval $(call unit_test,test_io_hosttopo,tests/unit/test_io_hosttopo.c host-agent/core/types.c, \
	ebb-io ebb-util,,))
$(eval $(call unit_test,test_io_link,tests/unit/test_io_link.c tests/lib/fake_device.c \
	tests/lib/link_frames.c,ebb-io ebb-util,,))
$(eval $(call unit_test,test_io_workers,tests/unit/test_io_workers.c,ebb-io ebb-util,,))
