# SPDX-License-Identifier: Apache-2.0
# make            build/pybpf
# make static     build/pybpf-static, one file that needs no library where it runs
# make dist       the static binary as tarball, deb, rpm, wheel, image and sources; ARTEFACTS="deb wheel" chooses some
# make install    to $(DESTDIR)$(PREFIX); without root PREFIX=~/.local; make uninstall removes it from there
# make demo       install what is missing, build, and profile a bundled program
# make truth      programs whose stacks obey a rule, on every Python; TRUTH= hands on options (TRUTH=--short)
# make test       what a change must pass, in some 15 minutes; T="wall and not memory" PY="3.12 3.13t" choose some tests
# make test-all   every test; goes on where it was interrupted (FRESH=1: from the start), PART=2/9 is a ninth of it
# make check      what a change of some files must pass, in 3 minutes; make unit and make lint need no root
# make fuzz       the parsers of foreign bytes on made-up ones, FUZZ_SECONDS=300 each; make test has the inputs that are kept
# make kernels    profile known programs in every mode on Debian's stock kernels, emulated; KERNELS="5.10 sid" chooses some
# make roots      build and run make demo in clean roots of Debian 12, 13 and sid; ROOTS="13 sid" chooses some
# make bench      what pybpf costs, in one table, beside other profilers; BENCH= hands on options (BENCH=--short)
# make soak       ten minutes of processes that come and go: is anything of them left? SOAK="--seconds 60"
# make starts     1,000 Pythons started beside a load: is any of them lost? STARTS="--count 100"
# make mutants    do the tests find over 300 faults? MUTANTS="bpf symbols/pep657-sign" chooses rooms and mutants
# make format     lay out all C code
# make manual     docs/pybpf-COMMAND.1, of the tables of options and docs/manual; they are checked in
# make html-app   user/output/formats/html.asset, the HTML report's page, of tools/html; it is checked in, and needs Node.js
#
# ARCH=arm64 builds for arm64 on another machine, in build/arm64; make kernels ARCH=arm64 emulates it.
# WERROR=1 makes warnings errors; BUILD= is the folder for what is made; LIBBPF_DIR=/path/to/libbpf/src uses that libbpf
# (built there) in place of the system's.

CC ?= gcc
CLANG ?= clang
BPFTOOL ?= bpftool
PROTOC_C ?= protoc-c
INFOCMP ?= infocmp
CLANG_FORMAT ?= clang-format
PREFIX ?= /usr/local
# Not every shell expands it behind the equals sign.
override PREFIX := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
VERSION := 0.1.0

# Debian has bpftool there, where the PATH of an ordinary user does not look.
export PATH := $(PATH):/usr/sbin:/sbin

HOST_ARCH := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')
ARCH := $(HOST_ARCH)
DEPS := tools/install-deps

