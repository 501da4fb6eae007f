/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Stacks, the code objects in them, and the records by which they reach user space. */
#ifndef PYBPF_STACK_H
#define PYBPF_STACK_H

#include "pybpf_layout.h"
#include "pybpf_native.h"

/* Most frames that are kept of one stack. A deeper stack keeps its leaf half and its root half. */
#define PYBPF_MAX_FRAMES  8192
#define PYBPF_HALF_FRAMES (PYBPF_MAX_FRAMES / 2)

/* Returns how many frames are kept of a stack of that depth. */
static inline __u32 pybpf_kept_frames(__u32 depth)
{
	return depth > PYBPF_MAX_FRAMES ? PYBPF_MAX_FRAMES : depth;
}

/*
 * Returns where the i-th frame from the leaf is kept. The first PYBPF_HALF_FRAMES stay; from there on the second half
 * is a ring, so that at the end it holds the frames nearest the root.
 */
static inline __u32 pybpf_frame_slot(__u32 i)
{
	return i < PYBPF_MAX_FRAMES ? i : PYBPF_HALF_FRAMES + ((i - PYBPF_HALF_FRAMES) & (PYBPF_HALF_FRAMES - 1));
}

/* Most addresses that are kept of a stack in the kernel: PERF_MAX_STACK_DEPTH (include/uapi/linux/perf_event.h) and one
 * for alignment. */
#define PYBPF_KERNEL_FRAMES 128
/* Most frames that one walk visits: bounds the time of one sample. */
#define PYBPF_MAX_WALK 65536
/* Most interpreters and thread states that one search visits. */
#define PYBPF_MAX_THREADS 16384

enum pybpf_frame_kind {
	PYBPF_FRAME_PYTHON,
	PYBPF_FRAME_MARKER, /* stands for something that is not a function: code is an enum pybpf_marker */
};

enum pybpf_marker {
	PYBPF_MARKER_INTERPRETER = 1, /* callers in another interpreter follow */
};

/* One frame: 16 bytes, many of them cross to user space. */
struct pybpf_frame {
	union {
		struct {
			__u64 code : 56; /* address of the code object: user space ends below 2^56 */
			__u64 kind : 7;  /* enum pybpf_frame_kind */
			__u64 entry : 1; /* C code called it: it is the first of a run of the evaluation loop */
		};
		__u64 word; /* the three fields above as one word */
	};
	__u32 sig;      /* tells the code object from a later one at the same address (walk_code_signature) */
	__s32 position; /* f_lasti, or bytes from the code object's start to the instruction */
};
_Static_assert(sizeof(struct pybpf_frame) == 16, "pybpf_frame has no hidden padding");
#define PYBPF_FRAME_KIND(kind)   ((__u64)(kind) << 56)
#define PYBPF_FRAME_ENTRY(entry) ((__u64)(entry) << 63)

/* Bit of a signature that includes the code object's texts: user space computes the same signature. */
#define PYBPF_SIG_TEXTS 1u

/* Stands for a position that is not known: the frame is printed without a line. */
#define PYBPF_NO_POSITION (-0x7fffffff - 1)

/* Why a stack is not whole; bits of pybpf_stack_event.flags. */
enum pybpf_stack_flags {
	PYBPF_STACK_CUT = 1u << 0,        /* deeper than PYBPF_MAX_FRAMES: the middle is not kept */
	PYBPF_STACK_NO_ROOT = 1u << 1,    /* deeper than PYBPF_MAX_WALK: the root was not reached */
	PYBPF_STACK_FAULT = 1u << 2,      /* a frame or code object could not be read */
	PYBPF_STACK_NOT_CODE = 1u << 3,   /* a frame's executable was no code object: left out */
	PYBPF_STACK_CYCLE = 1u << 4,      /* the frame chain runs in a circle */
	PYBPF_STACK_NO_CALLERS = 1u << 5, /* callers in another thread state of the thread: their place is not known */
	PYBPF_STACK_OUTER = 1u << 6,      /* called from frames of another runtime, which are not kept */
	PYBPF_STACK_BESIDE = 1u << 7,     /* another runtime has frames, too, and it is not known which are inner */
	PYBPF_STACK_GC = 1u << 8,         /* a garbage collection runs, which the last frame set off */
};

enum pybpf_event_type {
	PYBPF_EVENT_STACK = 1,
	PYBPF_EVENT_CODE,
	PYBPF_EVENT_TIME,
	PYBPF_EVENT_WAIT,
	PYBPF_EVENT_TASKS,
	PYBPF_EVENT_THREAD,
	PYBPF_EVENT_INTERVAL,
	PYBPF_EVENT_WAKER,
	PYBPF_EVENT_MEMORY,
};

struct pybpf_event {
	__u16 type;   /* enum pybpf_event_type */
	__u8 runtime; /* runtime of the stack or code object: index into pybpf_proc.runtimes */
	__u8 sets;    /* sets in which its sample was counted, see PYBPF_SETS */
	__u32 size;   /* of the whole record */
};

/* Rights with which a thread opens files (struct cred): its user and group as numbered in the initial user namespace.
 */
struct pybpf_rights {
	__u32 fsuid, fsgid;
	__u64 capabilities; /* effective, in the thread's own user namespace */
};

