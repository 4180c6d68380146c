# SPDX-License-Identifier: GPL-2.0-or-later
#
# The one Makefile of Ebb: non-recursive, each component adds itself through <component>/module.mk.
#
# Knobs: B=<output folder>  CC=gcc|clang  SAN=address,undefined|thread  STATIC=1  WERROR=1  V=1
# In a module.mk, sources are paths from the top, and only these macros are used:
#   $(eval $(call prog,<name>,<sources>,<static libs>,<pkg-config names>,<extra ldlibs>))
#   $(eval $(call lib,<name>,<sources>,<pkg-config names>))
#   $(eval $(call unit_test,<name>,<sources besides name.c>,<static libs>,<pkg-config names>,<extra ldlibs>))
#       a source without a folder is looked for below tests/unit and in tests/sim
#   $(eval $(call unit_test_native,...))  the same, left out of the sanitizer builds
#   $(eval $(call unit_test_single,...))  the same, of one thread: SAN=thread only with EBB_TEST_FULL=1
#   $(eval $(call unit_test_bulk,...))  the same, of threads and of much data, which others move less of:
#       SAN=thread only with EBB_TEST_FULL=1
#   $(eval $(call unit_test_long,...))  the same, which computes long or moves most data: SAN only with EBB_TEST_FULL=1
#   $(eval $(call check_step,<name>,<kind>,<seconds>,<steps that it needs>,<command>))
#       one more step of `make check`; scripts/check says what a kind is
#   $(eval $(call check_step_full,...))  the same, for `make check-full` only

B ?= build/host
SCENARIO ?= spot
V ?= 0

ifeq ($(origin CC),default)
CC := gcc
endif
CCACHE := $(shell command -v ccache 2>/dev/null)
# A file that is not in the cache is preprocessed once, by the compiler, which lists all headers.
export CCACHE_DEPEND := 1
PKG_CONFIG ?= pkg-config
CORES := $(shell nproc)
# Unit tests that take long mostly wait: for a disk, a timer, a thread.
TEST_JOBS := $(shell expr 2 '*' $(CORES))
comma := ,

INCLUDES := -Iguest-driver/include/uapi -Iguest-monitor/libebb -Ihost-agent \
	-Ioltp-engine/include -I.
ALL_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -pthread -D_GNU_SOURCE $(INCLUDES)
ALL_LDFLAGS := -pthread -Wl,--as-needed

ifneq ($(WERROR),)
ALL_CFLAGS += -Werror
endif
ifneq ($(SAN),)
ALL_CFLAGS += -O1 -g1 -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
ALL_LDFLAGS += -fsanitize=$(SAN)
endif
ifneq ($(STATIC),)
ALL_LDFLAGS += -static
PKG_STATIC := --static
endif
ALL_CFLAGS += $(CFLAGS)
ALL_LDFLAGS += $(LDFLAGS)

Q := $(if $(filter 0,$(V)),@)
say = $(if $(filter 0,$(V)),@printf '  %-7s %s\n' '$(1)' '$(2)')

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

PROGS :=
LIBS :=
OBJS :=
UNIT_TESTS :=
UNIT_TESTS_NATIVE :=
CHECK_STEPS :=

# Programs of the guest image: these, and test programs named ebbt-*.
GUEST_PROGS := oltp-bench oltp-node oltp-server ebb-monitord

objs_of = $(patsubst %.c,$(B)/%.o,$(1))

# Asked for inside recipes only: before `make bootstrap` has run there is no pkg-config to ask.
pkg_cflags = $(if $(strip $(1)),$(shell $(PKG_CONFIG) --cflags $(sort $(1))))
pkg_libs = $(if $(strip $(1)),$(shell $(PKG_CONFIG) $(PKG_STATIC) --libs $(sort $(1))))
pkgs_with_libs = $(2) $(foreach l,$(1),$(LIB_PKGS_$(l)))

# $(1) sources, $(2) pkg-config names
define objects
OBJS += $(call objs_of,$(1))
$(foreach o,$(call objs_of,$(1)),$(eval PKGS_OF_$(o) += $(2)))
endef

