// SPDX-License-Identifier: Apache-2.0
/* Reads a thread: its state, its stack, and its state once more. */
#include "dump/stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "cpython/facts.h"
#include "helper/helper.h"
#include "symbols/walk/page_cache.h"

/* Most pairs of reads of a stack, until two agree: a thread that runs changes its stack all the time. */
#define ATTEMPTS 8
/* But no further one is begun after this: a stack of 8,192 frames takes some 30 ms, and lies about one may take more.
 */
#define ATTEMPTS_NS 200000000ull
/* Variables are read no longer than this for each level of their length: most threads have theirs within 5 ms. */
#define LOCALS_NS 500000000ull
/* Locks are read no longer than this: some microseconds for each function. */
#define LOCKS_NS 100000000ull
/* The class of an exception is read no longer than this: some microseconds. */
#define EXCEPTION_NS 20000000ull
/* Longest wait for an answer: it takes some milliseconds in a process with thousands of threads. */
#define PATIENCE_S 2.0

struct answer {
	struct dump_state state;
	uint64_t gil, tstate, task, contexts;
	uint32_t depth, flags;
	uint32_t wants_gil;
	uint32_t task_depth;
	uint32_t locals_size; /* of what follows the frames */
	char name[PYSYM_THREAD_NAME_MAX + 1];
	struct dump_locks locks;
	struct dump_facts facts;
	struct pybpf_frame frames[PYBPF_MAX_FRAMES];
};
#define ANSWER_MAX (sizeof(struct answer) + DUMP_LOCALS_MAX)
_Static_assert(ANSWER_MAX <= HELPER_ANSWER_MAX, "an answer holds all frames");

static size_t size_of(const struct answer *answer)
{
	return offsetof(struct answer, frames) + pybpf_kept_frames(answer->depth) * sizeof(answer->frames[0]) +
	       answer->locals_size;
}

static bool is_same_stack(const struct walk_stack *a, const struct walk_stack *b)
{
	return a->depth == b->depth && a->flags == b->flags && a->task == b->task && a->task_depth == b->task_depth &&
	       a->interp == b->interp && a->exception == b->exception && a->collection == b->collection &&
	       !memcmp(a->frames, b->frames, pybpf_kept_frames(a->depth) * sizeof(*a->frames));
}

bool dump_is_same_sleep(const struct dump_state *a, const struct dump_state *b)
{
	return a->sleeps == b->sleeps && a->preemptions == b->preemptions && a->wait.state == b->wait.state;
}

static bool is_running(const struct dump_state *state)
{
	return state->wait.state == PYBPF_STATE_RUNNING;
}

/* The process's memory; of a process that is stopped, or a thread that sleeps, each page is read once. */
struct memory {
	struct walk_memory own, any;
	struct page_cache *cache;
};

/* stopped: what is read does not change meanwhile, or it is found out afterwards whether it did. */
static void open_memory(struct memory *m, const struct dump_stack_of *of, bool stopped)
{
	walk_process_memory(&m->own, &of->pid);
	m->any = m->own;
	m->cache = stopped ? page_cache_new(&m->own) : NULL;
	if (m->cache)
		page_cache_memory(m->cache, &m->any);
}

static void close_memory(struct memory *m)
{
	page_cache_free(m->cache);
}

static void read_exception(const struct dump_stack_of *of, const struct memory *m, uint64_t exception,
			   char name[DUMP_EXCEPTION_NAME])
{
	const struct py_values_of values = {
		.memory = &m->any,
		.layout = &of->layout,
		.runtime = &of->runtime,
		.level = 1,
		.until_ns = clock_ns(CLOCK_MONOTONIC) + EXCEPTION_NS,
	};
	struct py_values *v = exception ? py_values_new(&values) : NULL;

	if (!v || !py_values_exception(v, exception, name, DUMP_EXCEPTION_NAME))
		name[0] = '\0';
	py_values_free(v);
}

/* The state of a thread of which neither a futex nor the stack pointer is known. */
static const struct dump_state running = {.wait = {.state = PYBPF_STATE_RUNNING}};

struct stack_search {
	const struct dump_stack_of *of;
	uint64_t begin;
};

/* The first thread's stack has a name; that of others is below their struct, in one mapping with it. */
static int look_for_stack(const struct procfs_map *map, void *arg)
{
	struct stack_search *search = arg;
	const struct dump_stack_of *of = search->of;
	bool found = of->tid == of->pid ? !strcmp(map->path, "[stack]")
					: map->start <= of->thread_id && of->thread_id < map->end;

	if (found)
		search->begin = map->start;
	return found;
}

