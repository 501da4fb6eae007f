/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Where CPython's objects have fields that stay where they are in all versions that have them: bytes from the end of an
 * object's header (PyObject_HEAD) on. What a version or a build has elsewhere is in struct pybpf_layout, and in user
 * space in user/cpython/facts.h.
 */
#ifndef PYBPF_OBJECTS_H
#define PYBPF_OBJECTS_H

/* PyVarObject.ob_size: of types, ints to 3.11, tuples and lists (Include/object.h). */
#define PYBPF_VAR_SIZE 0

/* PyTypeObject (Include/object.h, from 3.8 on Include/cpython/object.h), 2.7 to 3.15. */
#define PYBPF_TYPE_NAME       8
#define PYBPF_TYPE_BASICSIZE  16 /* tp_itemsize follows */
#define PYBPF_TYPE_FLAGS      152
#define PYBPF_TYPE_MEMBERS    224
#define PYBPF_TYPE_BASE       240
#define PYBPF_TYPE_DICT       248
#define PYBPF_TYPE_DESCR_GET  256
#define PYBPF_TYPE_DICTOFFSET 272

/* Bits of tp_flags (Include/object.h). */
#define PYBPF_TPFLAGS_INLINE_VALUES     (1ULL << 2) /* 3.13+ */
#define PYBPF_TPFLAGS_MANAGED_DICT      (1ULL << 4) /* 3.11+ */
#define PYBPF_TPFLAGS_HEAPTYPE          (1ULL << 9)
#define PYBPF_TPFLAGS_READY             (1ULL << 12)
#define PYBPF_TPFLAGS_INT_SUBCLASS      (1ULL << 23) /* 2.7 */
#define PYBPF_TPFLAGS_LONG_SUBCLASS     (1ULL << 24)
#define PYBPF_TPFLAGS_LIST_SUBCLASS     (1ULL << 25)
#define PYBPF_TPFLAGS_TUPLE_SUBCLASS    (1ULL << 26)
#define PYBPF_TPFLAGS_BYTES_SUBCLASS    (1ULL << 27) /* 2.7's str */
#define PYBPF_TPFLAGS_UNICODE_SUBCLASS  (1ULL << 28)
#define PYBPF_TPFLAGS_DICT_SUBCLASS     (1ULL << 29)
#define PYBPF_TPFLAGS_BASE_EXC_SUBCLASS (1ULL << 30)
#define PYBPF_TPFLAGS_TYPE_SUBCLASS     (1ULL << 31)

/*
 * An int (Include/longintrepr.h, from 3.12 on struct _PyLongValue of Include/cpython/longintrepr.h): in place of
 * ob_size 3.12+ has a tag, whose two lowest bits are 0 for a positive number and that has the number of digits from bit
 * 3 on. Digits have 30 bits.
 */
#define PYBPF_LONG_TAG         0
#define PYBPF_LONG_SIGN        3
#define PYBPF_LONG_COUNT_SHIFT 3
#define PYBPF_LONG_DIGITS      8
#define PYBPF_DIGIT_BITS       30

/* PyListObject.ob_item (Include/listobject.h, Include/cpython/listobject.h), 2.7 to 3.15. */
#define PYBPF_LIST_ITEMS 8

/* PyDictObject (Include/dictobject.h, Include/cpython/dictobject.h), 3.6 to 3.15: after ma_used, and a version or a
 * tag. */
#define PYBPF_DICT_KEYS   16
#define PYBPF_DICT_VALUES 24
/*
 * PyDictKeysObject, from its start on (Objects/dict-common.h, Include/internal/pycore_dict.h). To 3.10 it has
 * dk_refcnt, dk_size, dk_lookup, dk_usable, dk_nentries, each of 8 bytes, and the indices. 3.11+ has dk_refcnt;
 * dk_log2_size, dk_log2_index_bytes and dk_kind, a byte each, and dk_version of 4; dk_usable, dk_nentries, and the
 * indices.
 */
#define PYBPF_KEYS_INDICES_310 40
#define PYBPF_KEYS_INDICES     32
#define PYBPF_KEYS_GENERAL     0 /* dk_kind: the keys are any objects */
/* PyDictKeyEntry: hash, key, value. PyDictUnicodeEntry, where all keys are strings (3.11+): key, value. */
#define PYBPF_ENTRY_HASHED 24
#define PYBPF_ENTRY        16

/* PySetObject (Include/setobject.h, Include/cpython/setobject.h), 3.7 to 3.15. */
#define PYBPF_SET_MASK  16
#define PYBPF_SET_TABLE 24

/* PyWeakReference.wr_object (Include/weakrefobject.h, Include/cpython/weakrefobject.h). */
#define PYBPF_WEAKREF_OBJECT 0

/* PyCFunctionObject.m_self, after m_ml (Include/methodobject.h, Include/cpython/methodobject.h). */
#define PYBPF_CFUNCTION_SELF 8
/* PyMethodObject: im_func, im_self (Include/classobject.h, Include/cpython/classobject.h). */
#define PYBPF_METHOD_FUNCTION 0
#define PYBPF_METHOD_SELF     8
/* PyMethodDescrObject: d_type, d_name, d_qualname, d_method (Include/descrobject.h, Include/cpython/descrobject.h). */
#define PYBPF_DESCRIPTOR_DEFINITION 24

/* PyGenObject, and those of coroutines and asynchronous generators, to 3.10: gi_frame, and to 3.9 gi_running, a char.
 */
#define PYBPF_GEN_FRAME   0
#define PYBPF_GEN_RUNNING 8
/* PyCoroObject.cr_qualname (Include/genobject.h of 3.7). */
#define PYBPF_CORO_QUALNAME 40

/*
 * PyFrameObject (Include/frameobject.h, Include/cpython/frameobject.h): f_valuestack to 3.10; f_stacktop to 3.9;
 * f_stackdepth and f_state of 3.10; f_frame from 3.11 on.
 */
#define PYBPF_FRAME_VALUESTACK 48
#define PYBPF_FRAME_STACKTOP   56
#define PYBPF_FRAME_STACKDEPTH 64
#define PYBPF_FRAME_STATE      92
#define PYBPF_FRAME_FRAME      8
/*
 * To 3.10, before f_localsplus: f_iblock, a char in 3.x, and f_blockstack, of which f_iblock PyTryBlock of three ints
 * are in use. The third is the level.
 */
#define PYBPF_BLOCK_COUNT_BEFORE_LOCALS 248
#define PYBPF_BLOCKS                    20
#define PYBPF_BLOCK_SIZE                12
#define PYBPF_BLOCK_LEVEL               8

/* FutureObj, which TaskObj begins with: fut_loop (3.7 to 3.15), and to 3.13 fut_callback0 and fut_callbacks. */
#define PYBPF_FUTURE_LOOP      0
#define PYBPF_FUTURE_CALLBACK0 8
#define PYBPF_FUTURE_CALLBACKS 24
/* TaskObj.task_fut_waiter comes right before task_coro (3.7 to 3.13). Both are of Modules/_asynciomodule.c. */
#define PYBPF_WAITER_BEFORE_CORO 8
/* The function that gather() makes has 7 variables of the outer one at most (Lib/asyncio/tasks.py). */
#define PYBPF_GATHER_CELLS 8

#endif
