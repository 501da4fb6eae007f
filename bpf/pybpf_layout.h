/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Where the fields of CPython's structs are: what user space knows of a build, and the walk needs of it. */
#ifndef PYBPF_LAYOUT_H
#define PYBPF_LAYOUT_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* Largest windows that the walk reads of one struct; a layout that needs more is refused. */
#define PYBPF_TSTATE_WINDOW 320
#define PYBPF_FRAME_WINDOW  144
#define PYBPF_CODE_WINDOW   256

/* Stands for the offset of a field that this Python lacks. */
#define PYBPF_NO_OFFSET 0xffff

/* How a frame stores its position. */
enum pybpf_position_kind {
	PYBPF_POS_LASTI = 1, /* f_lasti, an int: bytes to 3.9, code units in 3.10 */
	PYBPF_POS_INSTR_PTR, /* a pointer into the code object: prev_instr 3.11-3.12, instr_ptr 3.13+ */
};

enum pybpf_string_kind {
	PYBPF_STR_BYTES = 1, /* 2.7 str */
	PYBPF_STR_UNICODE,   /* PEP 393 */
};

/* How a code object maps positions to lines. */
enum pybpf_line_kind {
	PYBPF_LINES_LNOTAB_UNSIGNED = 1, /* to 3.5: unsigned line deltas */
	PYBPF_LINES_LNOTAB,              /* 3.6-3.9: signed line deltas */
	PYBPF_LINES_PEP626,              /* 3.10: co_linetable of pairs */
	PYBPF_LINES_PEP657,              /* 3.11+: location table with varints */
};

/*
 * Where the GIL's variables are to 3.6, in bytes from the variable interp_head on: each build has its own order.
 * last_holder is 0 where they are not known, or the GIL is a struct; lock is 0 in 3.6, and all that follow it are
 * in 2.7.
 */
struct pybpf_gil_variables {
	__s32 last_holder; /* 3.6: gil_last_holder; 2.7: _PyThreadState_Current */
	__s32 lock; /* 2.7: interpreter_lock, a pointer to a semaphore (PyThread_type_lock); NULL without threads */
	/* 3.6: static variables of Python/ceval_gil.h, whose names begin with gil_ but for the last two's. */
	__s32 locked;
	__s32 switch_number;
	__s32 cond;
	__s32 mutex;
	__s32 switch_cond;
	__s32 switch_mutex;
};

/* Whose garbage collection runs in the interpreter of a thread. */
enum pybpf_collection {
	PYBPF_COLLECTION_UNKNOWN, /* this Python does not tell, or the memory could not be read */
	PYBPF_COLLECTION_NONE,
	PYBPF_COLLECTION_SOMEBODYS, /* there is one, and this Python does not tell whose */
	PYBPF_COLLECTION_OTHERS,    /* another thread's, or the thread's own below a function of Python */
	PYBPF_COLLECTION_OWN,       /* the thread's innermost function has set it off */
};

/*
 * Offsets of the fields of one build of CPython, in bytes from the start of the struct that the prefix names;
 * PYBPF_NO_OFFSET where the build has no such field.
 */
struct pybpf_layout {
	__u16 major;
	__u16 minor;

	/* PyInterpreterState */
	__u32 interp_code_guard; /* a counter, see walk_trust_codes; 0 where none is known */
	__u32 interp_gil;        /* 3.12+: ceval.gil, a pointer; 0: no such field */
	__s32 gil_from_head;     /* 3.7-3.11: _PyRuntime.ceval.gil, from the variable at interp_head on; 0: unknown */
	struct pybpf_gil_variables gil; /* to 3.6 */
	__u32 interp_modules;           /* sys.modules, a pointer to a dict; 0: unknown */
	__u32 interp_collecting;        /* 3.9+: gc.collecting, an int; 0: unknown */
	__s32 collecting_from_head;     /* 3.7, 3.8: _PyRuntime.gc.collecting, as gil_from_head */
	__u32 interp_gc_frame;          /* 3.15+: gc.frame, the frame that set off the collection; 0: no such field */
	__u16 interp_next;
	__u16 interp_threads_head;