/*
 * Returns the lowest address of the thread's C stack where the walk needs one (3.10 to 3.12), or 0. In place of the
 * stack pointer, which is not known of a thread that runs, it tells the frames of other threads as well.
 */
static uint64_t find_stack(const struct dump_stack_of *of)
{
	struct stack_search search = {.of = of};

	if (of->stop.what == DUMP_NOT_STOPPED && of->layout.tstate_cframe != PYBPF_NO_OFFSET)
		procfs_each_map(of->pid, look_for_stack, &search);
	return search.begin;
}

/* exception: gets the class's name of the one that the thread raises or handles; may be NULL. */
static int walk(const struct dump_stack_of *of, const struct dump_state *state, bool stopped, struct walk_stack *stack,
		char *exception)
{
	struct memory m;
	int err;

	open_memory(&m, of, stopped);
	err = walk_known_thread(&m.any, &of->layout, &of->runtime, of->thread_id, &of->states, state->futex,
				state->stack_pointer ?: find_stack(of), stack);
	if (!err && exception)
		read_exception(of, &m, stack->exception, exception);
	close_memory(&m);
	return err;
}

/* Reads the thread once. Returns as dump_read_stack(). */
static int read_once(const struct dump_stack_of *of, struct walk_stack *stack, struct dump_state *after,
		     char *exception, bool *proved)
{
	struct walk_stack again;
	struct dump_state before;
	int err = dump_look_at_state(of->pid, of->tid, &of->stop, &before);
	bool stopped = of->stop.what != DUMP_NOT_STOPPED;

	/* Whether a thread has slept all the time is looked at below. */
	err = err ?: walk(of, &before, stopped || !is_running(&before), stack, exception);

	*proved = stopped;
	*after = before;
	if (err || *proved)
		return err;
	err = dump_look_at_state(of->pid, of->tid, &of->stop, after);
	if (err || is_running(&before) != is_running(after))
		return err;
	if (!is_running(after)) {
		*proved = dump_is_same_sleep(&before, after);
		return 0;
	}
	if (walk(of, &running, false, &again, NULL))
		return 0;
	*proved = is_same_stack(stack, &again);
	free(again.frames);
	return 0;
}

/* Reads what the thread's threading.Thread says. */
static void read_thread(const struct dump_stack_of *of, struct answer *out)
{
	struct pysym_thread thread = {.name = NULL};
	struct memory m;

	open_memory(&m, of, of->all_stopped);
	if (of->names)
		pysym_read_thread(&m.any, &of->layout, of->names, of->thread_id, &thread);
	snprintf(out->name, sizeof(out->name), "%s", thread.name ?: "");
	out->facts.is_daemon = thread.is_daemon;
	out->facts.daemon_known = thread.daemon_known;
	free(thread.name);
	close_memory(&m);
}

static bool slept_since(const struct dump_stack_of *of, const struct dump_state *before)
{
	struct dump_state now;

	return !is_running(before) && !dump_look_at_state(of->pid, of->tid, &of->stop, &now) &&
	       dump_is_same_sleep(before, &now);
}

/* Reads the variables of a stack that was read in that state; proved: the thread had it. Returns their bytes. */
static size_t read_locals(const struct dump_stack_of *of, const struct walk_stack *stack,
			  const struct dump_state *state, bool proved, void *out)
{
	struct memory m;
	struct walk_stack again;
	size_t size;
	const struct py_values_of values = {
		.memory = &m.any,
		.layout = &of->layout,
		.runtime = &of->runtime,
		.level = of->locals.level,
		.show_secrets = of->locals.show_secrets,
		.stopped = of->all_stopped,
		.until_ns = clock_ns(CLOCK_MONOTONIC) + of->locals.level * LOCALS_NS,
	};

	/* Values that may change meanwhile are read twice. */
	open_memory(&m, of, of->all_stopped);
	size = dump_locals_read(&values, stack, out, DUMP_LOCALS_MAX);
	close_memory(&m);
	if (of->stop.what != DUMP_NOT_STOPPED || (proved && slept_since(of, state)))
		return size;
	if (walk(of, &running, false, &again, NULL))
		return 0;
	size = dump_locals_keep_same(out, size, stack, &again);
	free(again.frames);
	return size;
}

/* Reads the locks of a thread whose stack was proved. */
static void read_locks(const struct dump_stack_of *of, const struct walk_stack *stack, const struct dump_state *state,
		       struct dump_locks *out)
{
	struct memory m;
	struct walk_stack again;
	const struct py_values_of values = {
		.memory = &m.any,
		.layout = &of->layout,
		.runtime = &of->runtime,
		.until_ns = clock_ns(CLOCK_MONOTONIC) + LOCKS_NS,
	};

