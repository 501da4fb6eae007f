// SPDX-License-Identifier: Apache-2.0
/* See prepare.h. */
#include "kernel/prepare.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kernel/dead_code.h"
#include "kernel/kernel_types.h"

/* libbpf has one table of handlers for all objects of the process, and hands nothing of an object on to them. */
static const struct kernel_types *kernel_types;
static struct bpf_map *constants_map;

/* libbpf's own records are shortened in place: it does not use them after the load. */
static int remove_dead_code(struct bpf_program *program, struct bpf_prog_load_opts *opts)
{
	struct kernel_constants constants = {.fd = bpf_map__fd(constants_map)};
	size_t count = bpf_program__insn_cnt(program);
	struct bpf_insn *instructions = calloc(count, sizeof(*instructions));
	struct kernel_code code = {
		.instructions = instructions,
		.nr_instructions = (uint32_t)count,
		.functions = (struct bpf_func_info *)opts->func_info,
		.nr_functions = opts->func_info_cnt,
		.lines = (struct bpf_line_info *)opts->line_info,
		.nr_lines = opts->line_info_cnt,
	};
	int err = instructions ? 0 : -ENOMEM;

	constants.bytes = bpf_map__initial_value(constants_map, &constants.size);
	if (!err) {
		memcpy(instructions, bpf_program__insns(program), count * sizeof(*instructions));
		err = kernel_remove_dead_code(&code, &constants);
	}
	err = err ?: bpf_program__set_insns(program, instructions, code.nr_instructions);
	opts->func_info_cnt = code.nr_functions;
	opts->line_info_cnt = code.nr_lines;
	log_debug("kernel: %s: %u of %zu instructions can run", bpf_program__name(program), code.nr_instructions,
		  count);
	free(instructions);
	return err;
}

/* Records of other sizes are those of a compiler that this file does not know. */
static bool is_known(const struct bpf_prog_load_opts *opts)
{
	return (!opts->func_info_cnt || opts->func_info_rec_size == sizeof(struct bpf_func_info)) &&
	       (!opts->line_info_cnt || opts->line_info_rec_size == sizeof(struct bpf_line_info));
}

static int prepare(struct bpf_program *program, struct bpf_prog_load_opts *opts, long cookie)
{
	(void)cookie;
	return constants_map && is_known(opts) ? remove_dead_code(program, opts) : 0;
}

/* What the programs of some sections are attached to: a type of the kernel, by its number. */
struct target {
	const char *section, *prefix;
	uint32_t kind;
	enum bpf_attach_type attach_type;
};

static const struct target targets[] = {
	{"tp_btf/", "btf_trace_", BTF_KIND_TYPEDEF, BPF_TRACE_RAW_TP},
	{"iter/", "bpf_iter_", BTF_KIND_FUNC, BPF_TRACE_ITER},
};

/* cookie: index of its target. */
static int prepare_tracing(struct bpf_program *program, struct bpf_prog_load_opts *opts, long cookie)
{
	const struct target *target = &targets[cookie];
	char name[64];
	int err;

	snprintf(name, sizeof(name), "%s%s", target->prefix,
		 bpf_program__section_name(program) + strlen(target->section));
	opts->attach_btf_id = kernel_types ? kernel_types_find(kernel_types, target->kind, name) : 0;
	if (!opts->attach_btf_id)
		return -ESRCH;
	err = bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
	return err ?: prepare(program, opts, 0);
}

/*
 * libbpf reads all types of the kernel, which takes it 8 ms, if it meets a program of type TRACING before the load. So
 * these have a related type until then.
 */
static int handle_tracing(void)
{
	int handler = 0;

	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets) && handler >= 0; i++) {
		const struct libbpf_prog_handler_opts opts = {
			.sz = sizeof(opts), .cookie = (long)i, .prog_prepare_load_fn = prepare_tracing};

		handler = libbpf_register_prog_handler(targets[i].section, BPF_PROG_TYPE_RAW_TRACEPOINT,
						       targets[i].attach_type, &opts);
	}
	return handler;
}

static int handle_sampling(void)
{
	const struct libbpf_prog_handler_opts opts = {.sz = sizeof(opts), .prog_prepare_load_fn = prepare};
	static const struct {
		const char *section;
		enum bpf_prog_type type;
	} sections[] = {
		{"perf_event", BPF_PROG_TYPE_PERF_EVENT},
		{"tracepoint", BPF_PROG_TYPE_TRACEPOINT},
		{"uprobe", BPF_PROG_TYPE_KPROBE},
	};
	int handler = 0;

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections) && handler >= 0; i++)
		handler = libbpf_register_prog_handler(sections[i].section, sections[i].type, 0, &opts);
	return handler;
}

/* Handlers are never taken back: programs refer to them as long as their object is open. */
int kernel_prepare_programs(void)
{
	static bool done;
	int handler = done ? 0 : handle_sampling();

	if (handler >= 0 && !done)
		handler = handle_tracing();
	done |= handler >= 0;
	return handler < 0 ? handler : 0;
}

void kernel_prepare_with(const struct kernel_types *types, struct bpf_map *constants)
{
	kernel_types = types;
	constants_map = constants;
}
