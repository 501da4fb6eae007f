# SPDX-License-Identifier: Apache-2.0
# make            build/pybpf
# make install    to $(DESTDIR)$(PREFIX)
# make demo       profile a bundled program;  make test  run every test;  make lint, make format

CC ?= gcc
CLANG ?= clang
BPFTOOL ?= bpftool
PREFIX ?= /usr/local
BUILD ?= build
VERSION := 0.1.0

ARCH := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')

# LIBBPF_DIR=/path/to/libbpf/src uses that libbpf (built there) in place of the system's.
ifdef LIBBPF_DIR
LIBBPF_CFLAGS := -I$(LIBBPF_DIR)/root/usr/include
LIBBPF_LIBS := $(LIBBPF_DIR)/libbpf.a
else
LIBBPF_CFLAGS :=
LIBBPF_LIBS := -lbpf
endif

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
ifeq ($(WERROR),1)
WARN += -Werror
endif
CFLAGS ?= -O2 -g
USER_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DPYBPF_VERSION='"$(VERSION)"' $(WARN) -Ibpf -Iuser $(LIBBPF_CFLAGS)
LDLIBS := $(LIBBPF_LIBS) -lelf -lz -lm
BPF_CFLAGS := -std=gnu11 -target bpf -D__TARGET_ARCH_$(ARCH) -mcpu=v3 -O2 -g $(WARN) -Wno-missing-prototypes -Wno-unused-parameter \
	-Wno-compare-distinct-pointer-types -Ibpf -Ivmlinux/$(ARCH) $(LIBBPF_CFLAGS)
SAN_CFLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# The rooms that need the BPF skeleton are not part of the library that unit tests link with.
SKEL_SRC := $(wildcard user/cli*.c user/session*.c)
LIB_SRC := $(filter-out $(SKEL_SRC),$(wildcard user/*.c))
UNIT_SRC := $(wildcard tests/unit/test_*.c)

LIB_OBJ := $(LIB_SRC:user/%.c=$(BUILD)/user/%.o)
SKEL_OBJ := $(SKEL_SRC:user/%.c=$(BUILD)/user/%.o)
SAN_OBJ := $(LIB_SRC:user/%.c=$(BUILD)/san/%.o)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)

.PHONY: all clean
all: $(BUILD)/pybpf

$(BUILD)/pybpf: $(SKEL_OBJ) $(BUILD)/libuser.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libuser.a: $(LIB_OBJ)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/san/libuser.a: $(SAN_OBJ)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/user/%.o: user/%.c | $(BUILD)/pybpf.skel.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -I$(BUILD) -MMD -MP -c -o $@ $<

$(BUILD)/san/%.o: user/%.c
	@mkdir -p $(@D)
	$(CC) $(SAN_CFLAGS) $(USER_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/san/libuser.a
	@mkdir -p $(@D)
	$(CC) $(SAN_CFLAGS) $(USER_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(BUILD)/san/libuser.a -lcmocka $(LDLIBS)

$(BUILD)/linecheck: tools/linecheck.c user/pysym_lines.c user/pysym_lines.h bpf/pybpf.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(USER_CFLAGS) -o $@ $(filter %.c,$^)

$(BUILD)/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(BUILD)/$*.bpf.d -c -o $@.tmp $<
	$(BPFTOOL) gen object $@ $@.tmp
	@rm -f $@.tmp

$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp
	mv $@.tmp $@

.PHONY: unit
unit: $(UNIT_BIN)
	@for t in $(UNIT_BIN); do echo "== $$t"; $$t || exit 1; done

clean:
	rm -rf $(BUILD)

.DELETE_ON_ERROR:
.SECONDARY:
-include $(wildcard $(BUILD)/user/*.d $(BUILD)/san/*.d $(BUILD)/unit/*.d $(BUILD)/*.d)
