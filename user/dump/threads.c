// SPDX-License-Identifier: Apache-2.0
/* Lists the thread states of interpreters, and asks the C library's structs for the TIDs of their threads. */
#include "dump/threads.h"

#include <errno.h>

/* Bounds for lists that are damaged, or change while they are read. */
#define MAX_INTERPRETERS 256
#define MAX_THREADS      PYBPF_MAX_THREADS

struct by_tid {
	pid_t inside;
	uint32_t index;
};

static uint64_t read_pointer(const struct walk_memory *memory, uint64_t addr)
{
	uint64_t value;

	return memory->read(memory->source, addr, &value, sizeof(value)) ? 0 : value;
}

void dump_known_init(struct dump_known_list *list)
{
	*list = (struct dump_known_list){.nr_interps = 0};
	intern_init(&list->threads, sizeof(struct dump_known), sizeof(uint64_t));
	intern_init(&list->inside, sizeof(struct by_tid), sizeof(pid_t));
}

void dump_known_free(struct dump_known_list *list)
{
	intern_free(&list->threads);
	intern_free(&list->inside);
}

static int add_thread(struct dump_known_list *list, const struct dump_known *known, uint64_t tstate)
{
	struct dump_known *there;
	bool fresh;
	uint32_t i;

	/* 3.12+ makes a thread state before it gives it to a thread. */
	if (!known->thread_id)
		return 0;
	i = intern_add(&list->threads, known, &fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	there = dump_known_at(list, i);
	if (there->runtime != known->runtime)
		return 0;
	/*
	 * A thread that runs code of another interpreter has a state in each. The list of interpreters begins with the
	 * newest (PyInterpreterState_New()), and the thread's own, which has its name, is the oldest: to the others it
	 * came later, and if they have a name for it, it is Dummy-1 or, to 3.12, MainThread.
	 */
	there->interp = known->interp;
	if (there->states.count < WALK_STATES)
		there->states.tstates[there->states.count] = tstate;
	there->states.count++;
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

			err = add_thread(list, &known, tstate);
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

static pid_t read_tid(const struct walk_memory *memory, const struct intern *inside, uint64_t addr)
{
	pid_t tid;

	if (memory->read(memory->source, addr, &tid, sizeof(tid)) || intern_find(inside, &tid) == INTERN_NONE)
		return 0;
	return tid;
}

static void find_tids(const struct walk_memory *memory, const struct intern *inside, struct dump_known_list *list)
{
	size_t best = 0;

	/* The C library is the one whose offset gives most threads a TID of the process. */
	for (size_t at = 0; at < sizeof(tid_offsets) / sizeof(*tid_offsets); at++) {
		size_t found = 0;

		for (uint32_t i = 0; i < list->threads.count; i++)
			found += read_tid(memory, inside, dump_known_at(list, i)->thread_id + tid_offsets[at]) != 0;
		if (found <= best)
			continue;
		best = found;
		for (uint32_t i = 0; i < list->threads.count; i++) {
			struct dump_known *known = dump_known_at(list, i);

			known->inside = read_tid(memory, inside, known->thread_id + tid_offsets[at]);
		}
	}
}

int dump_find_tids(const struct walk_memory *memory, const pid_t *inside, size_t count, struct dump_known_list *list)
{
	struct intern tids = INTERN_INIT(sizeof(pid_t), sizeof(pid_t));
	bool fresh;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = intern_add(&tids, &inside[i], &fresh) == INTERN_NONE ? -ENOMEM : 0;
	if (!err)
		find_tids(memory, &tids, list);
	intern_free(&tids);
	return err;
}

int dump_index_tids(struct dump_known_list *list)
{
	bool fresh;

	for (uint32_t i = 0; i < list->threads.count; i++) {
		const struct by_tid entry = {.inside = dump_known_at(list, i)->inside, .index = i};

		if (entry.inside && intern_add(&list->inside, &entry, &fresh) == INTERN_NONE)
			return -ENOMEM;
	}
	return 0;
}

const struct dump_known *dump_known_by_tid(const struct dump_known_list *list, pid_t inside)
{
	uint32_t i = intern_find(&list->inside, &inside);

	return i == INTERN_NONE ? NULL : dump_known_at(list, ((struct by_tid *)intern_item(&list->inside, i))->index);
}
