/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which asyncio task a thread of Python 3.7 to 3.13 runs, found as asyncio.current_task() does: the thread has a
 * running event loop, and the module _asyncio a dict of the tasks that all loops run. No other thread changes what is
 * there for this thread's loop. maps.bpf.h includes this before the walk.
 */
#ifndef PYBPF_CURRENT_TASK_BPF_H
#define PYBPF_CURRENT_TASK_BPF_H

#include "compat.bpf.h"

/* Most entries of a thread's dict that are looked at: those of deleted keys count. */
#define DICT_ENTRIES 64
/* Most places where an object is looked for by its hash: more than one in a million is never as far from its first. */
#define DICT_PROBES 32
/* Logarithm of the most places of a table. */
#define DICT_LOG_SIZE 24

/* Eight characters as a word of memory. */
#define EIGHT(a, b, c, d, e, f, g, h)                                                                                  \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | (__u64)(f) << 40 |    \
	 (__u64)(g) << 48 | (__u64)(h) << 56)

static __always_inline __u64 read_u64(__u64 addr)
{
	__u64 value = 0;

	return compat_read_user(&value, sizeof(value), addr) ? 0 : value;
}

/* Returns the bytes of an object before its own fields. */
static __always_inline __u32 head_size(const struct pybpf_layout *l)
{
	return l->code_type + (__u32)sizeof(__u64);
}

/* Returns whether the string is the one by which a thread's dict has the running loop. */
static __always_inline int is_loop_key(const struct pybpf_layout *l, __u64 string)
{
	__u64 text[4] = {};

	return !compat_read_user(text, sizeof(text), string + l->str_ascii_data) &&
	       text[0] == EIGHT('_', '_', 'a', 's', 'y', 'n', 'c', 'i') &&
	       text[1] == EIGHT('o', '_', 'r', 'u', 'n', 'n', 'i', 'n') &&
	       text[2] == EIGHT('g', '_', 'e', 'v', 'e', 'n', 't', '_') &&
	       text[3] << 8 == EIGHT(0, 'l', 'o', 'o', 'p', '_', '_', 0);
}

/* The table of a dict. */
struct dict_table {
	__u64 entries; /* their address, or 0 */
	__u64 indices; /* of entries, by hash */
	__u64 mask;    /* the number of indices, less 1 */
	__u32 index_size;
	__u32 count; /* of entries */
	__u32 size;  /* of an entry: hash, key, value; the hash is left out where all keys are strings (3.11+) */
};

/* Finds the parts of a table of keys (3.7 to 3.13; struct _dictkeysobject). */
static __always_inline void open_table(const struct pybpf_layout *l, __u64 keys, struct dict_table *out)
{
	__u64 head[5] = {}, size;

	if (!keys || compat_read_user(head, sizeof(head), keys))
		return;
	if (l->has_log2_sizes) {
		out->count = head[3];
		out->indices = keys + PYBPF_KEYS_INDICES;
		out->size = (head[1] >> 16 & 0xff) == PYBPF_KEYS_GENERAL ? PYBPF_ENTRY_HASHED : PYBPF_ENTRY;
		size = 1ULL << (head[1] & 63);
	} else {
		out->count = head[4];
		out->indices = keys + PYBPF_KEYS_INDICES_310;
		out->size = PYBPF_ENTRY_HASHED;
		size = head[1];
	}
	if (!size || size > 1ULL << DICT_LOG_SIZE)
		return;
	out->mask = size - 1;
	out->index_size = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
	out->entries = out->indices + size * out->index_size;
}

/* Returns the index of an entry at a place of the table; -1: none was ever there, -2: it was deleted. */
static __always_inline __s32 read_index(const struct dict_table *table, __u64 place)
{
	__s32 index = -1;

	if (compat_read_user(&index, sizeof(index), table->indices + place * table->index_size))
		return -1;
	return table->index_size == 1 ? (__s8)index : table->index_size == 2 ? (__s16)index : index;
}

