# sbxd: one non-recursive Makefile. `make help` lists the targets.
#
#   build/           programs
#   build/obj/       their objects
#   build/check*/    the same code compiled for tests: fault points in, and SAN= sanitizers if asked for

SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

VERSION := 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
SAN ?=
T ?= 60

CC := gcc
MUSL_CC := musl-gcc
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wcast-qual -Wmissing-prototypes -Wstrict-prototypes -Wconversion \
	-Wimplicit-fallthrough -Wvla -Wformat=2 $(if $(WERROR),-Werror)
HARDEN := -fstack-protector-strong -fcf-protection -D_FORTIFY_SOURCE=3
BASE := -std=gnu17 -D_GNU_SOURCE -I. -DSBX_VERSION='"$(VERSION)"' -MMD -MP
PROD_CFLAGS := $(BASE) $(CFLAGS) $(WARN) $(HARDEN) -fPIE
PROD_LDFLAGS := -pie -Wl,-z,relro,-z,now -Wl,--as-needed

# The parser that the distribution has: llhttp (Debian 13) or http_parser (Debian 12).
ifneq ($(wildcard /usr/include/llhttp.h),)
BASE += -DHAVE_LLHTTP
HTTP_LIBS := -lllhttp
else
HTTP_LIBS := -lhttp_parser
endif

# ---- sources -------------------------------------------------------------------------------------------------------

LIB_SRC := lib/buf.c lib/clock.c lib/err.c lib/fault.c lib/fd.c lib/log.c lib/loop.c lib/proc.c
DIGEST_SRC := lib/digest.c
SHM_SRC := shm/hist.c shm/index.c shm/reader.c shm/repair.c shm/ring.c shm/scope_lock.c shm/segment.c \
	shm/segment_validate.c shm/slot.c shm/warm.c
WIRE_SRC := wire/agent.c wire/api_error.c wire/base64.c wire/control.c wire/http_parse.c wire/http_reply.c \
	wire/http_uri.c wire/json_in.c wire/json_out.c wire/utf8.c
DRIVER_SRC := drivers/registry.c drivers/namespace/namespace.c
WORKER_SRC := worker/agent_link.c
SUPERVISOR_SRC := supervisor/pool.c
GUEST_SRC := guest/mux.c
CTL_SRC := tools/sbxctl.c

-include sources.mk

# ---- programs ------------------------------------------------------------------------------------------------------

OBJ := build/obj
PROGRAMS := build/sbxd build/sbx-worker build/sbx-guest build/sbxctl

CORE_SRC := $(LIB_SRC) $(SHM_SRC) $(WIRE_SRC)
WORKER_LIBS := -ljansson $(HTTP_LIBS) -lseccomp -pthread
SBXD_LIBS := -ljansson $(HTTP_LIBS) -lyaml -lbsd -lcrypto -pthread
CTL_LIBS := -ljansson $(HTTP_LIBS) -lbsd -lcrypto -pthread
obj = $(patsubst %.c,$(OBJ)/%.o,$(1))

.PHONY: all
all: $(PROGRAMS)

build/sbxd: $(call obj,supervisor/main.c $(SUPERVISOR_SRC) $(CORE_SRC) $(DIGEST_SRC))
	$(CC) $(PROD_CFLAGS) $(PROD_LDFLAGS) -o $@ $^ $(SBXD_LIBS)

build/sbx-worker: $(call obj,worker/main.c $(WORKER_SRC) $(DRIVER_SRC) $(CORE_SRC))
	$(CC) $(PROD_CFLAGS) -static-pie -Wl,-z,relro,-z,now -o $@ $^ $(WORKER_LIBS)

build/sbxctl: $(call obj,$(CTL_SRC) $(CORE_SRC) $(DIGEST_SRC))
	$(CC) $(PROD_CFLAGS) $(PROD_LDFLAGS) -o $@ $^ $(CTL_LIBS)

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(PROD_CFLAGS) -c -o $@ $<

# The guest stands alone: musl, static, no library of ours but wire/agent.
GUEST_ALL := guest/main.c $(GUEST_SRC) wire/agent.c
GUEST_CFLAGS := $(BASE) -Os -g $(WARN) -fstack-protector-strong -fno-pie -idirafter /usr/include \
	-idirafter /usr/include/$(shell $(CC) -print-multiarch)

build/sbx-guest: $(patsubst %.c,$(OBJ)-guest/%.o,$(GUEST_ALL))
	$(MUSL_CC) $(GUEST_CFLAGS) -static -no-pie -Wl,--gc-sections -Wl,-z,norelro -o $@ $^

$(OBJ)-guest/%.o: %.c
	@mkdir -p $(@D)
	$(MUSL_CC) $(GUEST_CFLAGS) -ffunction-sections -fdata-sections -c -o $@ $<

# ---- the same, for tests -------------------------------------------------------------------------------------------

comma := ,
CHK := build/check$(if $(SAN),-$(subst $(comma),-,$(SAN)))
CHK_CFLAGS := $(BASE) -O1 -g $(WARN) -DSBX_FAULTS -fPIE $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer,$(HARDEN))
CHK_LDFLAGS := -pie $(if $(SAN),-fsanitize=$(SAN))
chk = $(patsubst %.c,$(CHK)/obj/%.o,$(1))

TESTED_SRC := $(CORE_SRC) $(DIGEST_SRC) $(DRIVER_SRC) $(WORKER_SRC) $(SUPERVISOR_SRC) $(GUEST_SRC)
UNIT_SRC := $(sort $(wildcard tests/unit/*/test_*.c))
UNIT_BIN := $(patsubst tests/%.c,$(CHK)/%,$(UNIT_SRC))
TEST_LIBS := -lcmocka -ljansson $(HTTP_LIBS) -lyaml -lbsd -lcrypto -lseccomp -pthread

$(CHK)/sbxd: $(call chk,supervisor/main.c $(SUPERVISOR_SRC) $(CORE_SRC) $(DIGEST_SRC))
	$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(SBXD_LIBS)

$(CHK)/sbx-worker: $(call chk,worker/main.c $(WORKER_SRC) $(DRIVER_SRC) $(CORE_SRC))
	$(CC) $(CHK_CFLAGS) $(if $(SAN),$(CHK_LDFLAGS),-static-pie) -o $@ $^ $(WORKER_LIBS)

$(CHK)/sbxctl: $(call chk,$(CTL_SRC) $(CORE_SRC) $(DIGEST_SRC))
	$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(CTL_LIBS)

$(CHK)/sbx-guest: build/sbx-guest
	@mkdir -p $(@D)
	cp $< $@

$(CHK)/libtested.a: $(call chk,$(TESTED_SRC))
	rm -f $@
	ar rcs $@ $^

$(CHK)/unit/%: $(CHK)/obj/tests/unit/%.o $(CHK)/libtested.a
	@mkdir -p $(@D)
	$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(CHK)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CHK_CFLAGS) -c -o $@ $<

.PRECIOUS: $(CHK)/obj/%.o

.PHONY: unit
unit: $(UNIT_BIN)
	@set -e; for t in $(UNIT_BIN); do echo "== $$t"; $$t; done

-include $(shell find build -name '*.d' 2>/dev/null)
