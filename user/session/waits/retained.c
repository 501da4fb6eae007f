// SPDX-License-Identifier: Apache-2.0
/* Chooses which stacks and names of waits are kept: those of threads that sleep now may be needed for months. */
#include "session/waits/retained.h"

#include <errno.h>

#include "base/intern.h"
#include "kernel/waits.h"
#include "session/internal.h"
#include "session/waits/initial_stacks_read.h"

struct keeping {
	struct session *session;
	struct intern *stacks; /* ids */
	struct intern initial; /* struct session_initial_stack */
	struct intern waits;   /* ids of names */
};

static int keep(struct intern *table, const void *item)
{
	bool fresh;

	return intern_add(table, item, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

static int keep_stack(struct keeping *k, uint64_t id)
{
	return id < PYBPF_STACK_ID_STACKS ? 0 : keep(k->stacks, &id);
}

static int keep_name(struct keeping *k, uint64_t wait_id)
{
	uint64_t name = wait_id & ~PYBPF_WAIT_WITH_GIL;

	return keep(&k->waits, &name);
}

static int keep_wait(struct keeping *k, const struct pybpf_wait_key *key)
{
	const struct session_initial_stack *initial =
		session_initial_stacks_get(&k->session->waits.initial_stacks, key);
	int err = initial ? keep(&k->initial, initial) ?: keep_stack(k, initial->stack_id) : 0;

	err = err ?: keep_stack(k, key->stack_id) ?: keep_stack(k, key->holder_stack_id);
	return err ?: keep_name(k, key->wait_id);
}

static int keep_thread(const struct pybpf_thread *thread, void *arg)
{
	struct session_part present[SESSION_PRESENTS];
	int err = keep_name(arg, thread->ready_id);

	session_parts_of_thread(thread, 0, 0, present);
	for (int i = 0; i < SESSION_PRESENTS && !err; i++)
		err = keep_wait(arg, &present[i].key);
	return err;
}

static int keep_time(const struct pybpf_wait_key *key, const struct pybpf_wait_time *time, void *arg)
{
	(void)time;
	return keep_wait(arg, key);
}

/*
 * Forgets the names that no wait has. First the kernel does, and sends a name again when it is met next; what was about
 * to be noted with it meanwhile has a name still, until this is called the next time.
 */
static void forget_names(struct keeping *k)
{
	struct intern *names = &k->session->waits.names;

	for (uint32_t i = names->count; i-- > 0;) {
		struct session_named_wait *named = intern_item(names, i);

		if (intern_find(&k->waits, &named->wait_id) != INTERN_NONE) {
			named->forgotten = 0;
		} else if (named->forgotten) {
			intern_remove(names, i);
		} else {
			kernel_forget_wait(k->session->kernel, named->wait_id);
			named->forgotten = 1;
		}
	}
}

/* Keeps the first stacks of all threads as long as some are still read, as these may be the same. */
static int keep_known(struct keeping *k)
{
	const struct session_initial_stacks *l = &k->session->waits.initial_stacks;
	int err = 0;

	for (uint32_t i = 0; i < l->known.count && !err; i++)
		err = keep_stack(k, ((const struct session_known_stack *)intern_item(&l->known, i))->stack_id);
	return err;
}

int session_waits_keep_stacks(struct session *s, struct intern *ids)
{
	struct session_initial_stacks *l = &s->waits.initial_stacks;
	const struct session_parts *undecided = &s->waits.undecided;
	struct keeping k = {.session = s, .stacks = ids};
	int err;

	intern_init(&k.initial, l->stacks.item_size, l->stacks.key_size);
	intern_init(&k.waits, sizeof(uint64_t), sizeof(uint64_t));
	/* In this order: the wait of a thread that wakes up meanwhile is in the map of times then. */
	err = kernel_visit_threads(s->kernel, keep_thread, &k);
	err = err ?: kernel_visit_wait_times(s->kernel, keep_time, &k);
	for (size_t i = 0; i < undecided->count && !err; i++)
		err = keep_wait(&k, &undecided->items[i].key);
	if (!err)
		forget_names(&k);
	if (l->nr_processes) {
		err = err ?: keep_known(&k);
		intern_free(&k.initial);
	} else if (!err) {
		intern_free(&l->known);
		intern_free(&l->stacks);
		l->stacks = k.initial;
	}
	intern_free(&k.waits);
	return err;
}
