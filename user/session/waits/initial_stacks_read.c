// SPDX-License-Identifier: Apache-2.0
/* Asks a helper for the stacks of sleeping threads, and puts them into the profile. */
#include "session/waits/initial_stacks_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "discovery/ask_threads.h"
#include "kernel/procs.h"
#include "kernel/waits.h"
#include "session/internal.h"
#include "session/native/native.h"
#include "session/sources/source_file.h"
#include "session/waits/comm.h"
#include "symbols/walk/walk_user.h"

/* Longest time of one question. */
#define QUESTION_S 0.005
/*
 * Time in which the code objects of an answer are taken: as the path of each may be looked at, some hundreds take long
 * where a file system is slow. The rest comes with the next answer.
 */
#define CODES_S 0.05

/*
 * Finds the thread in the kernel's map. Returns whether it still sleeps as it did when the run began, so that its stack
 * was the same all the time.
 */
static bool find_thread(const struct session *s, const struct pybpf_thread_found *found, struct pybpf_thread *thread)
{
	return !kernel_get_thread(s->kernel, found->pid, thread) && !thread->moved && !thread->woken_ns &&
	       thread->id.proc_id == found->proc_id && thread->state != PYBPF_STATE_RUNNING;
}

bool session_initial_still_sleeps(const struct session *s, const struct pybpf_thread_found *found)
{
	struct pybpf_thread thread;

	return find_thread(s, found, &thread);
}

/* Ids for stacks that user space has walked: the kernel's are hashes, and never have these upper bits but by chance. */
#define OWN_STACK_IDS 0xf00d000000000000u

/* A question, and the threads that it is about. */
struct asking {
	struct session *session;
	struct ask_threads asked;
	size_t at[ASK_THREADS_MAX]; /* their places in session_initial_stacks.found */
	size_t scanned;             /* the place after the last one */
	size_t answered;
	double codes_until; /* CLOCK_MONOTONIC seconds; 0: no code object has come yet */
};

/* Puts native frames behind those of Python. Returns the event in its new place; NULL: without memory, it is freed. */
static struct pybpf_stack_event *add_native(struct pybpf_stack_event *event, const struct native_walked *native)
{
	size_t size = event->event.size, more = native->count * sizeof(native->frames[0]);
	struct pybpf_stack_event *bigger = realloc(event, size + more);

	if (!bigger) {
		free(event);
		return NULL;
	}
	if (more)
		memcpy((char *)bigger + size, native->frames, more);
	bigger->nr_native = (uint16_t)native->count;
	bigger->native_end = (uint16_t)native->end;
	bigger->event.size = (uint32_t)(size + more);
	return bigger;
}

/* Adds the stack to the profile's. Returns 0 or -ENOMEM. */
static int add_stack(struct session *s, const struct pybpf_thread_found *found, const struct ask_threads_stack *stack,
		     const struct native_walked *native, uint64_t stack_id)
{
	struct pybpf_stack_event *event =
		walk_stack_event(stack->frames, stack->depth, stack->flags, found->proc_id, stack->runtime);
	int err;

	event = event ? add_native(event, native) : NULL;
	if (!event)
		return -ENOMEM;
	event->stack_id = stack_id;
	if (s->sources)
		source_read_rights((pid_t)found->tid, &event->rights);
	err = stacks_add(s->stacks, event, event->event.size);
	free(event);
	/* -ENOENT: the process is not known any more. */
	return err == -ENOENT ? 0 : err;
}

/* Finds the id of the stack, which is added if no thread of the process had it before. Returns 0 or -ENOMEM. */
static int find_stack(struct session *s, const struct pybpf_thread_found *found, const struct ask_threads_stack *stack,
		      const struct native_walked *native, uint64_t *stack_id)
{
	struct session_initial_stacks *l = &s->waits.initial_stacks;
	const uint8_t *key = siphash_process_key();
	const uint64_t parts[] = {siphash(key, stack->frames, stack->kept * sizeof(*stack->frames)), stack->depth,
				  stack->flags, stack->runtime, native->hash};
	const struct session_known_stack fresh = {.proc_id = found->proc_id,
						  .hash = siphash(key, parts, sizeof(parts)),
						  .stack_id = OWN_STACK_IDS + l->known.count};
	bool is_fresh;
	uint32_t i = intern_add(&l->known, &fresh, &is_fresh);

	if (i == INTERN_NONE)
		return -ENOMEM;
	*stack_id = ((const struct session_known_stack *)intern_item(&l->known, i))->stack_id;
	return is_fresh ? add_stack(s, found, stack, native, *stack_id) : 0;
}

