/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a walk keeps between its steps, and how it looks into what it has read. */
#ifndef PYBPF_WALK_CONTEXT_H
#define PYBPF_WALK_CONTEXT_H

#include "walk_base.h"
#include "walk_thread_cache.h"

/* Whether the walk looks for the thread's asyncio task: in the kernel a constant, from the options. */
#ifndef WALK_TASKS
#define WALK_TASKS 0
#endif

/* Likewise: whether the address of the last frame's instruction is kept. */
#ifndef WALK_OPCODES
#define WALK_OPCODES 0
#endif

/* Whether the caller may give a range for the thread's id: see walk_is_this_thread. */
#ifndef WALK_THREAD_RANGE
#define WALK_THREAD_RANGE 0
#endif

/* One buffer serves each struct in turn; offsets are masked so that the verifier sees them inside it. */
#define WALK_BUFFER_MASK 511
_Static_assert(PYBPF_TSTATE_WINDOW <= WALK_BUFFER_MASK + 1 && PYBPF_CODE_WINDOW <= WALK_BUFFER_MASK + 1 &&
		       PYBPF_FRAME_WINDOW <= WALK_BUFFER_MASK + 1,
	       "every window fits the buffer");

/*
 * Frames of 3.11+ lie one below the other in the thread's data stack: one read takes as many as fit. The room behind
 * the mask takes the window of the last.
 */
#define WALK_CHUNK      4096
#define WALK_CHUNK_MASK (WALK_CHUNK - 1)
/* Frames that one step looks at. The verifier follows each on its own. */
#define WALK_STEP_FRAMES 4
_Static_assert(WALK_PAGE_MASK <= WALK_CHUNK_MASK, "what is below a frame on its page fits the chunk");
/* No PyThreadState of 3.11 or 3.12 is larger; the first cframe of its thread is inside. */
#define WALK_TSTATE_SIZE 1024
/* The evaluation loop's own frame on the C stack, where cframe and entry frame lie, is no larger. */
#define WALK_C_FRAME 1024
/* FRAME_OWNED_BY_THREAD and FRAME_OWNED_BY_GENERATOR. */
#define WALK_OWNED_BY_THREAD    0
#define WALK_OWNED_BY_GENERATOR 1
/* Offsets inside one frame. */
#define WALK_FRAME_MASK 255
_Static_assert(PYBPF_FRAME_WINDOW <= WALK_FRAME_MASK + 1, "every offset of a frame is inside the mask");

/* Signatures of code objects, by address. */
#define WALK_MEMO      2048
#define WALK_MEMO_BITS 11
_Static_assert(WALK_MEMO == 1 << WALK_MEMO_BITS, "a place of the memo is a number of this many bits");

struct walk_memo {
	__u64 code;
	__u64 epoch; /* epoch in which the entry is true: in another, the address may have another code object */
	__u32 sig;
	__u32 pad;
};

/*
 * The memo's entries for code objects of one main interpreter are true while its counter is the same: walk_trust_codes.
 */
#define WALK_GUARDS 64

/* Stands for an interpreter that could not be read. */
#define WALK_SOME_INTERPRETER 1

struct walk_guard {
	__u64 proc_id;
	__u64 interp;
	__u64 count; /* the interpreter's counter */
	__u64 epoch;
};

/*
 * Most steps of a walk: the longest search for a thread, the longest chain, and some more for chains that turn out not
 * to be the stack.
 */
#define WALK_STEPS (PYBPF_MAX_THREADS + PYBPF_MAX_WALK + 8192)

/* The memo of paths: most code objects share one of few files. */
#define WALK_PATHS 8

struct walk_path {
	__u64 string;
	__u64 hash;
	__u64 number; /* walk of the thread state in which it was stored */
};

/*
 * Bytes of a text that one step reads, and bytes of an object with a text, header included, that are read first: most
 * names and line tables are no longer.
 */
#define WALK_READ        512
#define WALK_STRING_HEAD 128
#define WALK_LINES_HEAD  192

enum walk_text_part {
	WALK_TEXT_NAME,
	WALK_TEXT_PATH,
	WALK_TEXT_LINES,
	WALK_TEXTS,
};

/* A text that is being hashed. */
struct walk_text {
	__u64 hash;
	__u64 addr; /* of what is left of it */
	__u64 left; /* bytes */
};

/* A step whose read faults takes as long as this many other steps: the kernel handles the fault. */
#define WALK_FAULT_STEPS 64

