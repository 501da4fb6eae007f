// SPDX-License-Identifier: Apache-2.0
/* Reads the stacks of threads that sleep when the run begins, from their memory. */
#include "session/sleepers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernel/procs.h"
#include "kernel/waits.h"
#include "session/internal.h"
#include "symbols/walk_user.h"

void session_sleepers_init(struct session_sleepers *l)
{
	memset(l, 0, sizeof(*l));
	intern_init(&l->stacks, sizeof(struct session_sleeper), offsetof(struct session_sleeper, gil));
}

void session_sleepers_free(struct session_sleepers *l)
{
	intern_free(&l->stacks);
	free(l->found);
	session_sleepers_init(l);
}

static void note_found(const struct pybpf_thread_found *found, void *arg)
{
	struct session *s = arg;
	struct session_sleepers *l = &s->waits.sleepers;

	if (array_reserve(&l->found, &l->found_room, l->nr_found + 1, sizeof(*l->found))) {
		s->error = s->error ?: -ENOMEM;
		return;
	}
	l->found[l->nr_found++] = *found;
}

int session_sleepers_find(struct session *s)
{
	int err = kernel_find_threads(s->kernel, note_found, s) ?: s->error;

	if (!err)
		session_sleepers_look(s);
	return err;
}

/* Returns whether the thread still sleeps as it did when the run began, so that its stack was the same all the time. */
static bool still_sleeps(const struct session *s, const struct pybpf_thread_found *found)
{
	struct pybpf_thread thread;

	return !kernel_get_thread(s->kernel, found->pid, &thread) && !thread.moved && !thread.woken_ns &&
	       thread.proc_id == found->proc_id && thread.state != PYBPF_STATE_RUNNING;
}

/*
 * Walks a sleeping thread of a runtime. Returns its stack as the kernel would send it, or NULL if there is none;
 * *earlier: whether it waits for the GIL, or has it.
 */
static struct pybpf_stack_event *walk_sleeper(const struct session *s, const struct pybpf_thread_found *found,
					      pid_t pid, const struct pybpf_runtime *runtime, uint32_t index,
					      struct session_sleeper *earlier)
{
	struct pybpf_stack_event *event;
	struct walk_memory memory;
	struct walk_stack stack;
	struct procfs_call call = {.stack_pointer = 0};

	walk_process_memory(&memory, &pid);
	if (procfs_read_call(pid, found->pid, &call))
		call.stack_pointer = 0;
	if (walk_thread(&memory, kernel_get_layout(s->kernel, runtime->layout), runtime, found->thread_id, found->futex,
			call.stack_pointer, &stack))
		return NULL;
	earlier->gil = stack.wants_gil;
	earlier->with_gil = stack.has_gil && !stack.wants_gil && s->options.mode == SESSION_GIL;
	event = walk_stack_event(&stack, found->proc_id, index);
	free(stack.frames);
	return event;
}

/* Ids for stacks that user space has walked: the kernel's are hashes, and never have these upper bits but by chance. */
#define OWN_STACK_IDS 0xf00d000000000000u

static int keep_earlier(struct session *s, struct pybpf_stack_event *event, struct session_sleeper *earlier)
{
	bool fresh;
	int err;

	event->stack_id = OWN_STACK_IDS + s->waits.sleepers.stacks.count;
	earlier->stack_id = event->stack_id;
	err = stacks_add(s->stacks, event, event->event.size);
	if (err)
		return err;
	return intern_add(&s->waits.sleepers.stacks, earlier, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

/* Returns whether the thread is done with: its stack was read, or never will be. */
static bool look_at_thread(struct session *s, const struct pybpf_thread_found *found)
{
	const struct processes_record *process = processes_find_record(s->processes, found->proc_id);
	struct pybpf_stack_event *event = NULL;
	struct session_sleeper earlier = {.proc_id = found->proc_id, .tid = found->tid};
	struct pybpf_proc entry;

	if (!process || process->ended || !still_sleeps(s, found))
		return true;
	if (process->state != PROCESSES_PYTHON)
		return process->state != PROCESSES_LOOKING;
	if (kernel_get_process(s->kernel, process->pid, &entry) || entry.proc_id != found->proc_id)
		return true;
	for (uint32_t i = 0; i < entry.nr_runtimes && i < PYBPF_MAX_RUNTIMES && !event; i++) {
		if (!entry.runtimes[i].refused)
			event = walk_sleeper(s, found, process->pid, &entry.runtimes[i], i, &earlier);
	}
	/* If it was woken meanwhile, what was read is no stack of its sleep. */
	if (event && still_sleeps(s, found) && keep_earlier(s, event, &earlier) == -ENOMEM)
		s->error = s->error ?: -ENOMEM;
	free(event);
	return true;
}

void session_sleepers_look(struct session *s)
{
	struct session_sleepers *l = &s->waits.sleepers;
	size_t kept = 0;

	for (size_t i = 0; i < l->nr_found; i++) {
		if (!look_at_thread(s, &l->found[i]))
			l->found[kept++] = l->found[i];
	}
	l->nr_found = kept;
}

const struct session_sleeper *session_sleepers_get(const struct session_sleepers *l, const struct pybpf_wait_key *key)
{
	const struct session_sleeper wanted = {.proc_id = key->proc_id, .tid = key->tid};
	uint32_t i = key->stack_id == PYBPF_STACK_ID_EARLIER ? intern_find(&l->stacks, &wanted) : INTERN_NONE;

	return i == INTERN_NONE ? NULL : intern_item(&l->stacks, i);
}
