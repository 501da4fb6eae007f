// SPDX-License-Identifier: Apache-2.0
/*
 * stepper PID THREAD STEPS: executes one instruction of the process's main thread after the other, and walks its stack
 * before each with user space's build of the walk, as the kernel would in a sample there: with registers, and with what
 * earlier walks left. It ends after so many steps, or when the main loop has been left and come back to twice: then
 * each step of a program that does the same in each round has been taken. Prints what it found as JSON, and on stderr
 * each wrong stack after the one before it.
 *
 * A sample can come between two stores of the interpreter, but seldom does. In every program, one instruction pushes or
 * pops at most one function, and no other function moves to another line meanwhile. A stack that differs by more from
 * the one before is wrong, or the one before was.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <elf.h>

#include "base/remote.h"
#include "discovery/discovery.h"
#include "symbols/pysym.h"

struct walk;
static pid_t target;

static int walk_read(struct walk *w, void *dst, uint32_t size, uint64_t addr)
{
	(void)w;
	return remote_read(target, addr, dst, size);
}

#include "walk.h"

/* A stack that was reported: frames from the leaf, and where the thread was. */
struct seen {
	uint64_t ip;
	uint32_t depth, flags;
	struct pybpf_frame frames[PYBPF_MAX_FRAMES];
};

#if defined(__x86_64__)
struct registers {
	uint64_t numbered[15]; /* r15 to rdi of struct user_regs_struct, as compat_registers has them */
	uint64_t orig_ax, ip, cs, flags, sp, ss, fs_base, gs_base, ds, es, fs, gs;
};
#elif defined(__aarch64__)
struct registers {
	uint64_t numbered[31];
	uint64_t sp, ip, pstate;
};
#endif

#define MOST_REPORTED  20
#define MOST_FUNCTIONS 256

static struct {
	uint64_t steps, stacks, none, wrong, returns;
} counts;
/* To the main loop: a whole round is between two of them. */
#define RETURNS 2

static void step_walk(struct walk *w, const struct pybpf_layout *layout, const struct pybpf_runtime *runtime,
		      const struct registers *registers, struct walk_states *known)
{
	uint64_t current = 0, steps = 0;

	if (runtime->tstate_current)
		walk_read(w, &current, sizeof(current), runtime->tstate_current);
	w->interp_head = runtime->interp_head;
	w->code_type = runtime->code_type;
	w->stack_pointer = registers->sp;
	memcpy(w->candidates, registers->numbered, sizeof(registers->numbered));
	w->nr_candidates = sizeof(registers->numbered) / sizeof(registers->numbered[0]);
	walk_start(w, layout, current, known);
	while (!walk_step(w, layout)) {
		if (++steps == WALK_STEPS) {
			walk_no_stack(w);
			break;
		}
	}
	if (!w->remembered)
		*known = w->states;
}

static void print_seen(struct pysym *names, const struct seen *seen)
{
	fprintf(stderr, "%#" PRIx64 ":", seen->ip);
	for (uint32_t i = seen->depth; i-- > 0;) {
		struct pysym_frame frame;

		if (pysym_resolve(names, 1, 0, &seen->frames[i], &frame))
			continue;
		fprintf(stderr, " %s:%d", frame.name, frame.line);
	}
	fprintf(stderr, "\n");
}

/* The interpreter pushes its own trampoline together with the function that it is for (_Py_InitCleanup, 3.13+). */
static void drop_hidden(struct pysym *names, struct seen *seen)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < seen->depth; i++) {
		struct pysym_frame frame;

		if (!pysym_resolve(names, 1, 0, &seen->frames[i], &frame) && !frame.hidden)
			seen->frames[kept++] = seen->frames[i];
	}
	seen->depth = kept;
}

static int line_of(struct pysym *names, const struct pybpf_frame *walked)
{
	struct pysym_frame frame;

	return pysym_resolve(names, 1, 0, walked, &frame) ? -1 : frame.line;
}

/* Returns whether one instruction can lead from one stack to the other. */
static bool follows(struct pysym *names, const struct seen *before, const struct seen *now)
{
	uint32_t common = before->depth < now->depth ? before->depth : now->depth;

	if (before->depth + 1 < now->depth || now->depth + 1 < before->depth)
		return false;
	for (uint32_t i = 1; i <= common; i++) {
		const struct pybpf_frame *was = &before->frames[before->depth - i], *is = &now->frames[now->depth - i];

		if (was->code != is->code)
			return false;
		/* The last function of either runs, or did so, and the line goes with the call. */
		if (i < common && was->position != is->position && line_of(names, was) != line_of(names, is))
			return false;
	}
	return true;
}

