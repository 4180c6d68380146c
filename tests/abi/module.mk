# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call check_step,abi-layout,60,scripts/run-tests tests/abi/layout))

# These run in a guest, on the real device: see tests/abi/abi_ioctl.c.
$(eval $(call prog,ebbt-abi-ioctl,tests/abi/abi_ioctl.c,,,))

# The same as a program of 32 bits, which comes in through compat_ioctl().
ifneq ($(STATIC),)
PROGS += $(B)/bin/ebbt-abi-ioctl32
$(B)/bin/ebbt-abi-ioctl32: tests/abi/abi_ioctl.c $(wildcard guest-driver/include/uapi/linux/*.h) $(B)/.flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -m32 $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $<
endif
