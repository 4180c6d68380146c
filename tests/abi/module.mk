# SPDX-License-Identifier: GPL-2.0-or-later
$(eval $(call check_step,abi-layout,cpu,120,,scripts/run-tests tests/abi/layout))

# These run in a guest, on the real device: see tests/abi/abi_ioctl.c.
$(eval $(call prog,ebbt-abi-ioctl,tests/abi/abi_ioctl.c,,,))

# The same as a program of 32 bits, which comes in through compat_ioctl(). The demo does without
# a compiler for that; `make check` installs one, and its VM test fails if the program is missing.
ifneq ($(STATIC),)
ifneq ($(shell echo 'int main(void) { return 0; }' | $(CC) -m32 -static -x c - -o /dev/null \
	2>/dev/null && echo yes),)
PROGS += $(B)/bin/ebbt-abi-ioctl32
$(B)/bin/ebbt-abi-ioctl32: tests/abi/abi_ioctl.c $(wildcard guest-driver/include/uapi/linux/*.h) $(B)/.flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -m32 $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $<
endif
endif