	/* PyThreadState; window: bytes to read so that every field below is in one read */
	__u16 tstate_next;
	__u16 tstate_interp;
	__u16 tstate_thread_id;
	__u16 tstate_frame;         /* the frame, or the cframe where cframe_frame is an offset */
	__u16 tstate_status;        /* 3.12+: the 32-bit field _status; 0 where there is none */
	__u16 tstate_datastack_top; /* 3.11+, followed by the limit; 0 where there is none */
	__u16 tstate_exc_info;      /* 3.11, 3.12; 0 where it is not needed */
	__u16 tstate_executor;      /* current_executor (3.14+); 0 where there is none */
	__u16 tstate_handled;       /* 3.7+: exc_info, a pointer to an _PyErr_StackItem; 0: unknown */
	__u16 tstate_raised;        /* 3.7+: the exception that is being raised, or its type; 0: unknown */
	__u16 handled_value;        /* _PyErr_StackItem.exc_value */
	__u16 tstate_window;
	__u16 tstate_cframe;   /* 3.10-3.12 */
	__u16 tstate_contexts; /* context_ver, which counts the contexts entered and left (3.7+); 0: not known */
	__u16 tstate_dict;     /* dict, which has the running event loop in 3.7 to 3.12; 0: it is elsewhere */
	__u16 tstate_loop[2];  /* asyncio_running_loop in 3.13: one of both */
	__u16 cframe_previous;
	__u16 cframe_frame; /* _PyCFrame.current_frame (3.11, 3.12), followed by previous */

	/* PyFrameObject (to 3.10) or _PyInterpreterFrame */
	__u16 frame_window;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_position;
	__u16 frame_owner;
	__u16 frame_entry;      /* is_entry (3.11); in 3.12 the owner tells */
	__u16 frame_tlbc_index; /* free-threaded 3.14+ */
	__u16 frame_mark;       /* see walk_is_compiled: f_trace (to 3.10), frame_obj (3.11, 3.12), f_funcobj (3.13+) */
	__u16 frame_stack;      /* stackpointer (3.14+), which is valid while no evaluation loop runs the frame */

	/* PyGenObject, and those of coroutines and asynchronous generators (3.14+); 0 in others */
	__u16 gen_frame; /* gi_iframe: the frame itself */
	__u16 gen_state; /* gi_frame_state, a char */

	/* PyCodeObject; code_window covers all but co_code_adaptive and co_tlbc, which may lie beyond */
	__u16 code_window;
	__u16 code_type; /* ob_type */
	__u16 code_filename;
	__u16 code_name;
	__u16 code_qualname;  /* 3.11+ */
	__u16 code_linetable; /* co_lnotab to 3.9 */
	__u16 code_firstlineno;
	__u16 code_version;  /* co_version (3.12+), unique to a code object of an interpreter */
	__u16 code_adaptive; /* co_code_adaptive (3.11+) */
	__u16 code_tlbc;     /* co_tlbc (free-threaded 3.14+) */

	/* PyASCIIObject and PyCompactUnicodeObject; for PYBPF_STR_BYTES str_length and str_ascii_data are
	 * those of PyStringObject, and str_hash its ob_shash */
	__u16 str_length;
	__u16 str_hash;
	__u16 str_state; /* the 32-bit bit field */
	__u16 str_ascii_data;
	__u16 str_compact_data;

	/* PyBytesObject (PyStringObject in 2.7) */
	__u16 bytes_size;
	__u16 bytes_data;

	/* Frames whose owner is this or more are no Python frames: entry, shim, C stack. */
	__u8 owner_not_python;
	/* Mask of the tag bits in the frame's executable (3.14+), else 0. */
	__u8 code_tag_mask;
	__u8 position_kind; /* enum pybpf_position_kind */
	__u8 string_kind;   /* enum pybpf_string_kind */
	__u8 line_kind;     /* enum pybpf_line_kind */
	__u8 free_threaded;
	__u8 debug_build;
	__u8 str_kind_shift; /* bit of the 3-bit field "kind" in the state word */
	/* Bytes of the counter at interp_code_guard: 8 count code objects that were freed (3.14+); 4 count those that
	 * were made (3.13), and are 0 once they have run out. */
	__u8 code_guard_size;
	__u8 code_bytecode; /* PyCodeObject.co_code (to 3.10); 0 where there is none */

