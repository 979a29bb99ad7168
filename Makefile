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
UNITDIR ?= $(PREFIX)/lib/systemd/system
SAN ?=
T ?= 60
V ?=

# The parser that the distribution has: llhttp (Debian 13) or http_parser (Debian 12).
ifneq ($(wildcard /usr/include/llhttp.h),)
HTTP_CFLAGS := -DHAVE_LLHTTP
HTTP_LIBS := -lllhttp
else
HTTP_CFLAGS :=
HTTP_LIBS := -lhttp_parser
endif

CC := gcc
MUSL_CC := musl-gcc
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wcast-qual -Wmissing-prototypes -Wstrict-prototypes -Wconversion \
	-Wimplicit-fallthrough -Wvla -Wformat=2 $(if $(WERROR),-Werror)
HARDEN := -fstack-protector-strong -fcf-protection -D_FORTIFY_SOURCE=3
BASE := -std=gnu17 -D_GNU_SOURCE -I. -DSBX_VERSION='"$(VERSION)"' $(HTTP_CFLAGS) -MMD -MP
PROD_CFLAGS := $(BASE) $(CFLAGS) $(WARN) $(HARDEN) -fPIE
PROD_LDFLAGS := -pie -Wl,-z,relro,-z,now -Wl,--as-needed

Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)	$@')

# ---- sources -------------------------------------------------------------------------------------------------------

LIB_SRC := lib/buf.c lib/clock.c lib/crc32c.c lib/env.c lib/err.c lib/fault.c lib/fd.c \
	lib/image_ref.c \
	lib/log.c lib/loop.c lib/proc.c lib/utf8.c
DIGEST_SRC := lib/digest.c lib/digest_random.c lib/identity.c lib/paths.c
SHM_SRC := shm/event.c shm/hist.c shm/index.c shm/lease.c shm/names.c shm/reader.c shm/repair.c shm/ring.c \
	shm/scope_lock.c shm/segment.c shm/segment_attach.c shm/segment_check.c shm/segment_rebuild.c \
	shm/segment_validate.c shm/slot.c shm/warm.c
WIRE_SRC := wire/agent.c wire/api_error.c wire/base64.c wire/control.c wire/entry.c wire/http_chunk.c \
	wire/http_engine.c wire/http_fields.c wire/http_parse.c wire/http_query.c wire/http_reply.c wire/http_uri.c \
	wire/json_in.c wire/json_out.c wire/packet.c wire/piece.c wire/rendezvous.c \
	wire/tar_head.c \
	wire/websocket.c wire/websocket_handshake.c
DRIVER_SRC := drivers/driver_site.c \
	drivers/image/credentials.c \
	drivers/image/jail.c \
	drivers/image/jail_root.c \
	drivers/image/manifest.c \
	drivers/image/note.c \
	drivers/image/pull.c \
	drivers/image/pull_fetch.c \
	drivers/image/pull_layout.c \
	drivers/image/pull_unpack.c \
	drivers/image/root.c \
	drivers/image/run.c \
	drivers/image/settings.c \
	drivers/image/store.c \
	drivers/image/tree.c \
	drivers/image/trim.c \
	drivers/record.c \
	drivers/boxlite/boxlite.c \
	drivers/boxlite/engine.c \
	drivers/boxlite/link.c \
	drivers/boxlite/place.c \
	drivers/boxlite/prepare.c \
	drivers/boxlite/start.c \
	drivers/boxlite/sweep.c \
	drivers/namespace/adopt.c drivers/namespace/cgroup.c drivers/namespace/cgroup_find.c \
	drivers/namespace/cgroup_site.c drivers/namespace/child.c drivers/namespace/filter.c \
	drivers/namespace/image_copy.c drivers/namespace/image_host.c drivers/namespace/layer.c \
	drivers/namespace/layer_note.c drivers/namespace/namespace.c drivers/namespace/prepare.c \
	drivers/namespace/probe.c drivers/namespace/rootfs.c drivers/namespace/site.c drivers/namespace/start.c \
	drivers/namespace/start_setup.c \
	drivers/namespace/sweep.c drivers/namespace/userns.c drivers/registry.c \
	drivers/qemu/args.c \
	drivers/qemu/boot.c \
	drivers/qemu/child.c \
	drivers/qemu/child_root.c \
	drivers/qemu/cpio.c \
	drivers/qemu/driver.c \
	drivers/qemu/image.c \
	drivers/qemu/kernel.c \
	drivers/qemu/kernel_find.c \
	drivers/qemu/launch.c \
	drivers/qemu/lz4.c \
	drivers/qemu/machine.c \
	drivers/qemu/modules.c \
	drivers/qemu/opens.c \
	drivers/qemu/plan.c \
	drivers/qemu/prepare.c \
	drivers/qemu/probe.c \
	drivers/qemu/program.c \
	drivers/qemu/qmp.c \
	drivers/qemu/room.c \
	drivers/qemu/site.c \
	drivers/qemu/start.c \
	drivers/qemu/store.c \
	drivers/qemu/store_room.c \
	drivers/qemu/sweep.c \
	drivers/qemu/talk.c \
	drivers/qemu/template.c \
	drivers/qemu/template_about.c \
	drivers/qemu/template_make.c \
	drivers/qemu/template_note.c \
	drivers/qemu/template_parts.c \
	drivers/qemu/template_size.c \
	drivers/qemu/templates.c \
	drivers/qemu/templates_look.c \
	drivers/qemu/trial.c \
	drivers/qemu/tsc.c \
	lib/digest.c
BOXLITE_SRC := \
	drivers/boxlite/errors.c \
	drivers/boxlite/program/abi.c \
	drivers/boxlite/program/ask.c \
	drivers/boxlite/program/caller.c \
	drivers/boxlite/program/inbox.c \
	drivers/boxlite/program/info.c \
	drivers/boxlite/program/open.c \
	drivers/boxlite/program/order.c \
	drivers/boxlite/program/pieces.c \
	drivers/boxlite/program/relay.c \
	drivers/boxlite/program/shell.c \
	drivers/boxlite/program/shell_chan.c \
	drivers/boxlite/program/shell_file.c \
	drivers/boxlite/program/shell_run.c \
	drivers/boxlite/program/start.c \
	drivers/boxlite/program/take.c \
	drivers/boxlite/program/text64.c
