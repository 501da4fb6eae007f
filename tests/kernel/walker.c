// SPDX-License-Identifier: Apache-2.0
/* walker PID THREAD: walks one thread by user space's build of the walk, and prints what it finds as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "discovery/discovery.h"
#include "symbols/pysym.h"
#include "symbols/walk/walk_user.h"

static void json_string(const char *key, const char *text)
{
	printf("\"%s\": \"", key);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	printf("\", ");
}

static int print_stack(struct pysym *names, const struct walk_memory *memory, const struct pybpf_layout *layout,
		       const struct walk_stack *stack)
{
	printf("{\"flags\": %u, \"depth\": %u, \"frames\": [", stack->flags, stack->depth);
	for (unsigned i = 0; i < stack->depth && i < PYBPF_MAX_FRAMES; i++) {
		const struct pybpf_frame *walked = &stack->frames[i];
		struct pysym_frame frame;
		struct walk_code code;

		if (pysym_resolve(names, 1, 0, walked, &frame) ||
		    walk_read_code(memory, layout, walked->code, walked->sig & PYBPF_SIG_TEXTS, &code))
			return 1;
		printf("%s{", i ? ", " : "");
		json_string("name", frame.name);
		json_string("file", frame.file);
		printf("\"line\": %d, \"code\": %" PRIu64 ", \"sig\": %u, \"own_sig\": %u}", frame.line,
		       (uint64_t)walked->code, walked->sig, code.sig);
	}
	printf("]}\n");
	return 0;
}

/* Returns 0, or 1 with *error empty or not. */
static int walk(struct discovery *discovery, pid_t pid, uint64_t thread, struct error *error)
{
	struct discovery_python python;
	struct pybpf_runtime proc = {0};
	struct walk_memory memory;
	struct walk_stack stack;
	struct pysym *names;
	size_t count;
	int err;

	if (discovery_runtimes(discovery, pid, &python, 1, &count, error) || discovery_validate(&python, error))
		return 1;
	proc.interp_head = python.interp_head_addr;
	proc.tstate_current = python.tstate_current_addr;
	proc.code_type = python.code_type_addr;
	walk_process_memory(&memory, &pid);
	if (walk_thread(&memory, &python.build.layout, &proc, thread, 0, 0, &stack)) {
		error_set(error, ESRCH, "no such thread");
		return 1;
	}
	names = pysym_new(PYSYM_LINES_CURRENT, true);
	err = !names || pysym_add_process(names, 1, pid, &python.build.layout) ||
	      print_stack(names, &memory, &python.build.layout, &stack);
	free(stack.frames);
	pysym_free(names);
	return err;
}

int main(int argc, char **argv)
{
	struct discovery *discovery = discovery_new();
	struct error error = {0};
	int err;

	if (argc != 3 || !discovery)
		return 1;
	err = walk(discovery, atoi(argv[1]), strtoull(argv[2], NULL, 0), &error);
	if (err)
		fprintf(stderr, "%s\n", error.text);
	discovery_free(discovery);
	return err;
}