/* The registers of the interrupted thread. */
#define WALK_CANDIDATES 32

enum walk_phase {
	WALK_INTERP, /* looking at the next interpreter for this thread */
	WALK_THREAD, /* looking at the next thread state */
	WALK_PROBE,  /* looking for a thread state's innermost entry frame */
	WALK_CFRAME, /* looking for its outermost cframe */
	WALK_FRAME,
	WALK_TEXT,    /* reading on in the texts of a frame's code object */
	WALK_MEASURE, /* looking for the last frame on the data stack */
};

/* Where the walk took the first frame from. */
enum walk_attempt {
	WALK_FIRST, /* the thread state */
	WALK_REGISTER_FRAME,
	WALK_TOP,       /* 3.11, 3.12: the data stack's top */
	WALK_GENERATOR, /* 3.11, 3.12: a generator that runs */
};

enum walk_result {
	WALK_OK = 0,          /* the stack is in frames[], its depth in depth */
	WALK_NO_INTERPRETER,  /* there is no interpreter (yet, or any more) */
	WALK_NO_THREAD_STATE, /* no thread state is this thread's */
	WALK_UNREADABLE,      /* none was found, and some could not be read: paged out, for one */
};

/* What proves that a cframe of 3.11 or 3.12 leads to the stack of now, or what else does: no other version has it. */
struct walk_proof {
	/* See walk_enter_cframe. */
	__u64 cframe, outer_frame;
	/* See walk_data_stack.h. */
	__u64 bottom_frame;         /* the first in the data stack's chunk */
	__u64 measure_end;          /* of the data stack's chunk */
	__u64 chunk_before;         /* the chunk below, or 0 */
	__u64 top_frame, below_top; /* the last two frames there, or 0 */
	__u64 item;                 /* of exc_info */
	__u64 sought;               /* the frame that the chain may pass */
	__u32 met;                  /* the frame was passed; at first: the chain has reached the data stack */
	__u32 at_bottom;            /* the chain has passed bottom_frame */
	__u32 entered;              /* the chain has reached the entry frame of its evaluation loop */
	__u32 pad;
};

struct walk {
	/* What the caller gives. */
	__u64 thread_id;   /* pthread_self() of the thread */
	__u64 thread_last; /* with WALK_THREAD_RANGE: it is thread_id, or greater, but no greater than this */
	__u64 interp_head;
	__u64 code_type;
	__u64 stack_pointer; /* or 0: not known */
	__u64 proc_id;       /* as struct pybpf_proc has it; 0: nothing is kept for a later walk */
	struct pybpf_asyncio asyncio;
	__u32 layout;   /* its index, with WALK_TASKS */
	__u32 task_due; /* walk_find_task is to be called before the next step; with WALK_TASKS */