WORKER_SRC := worker/agent_chan.c worker/agent_frame.c worker/agent_link.c worker/agent_pipe.c \
	worker/agent_pour.c worker/arg_limits.c \
	worker/boot.c worker/box.c worker/box_adopt.c worker/box_check.c worker/box_end.c \
	worker/box_park.c \
	worker/box_stop.c \
	worker/command_request.c worker/confine.c worker/confine_filter.c worker/conn.c worker/conn_body.c \
	worker/conn_open.c worker/conn_reply.c worker/conn_upgrade.c worker/conn_ws.c worker/control_link.c \
	worker/coro.c worker/exec.c worker/exec_api.c worker/exec_attach.c worker/exec_keep.c \
	worker/exec_order.c \
	worker/exec_output.c \
	worker/exec_request.c \
	worker/exec_say.c \
	worker/exec_start.c worker/files_download.c worker/files_glob.c worker/files_grep.c \
	worker/files_helper.c worker/files_json.c worker/files_list.c worker/files_path.c worker/files_path_request.c \
	worker/files_query.c worker/files_read.c worker/files_remove.c worker/files_tar.c worker/files_upload.c \
	worker/files_walk.c worker/files_write.c \
	worker/image_order.c \
	worker/image_order_remove.c \
	worker/janitor.c \
	worker/janitor_clean.c \
	worker/janitor_prepare.c \
	worker/offline.c worker/op.c worker/report.c worker/route.c \
	worker/run.c worker/run_buffer.c worker/run_request.c worker/run_stream.c worker/service.c \
	worker/tar_in.c worker/tar_in_member.c worker/tar_out.c worker/template_order.c
POOL_SRC := supervisor/pool.c supervisor/pool_acquire.c supervisor/pool_due.c supervisor/pool_lease.c \
	supervisor/pool_life.c supervisor/pool_made.c supervisor/pool_past.c supervisor/pool_queue.c \
	supervisor/pool_release.c \
	supervisor/pool_restore.c supervisor/pool_room.c supervisor/pool_save.c supervisor/pool_scope.c \
	supervisor/pool_slot.c \
	supervisor/pool_stock.c \
	supervisor/pool_timers.c
CONFIG_SRC := supervisor/config.c supervisor/config_env.c \
	supervisor/config_options.c \
	supervisor/config_print.c supervisor/config_table.c \
	supervisor/config_value.c supervisor/config_yaml.c supervisor/options.c supervisor/rundir.c \
	supervisor/yaml_file.c
SUPERVISOR_SRC := supervisor/access.c supervisor/activation.c supervisor/api_acquire.c supervisor/api_box.c supervisor/api_box_end.c \
	supervisor/api_box_list.c supervisor/api_box_order.c supervisor/api_config.c supervisor/api_events.c \
	supervisor/api_images.c \
	supervisor/api_images_change.c \
	supervisor/api_templates.c \
	supervisor/progress_stream.c \
	supervisor/template_build.c \
	supervisor/api_make.c supervisor/api_me.c supervisor/api_metrics.c \
	supervisor/api_openmetrics.c supervisor/api_pool.c supervisor/api_spec.c supervisor/api_unsupported.c \
	supervisor/auth.c supervisor/client.c supervisor/client_handover.c supervisor/client_read.c \
	supervisor/client_reply.c supervisor/client_stream.c supervisor/client_tcp.c supervisor/driver_start.c \
	supervisor/idempotency.c \
	supervisor/image_job.c \
	supervisor/image_job_order.c \
	supervisor/image_job_run.c \
	supervisor/image_wait.c \
	supervisor/images.c \
	supervisor/images_keep.c \
	supervisor/janitor_link.c supervisor/lifecycle.c \
	supervisor/listen.c supervisor/listen_tcp.c supervisor/listen_unix.c supervisor/make_request.c \
	supervisor/making.c supervisor/notify.c supervisor/perform.c \
	supervisor/perform_clean.c \
	supervisor/programs.c supervisor/publish.c \
	supervisor/reconcile.c supervisor/record.c supervisor/restore.c supervisor/routes.c supervisor/service.c \
	supervisor/settings.c supervisor/spawn.c supervisor/usage.c supervisor/worker_adopt.c supervisor/worker_link.c \
	supervisor/worker_msg.c supervisor/worker_start.c
GUEST_SRC := guest/alone.c guest/command.c guest/command_io.c guest/command_plan.c guest/file_path.c guest/file_pour.c \
	guest/file_read.c guest/file_sync.c guest/file_target.c guest/file_write.c guest/kill.c guest/mux.c \
	guest/mux_input.c guest/mux_receive.c guest/out.c guest/path.c guest/relay.c guest/relay_pump.c guest/shim.c guest/shim_run.c \
	guest/sink.c \
	guest/stop.c guest/sys_clone.c guest/text.c guest/tree.c guest/users.c \
	guest/vm.c \
	guest/vm_root.c \
	guest/vm_wake.c
FILES_SRC := guest/files/emit.c guest/files/glob.c guest/files/grep.c guest/files/ignore.c guest/files/lines.c \
	guest/files/list.c guest/files/match.c guest/files/options.c guest/files/pack.c guest/files/pack_file.c \
	guest/files/pack_links.c guest/files/regex.c guest/files/remove.c guest/files/root.c guest/files/unpack.c \
	guest/files/unpack_dest.c guest/files/unpack_dirs.c guest/files/unpack_file.c guest/files/walk.c \
	guest/files/walk_names.c
CTL_SRC := tools/answer.c \
	tools/cli_attach.c tools/cli_attach_guard.c tools/cli_attach_start.c tools/cli_boxes.c tools/cli_call.c \
	tools/cli_cat.c tools/cli_command.c tools/cli_complete.c tools/cli_complete_box.c tools/cli_complete_read.c \
	tools/cli_completion.c tools/cli_cp.c tools/cli_cp_in.c tools/cli_cp_out.c tools/cli_doctor.c \
	tools/cli_events.c tools/cli_events_ask.c tools/cli_files.c tools/cli_gc.c tools/cli_grid.c tools/cli_help.c \
	tools/cli_image.c \
	tools/cli_remove.c \
	tools/cli_follow.c \
	tools/cli_image_pull.c \
	tools/cli_template.c \
	tools/cli_template_build.c \
	tools/cli_options.c tools/cli_pack.c tools/cli_pack_links.c tools/cli_place.c tools/cli_pool.c \
	tools/cli_print.c tools/cli_progress.c tools/cli_ps.c tools/cli_run.c tools/cli_search.c tools/cli_session.c \
	tools/cli_shm.c tools/cli_show.c tools/cli_signals.c tools/cli_stream.c tools/cli_table.c \
	tools/cli_terminal.c tools/cli_token.c tools/cli_transfer.c tools/cli_unpack.c tools/cli_view.c \
	tools/dial.c tools/doctor_access.c tools/doctor_cgroup.c tools/doctor_host.c \
	tools/doctor_images.c tools/doctor_kernel.c tools/doctor_left.c \
	tools/doctor_choice.c tools/doctor_config.c tools/doctor_drivers.c tools/gc_find.c tools/gc_holders.c tools/gc_judge.c tools/gc_remove.c \
	tools/host_cgroup.c tools/host_cgroup_held.c \
	tools/host_program.c tools/httpc.c tools/httpc_send.c tools/sbxctl.c tools/top_text.c tools/ws_client.c

