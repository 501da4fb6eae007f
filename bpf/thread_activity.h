/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a thread does besides its stack, for after its walk: handles an exception, collects garbage. */
#ifndef PYBPF_THREAD_ACTIVITY_H
#define PYBPF_THREAD_ACTIVITY_H

#include "walk.h"

/*
 * Most items of exceptions being handled, one within the other, that are looked at: each generator and coroutine on the
 * stack has one of its own. The kernel's verifier follows each; user space sets more.
 */
#ifndef WALK_HANDLED
#define WALK_HANDLED 32
#endif

/* What is known of a thread's state. */
enum walk_answer {
	WALK_NO,
	WALK_YES,
	WALK_UNKNOWN, /* this Python does not tell, or the memory could not be read */
};

/* Returns whether the object is an exception: where none is handled there is NULL or None. */
static __always_inline bool walk_is_exception(struct walk *w, const struct pybpf_layout *l, __u64 object)
{
	__u64 type = 0, flags = 0;

	return object && !walk_read(w, &type, sizeof(type), object + l->code_type) &&
	       !walk_read(w, &flags, sizeof(flags), type + l->code_type + 8 + PYBPF_TYPE_FLAGS) &&
	       (flags & PYBPF_TPFLAGS_BASE_EXC_SUBCLASS);
}

/* The thread's innermost thread state, after the walk. */
static __always_inline __u64 walk_innermost_tstate(const struct walk *w)
{
	return w->states.count ? w->states.tstate[0] : w->tstate;
}

/*
 * Returns whether the thread raises or handles an exception. *exception gets the innermost one; to 3.11 its class,
 * while it is raised.
 */
static __always_inline enum walk_answer walk_find_exception(struct walk *w, const struct pybpf_layout *l,
							    __u64 *exception)
{
	__u64 tstate = walk_innermost_tstate(w), item = 0;
	struct {
		__u64 value, second, previous; /* to 3.10 a traceback is the second, from 3.11 on previous is */
	} handled;

	*exception = 0;
	if (!l->tstate_handled || !l->tstate_raised)
		return WALK_UNKNOWN;
	if (walk_read(w, exception, sizeof(*exception), tstate + l->tstate_raised) ||
	    walk_read(w, &item, sizeof(item), tstate + l->tstate_handled))
		return WALK_UNKNOWN;
	if (*exception)
		return WALK_YES;
	for (int i = 0; i < WALK_HANDLED && item; i++) {
		__u32 size = l->handled_value ? 24 : 16;

		if (walk_read(w, &handled, size, item + l->handled_value))
			return WALK_UNKNOWN;
		if (walk_is_exception(w, l, handled.value)) {
			*exception = handled.value;
			return WALK_YES;
		}
		item = l->handled_value ? handled.previous : handled.second;
	}
	return item ? WALK_UNKNOWN : WALK_NO;
}

/*
 * Tells whether garbage is collected in the thread's interpreter. 3.15+ has the frame that set off the collection in
 * *frame, which is 0 before.
 */
static __always_inline enum pybpf_collection walk_find_collection(struct walk *w, const struct pybpf_layout *l,
								  __u64 *frame)
{
	__u64 tstate = walk_innermost_tstate(w), interp = 0, own = 0, addr = 0;
	__u32 collecting = 0;

	*frame = 0;
	if (l->interp_collecting && walk_read(w, &interp, sizeof(interp), tstate + l->tstate_interp))
		return PYBPF_COLLECTION_UNKNOWN;
	if (l->collecting_from_head)
		addr = w->interp_head + l->collecting_from_head;
	else if (interp)
		addr = interp + l->interp_collecting;
	if (!addr || walk_read(w, &collecting, sizeof(collecting), addr))
		return PYBPF_COLLECTION_UNKNOWN;
	if (collecting != 1)
		return PYBPF_COLLECTION_NONE;
	if (!l->interp_gc_frame)
		return PYBPF_COLLECTION_SOMEBODYS;
	if (walk_read(w, frame, sizeof(*frame), interp + l->interp_gc_frame) ||
	    walk_read(w, &own, sizeof(own), tstate + l->tstate_frame))
		return PYBPF_COLLECTION_UNKNOWN;
	return *frame && *frame == own ? PYBPF_COLLECTION_OWN : PYBPF_COLLECTION_OTHERS;
}

/*
 * Returns whether this thread collects garbage. To 3.14 it is a thread that holds the GIL meanwhile; a free-threaded
 * build lets other threads run during a collection, and does not tell whose it is.
 */
static __always_inline bool walk_is_collecting(struct walk *w, const struct pybpf_layout *l, bool holds_gil)
{
	enum pybpf_collection found;
	__u64 frame;

	if (!holds_gil)
		return false;
	found = walk_find_collection(w, l, &frame);
	return found == PYBPF_COLLECTION_OWN || (found == PYBPF_COLLECTION_SOMEBODYS && !l->free_threaded);
}

#endif
