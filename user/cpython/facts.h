// SPDX-License-Identifier: Apache-2.0
/*
 * What differs between versions of CPython, beside what struct pybpf_layout has: facts.c has a row for each version,
 * and each shape that several versions share once. No other room asks for a version. Offsets are bytes from the end of
 * an object's header on, unless they say otherwise.
 */
#ifndef CPYTHON_FACTS_H
#define CPYTHON_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpf.h"

/* The versions that have a row, for sentences. */
#define CPYTHON_SUPPORTED "CPython 2.7 and 3.6 or newer"

struct cpython_build {
	bool has_debug_offsets; /* _Py_DebugOffsets, at the start of _PyRuntime */
	bool holder_is_current; /* no variable of its own has the GIL's holder, but _PyThreadState_Current */
	bool debug_traces_refs; /* a debug build has Py_TRACE_REFS, which puts two pointers before every object */
};

/* PyCodeObject (Include/code.h, Include/cpython/code.h). */
struct cpython_code {
	uint8_t argcount, flags, stacksize;
	uint8_t kwonlyargcount; /* 0: no such field */
	uint8_t nlocalsplus;    /* 0: no such field */
	uint8_t consts, names;
	uint8_t exception_table; /* 0: a frame has blocks instead */
	/* 0: no such fields: one tuple has the names of all variables (cpython_localsplusnames()). */
	uint8_t varnames, freevars, cellvars;
};

/* Bits of co_flags. */
#define CPYTHON_CO_VARARGS     4
#define CPYTHON_CO_VARKEYWORDS 8

/* Bits of the bytes of co_localspluskinds (Include/internal/pycore_code.h of 3.11 to 3.15). */
#define CPYTHON_FAST_HIDDEN 0x10 /* 3.12+: of a comprehension */
#define CPYTHON_FAST_CELL   0x40
#define CPYTHON_FAST_FREE   0x80

/* What the kernel side has to know of the bytecode, see struct pybpf_layout. */
struct cpython_bytecode {
	uint8_t extended_arg, extended_arg_size;
	uint8_t caches;
};

/* PyFunctionObject (Include/funcobject.h, Include/cpython/funcobject.h). */
struct cpython_function {
	uint8_t closure, name;
	uint8_t qualname; /* func_name where there is no func_qualname */
};

/* Where a frame has its variables, an array of pointers. */
enum cpython_locals {
	CPYTHON_LOCALS_OF_OBJECT,    /* PyFrameObject.f_localsplus */
	CPYTHON_LOCALS_OF_FRAME,     /* _PyInterpreterFrame.localsplus, from the frame's start on */
	CPYTHON_LOCALS_BEHIND_OWNER, /* likewise, at the first multiple of 8 behind the field `owner` */
};

struct cpython_frame {
	enum cpython_locals kind;
	uint16_t locals;
	uint8_t block_stack; /* from f_iblock to f_blockstack; 0: the code object has a table of exceptions instead */
};

/* Where an object has the values of its attributes, if not in a dict. */
enum cpython_values {
	CPYTHON_VALUES_NONE,
	CPYTHON_VALUES_BESIDE, /* before the object is a pointer to them, and one to its dict */
	CPYTHON_VALUES_TAGGED, /* before it is a pointer to one of both: to the values, less one byte, if it is odd */
	CPYTHON_VALUES_INLINE, /* behind the object's own fields; 8 bytes of counters stand before the values */
};

/* PyDictKeysObject and PyDictValues (Objects/dict-common.h, Include/internal/pycore_dict.h). */
struct cpython_dict {
	bool has_own_table;  /* a PyDictObject has the table itself, with unused entries in between */
	bool has_log2_sizes; /* keys have logarithms of their sizes, and say whether entries have hashes */
	enum cpython_values values;
	uint16_t cached_keys; /* PyHeapTypeObject.ht_cached_keys */
};

/* Builtin types, and some of the standard library. */
struct cpython_objects {
	bool has_c_int;          /* int is a C long, and long another type */
	bool has_long_tag;       /* lv_tag instead of ob_size (Include/cpython/longintrepr.h) */
	bool has_ready;          /* PyASCIIObject.state.ready */
	bool has_hash_first;     /* an entry of a set is a hash and a key; a removed one has a certain string */
	bool has_len_in_deque;   /* dequeobject has its length behind its indices, and blocks of 62 items */
	bool has_fold;           /* of datetime and time (PEP 495) */
	bool has_python_decimal; /* decimal.Decimal is written in Python */
	uint8_t tuple_items;     /* ob_item */
	uint8_t dict_used;       /* ma_used */
	uint8_t default_factory; /* of a defaultdict */
	uint64_t no_refs;        /* bits of ob_refcnt that no object in use has */
};

/* How repr() writes. */
struct cpython_repr {
	bool has_old_literals;     /* u'', 1L, set([1]), <type 'int'>; and '' is bytes */
	bool names_timedelta;      /* timedelta(days=1), not timedelta(1) */
	bool has_exception_comma;  /* E('x',), not E('x') */
	bool bytearray_like_bytes; /* its quotes */
};

/* Names of what pybpf looks for. */
struct cpython_names {
	const char *eval_loop;             /* the C function that evaluates frames */
	const char *ident, *name, *daemon; /* attributes of a threading.Thread */
	const char *join_waits;            /* the function of threading.py in which join() waits; NULL: itself */
	const char *path_parts;            /* attribute of a pathlib.PurePath */
};