# $(1) output file, $(2) sources, $(3) static libs, $(4) pkg-config names, $(5) more for the linker
define link_rule
$(call objects,$(2),$(4))
$(1): $(call objs_of,$(2)) $(patsubst %,$(B)/lib/%.a,$(3)) $(B)/.flags
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_LDFLAGS) -o $$@ $(call objs_of,$(2)) \
		-Wl,--start-group $(patsubst %,$(B)/lib/%.a,$(3)) -Wl,--end-group \
		$$(call pkg_libs,$$(call pkgs_with_libs,$(3),$(4))) $(5) -lm
endef

define prog
PROGS += $(B)/bin/$(strip $(1))
$(call link_rule,$(B)/bin/$(strip $(1)),$(2),$(3),$(4),$(5))
endef

define lib
LIBS += $(B)/lib/$(strip $(1)).a
LIB_PKGS_$(strip $(1)) := $(3)
$(call objects,$(2),$(3))
$(B)/lib/$(strip $(1)).a: $(call objs_of,$(2)) $(B)/.flags
	$$(call say,AR,$$@)
	@mkdir -p $$(@D)
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $(call objs_of,$(2))
endef

UNIT_FILES := $(shell find tests/unit tests/sim -name '*.c')
unit_src = $(foreach s,$(1),$(if $(findstring /,$(s)),$(s),$(or \
	$(filter %/$(s),$(UNIT_FILES)),$(error no $(s) in tests/unit))))
unit_link = $(call link_rule,$(B)/tests/$(1),$(call unit_src,$(1).c $(2)),$(3),cmocka $(4),$(5))

define unit_test
UNIT_TESTS += $(B)/tests/$(strip $(1))
$(call unit_link,$(strip $(1)),$(2),$(3),$(4),$(5))
endef

define unit_test_native
UNIT_TESTS_NATIVE += $(B)/tests/$(strip $(1))
$(call unit_link,$(strip $(1)),$(2),$(3),$(4),$(5))
endef

unit_test_single = $(call unit_test$(if $(filter thread-,$(SAN)-$(EBB_TEST_FULL)),_native),$(1),$(2),$(3),$(4),$(5))

unit_test_bulk = $(unit_test_single)
unit_test_long = $(call unit_test$(if $(SAN),$(if $(EBB_TEST_FULL),,_native)),$(1),$(2),$(3),$(4),$(5))

# $(1) check or full, then as above. What is kept is a line of `make check-list`.
define check_step_line
CHECK_STEPS += $(strip $(2))
CHECK_STEP_$(strip $(2)) := '$(strip $(2))' '$(strip $(1))' '$(strip $(3))' '$(strip $(4))' \
	'$(strip $(5))' '$(strip $(6))'
endef
check_step = $(call check_step_line,check,$(1),$(2),$(3),$(4),$(5))
check_step_full = $(call check_step_line,full,$(1),$(2),$(3),$(4),$(5))

