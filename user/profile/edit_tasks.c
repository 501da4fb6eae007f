// SPDX-License-Identifier: Apache-2.0
/*
 * Finds what the filters match in the functions of tasks that await another one. These are in stacks of their own:
 * while B runs, the stack has the name of A, which awaits B, and none of A's functions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "profile/edit_internal.h"

#define TASK_BEGIN "[task: "
#define NOT_BEGUN  "[awaits: first step]"

/* A task with those that await it, by name; the first of all is no task. */
struct chain {
	struct chain_key {
		uint32_t awaited_by; /* a chain */
		uint32_t name;       /* string */
	} key;
	bool met;               /* there is a sample in which it, the last, awaits */
	struct edit_match all;  /* what all these samples match */
	struct edit_match over; /* what the tasks that await it match likewise */
};

/* Finds the chain of each stack. Returns 0 or -ENOMEM. */
static int find_chains(const struct profile *p, struct intern *chains, uint32_t *chain_of)
{
	const struct chain none = {.key = {0, 0}};
	bool fresh;

	if (intern_add(chains, &none, &fresh) == INTERN_NONE)
		return -ENOMEM;
	for (uint32_t s = 1; s < profile_stack_count(p); s++) {
		const struct profile_stack *stack = profile_stack_at(p, s);
		const struct profile_frame *frame = profile_frame_at(p, stack->frame);
		const struct chain chain = {.key = {chain_of[stack->parent], frame->name},
					    .all = {.focus = UINT64_MAX, .ignore = true}};

		chain_of[s] = chain.key.awaited_by;
		if (frame->kind != PROFILE_NOTE ||
		    strncmp(profile_string(p, frame->name), TASK_BEGIN, strlen(TASK_BEGIN)) != 0)
			continue;
		chain_of[s] = intern_add(chains, &chain, &fresh);
		if (chain_of[s] == INTERN_NONE)
			return -ENOMEM;
	}
	return 0;
}

/* Returns whether the stack's task awaits. One that has not begun does not yet, although it is suspended. */
static bool awaits(const struct profile *p, uint32_t stack)
{
	const char *state = profile_string(p, profile_state_of(p, stack));

	return strcmp(state, PROFILE_STATE_SUSPENDED) == 0 &&
	       strcmp(profile_string(p, profile_frame_at(p, profile_stack_at(p, stack)->frame)->name), NOT_BEGUN) != 0;
}

/* Finds what all samples match in which the last task of each chain awaits, and then the tasks that await it. */
static void match_chains(const struct profile *p, struct intern *chains, const uint32_t *chain_of,
			 const struct edit_match *of_stacks)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);

	for (size_t i = 0; i < count; i++) {
		uint32_t stack = samples[i].stack;
		struct chain *chain = intern_item(chains, chain_of[stack]);

		if (!awaits(p, stack))
			continue;
		chain->met = true;
		chain->all.focus &= of_stacks[stack].focus;
		chain->all.ignore &= of_stacks[stack].ignore;
	}
	/* The chain of a task that awaits another is the earlier one. */
	for (uint32_t i = 1; i < chains->count; i++) {
		struct chain *chain = intern_item(chains, i);
		const struct chain *above = intern_item(chains, chain->key.awaited_by);

		chain->over = above->over;
		if (!chain->key.awaited_by || !above->met)
			continue;
		chain->over.focus |= above->all.focus;
		chain->over.ignore |= above->all.ignore;
	}
}

int edit_match_tasks(const struct profile *p, struct edit_match *of_stacks)
{
	uint32_t *chain_of = calloc(profile_stack_count(p), sizeof(*chain_of));
	struct intern chains;
	int err = chain_of ? 0 : -ENOMEM;

	intern_init(&chains, sizeof(struct chain), sizeof(struct chain_key));
	err = err ?: find_chains(p, &chains, chain_of);
	if (!err)
		match_chains(p, &chains, chain_of, of_stacks);
	for (uint32_t s = 1; s < profile_stack_count(p) && !err; s++) {
		const struct chain *chain = intern_item(&chains, chain_of[s]);

		of_stacks[s].focus |= chain->over.focus;
		of_stacks[s].ignore |= chain->over.ignore;
	}
	intern_free(&chains);
	free(chain_of);
	return err;
}