/* Notes the function that runs. */
static void note_leaf(struct pysym *names, const struct seen *seen)
{
	static uint64_t noted[MOST_FUNCTIONS];
	static uint32_t count;
	struct pysym_frame frame;
	uint64_t code = seen->frames[0].code;

	for (uint32_t i = 0; i < count; i++) {
		if (noted[i] == code)
			return;
	}
	if (count == MOST_FUNCTIONS || pysym_resolve(names, 1, 0, &seen->frames[0], &frame))
		return;
	printf("%s\"%s\"", count ? ", " : "", frame.name);
	noted[count++] = code;
}

static void judge(struct pysym *names, struct seen *before, struct seen *now)
{
	if (follows(names, before, now))
		return;
	drop_hidden(names, before);
	drop_hidden(names, now);
	if (follows(names, before, now))
		return;
	if (counts.wrong++ < MOST_REPORTED) {
		print_seen(names, before);
		print_seen(names, now);
	}
}

/* Stops after the next instruction. Returns 0, or an error when the thread does not. */
static int step_on(pid_t pid)
{
	int status, signal = 0;

	do {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(uintptr_t)signal))
			return errno;
		if (waitpid(pid, &status, __WALL) < 0)
			return errno;
		if (!WIFSTOPPED(status))
			return ESRCH;
		signal = WSTOPSIG(status);
	} while (signal != SIGTRAP);
	return 0;
}

static int run(struct discovery *discovery, uint64_t thread, uint64_t steps, struct error *error)
{
	static struct seen seen[2];
	static struct walk w;
	struct discovery_python python;
	struct pybpf_runtime runtime = {0};
	struct walk_states known = {0};
	struct seen *before = NULL, *now = &seen[0];
	struct pysym *names;
	size_t count;
	int status;

	if (discovery_runtimes(discovery, target, &python, 1, &count, error) || discovery_validate(&python, error))
		return 1;
	runtime.interp_head = python.interp_head_addr;
	runtime.tstate_current = python.tstate_current_addr;
	runtime.code_type = python.code_type_addr;
	names = pysym_new(PYSYM_LINES_CURRENT, true);
	if (!names || pysym_add_process(names, 1, target, &python.build.layout) ||
	    ptrace(PTRACE_SEIZE, target, NULL, NULL) || ptrace(PTRACE_INTERRUPT, target, NULL, NULL) ||
	    waitpid(target, &status, __WALL) < 0)
		return error_set(error, errno, "PID %d cannot be traced", target), 1;
	w.thread_id = thread;
	w.proc_id = 1;
	printf("{\"functions\": [");
	for (; counts.steps < steps && counts.returns < RETURNS && !step_on(target); counts.steps++) {
		struct registers registers;
		struct iovec room = {&registers, sizeof(registers)};

		if (ptrace(PTRACE_GETREGSET, target, NT_PRSTATUS, &room))
			break;
		step_walk(&w, &python.build.layout, &runtime, &registers, &known);
		now->ip = registers.ip;
		now->flags = w.stack.flags;
		now->depth = w.result == WALK_OK && w.stack.depth <= PYBPF_MAX_FRAMES ? w.stack.depth : 0;
		if (!now->depth || now->flags) {
			counts.none++;
			continue;
		}
		memcpy(now->frames, w.frames, now->depth * sizeof(*now->frames));
		counts.stacks++;
		note_leaf(names, now);
		if (before) {
			judge(names, before, now);
			counts.returns += now->depth == 1 && before->depth > 1;
		}
		before = now;
		now = &seen[now == &seen[0]];
	}
	ptrace(PTRACE_DETACH, target, NULL, NULL);
	printf("], \"steps\": %" PRIu64 ", \"stacks\": %" PRIu64 ", \"none\": %" PRIu64 ", \"wrong\": %" PRIu64
	       ", \"is_whole\": %s}\n",
	       counts.steps, counts.stacks, counts.none, counts.wrong, counts.returns == RETURNS ? "true" : "false");
	pysym_free(names);
	return 0;
}

int main(int argc, char **argv)
{
	struct discovery *discovery = discovery_new();
	struct error error = {0};
	int err;

	if (argc != 4 || !discovery)
		return 1;
	target = atoi(argv[1]);
	err = run(discovery, strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0), &error);
	if (err)
		fprintf(stderr, "%s\n", error.text);
	discovery_free(discovery);
	return err;
}