	open_memory(&m, of, of->stop.what != DUMP_NOT_STOPPED || !is_running(state));
	dump_locks_read(&values, stack, state->wait.state == PYBPF_STATE_LOCK ? state->futex : 0, out);
	close_memory(&m);
	if (of->stop.what != DUMP_NOT_STOPPED || slept_since(of, state))
		return;
	if (walk(of, &running, false, &again, NULL)) {
		memset(out, 0, sizeof(*out));
		return;
	}
	dump_locks_keep_same(out, stack, &again);
	free(again.frames);
}

int dump_serve_stack(void *state, const void *question, size_t question_size, void *answer, size_t *size)
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
	/* A list of thread states can lead to memory that was given back meanwhile. */
	for (int i = 0; i < ATTEMPTS && !proved && (!err || err == -EFAULT); i++) {
		if (i && clock_ns(CLOCK_MONOTONIC) > until_ns)
			break;
		free(stack.frames);
		stack = (struct walk_stack){0};
		err = read_once(of, &stack, &out->state, out->facts.exception, &proved);
	}
	if (!err) {
		out->gil = stack.gil;
		out->wants_gil = stack.wants_gil;
		out->tstate = stack.tstate;
		out->task = stack.task;
		out->contexts = stack.contexts;
		out->task_depth = stack.task_depth;
		out->depth = stack.depth;
		out->flags = stack.flags;
		out->facts.interp = stack.interp;
		out->facts.has_exception = stack.exception != 0;
		out->facts.exception_known = stack.exception_known;
		out->facts.collection = stack.collection;
		out->facts.is_moving = !proved;
		if (out->facts.is_moving) {
			out->facts.has_exception = out->facts.exception_known = false;
			out->facts.collection = PYBPF_COLLECTION_UNKNOWN;
		}
		out->facts.is_interp_unsure = cpython_facts(&of->layout)->threads->is_interp_unsure;
		read_thread(of, out);
		if (proved)
			read_locks(of, &stack, &out->state, &out->locks);
		memcpy(out->frames, stack.frames, pybpf_kept_frames(stack.depth) * sizeof(*stack.frames));
		if (of->locals.level)
			out->locals_size = (uint32_t)read_locals(of, &stack, &out->state, proved,
								 out->frames + pybpf_kept_frames(stack.depth));
		*size = size_of(out);
	}
	free(stack.frames);
	return err;
}

static bool is_sound(const struct answer *answer, size_t size)
{
	return size >= offsetof(struct answer, frames) && size == size_of(answer) &&
	       answer->locals_size <= DUMP_LOCALS_MAX && answer->locks.nr_held <= DUMP_LOCKS_MAX &&
	       answer->state.wait.state < PYBPF_NR_STATES && memchr(answer->name, '\0', sizeof(answer->name)) &&
	       memchr(answer->facts.exception, '\0', sizeof(answer->facts.exception)) &&
	       answer->facts.collection <= PYBPF_COLLECTION_OWN;
}

static int take_answer(const struct answer *answer, struct dump_stack *out)
{
	size_t kept = pybpf_kept_frames(answer->depth) * sizeof(*out->walk.frames);

	*out = (struct dump_stack){
		.state = answer->state,
		.locks = answer->locks,
		.facts = answer->facts,
		.walk = {.depth = answer->depth,
			 .flags = answer->flags,
			 .gil = answer->gil,
			 .wants_gil = answer->wants_gil,
			 .tstate = answer->tstate,
			 .task = answer->task,
			 .contexts = answer->contexts,
			 .task_depth = answer->task_depth,
			 .frames = malloc(kept ? kept : 1)},
	};
	memcpy(out->name, answer->name, sizeof(out->name));
	out->locals.bytes = malloc(answer->locals_size + 1u);
	if (!out->walk.frames || !out->locals.bytes)
		return -ENOMEM;
	memcpy(out->walk.frames, answer->frames, kept);
	memcpy(out->locals.bytes, (const char *)answer->frames + kept, answer->locals_size);
	out->locals.size = answer->locals_size;
	return 0;
}

int dump_read_stack(const struct dump_stack_of *of, struct dump_stack *out)
{
	struct answer *answer = malloc(ANSWER_MAX);
	size_t size;
	int err = -ENOMEM;

	*out = (struct dump_stack){0};
	if (answer)
		err = helper_call(dump_serve_stack, (struct helper_subject){.pid = of->pid}, of, sizeof(*of), answer,
				  ANSWER_MAX, &size, PATIENCE_S);
	if (!err)
		err = is_sound(answer, size) ? take_answer(answer, out) : -EPROTO;
	free(answer);
	return err;
}