	/* The bytecode. */
	__u8 extended_arg;      /* the opcode EXTENDED_ARG (to 3.10) */
	__u8 extended_arg_size; /* bytes of it */
	__u8 caches; /* the row of cfg_caches, from 1 on (3.11, 3.12); 0: no frame points into an inline cache */

	/* What leads to asyncio's tasks and from them on; bytes are from the end of an object's header on. */
	__u8 has_frame_objects; /* a coroutine's first field points to its frame (to 3.10), which else is inside it */
	__u8 has_log2_sizes;    /* tables of dicts have logarithms of their sizes, see open_table (3.11+) */
	__u8 has_loop_holder;   /* the thread's dict has an object whose first field is the loop (to 3.11) */
	__u8 wakeup_task;       /* the task in a callback that wakes it (to 3.13) */
	__u8 function_closure;  /* PyFunctionObject.func_closure */
	__u8 function_qualname; /* PyFunctionObject.func_qualname */
	__u8 tuple_items;       /* PyTupleObject.ob_item */
	__u8 pad[2];
};
_Static_assert(sizeof(struct pybpf_layout) == 184, "pybpf_layout has no hidden padding");

/*
 * Bits of PyThreadState._status (3.12 to 3.15, cpython/pystate.h). A thread state that was deleted keeps its thread_id
 * and the bits bound and active: unbound tells. bound_gilstate is set when a thread state is attached, and cleared when
 * another one of its thread is (tstate_activate, bind_gilstate_tstate).
 */
#define PYBPF_TSTATE_INITIALIZED (1u << 0)
#define PYBPF_TSTATE_BOUND       (1u << 1)
#define PYBPF_TSTATE_UNBOUND     (1u << 2)
#define PYBPF_TSTATE_GILSTATE    (1u << 3)
/* It is attached now: its thread holds the GIL, or needs none. */
#define PYBPF_TSTATE_ACTIVE (1u << 4)

/*
 * struct _gil_runtime_state of 3.7 to 3.15 (pycore_gil.h): last_holder, locked (an int) and switch_number come one
 * after the other. A free-threaded build has `enabled` and padding before them.
 */
#define PYBPF_GIL_LAST_HOLDER 8
#define PYBPF_GIL_ENABLED     8

/*
 * Where asyncio's tasks are. From 3.14 on the module _asyncio gives the offsets (section .AsyncioDebug,
 * Py_AsyncioModuleDebugOffsets in Modules/_asynciomodule.c); from 3.7 to 3.13 user space has them in a table, and looks
 * for the module's dict {loop: task}. Offsets in bytes.
 */
struct pybpf_asyncio {
	__u64 current_tasks; /* address of the dict _asyncio._current_tasks (3.7 to 3.13); 0: not found (yet) */
	__u16 running_task;  /* _PyThreadStateImpl.asyncio_running_task (3.14+); 0: not known */
	/* Fields of TaskObj; those but name and coroutine are FutureObj's, too. */
	__u8 task_name; /* 0: tasks have no names (3.7) */
	__u8 task_coro;
	__u8 awaited_by;        /* 3.14+: one task or future, or a set of them */
	__u8 awaited_by_is_set; /* a char: whether it is a set */
	__u8 task_node;         /* 3.14+: TaskObj.task_node: next and previous of the list of tasks that it is in */
	__u8 loaded;            /* the process has the module */
	__u16 thread_tasks; /* _PyThreadStateImpl.asyncio_tasks_head: the list of the tasks that a thread has made */
	__u16 running_loop; /* _PyThreadStateImpl.asyncio_running_loop (3.14+); 0: not known */
	__u32 interp_tasks; /* PyInterpreterState.asyncio_tasks_head: of those whose threads have ended */
};
_Static_assert(sizeof(struct pybpf_asyncio) == 24, "pybpf_asyncio has no hidden padding");

/* Versions whose frames may point into an inline cache. */
#define PYBPF_CACHES_VERSIONS 2u
/* In place of the length of an inline cache: the bytecode alone does not tell it. */
#define PYBPF_CACHES_UNKNOWN 255

#endif