/* What is counted in place of a stack, for samples without Python frames. */
struct pybpf_pseudo_stack {
	__u32 no_frames_reason; /* enum pybpf_counter, of class WITHOUT; 0: there are frames */
	__u32 pad;
	char comm[16]; /* the thread's, where they are counted by thread name; else empty */
};

/* How a stack's record has an opcode. */
#define PYBPF_OPCODE(opcode) (1u + (opcode))
#define PYBPF_OPCODE_UNKNOWN 257u

/* A stack that is seen for the first time; its kept frames (struct pybpf_frame) follow, leaf first, and then the
 * addresses (__u64) of its functions in the kernel, leaf first, and its native frames (PYBPF_NATIVE_FRAME), likewise.
 */
struct pybpf_stack_event {
	struct pybpf_event event;
	__u64 stack_id;
	__u64 proc_id;
	__u32 depth; /* Python frames on the thread; more than PYBPF_MAX_FRAMES are not kept, see walk_push */
	__u32 flags; /* enum pybpf_stack_flags */
	struct pybpf_rights rights;
	struct pybpf_pseudo_stack pseudo;
	__u64 task_id; /* of the record of its asyncio tasks, which comes before; 0: none */
	/* Frames from the leaf to the one of the task's coroutine, both included; 0: the coroutine does not run. */
	__u32 task_depth;
	__u32 nr_kernel;  /* addresses in the kernel, at most PYBPF_KERNEL_FRAMES */
	__u32 opcode;     /* that the last frame executes: PYBPF_OPCODE or PYBPF_OPCODE_UNKNOWN; 0: not asked for */
	__u16 nr_native;  /* native frames, at most PYBPF_NATIVE_FRAMES */
	__u16 native_end; /* enum pybpf_native_end */
};
_Static_assert(sizeof(struct pybpf_stack_event) == 96, "pybpf_stack_event has no hidden padding");

/* Values of stack_id that are no stack's. */
enum pybpf_stack_id {
	/* Samples of an undecided process: user space finds out later whether they were of a Python. */
	PYBPF_STACK_ID_UNDECIDED,
	/* The rest is used for the time of threads only. */
	PYBPF_STACK_ID_EARLIER,        /* asleep since before the run: user space has read the stack, if anybody */
	PYBPF_STACK_ID_NEW,            /* a new thread that has not run yet */
	PYBPF_STACK_ID_NO_THREAD,      /* Python does not know the thread */
	PYBPF_STACK_ID_NO_FRAMES,      /* it is in no Python function */
	PYBPF_STACK_ID_NO_INTERPRETER, /* none runs, or the thread is ending */
	PYBPF_STACK_ID_UNREADABLE,
	PYBPF_STACK_ID_REFUSED,     /* the stack is new, and user space's memory is used up */
	PYBPF_STACK_ID_SHORT,       /* waits of a thread whose stack is not kept, in sum by state */
	PYBPF_STACK_ID_STACKS = 16, /* a stack's own id is this or more */
};

/* Longest raw copy of each part of a code object that the kernel takes; the rest user space reads. */
#define PYBPF_COPY_STRING 1024
#define PYBPF_COPY_LINES  (32 << 10)

enum pybpf_code_part {
	PYBPF_CODE_NAME,  /* the string object, from its header on */
	PYBPF_CODE_FILE,  /* likewise */
	PYBPF_CODE_LINES, /* the line table's bytes, without header */
	PYBPF_CODE_PARTS,
};

#define PYBPF_SIZE_UNKNOWN 0xffffffff

/* A code object that is seen for the first time; what the kernel could copy of its parts follows, one by one. */
struct pybpf_code_event {
	struct pybpf_event event;
	__u64 code;
	__u64 proc_id;
	__u64 part_addr[PYBPF_CODE_PARTS]; /* the objects, for user space to read where copied < size */
	__u32 part_size[PYBPF_CODE_PARTS]; /* bytes that a whole copy has, or PYBPF_SIZE_UNKNOWN */
	__u32 part_copied[PYBPF_CODE_PARTS];
	__u32 sig;
	__s32 first_line;
};
_Static_assert(sizeof(struct pybpf_code_event) == 80, "pybpf_code_event has no hidden padding");

/* Key of map codes. */
struct pybpf_code_key {
	__u64 code;
	__u64 proc_id;
	__u32 sig;
	__u32 pad;
};
_Static_assert(sizeof(struct pybpf_code_key) == 24, "pybpf_code_key has no hidden padding");

/* Longest read of user memory, bytes. */
#define PYBPF_READ_MAX PYBPF_COPY_LINES
_Static_assert(PYBPF_COPY_STRING <= PYBPF_READ_MAX, "copies are read at once");

/* Key of map bounces: a trie's, all of whose bits count. */
struct pybpf_bounce_key {
	__u32 bits;
	__u32 cpu;
};
#define PYBPF_BOUNCE_KEY_BITS 32

/* Indices in map chain of the parts of the sampler, for kernels without bpf_loop. */
enum pybpf_chain {
	PYBPF_CHAIN_WALK,
	PYBPF_CHAIN_FINISH,
	PYBPF_CHAIN_PROGRAMS,
};

#endif
