// SPDX-License-Identifier: Apache-2.0
/* Which of a native stack's frames are the thread's own, and whether they go with Python's. */
#include <errno.h>
#include <string.h>

#include "symbols/native/native_frames_internal.h"

static uint32_t count_runs(const struct native_stack *native)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < native->count; i++)
		count += (native->frames[i] & PYBPF_NATIVE_FRAME_EVAL) != 0;
	return count;
}

/* Returns the number of frames from the leaf to the first run of the evaluation loop, without that. */
static uint32_t count_called(const struct native_stack *native)
{
	uint32_t i = 0;

	while (i < native->count && !(native->frames[i] & PYBPF_NATIVE_FRAME_EVAL))
		i++;
	return i;
}

static int want_names(struct native_frames *t, const struct native_stack *native, bool last)
{
	int err = 0;

	for (uint32_t i = 0; i < native->count; i++) {
		struct native_instruction *one = native_frames_find(t, native->frames[i]);

		if (!one)
			return -ENOMEM;
		if (one->naming != NAMING_DONE && !last)
			err = -ENOENT;
	}
	return err;
}

static bool is_gap(enum pybpf_native_end end)
{
	return end == PYBPF_NATIVE_END_NO_MAPPINGS || end == PYBPF_NATIVE_END_NO_MAPPING ||
	       end == PYBPF_NATIVE_END_NO_TABLE;
}

static void tell_gap(const struct native_frames *t, const struct pybpf_stack_event *event,
		     const struct native_stack *native)
{
	bool has_no_row = event->native_end == PYBPF_NATIVE_END_NO_ROW && native->count;
	struct native_gap gap = {.file = 0};

	if (!t->on_gap)
		return;
	if (has_no_row) {
		gap.file = PYBPF_NATIVE_FRAME_FILE(native->frames[native->count - 1]);
		gap.pc = PYBPF_NATIVE_FRAME_PC(native->frames[native->count - 1]);
		gap.is_innermost = native->count == 1;
	}
	if (has_no_row || is_gap(event->native_end))
		t->on_gap(t->on_gap_arg, event->proc_id, &gap);
}

/* Returns whether an unwinder, at this place from the leaf on, may be restoring registers: uw_install_context_1() does.
 */
static bool is_restoring(const struct native_instruction *leaf, uint32_t at)
{
	return !at || (at == 1 && (!leaf->name || !strncmp(leaf->name, "uw_install_context", 18)));
}

/* Returns whether the frames from here on outwards may be others' than those that were searched for. */
static bool changes_stack(const struct native_instruction *leaf, const struct native_instruction *one, uint32_t at)
{
	return one->role == NATIVE_ROLE_SWITCH || one->role == NATIVE_ROLE_OF_GREENLET ||
	       (one->role == NATIVE_ROLE_UNWINDER && is_restoring(leaf, at));
}

static bool fit(uint32_t runs, uint32_t entries)
{
	return runs == entries || runs == entries + 1;
}

/* Returns whether a greenlet begins here, above which this many runs of the evaluation loop are. */
static bool begins_greenlet(const struct native_stack *native, const struct native_instruction *one, uint32_t runs,
			    uint32_t entries)
{
	if (one->role != NATIVE_ROLE_OLD_GREENLET && one->role != NATIVE_ROLE_OF_GREENLET)
		return one->role == NATIVE_ROLE_GREENLET;
	/* It may be another function: Python's frames must fit what is above it, and not the whole stack. */
	return runs && fit(runs, entries) &&
	       !(native->end == PYBPF_NATIVE_END_WHOLE && fit(count_runs(native), entries));
}

/* Leaves out what is on the stack, but has not called what is above it. */
static void trim(struct native_frames *t, struct native_stack *native, uint32_t entries)
{
	const struct native_instruction *leaf = native->count ? native_frames_find(t, native->frames[0]) : NULL;
	uint32_t runs = 0;

	for (uint32_t i = 0; i < native->count && leaf; i++) {
		const struct native_instruction *one = native_frames_find(t, native->frames[i]);
		bool is_end = one && begins_greenlet(native, one, runs, entries);

		if (is_end || (one && !runs && changes_stack(leaf, one, i))) {
			native->count = i + 1;
			native->end = is_end ? PYBPF_NATIVE_END_WHOLE : PYBPF_NATIVE_END_SWITCH;
		}
		runs += (native->frames[i] & PYBPF_NATIVE_FRAME_EVAL) != 0;
	}
}

int native_frames_begin(struct native_frames *t, const struct pybpf_stack_event *event, const uint64_t *frames,
			uint32_t entries, bool last, struct native_stack *out)
{
	uint32_t runs;
	int err;

	*out = (struct native_stack){.frames = frames, .count = event->nr_native, .end = event->native_end};
	tell_gap(t, event, out);
	err = want_names(t, out, last);
	if (err)
		return err;
	trim(t, out, entries);
	out->left = out->count;
	runs = count_runs(out);
	if (out->end != PYBPF_NATIVE_END_WHOLE)
		out->join = NATIVE_JOIN_NONE;
	else if (runs == entries)
		out->join = NATIVE_JOIN_EXACT;
	else
		out->join = runs == entries + 1 ? NATIVE_JOIN_PLUS_ONE : NATIVE_JOIN_OTHER;
	/* Which frame of Python's a run has is certain only of whole stacks; what the last one called is in any case.
	 */
	if (entries && out->join != NATIVE_JOIN_EXACT && out->join != NATIVE_JOIN_PLUS_ONE)
		out->left = count_called(out);
	return 0;
}
