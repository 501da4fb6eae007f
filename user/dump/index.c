// SPDX-License-Identifier: Apache-2.0
/* A table for each thing that threads are looked for by. */
#include "dump/index.h"

#include <errno.h>

#include "dump/dump.h"

struct entry {
	uint64_t key;
	uint32_t first, last; /* threads that have it */
	uint32_t count;
	uint32_t pad;
};

static int add(struct dump_index *index, enum dump_index_by by, uint64_t key, size_t thread)
{
	const struct entry fresh = {.key = key, .first = (uint32_t)thread, .last = UINT32_MAX};
	struct intern *table = &index->tables[by];
	struct entry *entry;
	bool is_fresh;
	uint32_t at;

	if (!key)
		return 0;
	at = intern_add(table, &fresh, &is_fresh);
	if (at == INTERN_NONE)
		return -ENOMEM;
	entry = intern_item(table, at);
	/* A thread may name a lock twice. */
	entry->count += entry->last != thread;
	entry->last = (uint32_t)thread;
	return 0;
}

static int add_thread(struct dump_index *index, const struct dump_thread *thread, size_t i)
{
	int err = add(index, DUMP_BY_TID, (uint64_t)thread->tid, i) ?:
		  add(index, DUMP_BY_INSIDE, (uint64_t)thread->inside, i) ?:
		  add(index, DUMP_BY_IDENT, thread->ident, i) ?:
		  add(index, DUMP_BY_TSTATE, thread->tstate, i);

	if (!err && thread->has_gil)
		err = add(index, DUMP_BY_GIL_HELD, thread->gil, i);
	/* Their interpreter may be unknown, 0, which is one as well. */
	if (!err && thread->is_python)
		err = add(index, DUMP_BY_INTERPRETER, thread->facts.interp + 1, i);
	for (uint32_t k = 0; k < thread->locks.nr_held && !err; k++)
		err = add(index, thread->locks.unsure[k] ? DUMP_BY_LOCK_UNSURE : DUMP_BY_LOCK_HELD,
			  thread->locks.held[k], i);
	return err;
}

int dump_index_make(struct dump_process *process)
{
	int err = 0;

	dump_index_free(&process->index);
	for (size_t i = 0; i < DUMP_INDEXES; i++)
		intern_init(&process->index.tables[i], sizeof(struct entry), sizeof(uint64_t));
	for (size_t i = 0; i < process->count && !err; i++)
		err = add_thread(&process->index, &process->threads[i], i);
	return err;
}

void dump_index_free(struct dump_index *index)
{
	for (size_t i = 0; i < DUMP_INDEXES; i++)
		intern_free(&index->tables[i]);
}

size_t dump_index_find(const struct dump_index *index, enum dump_index_by by, uint64_t key, size_t *count)
{
	uint64_t wanted = by == DUMP_BY_INTERPRETER ? key + 1 : key;
	uint32_t at = wanted ? intern_find(&index->tables[by], &wanted) : INTERN_NONE;
	const struct entry *entry = at == INTERN_NONE ? NULL : intern_item(&index->tables[by], at);

	*count = entry ? entry->count : 0;
	return entry ? entry->first : DUMP_INDEX_NONE;
}