/* What a Lock and an RLock of _thread have. */
enum cpython_lock {
	CPYTHON_LOCK_SEMAPHORE,
	CPYTHON_LOCK_EITHER, /* of one release a semaphore, of a later one a Lock has a PyMutex */
	CPYTHON_LOCK_MUTEX,  /* PyMutex (Include/cpython/lock.h) */
};

struct cpython_threads {
	enum cpython_lock lock;
	bool has_parking;       /* threads sleep in Python/parking_lot.c */
	bool splits_exit;       /* with leaves __exit__ on the stack as a function and its object */
	bool is_interp_unsure;  /* nothing proves which interpreter a thread is in */
	bool has_contexts;      /* PyThreadState.context (PEP 567) */
	uint8_t greenlet_words; /* of greenlet's ExceptionState: exc_info and a _PyErr_StackItem, or three objects */
};

/* Where a generator has its frame and its state. */
enum cpython_generator_kind {
	CPYTHON_GENERATOR_RUNNING,   /* gi_frame, gi_running; the frame's stack tells the rest */
	CPYTHON_GENERATOR_F_STATE,   /* gi_frame, PyFrameObject.f_state; f_lasti counts code units */
	CPYTHON_GENERATOR_INSIDE,    /* gi_iframe and gi_frame_state, see below */
	CPYTHON_GENERATOR_IN_LAYOUT, /* likewise, but struct pybpf_layout has them */
};

/* PyGenObject (Include/cpython/genobject.h) and enum _framestate (Include/internal/pycore_frame.h). */
struct cpython_generator {
	enum cpython_generator_kind kind;
	uint8_t frame, state;
	int8_t created, suspended, executing; /* values of the state; CPYTHON_GENERATOR_RUNNING has none */
	bool tells_await;                     /* the state tells whether it awaits something, by two values */
	int8_t awaits, awaits_locked;         /* locked: another thread looks at what it awaits */
	uint8_t awaited_below_top;            /* bytes from what it awaits to the top of its frame's stack */
};

/* How the tasks of asyncio are found. */
enum cpython_tasks_kind {
	CPYTHON_TASKS_NONE,
	CPYTHON_TASKS_IN_SETS,  /* in sets of _asyncio, running ones in its dict; callbacks tell what awaits a task */
	CPYTHON_TASKS_IN_LISTS, /* of threads; _asyncio tells its offsets, and a task has what awaits it */
};

/* TaskObj (Modules/_asynciomodule.c). */
struct cpython_task {
	uint8_t size; /* without the header */
	uint8_t coro;
	uint8_t name; /* 0: there is none */
};
#define CPYTHON_TASK_FORMS 2

struct cpython_tasks {
	enum cpython_tasks_kind kind;
	/* PyThreadState.context_ver: bytes behind thread_id; if 0, bytes before datastack_top. */
	uint8_t contexts_behind_id, contexts_before_top;
	/* The other fields are of CPYTHON_TASKS_IN_SETS. */
	struct cpython_task forms[CPYTHON_TASK_FORMS];
	uint8_t wakeup_task; /* the task in a callback that wakes it */
	/* The running loop: in PyThreadState.dict, this many bytes before thread_id, and there perhaps in a holder; */
	uint8_t dict_before_id;
	bool has_loop_holder;
	uint8_t loop_behind_id[2]; /* if that is 0, in a field that many bytes behind thread_id, one of both */
};

struct cpython_facts {
	uint16_t major, minor;
	const char *came_with; /* a name that the API has from this version on; NULL: none is looked for */
	const struct cpython_build *build;
	const struct cpython_code *code;
	const struct cpython_bytecode *bytecode;
	const struct cpython_function *function;
	const struct cpython_frame *frame;
	const struct cpython_dict *dict;
	const struct cpython_objects *objects;
	const struct cpython_repr *repr;
	const struct cpython_names *names;
	const struct cpython_threads *threads;
	const struct cpython_generator *generator;
	const struct cpython_tasks *tasks;
};

/* Returns the size of PyObject, which ends with ob_type: the fields of an object's own type follow it. */
static inline uint32_t cpython_header_size(const struct pybpf_layout *layout)
{
	return layout->code_type + 8u;
}

/* Return where a code object has the tuple of names of all variables, and the bytes with their kinds; from 3.11 on. */
static inline uint32_t cpython_localsplusnames(const struct pybpf_layout *layout)
{
	return layout->code_filename - 16u;
}

static inline uint32_t cpython_localspluskinds(const struct pybpf_layout *layout)
{
	return layout->code_filename - 8u;
}

/* Returns the facts of a version, never NULL; of one without a row those of the newest before it. */
const struct cpython_facts *cpython_facts_of(int major, int minor);
/* Returns the facts of the version that the layout is of. */
const struct cpython_facts *cpython_facts(const struct pybpf_layout *layout);
/* Sets what the version alone tells in a layout that has the offsets of its build. */
void cpython_fill_in(struct pybpf_layout *layout);
/* Returns whether the layout is of a version that is newer than all those known. */
bool cpython_is_newer(const struct pybpf_layout *layout);
/* Returns the facts of the newest version whose `came_with` is there, or NULL. */
const struct cpython_facts *cpython_by_api(bool (*has)(const char *name, const void *arg), const void *arg);

#endif