TOP_SRC := tools/sbxtop.c tools/top_act.c tools/top_app.c tools/top_bar.c tools/top_batch.c tools/top_columns.c tools/top_cpu.c \
	tools/top_details.c tools/top_events.c tools/top_input.c tools/top_json.c tools/top_layout.c tools/top_line.c \
	tools/top_model.c tools/top_options.c tools/top_panel.c tools/top_prompt.c tools/top_replay.c tools/top_rows.c \
	tools/top_screen.c tools/top_session.c tools/top_settings.c tools/top_summary.c tools/top_table.c \
	tools/top_text.c tools/top_view.c
TOP_NEEDS := tools/answer.c tools/cli_call.c tools/cli_print.c tools/cli_view.c tools/dial.c tools/httpc.c tools/httpc_send.c

MCP_SRC := tools/mcp.c \
	tools/mcp_args.c \
	tools/mcp_ask.c \
	tools/mcp_box.c \
	tools/mcp_call.c \
	tools/mcp_clip.c \
	tools/mcp_host.c \
	tools/mcp_http.c \
	tools/mcp_lines.c \
	tools/mcp_methods.c \
	tools/mcp_options.c \
	tools/mcp_progress.c \
	tools/mcp_result.c \
	tools/mcp_rpc.c \
	tools/mcp_say.c \
	tools/mcp_scope.c \
	tools/mcp_stdio.c \
	tools/mcp_tool_edit.c \
	tools/mcp_tool_file.c \
	tools/mcp_tool_find.c \
	tools/mcp_tool_host.c \
	tools/mcp_tool_run.c \
	tools/mcp_tools.c \
	tools/mcp_versions.c \
	tools/sbx_mcp.c
MCP_NEEDS := tools/answer.c tools/cli_stream.c tools/dial.c

SIM_SRC := tests/sim/actors.c tests/sim/check.c tests/sim/clients.c tests/sim/ledger.c tests/sim/made.c \
	tests/sim/main.c tests/sim/schedule.c tests/sim/shadow.c tests/sim/shell.c tests/sim/successor.c \
	tests/sim/table.c tests/sim/trace.c tests/sim/workers.c tests/sim/world.c
SIM_NEEDS := lib/clock.c lib/fault.c lib/log.c lib/utf8.c shm/scope_lock.c shm/slot.c
BENCH_SRC := tools/bench_acquire.c tools/bench_base.c tools/bench_box.c tools/bench_bundle.c tools/bench_calls.c \
	tools/bench_client.c tools/bench_compare.c tools/bench_counter.c tools/bench_daemon.c tools/bench_dir.c \
	tools/bench_end.c tools/bench_events.c tools/bench_exec.c tools/bench_fault.c tools/bench_files.c \
	tools/bench_flat.c tools/bench_fleet.c tools/bench_http.c tools/bench_keeper.c tools/bench_limits.c \
	tools/bench_options.c tools/bench_peer.c tools/bench_plan.c tools/bench_plot.c \
	tools/bench_qemu.c \
	tools/bench_ratios.c tools/bench_recovery.c \
	tools/bench_restart.c tools/bench_row.c tools/bench_rows.c tools/bench_run.c tools/bench_samples.c tools/bench_scale.c \
	tools/bench_summarize.c tools/bench_summary.c tools/bench_table.c tools/bench_tar.c tools/bench_top.c \
	tools/bench_turn.c tools/bench_turns.c tools/sbxbench.c

BENCH_NEEDS := $(filter-out tools/sbxtop.c,$(TOP_SRC)) $(TOP_NEEDS) tools/cli_signals.c

SBXD_SRC := $(SUPERVISOR_SRC) $(POOL_SRC) $(CONFIG_SRC)

# ---- programs ------------------------------------------------------------------------------------------------------

OBJ := build/obj
PROGRAMS := build/sbxd build/sbx-worker build/sbx-boxlite build/sbx-guest build/sbx-files \
	build/sbxctl build/sbxtop build/sbxbench build/sbx-mcp

CORE_SRC := $(LIB_SRC) $(SHM_SRC) $(WIRE_SRC)
WORKER_LIBS := -larchive -ljansson $(HTTP_LIBS) -lseccomp -lcrypto -pthread
SBXD_LIBS := -ljansson $(HTTP_LIBS) -lyaml -lbsd -lcrypto -pthread
CALL_LIBS := -ljansson $(HTTP_LIBS) -lbsd -lcrypto -pthread
# As a shared object it would load a dozen others each time; of the static one only tar is taken.
CTL_LIBS := -l:libarchive.a $(CALL_LIBS)
TOP_LIBS := -lncursesw -ltinfo $(CALL_LIBS)
BENCH_LIBS := $(TOP_LIBS) -lm
obj = $(patsubst %.c,$(OBJ)/%.o,$(1))

.PHONY: all
all: $(PROGRAMS)

