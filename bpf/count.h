/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Counts a sample by its stack, and decides which CPU sends the stack to user space. Like the walk, it is compiled
 * twice: a unit test runs it on several CPUs in every order, while user space changes the sets.
 *
 * The including file provides counts_of(sets) and stacks_of(sets): the maps for the value of current_sets, which a
 * sample reads once. User space changes that word, waits until all samples that may have read the old value are done,
 * and then takes the counts of the old set, to which no sample adds any more.
 *
 * A stack in map stacks has been sent, or is being sent by the sample that inserted it. If sending fails, the stack is
 * removed, and its next sample sends it. A sample learns this from a look-up in the map, whose cost is saved while
 * unsent_stacks is 0. Therefore unsent_stacks may exceed, but at no moment is less than, the number of stacks that are
 * counted in the set and are not in the map:
 * - a stack is inserted into map stacks before it is counted for the first time, or else unsent_stacks is raised
 * before;
 * - unsent_stacks is raised, for all sets, before a stack is removed: another set may count it as well;
 * - it is lowered after a stack was inserted by a sample that had found it counted already: it had been raised for that
 *   stack;
 * - user space sets it to 0 when the set is empty and no sample uses it. A sample that raised it before that must be
 * done before the set is reused.
 */
#ifndef PYBPF_COUNT_H
#define PYBPF_COUNT_H

/* By set of counts; 64 bits wide, as each sample of a new stack raises it while the table is full. */
__u64 unsent_stacks[PYBPF_SETS];

/* Returns whether this caller, and no other one on any CPU, has to send the stack. counted: the key existed already. */
static __always_inline int stack_claim(__u32 sets, __u64 stack_id, int counted)
{
	__u64 *unsent = &unsent_stacks[PYBPF_COUNTS_SET(sets)];
	__u8 mark = 1;
	void *sent;
	long err;

	if (counted && !*unsent)
		return 0;
	sent = stacks_of(sets);
	/* Most stacks are in the map, and a look-up is cheaper than a failing update. */
	if (!sent || (counted && bpf_map_lookup_elem(sent, &stack_id)))
		return 0;
	err = bpf_map_update_elem(sent, &stack_id, &mark, BPF_NOEXIST);
	if (!err && counted)
		__sync_fetch_and_add(unsent, -1);
	if (err && err != -EEXIST && !counted)
		__sync_fetch_and_add(unsent, 1);
	return !err;
}

/* Called by a sample that had to send a stack and failed: leaves it to the next sample of the stack. */
static __always_inline void stack_unsent(__u32 sets, __u64 stack_id)
{
	void *sent = stacks_of(sets);

	for (int i = 0; i < PYBPF_SETS; i++)
		__sync_fetch_and_add(&unsent_stacks[i], 1);
	if (sent)
		bpf_map_delete_elem(sent, &stack_id);
}

/* Adds one sample to an entry; value is 0 for a kind without values. */
static __always_inline void count_add(struct pybpf_count *entry, __u64 value)
{
	__sync_fetch_and_add(&entry->count, 1);
	if (value)
		__sync_fetch_and_add(&entry->value, value);
}

/*
 * Counts one sample under a key that a look-up just did not find. Returns 0, or a negative errno if the map has no
 * room; sets *fresh if this caller has made the entry.
 */
static __always_inline long count_first(void *map, const struct pybpf_count_key *key, __u64 value, int *fresh)
{
	const struct pybpf_count first = {.count = 1, .value = value};
	struct pybpf_count *entry;
	long err = bpf_map_update_elem(map, key, &first, BPF_NOEXIST);

	*fresh = !err;
	if (!err)
		return 0;
	/* Another CPU has made the entry, or the map has no room. */
	entry = bpf_map_lookup_elem(map, key);
	if (!entry)
		return err;
	count_add(entry, value);
	return 0;
}

/*
 * Counts one sample; if may_add is 0, as user space has no room for new stacks, only under an existing key. Returns 0,
 * or a negative errno if it is not counted. *fresh: the key is new. *send: the caller has to send the stack, or to call
 * stack_unsent.
 */
static __always_inline long stack_count(__u32 sets, const struct pybpf_count_key *key, __u64 value, int may_add,
					int *fresh, int *send)
{
	void *map = counts_of(sets);
	struct pybpf_count *seen;
	long err;

	*fresh = 0;
	*send = 0;
	if (!map)
		return -E2BIG;
	seen = bpf_map_lookup_elem(map, key);
	if (!seen && !may_add)
		return -ENOMEM;
	*send = stack_claim(sets, key->stack_id, seen != 0);
	if (seen) {
		count_add(seen, value);
		return 0;
	}
	err = count_first(map, key, value, fresh);
	if (err && *send) {
		stack_unsent(sets, key->stack_id);
		*send = 0;
	}
	return err;
}

#endif