# For another architecture than this machine's. SYSROOT has the libraries to link with.
SYSROOT_PATH :=
USUAL_BUILD := build
ifneq ($(ARCH),$(HOST_ARCH))
SYSROOT ?= $(or $(PYBPF_TEST_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pybpf-tests)/$(ARCH)-bookworm
CC := $(ARCH:arm64=aarch64)-linux-gnu-gcc --sysroot=$(SYSROOT)
STRIP ?= $(ARCH:arm64=aarch64)-linux-gnu-strip
USUAL_BUILD := build/$(ARCH)
DEPS := tools/install-deps --$(ARCH) && tools/setup-pythons $(ARCH)-bookworm
STATIC_FOR := $(SYSROOT) bookworm $(ARCH:arm64=aarch64)-linux-gnu
SYSROOT_PATH := -ffile-prefix-map=$(SYSROOT)=
endif
BUILD ?= $(USUAL_BUILD)

ifdef LIBBPF_DIR
LIBBPF_CFLAGS := -I$(LIBBPF_DIR)/root/usr/include
LIBBPF_LIBS := $(LIBBPF_DIR)/libbpf.a
else
LIBBPF_CFLAGS :=
LIBBPF_LIBS := -lbpf
endif

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wformat=2 -Wformat-security
ifeq ($(WERROR),1)
WARN += -Werror
endif
CFLAGS ?= -O2 -g

# The same bytes from any folder: no path of this one is in DWARF, in BTF's lines, or in __FILE__.
# The last that fits holds: what is built is at its usual place, whatever BUILD calls it.
SAME_PATHS := -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(abspath $(BUILD))=$(USUAL_BUILD) $(SYSROOT_PATH)

# What makes an error in pybpf harder to use. It stands before CFLAGS and LDFLAGS, so that theirs win.
compiler_takes = $(shell $(CC) -O2 $(1) -Werror -include features.h -x c -c -o /dev/null /dev/null 2>/dev/null && echo '$(1)')
HARDENING := -fPIE -fstack-protector-strong $(call compiler_takes,-fstack-clash-protection)
LINK_HARDENING := -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
# It needs an optimizer; level 3 needs gcc 12 or clang 9, and glibc 2.34.
ifeq ($(findstring _FORTIFY_SOURCE,$(CFLAGS)),)
ifneq ($(filter-out -O0,$(filter -O%,$(CFLAGS))),)
HARDENING += -U_FORTIFY_SOURCE $(or $(call compiler_takes,-D_FORTIFY_SOURCE=3),-D_FORTIFY_SOURCE=2)
endif
endif
ifeq ($(ARCH),x86)
# The linker would leave the mark out, since distributions' static libraries lack it; but any C keeps to a shadow stack.
HARDENING += $(call compiler_takes,-fcf-protection)
LINK_HARDENING += -Wl,-z,shstk
else ifeq ($(ARCH),arm64)
HARDENING += $(call compiler_takes,-mbranch-protection=standard)
endif

USER_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DPYBPF_VERSION='"$(VERSION)"' $(WARN) $(SAME_PATHS) -Ibpf -Iuser -I$(BUILD) -isystem $(BUILD)/proto $(LIBBPF_CFLAGS)
LDLIBS := $(LIBBPF_LIBS) -ldw -lelf -lz -lm -ljansson -lprotobuf-c -lncursesw -ltinfo -llzma -lyaml -liberty
# For the network, and those that libdw.a and libelf.a call themselves.
STATIC_LIBS := -lcurl -lmicrohttpd -lssl -lcrypto -lcares $(LDLIBS) -lbz2 -lzstd
BPF_CFLAGS := -std=gnu11 -target bpf -D__TARGET_ARCH_$(ARCH) -mcpu=v3 -O2 -g $(WARN) -Wno-missing-prototypes -Wno-unused-parameter \
	-Wno-compare-distinct-pointer-types $(SAME_PATHS) -Ibpf -Ivmlinux/$(ARCH) $(LIBBPF_CFLAGS)
FUZZ_CFLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# A sanitizer reports functions and lines.
SAN_CFLAGS := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# What the static binary has in place of members of the library, or of others' libraries.
STATIC_SRC := user/network/static_curl.c user/network/no_host_libraries.c user/serve/static_microhttpd.c
# All but the program's start is a library, of which tests link what they use.
LIB_SRC := $(filter-out $(STATIC_SRC),$(wildcard user/*/*.c user/*/*/*.c))
UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)

PROTO_SRC := $(wildcard user/*/*.proto user/*/*/*.proto)
PROTO_C := $(PROTO_SRC:user/%.proto=$(BUILD)/proto/%.pb-c.c)

LIB_OBJ := $(LIB_SRC:user/%.c=$(BUILD)/user/%.o) $(PROTO_C:.c=.o)
SAN_OBJ := $(LIB_SRC:user/%.c=$(BUILD)/san/%.o) $(PROTO_C:.c=.o)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)
FUZZ_OBJ := $(LIB_SRC:user/%.c=$(BUILD)/fuzz/user/%.o) $(PROTO_C:.c=.o)
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)
REPLAY_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/replay/%)
HOSTILE_BIN := $(addprefix $(BUILD)/hostile/pretender-3.,8 11 12 14)

.PHONY: all
all: $(BUILD)/pybpf

$(BUILD)/pybpf: $(BUILD)/user/main.o $(BUILD)/user/base/users_nss.o $(BUILD)/libuser.a
	$(CC) $(HARDENING) $(LINK_HARDENING) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The folder of libcurl and libmicrohttpd for the static binary, which are built if they are not in the cache. The file