build/sbxd: $(call obj,supervisor/main.c $(SBXD_SRC) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(PROD_CFLAGS) $(PROD_LDFLAGS) -o $@ $^ $(SBXD_LIBS)

build/sbx-worker: $(call obj,worker/main.c $(WORKER_SRC) $(DRIVER_SRC) $(CORE_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(PROD_CFLAGS) -static-pie -Wl,--gc-sections -Wl,-z,relro,-z,now -o $@ $^ $(WORKER_LIBS)

# BoxLite's library is loaded into this one at run time: it is not static, and the worker stays so.
BOXLITE_NEEDS := drivers/boxlite/engine.c drivers/driver_site.c wire/agent.c wire/base64.c wire/packet.c wire/piece.c $(LIB_SRC)

build/sbx-boxlite: $(call obj,drivers/boxlite/program/main.c $(BOXLITE_SRC) $(BOXLITE_NEEDS))
	$(call say,LINK)
	$(Q)$(CC) $(PROD_CFLAGS) $(PROD_LDFLAGS) -o $@ $^ -pthread

build/sbxctl: $(call obj,$(CTL_SRC) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(PROD_CFLAGS) $(PROD_LDFLAGS) -o $@ $^ $(CTL_LIBS)

build/sbxtop: $(call obj,$(TOP_SRC) $(TOP_NEEDS) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(PROD_CFLAGS) $(PROD_LDFLAGS) -o $@ $^ $(TOP_LIBS)

build/sbxbench: $(call obj,$(BENCH_SRC) $(BENCH_NEEDS) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(PROD_CFLAGS) $(PROD_LDFLAGS) -o $@ $^ $(BENCH_LIBS)

build/sbx-mcp: $(call obj,$(MCP_SRC) $(MCP_NEEDS) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(PROD_CFLAGS) $(PROD_LDFLAGS) -o $@ $^ $(CTL_LIBS)

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(PROD_CFLAGS) -c -o $@ $<

# The guest stands alone: musl, static, no library of ours but wire/agent and what a relay needs.
GUEST_ALL := guest/main.c $(GUEST_SRC) lib/crc32c.c wire/agent.c wire/base64.c wire/piece.c
GUEST_CFLAGS := $(BASE) -Os -g $(WARN) -fstack-protector-strong -fno-pie -idirafter /usr/include \
	-idirafter /usr/include/$(shell $(CC) -print-multiarch)

build/sbx-guest: $(patsubst %.c,$(OBJ)-guest/%.o,$(GUEST_ALL))
	$(call say,LINK)
	$(Q)$(MUSL_CC) $(GUEST_CFLAGS) -static -no-pie -Wl,--gc-sections -Wl,-z,norelro -o $@ $^

# Its helper is alone too, but with glibc: that is what the distribution's PCRE2 was made for.
FILES_ALL := guest/files/main.c $(FILES_SRC) guest/path.c guest/text.c lib/utf8.c wire/agent.c wire/entry.c
FILES_CFLAGS := $(BASE) -O2 -g $(WARN) -fstack-protector-strong -D_FORTIFY_SOURCE=3 -fno-pie
FILES_LIBS := -l:libpcre2-8.a

build/sbx-files: $(patsubst %.c,$(OBJ)-files/%.o,$(FILES_ALL))
	$(call say,LINK)
	$(Q)$(CC) $(FILES_CFLAGS) -static -no-pie -s -Wl,--gc-sections -o $@ $^ $(FILES_LIBS)

$(OBJ)-files/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(FILES_CFLAGS) -ffunction-sections -fdata-sections -c -o $@ $<

unit: build/sbx-guest build/sbx-files # its tests drive the real ones

$(OBJ)-guest/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(MUSL_CC) $(GUEST_CFLAGS) -ffunction-sections -fdata-sections -c -o $@ $<

# ---- the same, for tests -------------------------------------------------------------------------------------------

comma := ,
CHK := build/check$(if $(SAN),-$(subst $(comma),-,$(SAN)))
CHK_CFLAGS := $(BASE) -O1 -g $(WARN) -DSBX_FAULTS -fPIE $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer,$(HARDEN))
CHK_LDFLAGS := -pie $(if $(SAN),-fsanitize=$(SAN))
chk = $(patsubst %.c,$(CHK)/obj/%.o,$(1))

TESTED_SRC := $(CORE_SRC) $(DIGEST_SRC) $(DRIVER_SRC) $(BOXLITE_SRC) $(WORKER_SRC) $(SBXD_SRC) $(GUEST_SRC) \
	$(FILES_SRC) $(filter-out tools/sbxctl.c tools/sbxtop.c tools/sbxbench.c tools/sbx_mcp.c,\
	$(CTL_SRC) $(TOP_SRC) $(BENCH_SRC) $(MCP_SRC))
# Threads meet in the table and in the log. What starts whole processes gains nothing from SAN=thread.
SAN_THREAD := $(filter thread,$(SAN))
UNIT_DIRS := $(if $(SAN_THREAD),lib shm supervisor tools wire,*)
UNIT_SRC := $(sort $(wildcard $(UNIT_DIRS:%=tests/unit/%/test_*.c)))
UNIT_BIN := $(patsubst tests/%.c,$(CHK)/%,$(UNIT_SRC))
TEST_LIBS := -lcmocka -larchive -lncursesw -ltinfo -ljansson $(HTTP_LIBS) -lpcre2-8 -lyaml -lbsd -lcrypto -lseccomp \
	-lwslay -lm -pthread

$(CHK)/sbxd: $(call chk,supervisor/main.c $(SBXD_SRC) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(SBXD_LIBS)

$(CHK)/sbx-worker: $(call chk,worker/main.c $(WORKER_SRC) $(DRIVER_SRC) $(CORE_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(if $(SAN),$(CHK_LDFLAGS),-static-pie) -o $@ $^ $(WORKER_LIBS)

$(CHK)/sbx-boxlite: $(call chk,drivers/boxlite/program/main.c $(BOXLITE_SRC) $(BOXLITE_NEEDS))
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ -pthread

$(CHK)/sbxctl: $(call chk,$(CTL_SRC) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(CTL_LIBS)

$(CHK)/sbxtop: $(call chk,$(TOP_SRC) $(TOP_NEEDS) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(TOP_LIBS)

$(CHK)/sbxbench: $(call chk,$(BENCH_SRC) $(BENCH_NEEDS) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(BENCH_LIBS)

$(CHK)/sbx-mcp: $(call chk,$(MCP_SRC) $(MCP_NEEDS) $(CORE_SRC) $(DIGEST_SRC))
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(CTL_LIBS)

$(CHK)/sbx-guest $(CHK)/sbx-files: $(CHK)/%: build/%
	@mkdir -p $(@D)
	$(call say,COPY)
	$(Q)cp $< $@

$(CHK)/libtested.a: $(call chk,$(TESTED_SRC))
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(CHK)/unit/%: $(CHK)/obj/tests/unit/%.o $(CHK)/libtested.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(TEST_LIBS)

# The double of BoxLite's library, in variants: what info it speaks, which symbols it lacks.
FAKE := $(CHK)/fake_boxlite
FAKE_SRC := $(addprefix tests/drivers/fake_boxlite/,boot.c box.c copy.c errors.c exec.c exec_call.c exec_io.c images.c info.c \
	job.c knobs.c options.c queue.c record.c runtime.c text.c) lib/clock.c lib/fd.c lib/proc.c
FAKE_SHIM_SRC := $(addprefix tests/drivers/fake_boxlite/,shim.c shim_exec.c shim_root.c) lib/clock.c lib/fd.c lib/proc.c
FAKE_TEST_SRC := $(sort $(wildcard tests/drivers/fake_boxlite/selftest*.c))
FAKE_VARIANTS := lacking modest new old standard
FAKE_INFO_old := 0
FAKE_INFO_new := 2
FAKE_HIDDEN_lacking := boxlite_box_exec;
FAKE_HIDDEN_modest := boxlite_get_or_create_box; boxlite_options_set_disk_size_gb; boxlite_execution_signal; \
	boxlite_options_set_auto_stop_interval; boxlite_options_set_auto_delete_interval; \
	boxlite_options_set_auto_resume_enabled; boxlite_box_metrics; boxlite_rest_runtime_new_with_options;
FAKE_LIBS := $(FAKE_VARIANTS:%=$(FAKE)/%/libboxlite.so)

$(FAKE)/%/libboxlite.so: $(FAKE_SRC) $(wildcard tests/drivers/fake_boxlite/*.h) $(FAKE)/fake-boxlite-shim Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	@echo '{ global: boxlite_*; local: $(FAKE_HIDDEN_$*) *; };' > $(@D)/symbols
	@ln -sf ../fake-boxlite-shim $(@D)/fake-boxlite-shim
	$(Q)$(CC) $(filter-out -MMD -MP -fPIE,$(CHK_CFLAGS)) -DFAKE_INFO=$(or $(FAKE_INFO_$*),1) -fPIC -shared \
		-Wl,--version-script=$(@D)/symbols -o $@ $(FAKE_SRC) -pthread

# What stands for a virtual machine has no sanitizer: it enters namespaces and a root without /proc.
$(FAKE)/fake-boxlite-shim: $(FAKE_SHIM_SRC) $(wildcard tests/drivers/fake_boxlite/*.h) Makefile
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(filter-out -MMD -MP -fsanitize=%,$(CHK_CFLAGS)) -pie -o $@ $(FAKE_SHIM_SRC)

# Nothing of the driver: it has a boxlite_remove() of its own.
$(FAKE)/selftest: $(call chk,$(FAKE_TEST_SRC) lib/clock.c lib/proc.c lib/fd.c) $(FAKE)/standard/libboxlite.so
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $(filter %.o,$^) -L$(FAKE)/standard -lboxlite \
		-Wl,-rpath,'$$ORIGIN/standard' -lcmocka -pthread

.PHONY: fake-boxlite
fake-boxlite: $(FAKE)/selftest $(FAKE_LIBS)
	$(Q)FAKE_BOXLITE_DIR=$(FAKE) $(FAKE)/selftest

CONFORMANCE_SRC := $(sort $(wildcard tests/drivers/*.c))

$(CHK)/conformance: $(call chk,$(CONFORMANCE_SRC)) $(CHK)/libtested.a
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(CHK)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CHK_CFLAGS) -c -o $@ $<

.PRECIOUS: $(CHK)/obj/%.o

.PHONY: unit
unit: $(UNIT_BIN) check-programs
	$(Q)SBX_GUEST=$(CHK)/sbx-guest SBX_FILES=$(CHK)/sbx-files SBX_WORKER=$(CHK)/sbx-worker \
		tests/run_unit.sh $(UNIT_BIN)

# ---- simulation ----------------------------------------------------------------------------------------------------

# The pool's code among simulated clients, workers and crashes: make sim SEEDS=100000, or SEED=n V=1 to see one.
SEEDS ?= 20000
SIM_SHORT := 5000

build/sim/pool_sim: $(call obj,$(SIM_SRC) $(POOL_SRC) $(SIM_NEEDS))
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(PROD_CFLAGS) $(PROD_LDFLAGS) -o $@ $^ -lbsd -pthread

$(CHK)/pool_sim: $(call chk,$(SIM_SRC)) $(CHK)/libtested.a
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(TEST_LIBS)

.PHONY: sim sim-short sim-mutations
sim: build/sim/pool_sim
	$(Q)$< $(if $(SEED),$(if $(V),-v) $(SEED),-j $(shell nproc) 1 $(SEEDS))

sim-short: $(CHK)/pool_sim
	$(Q)$< -j $(shell nproc) 1 $(SIM_SHORT)

# The simulator must find what is wrong: each line of its table is done to a copy of the pool's code.
sim-mutations: $(call obj,$(SIM_SRC) $(POOL_SRC) $(SIM_NEEDS))
	$(Q)CC="$(CC)" CFLAGS='$(filter-out -MMD -MP,$(PROD_CFLAGS))' tests/sim/mutate.py $^

# ---- the model -----------------------------------------------------------------------------------------------------

# The scope mutex, workers and sbxd that crash, acquires that wait: spin looks at every state there is.
.PHONY: model
model:
	$(Q)tests/model/check.py

# ---- fuzzing -------------------------------------------------------------------------------------------------------

# `make fuzz T=60` runs each target for T seconds. Seeds: tests/fuzz/corpus/NAME; what is found stays in build/fuzz.
FUZZ_CC := clang
FUZZ_SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FUZZ_CFLAGS := $(BASE) -O1 -g $(WARN) $(FUZZ_SAN) -fsanitize=fuzzer-no-link
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(FUZZ_SRC))
FUZZ_LIBS := $(filter-out -lcmocka,$(TEST_LIBS))

build/fuzz/libtested.a: $(patsubst %.c,build/fuzz/obj/%.o,$(TESTED_SRC))
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

build/fuzz/fuzz_%: build/fuzz/obj/tests/fuzz/fuzz_%.o build/fuzz/libtested.a
	$(call say,LINK)
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(FUZZ_LIBS)

build/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) -c -o $@ $<

.PRECIOUS: build/fuzz/obj/%.o

.PHONY: fuzz
fuzz: $(FUZZ_BIN)
	@set -e; for f in $(FUZZ_BIN); do name=$${f##*/fuzz_}; echo "== $$f"; \
		mkdir -p build/fuzz/corpus/$$name tests/fuzz/corpus/$$name; \
		$$f -max_total_time=$(T) -max_len=20000 -timeout=10 -print_final_stats=1 \
			-artifact_prefix=build/fuzz/$$name- build/fuzz/corpus/$$name tests/fuzz/corpus/$$name; done

# ---- tests ---------------------------------------------------------------------------------------------------------

CHECK_PROGRAMS := $(CHK)/sbxd $(CHK)/sbx-worker $(CHK)/sbx-boxlite $(CHK)/sbx-guest $(CHK)/sbx-files $(CHK)/sbxctl \
	$(CHK)/sbxtop $(CHK)/sbxbench $(CHK)/sbx-mcp
# Those of micro-VMs that take longest are check-long's: check is to end within half an hour.
INTEG_LONG := test_qemu_ends test_qemu_images test_qemu_room test_qemu_templates
INTEG := $(filter-out $(INTEG_LONG),$(sort $(patsubst tests/integ/%.py,%,$(wildcard tests/integ/test_*.py))))

# What check runs after building. Sanitized programs do not run under valgrind.
CHECKS := unit $(if $(SAN_THREAD),,sim-short conformance integ crash) $(if $(SAN),,integ-qemu-short check-valgrind-short)
JOBS := $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

# The integration tests over micro-VMs take most of an hour where they are emulated; of these check takes two minutes.
INTEG_QEMU_SHORT := test_main_job test_run test_exec_attach test_files test_boxes.StartStop test_behaviour.Skip

.PHONY: check check-long check-built check-programs conformance integ integ-qemu-short
check: deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) WERROR=1 all check-built
	$(Q)$(MAKE) --no-print-directory WERROR=1 $(CHECKS) deps-check
	@echo "all tests passed"

# What is left, of which each part takes up to an hour: after a change of a driver, and before a release.
check-long: check-programs
	$(Q)$(MAKE) --no-print-directory integ TEST="$(INTEG_LONG)"
	$(Q)set -e; for driver in boxlite boxlite-server boxlite-detached; do $(MAKE) --no-print-directory crash DRIVER=$$driver; done
	$(Q)$(MAKE) --no-print-directory check-valgrind
	$(Q)$(MAKE) --no-print-directory integ DRIVER=qemu TEST="$(INTEG) $(INTEG_LONG)"
	$(Q)$(MAKE) --no-print-directory crash DRIVER=qemu

# The fuzz targets are compiled too, so that they keep up with what they test; to link them takes clang.
check-built: $(UNIT_BIN) $(CHK)/conformance $(CHK)/pool_sim check-programs $(call chk,$(FUZZ_SRC))
check-programs: $(CHECK_PROGRAMS)

# What micro-VMs are tested with. Without a kernel (no network, and none in build/) their tests are skipped.
GUEST_ENV = SBX_ROOT=$(CURDIR)/build/guest-root SBX_KERNEL=$(CURDIR)/$(shell tools/guest_kernel.sh build/guest-kernel)

build/guest-root-whole: tests/qemu/make_whole_root.sh tests/qemu/programs.sh
	$(call say,MAKE)
	$(Q)rm -rf $@ && $< $@

build/guest-root: tests/qemu/make_root.sh tests/qemu/programs.sh
	$(call say,MAKE)
	$(Q)rm -rf $@ && $< $@

# Boxes on KVM, in an emulated host that has virtualization: a quarter of an hour and more, so not part of check. GROUP=limits:
# only that group of the suite.
$(CHK)/tsc_khz: $(call chk,tests/qemu/tsc_khz.c) $(CHK)/libtested.a
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $^ $(TEST_LIBS)

.PHONY: check-kvm
check-kvm: $(CHK)/conformance $(CHK)/tsc_khz check-programs build/guest-root
	$(Q)$(GUEST_ENV) SBX_GROUP=$(GROUP) tests/qemu/check_kvm.sh $(CHK) build/kvm-host

conformance: $(CHK)/conformance check-programs fake-boxlite build/guest-root
	$(Q)$(GUEST_ENV) SBX_GUEST=$(CHK)/sbx-guest SBX_FILES=$(CHK)/sbx-files SBX_WORKER=$(CHK)/sbx-worker $(CHK)/conformance

# Most of the time tests wait: several modules run at once. SERIAL=1: not.
# DRIVER=qemu: over boxes that are micro-VMs, of a root with more in it; emulated ones take their time, and all of it.
INTEG_JOBS = $(if $(filter qemu,$(DRIVER))$(SERIAL),,-j$(shell n=$$(nproc); echo $$((n < 4 ? n : 4))))
INTEG_ENV_qemu = SBX_ROOT=$(CURDIR)/build/guest-root-whole SBX_BOUND=90

integ: check-programs $(FAKE_LIBS) build/guest-root $(if $(filter qemu,$(DRIVER)),build/guest-root-whole)
	$(Q)cd tests/integ && $(GUEST_ENV) SBX_SAN=$(SAN) SBX_BUILD=$(CURDIR)/$(CHK) SBX_DRIVER=$(DRIVER) \
		$(INTEG_ENV_$(DRIVER)) python3 run.py $(INTEG_JOBS) $(if $(V),-v) $(or $(TEST),$(INTEG))

integ-qemu-short:
	$(Q)$(MAKE) --no-print-directory integ DRIVER=qemu TEST="$(INTEG_QEMU_SHORT)"

# sbxd under valgrind, over the integration tests whose daemon is not restarted (tests/valgrind/elsewhere.c says why).
VALGRIND := valgrind --error-exitcode=99 --leak-check=full --track-fds=yes --trace-children=no
VALGRIND_TESTS := $(filter-out test_activation test_config test_config_api test_limits test_metrics test_user test_restart \
	test_reports test_behaviour test_bench test_boxes_restart test_exec_restart test_install test_tcp_restart test_tcp_start \
	test_mcp_restart test_python_package test_python_restart test_python_shared test_python_tcp test_agents,$(INTEG))
VALGRIND_SHORT := test_main_job test_run test_faults

$(CHK)/valgrind_elsewhere.so: tests/valgrind/elsewhere.c $(CHK)/valgrind_elsewhere_do
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) -fPIC -shared -o $@ $<

$(CHK)/valgrind_elsewhere_do: tests/valgrind/elsewhere_do.c
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CHK_CFLAGS) $(CHK_LDFLAGS) -o $@ $<

# sbx-boxlite under valgrind, which workers start, and the double of BoxLite's library: in its own tests, and in sbx-boxlite.
# Memory that a killed thread of the library's had is not lost by us, so what may be lost is not counted.
VALGRIND_BOXLITE := valgrind --child-silent-after-fork=yes --leak-check=full --show-leak-kinds=definite \
	--errors-for-leak-kinds=definite --log-file=$(CURDIR)/$(CHK)/valgrind/logs/%p.log
VALGRIND_BOXLITE_TESTS := test_boxlite.Local test_shell_served

$(CHK)/valgrind/sbx-boxlite: $(CHK)/valgrind_elsewhere.so $(CHECK_PROGRAMS) Makefile
	@mkdir -p $(@D)
	$(call say,MAKE)
	@ln -sfn ../fake_boxlite $(@D)/fake_boxlite
	@ln -f $(filter-out %/sbx-boxlite,$(CHECK_PROGRAMS)) $(@D)
	@ln -f $(CHK)/sbx-boxlite $(@D)/sbx-boxlite.plain
	@printf '#!/bin/sh\nLD_PRELOAD=%s exec %s %s\n' $(CURDIR)/$< '$(VALGRIND_BOXLITE)' \
		$(CURDIR)/$(@D)/sbx-boxlite.plain > $@
	@chmod +x $@

.PHONY: check-valgrind check-valgrind-short check-valgrind-boxlite
check-valgrind-short: check-valgrind-boxlite
	$(Q)$(MAKE) --no-print-directory check-valgrind TEST="$(VALGRIND_SHORT)"

check-valgrind-boxlite: $(CHK)/valgrind/sbx-boxlite $(FAKE)/selftest $(FAKE_LIBS)
	@rm -rf $(<D)/logs && mkdir $(<D)/logs
	$(Q)FAKE_BOXLITE_DIR=$(FAKE) LD_PRELOAD=$(CURDIR)/$(CHK)/valgrind_elsewhere.so $(VALGRIND_BOXLITE) $(FAKE)/selftest
	$(Q)cd tests/integ && SBX_BUILD=$(CURDIR)/$(<D) SBX_BOUND=120 \
		python3 -m unittest $(if $(V),-v) $(or $(TEST),$(VALGRIND_BOXLITE_TESTS))
	$(Q)tests/valgrind/summary.sh $(<D)/logs


check-valgrind: check-programs $(CHK)/valgrind_elsewhere.so
	$(Q)cd tests/integ && SBX_BUILD=$(CURDIR)/$(CHK) SBX_BOUND=120 \
		SBX_WRAPPER="env LD_PRELOAD=$(CURDIR)/$(CHK)/valgrind_elsewhere.so $(VALGRIND)" \
		python3 -m unittest $(if $(V),-v) $(or $(TEST),$(VALGRIND_TESTS))
	$(if $(TEST),,$(Q)$(MAKE) --no-print-directory check-valgrind-boxlite)

# ---- crashes and long runs -----------------------------------------------------------------------------------------

# Each process killed at each fault point that it passes, under load; ROUNDS times. One again: POINT= ROLE= SEED=.
# DRIVER=boxlite | boxlite-server | boxlite-detached: with its boxes, over the double of its library. DRIVER=qemu: micro-VMs,
# most of an hour.
ROUNDS ?= 1
CRASH_ENV_qemu = $(GUEST_ENV) SBX_BOUND=120

.PHONY: crash
crash: check-programs $(FAKE_LIBS) $(if $(filter qemu,$(DRIVER)),build/guest-root)
	$(Q)$(CRASH_ENV_$(DRIVER)) SBX_BUILD=$(CURDIR)/$(CHK) python3 tests/crash/matrix.py --rounds $(ROUNDS) \
		--driver $(or $(DRIVER),namespace) \
		--seed $(or $(SEED),$(shell date +%s)) --point "$(POINT)" --role "$(ROLE)"

# Thousands of scopes and random kills for T seconds; KILLS= limits what is killed.
.PHONY: soak
soak: check-programs
	$(Q)SBX_BUILD=$(CURDIR)/$(CHK) python3 tests/soak/soak.py --seconds $(T) \
		--seed $(or $(SEED),$(shell date +%s)) --kills $(KILLS)

# Processes that share scopes through the Python client, and are killed at random, for 60 seconds.
.PHONY: python-soak
python-soak: check-programs
	$(Q)SBX_SHARED_SECONDS=60 $(MAKE) --no-print-directory integ TEST=test_python_shared

# sbxtop over BOXES boxes under load for T seconds.
.PHONY: soak-top
soak-top: check-programs
	$(Q)SBX_BUILD=$(CURDIR)/$(CHK) python3 tests/soak/top.py --seconds $(T) --boxes $(or $(BOXES),1000)

# ---- the main job, shown -------------------------------------------------------------------------------------------

.PHONY: demo
demo: deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	$(Q)tools/demo.sh

# The picture in the README, from a run of these programs.
.PHONY: screenshot
screenshot: all
	$(Q)python3 docs/screenshot.py

.PHONY: deps
deps:
	$(Q)tools/deps.sh

# ---- benchmarks ----------------------------------------------------------------------------------------------------

# A fixed selection, written to docs/benchmarks.md and quoted in README.md; SCOPES=10,100: so many, and not up to 10,000.
# WHAT="restart flat": those sections of `sbxbench ratios`, printed, with BOXES= boxes.
.PHONY: bench
bench: all $(if $(filter qemu,$(WHAT)),build/guest-root)
	$(Q)$(if $(WHAT),$(if $(filter qemu,$(WHAT)),$(GUEST_ENV) )build/sbxbench ratios $(if $(BOXES),--boxes $(BOXES)) $(WHAT),tools/benchmarks.sh $(if $(SCOPES),--scopes $(SCOPES)))

# What a call of the Python client costs over the bare round trip; fails past 200 us.
.PHONY: bench-python
bench-python: all
	$(Q)python3 clients/python/bench.py --sbxd build/sbxd

# ---- keeping house -------------------------------------------------------------------------------------------------

C_FILES = $(sort $(shell find drivers guest lib shm supervisor tests tools wire worker -name '*.[ch]'))

.PHONY: format format-check tidy deps-check compdb clean help install uninstall deb check-package check-systemd
format:
	$(Q)clang-format -i $(C_FILES)

format-check:
	$(Q)clang-format --dry-run -Werror $(C_FILES)

tidy:
	$(Q)clang-tidy --quiet $(filter %.c,$(filter-out tests/% guest/%,$(C_FILES))) -- $(filter-out -MMD -MP,$(BASE))

deps-check:
	$(Q)tests/deps_check.sh

compdb:
	$(Q)$(MAKE) --no-print-directory -Bn V=1 all check-programs | tests/compdb.py > compile_commands.json

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/sbxd
	install -m 755 build/sbxd build/sbxctl build/sbxtop build/sbxbench build/sbx-mcp $(DESTDIR)$(PREFIX)/bin
	install -m 755 build/sbx-worker build/sbx-boxlite build/sbx-guest build/sbx-files $(DESTDIR)$(PREFIX)/libexec/sbxd
	for s in 1 5 8; do install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$$s docs/*.$$s; done
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/sbxd README.md docs/*.md docs/openapi.yaml
	build/sbxctl completion bash | install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sbxctl
	build/sbxctl completion zsh | install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_sbxctl
	build/sbxctl completion fish | install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/sbxctl.fish
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/sbxd/guides docs/guides/*.md
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/sbxd/examples packaging/sbxd.yaml
	$(if $(UNITDIR),install -D -m 644 -t $(DESTDIR)$(UNITDIR) packaging/systemd/sbxd.socket)
	$(if $(UNITDIR),sed 's|@BINDIR@|$(PREFIX)/bin|' packaging/systemd/sbxd.service.in | \
		install -m 644 /dev/stdin $(DESTDIR)$(UNITDIR)/sbxd.service)

# What install has put there, and the directories that are its own.
uninstall:
	rm -f $(foreach p,sbxd sbxctl sbxtop sbxbench sbx-mcp,$(DESTDIR)$(PREFIX)/bin/$(p))
	rm -rf $(DESTDIR)$(PREFIX)/libexec/sbxd $(DESTDIR)$(PREFIX)/share/doc/sbxd
	rm -f $(foreach m,$(wildcard docs/*.[158]),$(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(m)))/$(notdir $(m)))
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sbxctl $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_sbxctl \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/sbxctl.fish
	$(if $(UNITDIR),rm -f $(DESTDIR)$(UNITDIR)/sbxd.socket $(DESTDIR)$(UNITDIR)/sbxd.service)

# ---- the Debian package --------------------------------------------------------------------------------------------

# Built from a copy, so that nothing of the build is in the tree: build/deb/sbxd_VERSION_amd64.deb.
deb:
	$(Q)tests/packaging/build_deb.sh build/deb

# The package built, checked, installed, used and purged in fresh roots of the releases in SUITES.
SUITES ?= bookworm trixie
check-package:
	$(Q)set -e; for suite in $(SUITES); do tests/packaging/deb.sh $$suite; done

# systemd itself, in an emulated machine: restarts, upgrades and crashes of the service lose no box.
check-systemd:
	$(Q)set -e; for suite in $(SUITES); do tests/packaging/machine.sh $$suite; done

clean:
	rm -rf build compile_commands.json

help:
	@echo "make                 all programs, into build/"
	@echo "make demo            install what is missing, build, and show the main job (as root)"
	@echo "make check           install what is missing, build, and run every test (as root)"
	@echo "  SAN=address,undefined | SAN=thread   the same with sanitizers (thread: unit tests of shared things)"
	@echo "make check-long      the tests that check has no time for: other drivers' crashes, valgrind, everything over micro-VMs"
	@echo "make unit | conformance | integ        parts of check; integ TEST=test_run V=1: one file of tests;"
	@echo "  integ DRIVER=qemu: over micro-VMs (a selection is part of check)"
	@echo "make check-kvm       the qemu driver's suite, and a service, on the /dev/kvm of an emulated host"
	@echo "  (a quarter of an hour and more, not part of check); GROUP=limits: a group of its tests"
	@echo "make crash ROUNDS=20  processes killed at each fault point under load (one round is part of check);"
	@echo "  POINT= ROLE= SEED=: one of them again; DRIVER=boxlite | boxlite-server | boxlite-detached | qemu: with that driver's boxes"
	@echo "make soak T=60       thousands of scopes, random kills and reloads for T seconds; SEED= KILLS="
	@echo "make soak-top T=600 BOXES=1000  sbxtop over so many boxes under load: neither grows nor shows a torn row"
	@echo "make python-soak     8 Python processes x 8 threads share 20 scopes for 60 s, with random kills; SEED="
	@echo "make check-valgrind  sbxd under valgrind, over the integration tests (check runs some of them so);"
	@echo "  make check-valgrind-boxlite: sbx-boxlite, and the double of its library"
	@echo "make sim SEEDS=100000 the pool under simulated crashes; SEED=n V=1 shows one seed"
	@echo "make model           every state of the scope mutex under crashes (spin)"
	@echo "make sim-mutations   the simulator finds what is done wrong to the pool on purpose"
	@echo "make fuzz T=60       each fuzz target for T seconds"
	@echo "make bench           a fixed selection of measurements, into docs/benchmarks.md; SCOPES=10,100,1000: no more scopes"
	@echo "  WHAT='warm restart' BOXES=1000: only ratios to baselines of the same run, printed"
	@echo "make bench-python    the Python client's calls against the bare round trip"
	@echo "make screenshot      docs/sbxtop.svg anew, from a real run (as root)"
	@echo "make format | format-check | tidy | deps-check | compdb"
	@echo "make install | uninstall DESTDIR= PREFIX=/usr/local UNITDIR=   (UNITDIR= of nothing: no systemd units)"
	@echo "make deb             the Debian package, into build/deb/"
	@echo "make check-package SUITES='bookworm trixie'  it is built, checked, installed, used and purged in fresh roots (as root)"
	@echo "make check-systemd SUITES=bookworm  units under a real systemd, in an emulated machine (as root)"
	@echo "make clean"

# Not of the trees that packaging and micro-VMs have there.
-include $(shell find build \( -path build/packaging -o -path build/deb -o -path 'build/guest-*' \) -prune -o -type f -name '*.d' -print 2>/dev/null)
