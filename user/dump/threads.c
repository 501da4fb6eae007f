// SPDX-License-Identifier: Apache-2.0
/* Lists the thread states of interpreters, and asks the C library's structs for the TIDs of their threads. */
#include "dump/threads.h"

#include <errno.h>

#include "base/array.h"

/* Bounds for lists that are damaged, or change while they are read. */
#define MAX_INTERPRETERS 256
#define MAX_THREADS      PYBPF_MAX_THREADS

static uint64_t read_pointer(const struct walk_memory *memory, uint64_t addr)
{
	uint64_t value;

	return memory->read(memory->source, addr, &value, sizeof(value)) ? 0 : value;
}

static struct dump_known *find_thread(const struct dump_known_list *list, uint64_t thread_id)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].thread_id == thread_id)
			return &list->items[i];
	}
	return NULL;
}

static int add_thread(struct dump_known_list *list, const struct dump_known *known)
{
	struct dump_known *there = find_thread(list, known->thread_id);

	/*
	 * A thread that runs code of another interpreter has a state in each. The list of interpreters begins with the
	 * newest (PyInterpreterState_New()), and the thread's own, which has its name, is the oldest: to the others it
	 * came later, and if they have a name for it, it is Dummy-1 or, to 3.12, MainThread.
	 */
	if (there && there->runtime == known->runtime)
		there->interp = known->interp;
	/* 3.12+ makes a thread state before it gives it to a thread. */
	if (!known->thread_id || there)
		return 0;
	if (array_reserve(&list->items, &list->room, list->count + 1, sizeof(*list->items)))
		return -ENOMEM;
	list->items[list->count++] = *known;
	return 0;
}

int dump_list_threads(const struct walk_memory *memory, const struct pybpf_layout *layout,
		      const struct pybpf_runtime *runtime, uint32_t index, struct dump_known_list *list)
{
	uint64_t interp = read_pointer(memory, runtime->interp_head);
	unsigned seen = 0;
	int err = 0;

	for (unsigned i = 0; interp && i < MAX_INTERPRETERS && !err; i++) {
		uint64_t tstate = read_pointer(memory, interp + layout->interp_threads_head);

		list->nr_interps++;
		list->main_interps[index] = interp;
		for (; tstate && seen < MAX_THREADS && !err; seen++) {
			const struct dump_known known = {
				.thread_id = read_pointer(memory, tstate + layout->tstate_thread_id),
				.interp = interp,
				.runtime = index,
			};

			err = add_thread(list, &known);
			tstate = read_pointer(memory, tstate + layout->tstate_next);
		}
		interp = read_pointer(memory, interp + layout->interp_next);
	}
	return err;
}

/*
 * Where a thread's struct has its TID, from pthread_self() on. glibc (nptl/descr.h): behind a header of 704 bytes on
 * x86-64, of 192 on arm64, and a list's two pointers; musl (src/internal/pthread_impl.h): behind six words on x86-64,
 * four on arm64.
 */
static const uint16_t tid_offsets[] = {
#if defined(__x86_64__)
	720,
	48,
#else
	208,
	32,
#endif
};

static pid_t read_tid(const struct walk_memory *memory, const pid_t *inside, size_t count, uint64_t addr)
{
	pid_t tid;

	if (memory->read(memory->source, addr, &tid, sizeof(tid)))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (inside[i] == tid)
			return tid;
	}
	return 0;
}

void dump_find_tids(const struct walk_memory *memory, const pid_t *inside, size_t count, struct dump_known_list *list)
{
	size_t best = 0;

	/* The C library is the one whose offset gives most threads a TID of the process. */
	for (size_t at = 0; at < sizeof(tid_offsets) / sizeof(*tid_offsets); at++) {
		size_t found = 0;

		for (size_t i = 0; i < list->count; i++)
			found += read_tid(memory, inside, count, list->items[i].thread_id + tid_offsets[at]) != 0;
		if (found <= best)
			continue;
		best = found;
		for (size_t i = 0; i < list->count; i++)
			list->items[i].inside =
				read_tid(memory, inside, count, list->items[i].thread_id + tid_offsets[at]);
	}
}