# changes when the folder does.
$(BUILD)/static-libraries: FORCE | $(BUILD)/flags
	@CC='$(CC)' CFLAGS='$(HARDENING) $(CFLAGS)$(if $(SYSROOT_PATH), $(SYSROOT_PATH))' tools/static-libraries $(STATIC_FOR) >$@.tmp
	@if cmp -s $@.tmp $@; then rm $@.tmp; else mv $@.tmp $@; fi

# An update of the system does not reach what is linked in: it has to be built again. The library comes once more at the
# end, for what libdw.a may lack (user/symbols/walk/elfutils_tree.c).
$(BUILD)/pybpf-static: $(BUILD)/user/main.o $(BUILD)/user/symbols/walk/no_debuginfod.o $(STATIC_SRC:user/%.c=$(BUILD)/user/%.o) $(BUILD)/libuser.a \
	$(BUILD)/static-libraries
	$(CC) $(HARDENING) $(filter-out -pie,$(LINK_HARDENING)) -static-pie -Wl,--wrap=dlopen -Wl,-Map=$@.map $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) \
		-L$$(cat $(BUILD)/static-libraries)/usr/lib $(STATIC_LIBS) $(BUILD)/libuser.a

.PHONY: static static-libraries
static: $(BUILD)/pybpf-static
static-libraries: $(BUILD)/static-libraries

# Appended, not replaced: files of several rooms have one name.
$(BUILD)/libuser.a: $(LIB_OBJ)
	rm -f $@ && $(AR) qcs $@ $^

$(BUILD)/san/libuser.a: $(SAN_OBJ)
	rm -f $@ && $(AR) qcs $@ $^