static int take_stack(uint32_t thread, const struct ask_threads_stack *stack, void *arg)
{
	struct asking *asking = arg;
	struct session *s = asking->session;
	struct session_initial_stacks *l = &s->waits.initial_stacks;
	const struct pybpf_thread_found *found = &l->found[asking->at[thread]];
	struct session_initial_stack initial = {
		.proc_id = found->proc_id, .tid = found->tid, .stack_id = PYBPF_STACK_ID_EARLIER};
	struct native_walked native;
	struct pybpf_thread now;
	bool fresh;
	int err = 0;

	if (stack->outcome == ASK_THREADS_TOO_LONG || !session_initial_still_sleeps(s, found))
		return 0;
	session_native_follow(s, found, &native);
	/* If it was woken meanwhile, what was read is no stack of its sleep. */
	if (!find_thread(s, found, &now))
		return 0;
	/* Where there is no room it stays "1 descriptor". */
	if (stack->polled >= 0)
		kernel_note_polled(s->kernel, found->pid, (uint32_t)stack->polled);
	/* At the end there would be no time for all names. */
	session_note_comm(s, &now);
	if (s->options.threads)
		session_thread_names_note(s, &now.id, found->thread_id);
	if (stack->outcome == ASK_THREADS_STACK) {
		initial.gil = stack->wants_gil;
		initial.with_gil = stack->has_gil && !stack->wants_gil && s->options.mode == SESSION_GIL;
		err = find_stack(s, found, stack, &native, &initial.stack_id);
	}
	if (err || intern_add(&l->stacks, &initial, &fresh) == INTERN_NONE)
		return -ENOMEM;
	asking->answered += fresh;
	return 0;
}

/* Returns -ETIME when no more are to be taken of this answer. */
static int take_code(const struct pybpf_code_event *event, size_t size, void *arg)
{
	struct asking *asking = arg;
	double now = clock_s(CLOCK_MONOTONIC);
	int err;

	if (!asking->codes_until)
		asking->codes_until = now + CODES_S;
	else if (now > asking->codes_until)
		return -ETIME;
	err = pysym_add_read_code(asking->session->pysym, event, size);
	return err == -ENOENT ? 0 : err;
}

/* Puts the threads that still sleep into the question. */
static void choose_threads(struct asking *asking, const struct session_initial_process *process)
{
	const struct session_initial_stacks *l = &asking->session->waits.initial_stacks;
	struct ask_threads *asked = &asking->asked;
	size_t i;

	for (i = process->next; i < process->end && asked->count < ASK_THREADS_MAX; i++) {
		const struct pybpf_thread_found *found = &l->found[i];

		if (!session_initial_still_sleeps(asking->session, found))
			continue;
		asking->at[asked->count] = i;
		asked->threads[asked->count++] = (struct ask_thread){.thread_id = found->thread_id,
								     .futex = found->futex,
								     .polled = found->polled,
								     .tid = (int32_t)found->tid};
	}
	asking->scanned = i;
}

/* Returns whether the process's runtimes are known. */
static bool choose_runtimes(struct asking *asking, const struct processes_record *process)
{
	const struct session *s = asking->session;
	struct ask_threads *asked = &asking->asked;
	struct pybpf_proc entry;

	if (kernel_get_process(s->kernel, process->pid, &entry) || entry.proc_id != process->proc_id)
		return false;
	asked->life = process->proc_id;
	asked->pid = process->pid;
	asked->nr_runtimes = entry.nr_runtimes < PYBPF_MAX_RUNTIMES ? entry.nr_runtimes : PYBPF_MAX_RUNTIMES;
	for (uint32_t i = 0; i < asked->nr_runtimes; i++) {
		asked->runtimes[i] = entry.runtimes[i];
		asked->layouts[i] = *kernel_get_layout(s->kernel, entry.runtimes[i].layout);
	}
	return true;
}

int session_initial_stacks_read(struct session *s, struct session_initial_process *process,
				const struct processes_record *record)
{
	struct asking *asking = calloc(1, sizeof(*asking));
	const struct ask_threads_taker taker = {.code = take_code, .stack = take_stack, .arg = asking};
	size_t first = process->next;
	uint32_t done = 0;
	int err = -ESRCH;

	if (!asking)
		return -ENOMEM;
	asking->session = s;
	if (choose_runtimes(asking, record)) {
		choose_threads(asking, process);
		asking->asked.tell_again = process->cut;
		err = asking->asked.count ? discovery_ask_threads(&asking->asked, QUESTION_S, &taker, &done) : 0;
		process->next = done < asking->asked.count ? asking->at[done] : asking->scanned;
		process->cut = err == -ETIME;
		s->waits.initial_stacks.late += process->next - first - asking->answered;
	}
	free(asking);
	/* A signal ends the run. */
	return err == -EINTR || err == -ETIME ? 0 : err;
}