	__u64 tstate;        /* the thread state that is being examined, or 0 */
	__u64 interp;        /* likewise, in the lists */
	__u64 current;       /* this thread's state that holds the GIL (to 3.11), or 0 */
	__u64 tstate_interp; /* the interpreter of tstate */
	__u64 next_interp;   /* the interpreter that was made before it; 0: it is the main interpreter */
	__u64 guard_count;   /* its counter of code objects */
	struct walk_states states;
	__u64 innermost[WALK_STATES]; /* where their innermost runs of the evaluation loop are: see walk_innermost */
	__u64 outermost;              /* cframe of tstate's outermost run, while it is sought */
	__u64 outermost_entry; /* of the frames so far: the entry frame or cframe that is highest on the C stack */
	__u64 kept_hash;       /* hash, depth and flags as they were before the frames of this thread state */
	__u32 kept_depth;
	__u32 kept_flags;
	__u32 kept_compiled;
	__u32 last;       /* states begins with the one that this thread attached last */
	__u32 place;      /* in states */
	__u32 remembered; /* states are those of an earlier walk */
	__u32 had_states; /* an earlier walk found thread states */
	__u32 unreadable; /* a part of the lists could not be read */
	__u32 in_order;   /* tstate's frames are those of callers */
	__u64 frame;
	__u64 last_frame; /* that was looked at */
	/* Where else the frame may be when the thread state's is being switched: see walk_end. */
	__u64 candidates[WALK_CANDIDATES];
	__u32 nr_candidates;
	__u32 next_candidate;
	__u64 datastack_chunk, datastack_top, datastack_limit;
	struct walk_proof proof;
	__u32 unproved;   /* the walked chain may not be the stack of now */
	__u32 attempt;    /* enum walk_attempt */
	__u64 checkpoint; /* an earlier frame of the chain: meeting it once more shows a circle (Brent) */
	__u64 run; /* where the innermost run of the evaluation loop is on the C stack, as the thread state has it, or 0
		    */
	__u64 entry;   /* 3.11+: the first entry frame that the chain came to, or 0; on the C stack from 3.12 on */
	__u32 unbound; /* a thread state was met whose thread is not known yet */
	__u64 hash;
	__u32 next_checkpoint;
	__u32 phase;  /* enum walk_phase */
	__u32 result; /* enum walk_result */
	__u32 steps;
	__u32 compiled;   /* frames of code that was compiled to C */
	__u32 in_jit;     /* the thread runs a trace that the JIT made: its last frame's position is out of date */
	__u32 attached;   /* the thread state is attached (3.12+) */
	__u32 at_entry;   /* the last frame was the first of its run of the evaluation loop */
	__u64 number;     /* number of thread states walked; the caller's memory keeps it from one walk to the next */
	__u64 epoch;      /* epoch of the memo's entries that are true now */
	__u64 chunk_base; /* address of chunk[0] */
	__u64 chunk_size; /* bytes of the chunk that have been read */
	__u64 task;       /* the task that the thread's event loop runs, or 0; with WALK_TASKS, as the next */
	__u64 task_frame; /* its coroutine, in which the frame is (3.11+), or the frame of that; or 0 */
	__u64 leaf_instr; /* 3.11+: address of the last frame's instruction; with WALK_OPCODES */
	__u64 contexts;   /* how often the thread has entered or left a context (contextvars); 0: not known */
	/* The code object whose signature is being made, and where the frame is in it. */
	__u64 code;
	__u64 code_hash;  /* of its fields */
	__u64 new_path;   /* a path that is not in paths, or 0 */
	__u32 with_texts; /* its signature is made of its texts */
	__s32 position;
	struct walk_text texts[WALK_TEXTS];
	__u64 read[WALK_READ / 8];
	struct walk_memo memo[WALK_MEMO];
	struct walk_guard guards[WALK_GUARDS];
	struct walk_path paths[WALK_PATHS];
	__u8 chunk[WALK_CHUNK + WALK_FRAME_MASK + 1 + 8];
	__u8 buffer[WALK_BUFFER_MASK + 1 + 8];
	struct pybpf_stack_event stack; /* followed by its frames */
	struct pybpf_frame frames[PYBPF_MAX_FRAMES];
	/* For the addresses and native frames that follow the frames, however many these are. */
	__u64 room_behind[PYBPF_KERNEL_FRAMES + PYBPF_NATIVE_FRAMES];
};
_Static_assert(__builtin_offsetof(struct walk, frames) ==
		       __builtin_offsetof(struct walk, stack) + sizeof(struct pybpf_stack_event),
	       "the stack event's frames follow its header");

static __always_inline int walk_in_tstate(const struct walk *w, __u64 addr)
{
	return addr - w->tstate < WALK_TSTATE_SIZE;
}

static __always_inline __u64 walk_u64(const struct walk *w, __u16 offset)
{
	return *(const __u64 *)(w->buffer + (offset & (WALK_BUFFER_MASK & ~7)));
}

static __always_inline __u32 walk_u32(const struct walk *w, __u16 offset)
{
	return *(const __u32 *)(w->buffer + (offset & (WALK_BUFFER_MASK & ~3)));
}

/* Fields of the frame that lies at offset `at` of the chunk. */
static __always_inline __u64 walk_frame_u64(const struct walk *w, __u32 at, __u16 offset)
{
	return *(const __u64 *)(w->chunk + (at & WALK_CHUNK_MASK & ~7) + (offset & (WALK_FRAME_MASK & ~7)));
}

static __always_inline __u32 walk_frame_u32(const struct walk *w, __u32 at, __u16 offset)
{
	return *(const __u32 *)(w->chunk + (at & WALK_CHUNK_MASK & ~7) + (offset & (WALK_FRAME_MASK & ~3)));
}

static __always_inline __u8 walk_frame_u8(const struct walk *w, __u32 at, __u16 offset)
{
	return w->chunk[(at & WALK_CHUNK_MASK & ~7) + (offset & WALK_FRAME_MASK)];
}

static __always_inline int walk_window(struct walk *w, __u64 addr, __u32 size, __u32 limit)
{
	if (size > limit)
		return -1;
	return walk_read(w, w->buffer, size, addr);
}

#endif
