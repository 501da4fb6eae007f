// SPDX-License-Identifier: Apache-2.0
/* Compiles the search of bpf/native_search.h for user space. */
#include "native/walker.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/remote.h"

/* As a read takes a question to a helper. */
#define NATIVE_CHUNK 4096
#include "native_search.h"

/* Pages that are kept, each in a place of its own: the threads of a process are in the same few functions. */
#define PAGES_KEPT 256

struct kept_page {
	bool is_there;
	uint32_t number;
	struct pybpf_native_page page;
};

_Static_assert(NATIVE_WALKER_REGISTERS == NATIVE_REGISTERS, "both are those of struct pt_regs");

struct native_walker {
	struct native_scratch scratch;
	native_walker_read_page *read_page;
	void *arg;
	pid_t pid;
	enum pybpf_native_exact exact;
	struct kept_page pages[PAGES_KEPT];
	struct native_place places[PYBPF_NATIVE_FRAMES];
};

static const struct pybpf_native_page *native_page(const struct native_search *n, __u32 number)
{
	struct native_walker *w =
		(struct native_walker *)((char *)(uintptr_t)n - offsetof(struct native_walker, scratch.search));
	struct kept_page *kept = &w->pages[number % PAGES_KEPT];

	if (kept->is_there && kept->number == number)
		return &kept->page;
	kept->is_there = !w->read_page(w->arg, number, &kept->page);
	kept->number = number;
	return kept->is_there ? &kept->page : NULL;
}

static int native_read(struct native_scratch *n, void *dst, __u32 size, __u64 addr)
{
	const struct native_walker *w =
		(const struct native_walker *)((char *)n - offsetof(struct native_walker, scratch));

	return remote_read(w->pid, addr, dst, size);
}

static __u32 native_exact(const struct native_scratch *n)
{
	const struct native_walker *w =
		(const struct native_walker *)((const char *)n - offsetof(struct native_walker, scratch));

	return w->exact;
}

struct native_walker *native_walker_new(native_walker_read_page *read_page, void *arg, enum pybpf_native_exact exact)
{
	struct native_walker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->read_page = read_page;
	w->arg = arg;
	w->exact = exact;
	return w;
}

void native_walker_free(struct native_walker *w)
{
	free(w);
}

void native_walker_forget_pages(struct native_walker *w)
{
	for (size_t i = 0; i < PAGES_KEPT; i++)
		w->pages[i].is_there = false;
}

void native_walker_follow(struct native_walker *w, const struct native_thread *thread,
			  const struct pybpf_native_list *list, struct native_walked *out)
{
	struct native_scratch *n = &w->scratch;

	w->pid = thread->pid;
	n->registers = (struct native_registers){.pc = thread->pc, .sp = thread->sp, .bp = thread->bp};
	if (thread->all) {
		memcpy(n->registers.all, thread->all, NATIVE_REGISTERS * sizeof(*thread->all));
		n->registers.is_innermost = 1;
	}
	native_begin(n);
	if (n->registers.pc && list) {
		n->search.list = *list;
		do {
			if (n->nr < PYBPF_NATIVE_FRAMES)
				w->places[n->nr] = (struct native_place){n->registers.pc, n->exact};
		} while (!native_next(n));
	}
	*out = (struct native_walked){.frames = (const uint64_t *)n->frames,
				      .places = w->places,
				      .count = n->nr,
				      .end = n->end,
				      .hash = walk_mix(n->hash, n->end)};
}
