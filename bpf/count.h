/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Counts a sample by its stack, and finds out who sends the stack to user space. Compiled twice, as the walk is: a unit
 * test runs it on several CPUs in every order.
 *
 * A stack in map stacks has been sent, or is being sent by the one who put it there. Where that fails it is taken out
 * again, and its next sample sends it. That is found out by looking into the map, which costs something: nobody looks
 * while unsent_stacks is 0. So that this may be more, but is never less than the number of counted stacks that are not
 * in the map, at any moment:
 * - a stack is put into map stacks before it is counted for the first time, or else unsent_stacks is raised before;
 * - unsent_stacks is raised before a stack is taken out;
 * - it is lowered after a stack was put in, by one who had found it counted already: somebody had raised it for that.
 */
#ifndef PYBPF_COUNT_H
#define PYBPF_COUNT_H

/* Of 64 bits: where the table is full, each new stack's sample raises it. */
__u64 unsent_stacks;

/* Is it now this caller, and no other on any CPU, who is to send the stack? counted: the sample's key was there. */
static __always_inline int stack_claim(__u64 stack_id, int counted)
{
	__u8 mark = 1;
	long err;

	/* Most are there, and a look-up is cheaper than an update that fails. */
	if (counted && (!unsent_stacks || bpf_map_lookup_elem(&stacks, &stack_id)))
		return 0;
	err = bpf_map_update_elem(&stacks, &stack_id, &mark, BPF_NOEXIST);
	if (!err && counted)
		__sync_fetch_and_add(&unsent_stacks, -1);
	if (err && err != -EEXIST && !counted)
		__sync_fetch_and_add(&unsent_stacks, 1);
	return !err;
}

/* For the one who was to send a stack and could not: leaves it to its next sample. */
static __always_inline void stack_unsent(__u64 stack_id)
{
	__sync_fetch_and_add(&unsent_stacks, 1);
	bpf_map_delete_elem(&stacks, &stack_id);
}

/*
 * Counts one sample that user space has room for, or (may_add 0) only if its key is there. Returns 0, or a negative
 * errno where it is not counted. *fresh: the key is new. *send: the caller is to send the stack, or to call
 * stack_unsent.
 */
static __always_inline long stack_count(const struct pybpf_count_key *key, int may_add, int *fresh, int *send)
{
	__u64 one = 1, *seen = bpf_map_lookup_elem(&counts, key);
	long err;

	*fresh = 0;
	*send = 0;
	if (!seen && !may_add)
		return -ENOMEM;
	*send = stack_claim(key->stack_id, seen != 0);
	if (!seen) {
		err = bpf_map_update_elem(&counts, key, &one, BPF_NOEXIST);
		*fresh = !err;
		if (!err)
			return 0;
		/* Another CPU was faster, or there is no room. */
		seen = bpf_map_lookup_elem(&counts, key);
		if (!seen) {
			if (*send)
				stack_unsent(key->stack_id);
			*send = 0;
			return err;
		}
	}
	__sync_fetch_and_add(seen, 1);
	return 0;
}

#endif