# The binary with sanitizers, with which the core of the end-to-end suite is run.
$(BUILD)/pybpf-san: tests/targets/sanitizers.c $(BUILD)/san/main.o $(BUILD)/san/base/users_nss.o $(BUILD)/san/libuser.a
	$(CC) $(SAN_CFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/proto/%.pb-c.c: user/%.proto $(BUILD)/flags
	@mkdir -p $(@D)
	$(PROTOC_C) --proto_path=user --c_out=$(BUILD)/proto $<

$(BUILD)/proto/%.o: $(BUILD)/proto/%.c
	$(CC) $(HARDENING) $(CFLAGS) $(SAME_PATHS) -I$(BUILD)/proto -c -o $@ $<

# The names of this machine's system calls: the C library has none.
$(BUILD)/syscall_names.h: $(BUILD)/flags
	echo '#include <sys/syscall.h>' | $(CC) -E -dM - | \
		sed -n 's/^#define __NR_\([a-z0-9_]*\) .*/[__NR_\1] = "\1",/p' | LC_ALL=C sort >$@.tmp
	mv $@.tmp $@

# Terminals that top draws on where the host describes none, the first one of each family.
TERMINALS := xterm-256color screen-256color tmux-256color linux vt100
$(BUILD)/terminal_descriptions.h: $(BUILD)/flags
	for name in $(TERMINALS); do \
		text=$$($(INFOCMP) -q -Q2 $$name | tr -d '\n') && echo "{\"$$name\", \"$$text\"}," || exit 1; \
	done >$@.tmp
	mv $@.tmp $@

# Whatever includes a generated header finds it there; the others do not wait for the BPF programs, which take longest.
$(LIB_OBJ) $(SAN_OBJ) $(FUZZ_OBJ): | $(PROTO_C) $(BUILD)/syscall_names.h $(BUILD)/terminal_descriptions.h
KERNEL_SRC := $(wildcard user/kernel/*.c)
$(foreach kind,user san fuzz/user,$(KERNEL_SRC:user/%.c=$(BUILD)/$(kind)/%.o)): | $(BUILD)/pybpf.skel.h

$(BUILD)/user/%.o: user/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(HARDENING) $(CFLAGS) $(USER_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/san/%.o: user/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(SAN_CFLAGS) $(USER_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/user/%.o: user/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link $(USER_CFLAGS) -MMD -MP -c -o $@ $<

# The page that is put into it is checked in; make html-app makes it.
$(patsubst %,$(BUILD)/%/output/formats/html.o,user san fuzz/user): user/output/formats/html.asset

$(BUILD)/fuzz/libuser.a: $(FUZZ_OBJ)
	rm -f $@ && $(AR) qcs $@ $^

$(BUILD)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(BUILD)/fuzz/libuser.a
	@mkdir -p $(@D)
	$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer $(USER_CFLAGS) -Itests/unit -MMD -MP -MF $@.d -o $@ $< \
		$(BUILD)/fuzz/libuser.a $(LDLIBS)

$(BUILD)/replay/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(BUILD)/san/libuser.a
	@mkdir -p $(@D)
	$(CC) $(SAN_CFLAGS) $(USER_CFLAGS) -Itests/unit -MMD -MP -MF $@.d -o $@ $(filter %.c %.a,$^) $(LDLIBS)

# Compiled apart from being linked: what changes is mostly the library.
# Tests take longer to optimize than to run.
$(BUILD)/unit/%.o: tests/unit/%.c $(BUILD)/flags | $(PROTO_C)
	@mkdir -p $(@D)
	$(CC) $(SAN_CFLAGS) -O0 $(USER_CFLAGS) -Itests/unit -MMD -MP -c -o $@ $<

$(BUILD)/unit/%: $(BUILD)/unit/%.o $(BUILD)/san/libuser.a
	$(CC) $(SAN_CFLAGS) -o $@ $(filter %.o %.a,$^) -lcmocka $(LDLIBS)

# The same program as each of these minor versions; its symbols are to be seen as an interpreter's are.
$(BUILD)/hostile/pretender-3.%: $(wildcard tests/hostile/*.[ch]) $(BUILD)/libuser.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -DMINOR=$* -rdynamic -pthread -o $@ $(filter %.c %.a,$^)

$(BUILD)/beat: tests/targets/beat.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -D_GNU_SOURCE -o $@ $<

$(BUILD)/native.so $(BUILD)/native_calls.so: $(BUILD)/%.so: tests/targets/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -D_GNU_SOURCE -shared -fPIC -o $@ $< -pthread -ldl

$(BUILD)/linecheck: tools/linecheck.c user/symbols/lines.c user/symbols/lines.h $(wildcard bpf/pybpf*.h)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -o $@ $(filter %.c,$^)

# What tests/kernel does by the session's own calls.
$(BUILD)/epochs $(BUILD)/fits $(BUILD)/sources $(BUILD)/stepper $(BUILD)/unwinder $(BUILD)/walker: $(BUILD)/%: tests/kernel/%.c $(BUILD)/libuser.a
	$(CC) $(CFLAGS) $(USER_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libuser.a $(LDLIBS)

# The linker has the agent begin with shorter epochs than its options allow.
$(BUILD)/fast_agent: tests/kernel/fast_agent.c $(BUILD)/libuser.a
	$(CC) $(CFLAGS) $(USER_CFLAGS) -MMD -MP -MF $@.d -Wl,--wrap=agent_new -o $@ $< $(BUILD)/libuser.a $(LDLIBS)

$(BUILD)/save-memory: tools/gen/save-memory.c $(BUILD)/libuser.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -Itests/unit -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libuser.a $(LDLIBS)

# Profiles that are made to harm, or to be hard to add up, saved for tests of every format.
$(BUILD)/made-profiles: tests/unit/made_profiles.c $(BUILD)/libuser.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -Itests/unit -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libuser.a -lcmocka $(LDLIBS)

# Drives the room push: what it is told on stdin.
$(BUILD)/push-driver: tests/unit/push_driver.c $(BUILD)/libuser.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libuser.a $(LDLIBS)

# Drives the room serve: what it is told on stdin.
$(BUILD)/serve-driver: tests/unit/serve_driver.c $(BUILD)/libuser.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -Itests/unit -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libuser.a -lcmocka $(LDLIBS)

$(BUILD)/serve-driver-san: tests/unit/serve_driver.c $(BUILD)/san/libuser.a
	@mkdir -p $(@D)
	$(CC) $(SAN_CFLAGS) $(USER_CFLAGS) -Itests/unit -MMD -MP -MF $@.d -o $@ $< $(BUILD)/san/libuser.a -lcmocka $(LDLIBS)

# Profiles in which one thing is there very often.
$(BUILD)/grown-profiles: tests/unit/grown_profiles.c $(BUILD)/libuser.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -Itests/unit -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libuser.a -lcmocka $(LDLIBS)

$(BUILD)/make-profile: tools/gen/make-profile.c $(BUILD)/libuser.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libuser.a $(LDLIBS)

$(BUILD)/%.bpf.o: bpf/%.bpf.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(BUILD)/$*.bpf.d -c -o $@.tmp $<
	$(BPFTOOL) gen object $@ $@.tmp
	@rm -f $@.tmp

$(BUILD)/reads.bpf.o: tests/vm/reads.bpf.c $(BUILD)/flags
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(BUILD)/reads.bpf.d -c -o $@ $<

$(BUILD)/watch-reads: tests/vm/watch_reads.c $(BUILD)/reads.skel.h
	$(CC) $(CFLAGS) $(USER_CFLAGS) -o $@ $< $(LDLIBS)

$(BUILD)/few-rights: tests/vm/few_rights.c $(BUILD)/flags
	$(CC) $(CFLAGS) $(USER_CFLAGS) -o $@ $<

# What runs in emulated machines, beside pybpf itself.
VM_PROGRAMS := $(BUILD)/watch-reads $(BUILD)/few-rights

$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	echo '/* NOLINTBEGIN */' >$@.tmp
	$(BPFTOOL) gen skeleton $< name $*_bpf >>$@.tmp
	echo '/* NOLINTEND */' >>$@.tmp
	mv $@.tmp $@

# Changes when the compilers or their options do, so that nothing is linked from two kinds of build; and the place
# to notice, before anything is compiled, that something to build with is missing.
HEADERS := bpf/libbpf.h libelf.h elfutils/libdwfl.h zlib.h jansson.h protobuf-c/protobuf-c.h curses.h lzma.h yaml.h libiberty/demangle.h curl/curl.h microhttpd.h
.PHONY: FORCE
$(BUILD)/flags: export FLAGS := $(CC) $(HARDENING) $(CFLAGS) $(SAN_CFLAGS) $(USER_CFLAGS) $(CLANG) $(BPF_CFLAGS) $(BPFTOOL) $(PROTOC_C) $(INFOCMP) $(TERMINALS) $(STATIC_LIBS) $(LINK_HARDENING) $(LDFLAGS)
$(BUILD)/flags: FORCE
	@if [ "$$FLAGS" != "$$(cat $@ 2>/dev/null)" ]; then \
		for tool in $(foreach tool,CC CLANG BPFTOOL PROTOC_C INFOCMP,$(firstword $($(tool)))); do \
			command -v "$$tool" >/dev/null || { \
				echo "make: $$tool is not installed; $(DEPS) installs what the build needs" >&2; exit 1; }; \
		done; \
		for header in $(HEADERS); do \
			echo "#include <$$header>" | $(CC) $(LIBBPF_CFLAGS) -x c -fsyntax-only - 2>/dev/null || { \
				echo "make: the header $$header is not installed; $(DEPS) installs what the build needs" >&2; exit 1; }; \
		done; \
		mkdir -p $(@D) && printf '%s\n' "$$FLAGS" >$@; \
	fi

# What is installed, as FILE:PLACE below PREFIX. PROGRAM=build/pybpf-static installs that one.
PROGRAM ?= $(BUILD)/pybpf
INSTALLED := $(PROGRAM):bin/pybpf $(foreach page,$(wildcard docs/*.1),$(page):share/man/man1/$(notdir $(page))) \
	docs/seccomp.json:share/pybpf/seccomp.json docs/pybpf-agent.yaml:share/pybpf/pybpf-agent.yaml \
	docs/pybpf-agent.service:lib/systemd/system/pybpf-agent.service \
	tools/completion/pybpf.bash:share/bash-completion/completions/pybpf \
	tools/completion/_pybpf:share/zsh/site-functions/_pybpf \
	tools/completion/pybpf.fish:share/fish/vendor_completions.d/pybpf.fish

.PHONY: install uninstall
install: $(PROGRAM)
	@for pair in $(INSTALLED); do \
		case "$$pair" in *:bin/*) mode=755 ;; *) mode=644 ;; esac; \
		place="$(DESTDIR)$(PREFIX)/$${pair#*:}"; \
		install -v -D -m "$$mode" "$${pair%:*}" "$$place" || exit 1; \
		case "$$pair" in *.service) sed -i 's|/usr/bin/pybpf|$(PREFIX)/bin/pybpf|' "$$place" || exit 1 ;; esac; \
	done

uninstall:
	@for pair in $(INSTALLED); do rm -fv "$(DESTDIR)$(PREFIX)/$${pair#*:}" || exit 1; done

# SOURCE_DATE_EPOCH is the time that they say, else that of the commit. MAINTAINER='NAME <ADDRESS>' is who answers for the packages.
DIST ?= $(BUILD)/dist
ARTEFACTS ?= tarball deb rpm wheel sdist image sbom
MAINTAINER ?=
export STRIP ?= strip
.PHONY: dist
dist: $(BUILD)/pybpf-static
	@! cd '$(DIST)' 2>/dev/null || { rm -rf pybpf-stage && \
		rm -f SHA256SUMS pybpf_[0-9]*.deb pybpf-[0-9]*.rpm pybpf-[0-9]*.whl pybpf-[0-9]*.tar pybpf-[0-9]*.tar.gz pybpf-[0-9]*.spdx.json; }
	@$(MAKE) --no-print-directory -s -o $(BUILD)/pybpf-static install DESTDIR='$(abspath $(DIST))/pybpf-stage' PREFIX=/usr PROGRAM=$(BUILD)/pybpf-static >/dev/null
	@tools/dist/run --out '$(DIST)' --map $(BUILD)/pybpf-static.map --version '$(VERSION)' --arch '$(ARCH)' --maintainer '$(MAINTAINER)' $(ARTEFACTS)

.PHONY: demo
demo:
	@tools/install-deps
	@echo "== building pybpf"
	@$(MAKE) --no-print-directory -s all
	@tools/demo/run $(BUILD)/pybpf

# Long: some five seconds for each program on each Python. Without TRUTH= also what make test has in a shorter form: the
# line of every instruction of the standard library, and a minute of lies on each kind of Python.
.PHONY: truth
truth:
	@tools/install-deps --test
	@$(MAKE) --no-print-directory -s all test-programs
	@tools/setup-pythons
	@tests/truth/run-truth --pybpf '$(BUILD)/pybpf' $(TRUTH)
ifndef TRUTH
	@env PYBPF='$(abspath $(BUILD)/pybpf)' PYBPF_LINES_EVERY=1 PYBPF_HOSTILE_SECONDS=60 /usr/bin/python3 -B -m pytest -q \
		-p no:cacheprovider tests/e2e/test_lines.py tests/e2e/test_hostile.py
endif

# More than half an hour, on a machine that does nothing else.
.PHONY: bench
bench:
	@tools/install-deps --bench
	@$(MAKE) --no-print-directory -s all $(BUILD)/make-profile
	@tools/setup-pythons sid
	@tests/bench/run-bench --pybpf '$(BUILD)/pybpf' $(BENCH)

.PHONY: soak
soak:
	@tools/install-deps --test
	@$(MAKE) --no-print-directory -s all
	@tools/setup-pythons sid
	@tests/soak/run-soak --pybpf '$(BUILD)/pybpf' $(SOAK)

.PHONY: starts
starts:
	@tools/install-deps --test
	@$(MAKE) --no-print-directory -s all
	@tools/setup-pythons
	@tests/soak/run-starts --pybpf '$(BUILD)/pybpf' $(STARTS)

# What make test and make test-all run is in tests/runner; test-programs is their share of the build.
.PHONY: test test-all check unit fuzz fuzz-programs replay-programs test-programs unit-programs e2e-programs kernels roots lint format clean
test:
	@tools/install-deps --test
	@env MAKE='$(MAKE)' tests/run-tests --build '$(BUILD)' test --expression '$(T)' --pythons '$(PY)'

PART ?= 1/1
test-all:
	@tools/install-deps --test --kernels
	@env MAKE='$(MAKE)' tests/run-tests --build '$(BUILD)' test-all --part '$(PART)' $(if $(FRESH),--fresh)

check:
	@tools/install-deps --test
	@env MAKE='$(MAKE)' tests/run-tests --build '$(BUILD)' check

unit: unit-programs
	@tests/run-tests --build '$(BUILD)' unit

unit-programs: $(UNIT_BIN)

# Each target of tests/fuzz for FUZZ_SECONDS, from what earlier runs have found (below the build folder) as well. An input
# that fails is kept in tests/fuzz/regressions/TARGET once its cause is mended: make test replays all that are kept.
FUZZ_SECONDS ?= 300
fuzz: fuzz-programs
	@tests/fuzz/run-fuzz '$(BUILD)/fuzz' '$(FUZZ_SECONDS)'

fuzz-programs: $(FUZZ_BIN)

replay-programs: $(REPLAY_BIN)

test-programs: unit-programs e2e-programs $(BUILD)/pybpf-san

vm-programs: $(VM_PROGRAMS)

e2e-programs: $(HOSTILE_BIN) $(VM_PROGRAMS) $(BUILD)/beat $(BUILD)/native.so $(BUILD)/native_calls.so $(BUILD)/linecheck \
	$(BUILD)/made-profiles $(BUILD)/grown-profiles $(BUILD)/epochs $(BUILD)/fast_agent $(BUILD)/fits $(BUILD)/sources $(BUILD)/stepper $(BUILD)/unwinder \
	$(BUILD)/walker $(BUILD)/push-driver $(BUILD)/serve-driver $(BUILD)/serve-driver-san $(if $(WITHOUT_STATIC),,$(BUILD)/pybpf-static)

.PHONY: mutants
mutants:
	@tools/install-deps --test
	@tools/setup-pythons stripped sid python3.13t python3.13-musl
	@tests/mutants/run-mutants $(MUTANTS)

kernels:
	@tools/install-deps --kernels $(if $(filter-out $(HOST_ARCH),$(ARCH)),--$(ARCH))
ifneq ($(ARCH),$(HOST_ARCH))
	@tools/setup-pythons $(foreach suite,bullseye bookworm trixie sid,$(ARCH)-$(suite))
endif
	@$(MAKE) --no-print-directory -s all vm-programs
	@tests/vm/run-kernels --arch '$(ARCH)' --build '$(BUILD)' $(KERNELS)

roots:
	@tools/install-deps --roots
	@tests/roots/run-roots --build '$(BUILD)' $(ROOTS)

# The checkers see the skeleton, which is generated, as a system's header. What they found is remembered for any folder. They
# are as strict with and without WERROR=1.
lint: export USER_FLAGS := -Werror $(filter-out -Werror -DPYBPF_VERSION=% -I$(BUILD) $(SAME_PATHS),$(USER_CFLAGS)) -isystem $(BUILD)
lint: export BPF_FLAGS := $(filter-out $(SAME_PATHS),$(BPF_CFLAGS))
lint: export BPF_OBJECT := $(BUILD)/pybpf.bpf.o
lint: export CC := $(CC)
lint: export CLANG_FORMAT := $(CLANG_FORMAT)
lint: $(BUILD)/pybpf.skel.h $(BUILD)/syscall_names.h $(BUILD)/terminal_descriptions.h $(PROTO_C)
	@tools/lint

format:
	$(CLANG_FORMAT) -i $(filter-out user/cpython/layout_tables.h,$(wildcard $(foreach folder,user user/* user/*/* bpf tests/unit tests/unit/* tests/kernel tests/fuzz \
		tests/hostile tests/targets tools tools/gen,$(folder)/*.c $(folder)/*.h)))

.PHONY: manual
manual: $(BUILD)/pybpf
	tools/gen/manual $(BUILD)/pybpf docs

.PHONY: html-app
html-app:
	cd tools/html && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && node build.mjs ../../user/output/formats/html.asset
	rm -rf tools/html/node_modules

clean:
	rm -rf $(BUILD)

.DELETE_ON_ERROR:
.SECONDARY:
-include $(wildcard $(BUILD)/*.d $(BUILD)/fuzz/*.d $(BUILD)/replay/*.d \
	$(foreach folder,user san unit fuzz/user,$(BUILD)/$(folder)/*.d $(BUILD)/$(folder)/*/*.d $(BUILD)/$(folder)/*/*/*.d))
