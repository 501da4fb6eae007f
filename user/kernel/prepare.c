// SPDX-License-Identifier: Apache-2.0
/* See prepare.h. */
#include "kernel/prepare.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kernel/dead_code.h"

/* libbpf has one table of handlers for all objects of the process, and hands nothing of an object on to them. */
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

int kernel_prepare_programs(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_prepare_load_fn = prepare);
	static const struct {
		const char *section;
		enum bpf_prog_type type;
	} sections[] = {
		{"perf_event", BPF_PROG_TYPE_PERF_EVENT},
		{"tracepoint", BPF_PROG_TYPE_TRACEPOINT},
		{"uprobe", BPF_PROG_TYPE_KPROBE},
	};
	static bool done;
	int handler = 0;

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections) && !done && handler >= 0; i++)
		handler = libbpf_register_prog_handler(sections[i].section, sections[i].type, 0, &opts);
	done |= handler >= 0;
	return handler < 0 ? handler : 0;
}

void kernel_prepare_with(struct bpf_map *constants)
{
	constants_map = constants;
}