/* Reads an entry's key and value. Returns 0, or negative errno. */
static __always_inline long read_entry(const struct dict_table *table, __u32 index, __u64 entry[2])
{
	return compat_read_user(entry, 2 * sizeof(*entry),
				table->entries + (__u64)table->size * (index + 1) - 2 * sizeof(*entry));
}

/* Opens the table of a dict. Returns the address of its keys, or 0. */
static __always_inline __u64 open_dict(const struct pybpf_layout *l, __u64 dict, struct dict_table *out)
{
	__u64 keys = read_u64(dict + head_size(l) + PYBPF_DICT_KEYS);

	open_table(l, keys, out);
	/* Only dicts of objects' attributes have ma_values. */
	return !out->entries || read_u64(dict + head_size(l) + PYBPF_DICT_VALUES) ? 0 : keys;
}

/* If the dict has another table by now, what was read may have been anything. */
static __always_inline __u64 value_if_same(const struct pybpf_layout *l, __u64 dict, __u64 keys, __u64 value)
{
	return read_u64(dict + head_size(l) + PYBPF_DICT_KEYS) == keys ? value : 0;
}

/*
 * Returns the value of a key that is this object, whose hash is its address; 0 if there is none. Other threads may
 * change the dict meanwhile: then none may be found, but never another key's. A global function with numbers for
 * arguments (kernel 5.6), as the next: the verifier checks it once, and not for each path that leads to it.
 */
__noinline __u64 find_object_in_dict(__u32 layout, __u64 dict, __u64 object)
{
	const struct pybpf_layout *l = layout_get(layout);
	/* _Py_HashPointer() and lookdict() of Objects/dictobject.c. */
	__u64 hash = object >> 4 | object << 60, perturb = hash, place = hash, keys, value = 0;
	struct dict_table table = {};

	keys = l ? open_dict(l, dict, &table) : 0;
	if (!keys)
		return 0;
	for (int i = 0; i < DICT_PROBES; i++) {
		__u64 entry[2] = {};
		__s32 index = read_index(&table, place & table.mask);

		if (index == -1)
			break;
		if (index >= 0 && (__u32)index < table.count && !read_entry(&table, index, entry) &&
		    entry[0] == object) {
			value = entry[1];
			break;
		}
		perturb >>= 5;
		place = (place & table.mask) * 5 + perturb + 1;
	}
	return value_if_same(l, dict, keys, value);
}

/* Likewise, of the string of is_loop_key. */
__noinline __u64 find_loop_in_dict(__u32 layout, __u64 dict)
{
	const struct pybpf_layout *l = layout_get(layout);
	struct dict_table table = {};
	__u64 keys = l ? open_dict(l, dict, &table) : 0, value = 0;

	if (!keys)
		return 0;
	for (__u32 i = 0; i < DICT_ENTRIES && i < table.count; i++) {
		__u64 entry[2] = {};

		if (read_entry(&table, i, entry))
			break;
		if (entry[0] && is_loop_key(l, entry[0])) {
			value = entry[1];
			break;
		}
	}
	return value_if_same(l, dict, keys, value);
}

/* Returns the task that the running loop of a thread runs, or 0. tasks: the dict of the tasks that run. */
__noinline __u64 current_task(__u32 layout, __u64 tasks, __u64 tstate)
{
	const struct pybpf_layout *l = layout_get(layout);
	__u64 loop, task;

	if (!l)
		return 0;
	if (l->tstate_dict) {
		loop = find_loop_in_dict(layout, read_u64(tstate + l->tstate_dict));
	} else {
		/* The other one of these is no event loop, and no key in the dict of tasks. */
		loop = read_u64(tstate + l->tstate_loop[0]);
		task = loop ? find_object_in_dict(layout, tasks, loop) : 0;
		if (task)
			return task;
		loop = read_u64(tstate + l->tstate_loop[1]);
	}
	/* PyRunningLoopHolder.rl_loop */
	if (loop && l->has_loop_holder)
		loop = read_u64(loop + head_size(l));
	return loop ? find_object_in_dict(layout, tasks, loop) : 0;
}

#endif