-include $(sort $(wildcard */module.mk tests/*/module.mk))

$(B)/%.o: %.c $(B)/.flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CC) $(ALL_CFLAGS) $(call pkg_cflags,$(PKGS_OF_$@)) -MD -MP -c -o $@ $<

-include $(patsubst %.o,%.d,$(sort $(OBJS)))

# Rewritten only when the compiler or its options change, so that such a change rebuilds everything.
# Where warnings were errors nothing is to be built again without that.
FLAGS_NOW := $(CC) $(ALL_CFLAGS) / $(ALL_LDFLAGS)
$(B)/.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS_NOW)' | cmp -s - $@ || \
		$(if $(WERROR),false,sed 's/ -Werror / /' $@ 2>/dev/null | grep -Fqx -- '$(FLAGS_NOW)') || \
		echo '$(FLAGS_NOW)' > $@
FORCE:

##@ Everyday
help: ## say what can be made
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z_-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

all: $(LIBS) $(PROGS) ## build our host programs and libraries into B=build/host

demo: ## set up what is missing, then run SCENARIO=spot (README lists more) with real VMs
	scripts/bootstrap
	scripts/demo $(SCENARIO) $(ARGS)

check: ## set up what is missing, then run the tests that take half an hour; ends with a summary
	scripts/bootstrap --check
	scripts/check

check-full: ## the same with all tests, all kernels, long histories and all seeds
	scripts/bootstrap --check
	scripts/check --full

check-unit: $(UNIT_TESTS) $(if $(SAN),,$(UNIT_TESTS_NATIVE)) ## unit tests only (honours B, CC, SAN)
	scripts/run-tests -j $(TEST_JOBS) $^

check-list:
	@$(foreach s,$(CHECK_STEPS),printf '%s\t%s\t%s\t%s\t%s\t%s\n' $(CHECK_STEP_$(s));)

guest-programs-list:
	@echo $(addprefix $(B)/bin/,$(GUEST_PROGS)) $(filter $(B)/bin/ebbt-%,$(PROGS))

tests-build: $(UNIT_TESTS) $(UNIT_TESTS_NATIVE) ## build the unit tests without running them

doctor: ## say what this machine offers and what each missing thing costs
	@scripts/doctor

##@ Pieces
bootstrap: ## install the missing Debian packages (root)
	scripts/bootstrap

qemu: ## build the patched QEMU into build/qemu/bin
	scripts/qemu-build

qemu-source: ## put the patched QEMU tree (a git repository) into build/qemu/src
	scripts/qemu-source

qemu-qtest: ## build and run the QEMU tests that the series touches
	scripts/qemu-qtest

qemu-asan: ## the same with a second QEMU, built with ASan and UBSan into build/qemu-asan
	scripts/qemu-qtest --asan

guest-image: ## build the guest kernels, modules and initramfs into build/guest
	scripts/guest-image

##@ Benchmarks
bench-memory: ## leases against virtio-mem and balloon: table, out/bench-memory/summary.json and report.html
	$(MAKE) --no-print-directory bench-parts
	scripts/bench-memory $(ARGS)

bench-plug: ## adding and removing a CPU against stock libvirt: the same in out/bench-plug
	$(MAKE) --no-print-directory bench-parts
	scripts/bench-plug $(ARGS)

bench-cpu: ## a core from one VM to another by lend, park, unplug, force, stock libvirt: out/bench-cpu
	$(MAKE) --no-print-directory bench-parts
	scripts/bench-cpu $(ARGS)

bench-agent: ## time to decide and CPU of the agent for 10 to 1000 VMs: out/bench-agent
	$(MAKE) --no-print-directory $(B)/bin/ebb-bench-agent
	scripts/bench-agent $(ARGS)

bench-reserve: ## promises of CPU time: how much is kept, how soon a change is: out/bench-reserve
	$(MAKE) --no-print-directory $(B)/bin/ebb-bench-reserve $(B)/bin/ebbd $(B)/bin/ebbctl
	scripts/bench-reserve $(ARGS)

bench-engine: ## the OLTP engine natively, beside what the memory alone would allow: out/bench-engine
	$(MAKE) --no-print-directory $(B)/bin/oltp-bench $(B)/bin/oltp-miss-bound
	scripts/bench-engine $(ARGS)

bench-net: ## the network front beside redis-server: out/bench-net
	$(MAKE) --no-print-directory $(B)/bin/oltp-server
	scripts/bench-net --bin $(B)/bin $(ARGS)

bench-volumed: ## tags of I/O: what they cost, who gets how much of a disk: out/bench-volumed
	scripts/qemu-build
	$(MAKE) --no-print-directory $(B)/bin/ebb-bench-volumed
	scripts/bench-volumed $(ARGS)

bench-place: ## placement of VMs on hosts: time and memory as the cluster grows; prints a table
	$(MAKE) --no-print-directory $(B)/bin/ebb-bench-place
	$(B)/bin/ebb-bench-place $(ARGS)

bench-parts:
	scripts/bootstrap
	scripts/qemu-build
	scripts/guest-image 6.1
	$(MAKE) --no-print-directory all

##@ Cleaning
clean: ## remove what was built from our own code
	rm -rf build/host build/asan build/tsan build/clang build/gcc out/check
	rm -rf build/guest/bin build/guest/lib build/guest/tests build/guest/guest-monitor \
		build/guest/host-agent build/guest/oltp-engine build/guest/*/driver \
		build/guest/*/image build/guest/*/initramfs build/guest/*/ebb.ko

distclean: ## remove everything made here: build/ and out/
	rm -rf build out

.PHONY: bench-agent bench-cpu bench-engine bench-memory bench-net bench-plug bench-place bench-reserve bench-volumed bench-parts help all demo check check-full check-unit check-list guest-programs-list tests-build doctor bootstrap qemu qemu-source \
	qemu-qtest qemu-asan guest-image clean distclean FORCE
