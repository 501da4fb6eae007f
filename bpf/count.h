/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Counts a sample by its stack, and finds out who sends the stack to user space. Compiled twice, as the walk is: a unit
 * test runs it on several CPUs in every order, while user space changes the sets.
 *
 * Who includes this has counts_of(sets) and stacks_of(sets): the maps that belong to what a sample read of
 * current_sets, once. User space changes that word, waits until all samples that may have read the old one are done,
 * and then takes what was counted: nobody adds to it any more.
 *
 * A stack in map stacks has been sent, or is being sent by the one who put it there. Where that fails it is taken out
 * again, and its next sample sends it. That is found out by looking into the map, which costs something: nobody looks
 * while unsent_stacks is 0. So that this may be more, but is never less than the number of stacks that are counted in
 * the set and are not in the map, at any moment:
 * - a stack is put into map stacks before it is counted for the first time, or else unsent_stacks is raised before;
 * - unsent_stacks is raised, for all sets, before a stack is taken out: another set may count it as well;
 * - it is lowered after a stack was put in, by one who had found it counted already: somebody had raised it for that;
 * - user space makes it 0 when the set is empty and no sample uses it. A sample that raised it before that must be done
 *   before the set is used again.
 */
#ifndef PYBPF_COUNT_H
#define PYBPF_COUNT_H

/* By set of counts; of 64 bits: where the table is full, each new stack's sample raises it. */
__u64 unsent_stacks[PYBPF_SETS];

/* Is it now this caller, and no other on any CPU, who is to send the stack? counted: the sample's key was there. */
static __always_inline int stack_claim(__u32 sets, __u64 stack_id, int counted)
{
	__u64 *unsent = &unsent_stacks[PYBPF_COUNTS_SET(sets)];
	__u8 mark = 1;
	void *sent;
	long err;

	if (counted && !*unsent)
		return 0;
	sent = stacks_of(sets);
	/* Most are there, and a look-up is cheaper than an update that fails. */
	if (!sent || (counted && bpf_map_lookup_elem(sent, &stack_id)))
		return 0;
	err = bpf_map_update_elem(sent, &stack_id, &mark, BPF_NOEXIST);
	if (!err && counted)
		__sync_fetch_and_add(unsent, -1);
	if (err && err != -EEXIST && !counted)
		__sync_fetch_and_add(unsent, 1);
	return !err;
}

/* For the one who was to send a stack and could not: leaves it to its next sample. */
static __always_inline void stack_unsent(__u32 sets, __u64 stack_id)
{
	void *sent = stacks_of(sets);

	for (int i = 0; i < PYBPF_SETS; i++)
		__sync_fetch_and_add(&unsent_stacks[i], 1);
	if (sent)
		bpf_map_delete_elem(sent, &stack_id);
}

/* value is 0 for a kind without values. */
static __always_inline void count_add(struct pybpf_count *entry, __u64 value)
{
	__sync_fetch_and_add(&entry->count, 1);
	if (value)
		__sync_fetch_and_add(&entry->value, value);
}

/*
 * Counts under a key that was not there a moment ago. Returns 0, or a negative errno where there is no room; *fresh: it
 * is this caller who has made the entry.
 */
static __always_inline long count_first(void *map, const struct pybpf_count_key *key, __u64 value, int *fresh)
{
	const struct pybpf_count first = {.count = 1, .value = value};
	struct pybpf_count *entry;
	long err = bpf_map_update_elem(map, key, &first, BPF_NOEXIST);

	*fresh = !err;
	if (!err)
		return 0;
	/* Another CPU was faster, or there is no room. */
	entry = bpf_map_lookup_elem(map, key);
	if (!entry)
		return err;
	count_add(entry, value);
	return 0;
}

/*
 * Counts one sample that user space has room for, or (may_add 0) only if its key is there. Returns 0, or a negative
 * errno where it is not counted. *fresh: the key is new. *send: the caller is to send the stack, or to call
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
