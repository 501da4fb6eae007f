// SPDX-License-Identifier: Apache-2.0
/* Reads a thread: its state, its stack, and its state once more. */
#include "dump/stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "foreign/foreign.h"

/* A thread that runs changes its stack all the time: so often two reads of it are tried to agree. */
#define ATTEMPTS 8
/* But no further one is begun after this: a stack of 8,192 frames takes some 30 ms, and lies about one may take more.
 */
#define ATTEMPTS_NS 200000000ull
/* Longest wait for an answer: it takes some milliseconds in a process with thousands of threads. */
#define PATIENCE_S 2.0

struct answer {
	struct dump_state state;
	uint64_t gil, tstate;
	uint32_t depth, flags;
	uint32_t proved, wants_gil;
	char name[PYSYM_THREAD_NAME_MAX + 1];
	struct pybpf_frame frames[PYBPF_MAX_FRAMES];
};
_Static_assert(sizeof(struct answer) <= FOREIGN_ANSWER_MAX, "an answer holds all frames");

static size_t kept_frames(uint32_t depth)
{
	return depth > PYBPF_MAX_FRAMES ? PYBPF_MAX_FRAMES : depth;
}

static bool is_same_stack(const struct walk_stack *a, const struct walk_stack *b)
{
	return a->depth == b->depth && a->flags == b->flags &&
	       !memcmp(a->frames, b->frames, kept_frames(a->depth) * sizeof(*a->frames));
}

static bool is_running(const struct dump_state *state)
{
	return state->wait.state == PYBPF_STATE_RUNNING;
}

static int walk(const struct dump_stack_of *of, uint64_t futex, struct walk_stack *stack)
{
	struct walk_memory memory;

	walk_process_memory(&memory, &of->pid);
	return walk_thread(&memory, &of->layout, &of->runtime, of->thread_id, futex, stack);
}

/* Reads the thread once. Returns as dump_read_stack(). */
static int read_once(const struct dump_stack_of *of, struct walk_stack *stack, struct dump_state *after, bool *proved)
{
	struct walk_stack again;
	struct dump_state before;
	int err = dump_look_at_state(of->pid, of->tid, of->standing, &before) ?: walk(of, before.futex, stack);

	*proved = of->standing != DUMP_GOES_ON;
	*after = before;
	if (err || *proved)
		return err;
	err = dump_look_at_state(of->pid, of->tid, of->standing, after);
	if (err || is_running(&before) != is_running(after))
		return err;
	if (!is_running(after)) {
		*proved = before.sleeps == after->sleeps && before.preemptions == after->preemptions &&
			  before.wait.state == after->wait.state;
		return 0;
	}
	if (walk(of, 0, &again))
		return 0;
	*proved = is_same_stack(stack, &again);
	free(again.frames);
	return 0;
}

static void read_name(const struct dump_stack_of *of, char *out, size_t size)
{
	struct walk_memory memory;
	char *name;

	walk_process_memory(&memory, &of->pid);
	name = of->names ? pysym_read_thread_name(&memory, &of->layout, of->names, of->thread_id) : NULL;
	snprintf(out, size, "%s", name ? name : "");
	free(name);
}

static int serve_stack(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct dump_stack_of *of = question;
	struct walk_stack stack = {0};
	struct answer *out = answer;
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + ATTEMPTS_NS;
	bool proved = false;
	int err = 0;

	(void)state;
	if (question_size != sizeof(*of))
		return -EINVAL;
	memset(out, 0, offsetof(struct answer, frames));
	for (int i = 0; i < ATTEMPTS && !proved && !err; i++) {
		if (i && clock_ns(CLOCK_MONOTONIC) > until_ns)
			break;
		free(stack.frames);
		stack = (struct walk_stack){0};
		err = read_once(of, &stack, &out->state, &proved);
	}
	if (!err) {
		out->gil = stack.gil;
		out->wants_gil = stack.wants_gil;
		out->tstate = stack.tstate;
		out->depth = stack.depth;
		out->flags = stack.flags;
		out->proved = proved;
		read_name(of, out->name, sizeof(out->name));
		memcpy(out->frames, stack.frames, kept_frames(stack.depth) * sizeof(*stack.frames));
		*size = offsetof(struct answer, frames) + kept_frames(stack.depth) * sizeof(*stack.frames);
	}
	free(stack.frames);
	return err;
}

static bool is_sound(const struct answer *answer, size_t size)
{
	return size >= offsetof(struct answer, frames) &&
	       size == offsetof(struct answer, frames) + kept_frames(answer->depth) * sizeof(answer->frames[0]) &&
	       answer->state.wait.state < PYBPF_NR_STATES && memchr(answer->name, '\0', sizeof(answer->name));
}

static int take_answer(const struct answer *answer, struct dump_stack *out)
{
	size_t kept = kept_frames(answer->depth) * sizeof(*out->walk.frames);

	*out = (struct dump_stack){
		.state = answer->state,
		.proved = answer->proved,
		.walk = {.depth = answer->depth,
			 .flags = answer->flags,
			 .gil = answer->gil,
			 .wants_gil = answer->wants_gil,
			 .tstate = answer->tstate,
			 .frames = malloc(kept ? kept : 1)},
	};
	memcpy(out->name, answer->name, sizeof(out->name));
	if (!out->walk.frames)
		return -ENOMEM;
	memcpy(out->walk.frames, answer->frames, kept);
	return 0;
}

int dump_read_stack(const struct dump_stack_of *of, struct dump_stack *out)
{
	struct answer *answer = malloc(sizeof(*answer));
	size_t size;
	int err = -ENOMEM;

	*out = (struct dump_stack){.proved = false};
	if (answer)
		err = foreign_call(serve_stack, (struct foreign_subject){.pid = of->pid}, of, sizeof(*of), answer,
				   sizeof(*answer), &size, PATIENCE_S);
	if (!err)
		err = is_sound(answer, size) ? take_answer(answer, out) : -EPROTO;
	free(answer);
	return err;
}
