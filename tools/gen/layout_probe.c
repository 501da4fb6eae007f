// SPDX-License-Identifier: Apache-2.0
/*
 * Prints where the headers of one CPython put what pybpf reads: "NAME VALUE" per line.
 * tools/gen/layouts compiles it once for every version and kind of build, and runs it.
 */
#define Py_BUILD_CORE 1
#include <stddef.h>
#include <stdio.h>
#include <Python.h>
#include <frameobject.h>

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
#include "internal/pycore_frame.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_debug_offsets.h"
#include "internal/pycore_interpframe_structs.h"
#include "internal/pycore_interpframe.h"
#include "internal/pycore_stackref.h"
#endif
#if PY_VERSION_HEX >= 0x03080000
#include "internal/pycore_pystate.h"
#elif PY_VERSION_HEX >= 0x03070000
#include "internal/pystate.h"
#endif
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_VERSION_HEX >= 0x030d0000
#include "internal/pycore_frame.h"
#endif

#define PUT(name, value)          printf("%s %lu\n", name, (unsigned long)(value))
#define OFFSET(name, type, field) PUT(name, offsetof(type, field))
#define EXPECT(what, condition)   _Static_assert(condition, what)

#if PY_MAJOR_VERSION >= 3
EXPECT("the hash follows the length",
       offsetof(PyASCIIObject, hash) == offsetof(PyASCIIObject, length) + sizeof(Py_ssize_t));
EXPECT("the hash comes before the state",
       offsetof(PyASCIIObject, state) == offsetof(PyASCIIObject, hash) + sizeof(Py_hash_t));
#endif

#if PY_VERSION_HEX >= 0x030c0000
/* layout_from_debug_offsets rests on these, as _Py_DebugOffsets tells neither field. */
EXPECT("co_version comes right before co_localsplusnames",
       offsetof(PyCodeObject, co_version) == offsetof(PyCodeObject, co_localsplusnames) - 4);
EXPECT("a compact string's characters come 16 bytes after an ASCII string's",
       sizeof(PyCompactUnicodeObject) == sizeof(PyASCIIObject) + 16);
EXPECT("owners of Python frames are below 3",
       FRAME_OWNED_BY_THREAD < 3 && FRAME_OWNED_BY_GENERATOR < 3 && FRAME_OWNED_BY_FRAME_OBJECT < 3);
#if PY_VERSION_HEX >= 0x030e0000
EXPECT("owner 3 is the interpreter's own frame", FRAME_OWNED_BY_INTERPRETER == 3);
#else
EXPECT("owner 3 is a frame on the C stack", FRAME_OWNED_BY_CSTACK == 3);
#endif
#endif

#if PY_VERSION_HEX >= 0x030b0000
EXPECT("the data stack's chunk, top and limit follow each other",
       offsetof(PyThreadState, datastack_top) == offsetof(PyThreadState, datastack_chunk) + 8 &&
	       offsetof(PyThreadState, datastack_limit) == offsetof(PyThreadState, datastack_top) + 8);
#endif

#if PY_VERSION_HEX >= 0x030c0000
/* walk_tstate_id rests on it. */
EXPECT("a thread state's id comes right before the data stack",
       offsetof(PyThreadState, datastack_chunk) == offsetof(PyThreadState, id) + 8);
#endif

#if PY_VERSION_HEX >= 0x030b0000
/* thread_lists rests on it. */
EXPECT("the number of thread states comes right before the list of threads",
       offsetof(PyInterpreterState, threads.head) == offsetof(PyInterpreterState, threads.next_unique_id) + 8);
#endif

#if PY_VERSION_HEX >= 0x030c0000
/* bpf/walk_switch.h rests on these. */
EXPECT("an object's type ends its header", offsetof(PyObject, ob_type) == sizeof(PyObject) - 8);
EXPECT("a frame object's frame follows its header and one pointer",
       offsetof(PyFrameObject, f_frame) == sizeof(PyObject) + 8);
#if PY_VERSION_HEX >= 0x030d0000
EXPECT("a frame's object comes right before its position",
       offsetof(_PyInterpreterFrame, frame_obj) == offsetof(_PyInterpreterFrame, instr_ptr) - 8);
#else
EXPECT("a frame's object comes right before its position",
       offsetof(_PyInterpreterFrame, frame_obj) == offsetof(_PyInterpreterFrame, prev_instr) - 8);
#endif
EXPECT("a thread's own frame is of owner 0, a generator's of owner 1",
       FRAME_OWNED_BY_THREAD == 0 && FRAME_OWNED_BY_GENERATOR == 1);
#endif

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
/* bpf/walk_data_stack.h rests on these. */
EXPECT("a chunk of the data stack", offsetof(_PyStackChunk, previous) == 0 && offsetof(_PyStackChunk, top) == 16 &&
					    offsetof(_PyStackChunk, data) == 24);
EXPECT("a frame without locals and stack", FRAME_SPECIALS_SIZE * sizeof(PyObject *) == 72);
EXPECT("a code object's stack size, first line and number of locals follow each other",
       offsetof(PyCodeObject, co_stacksize) == offsetof(PyCodeObject, co_firstlineno) - 4 &&
	       offsetof(PyCodeObject, co_nlocalsplus) == offsetof(PyCodeObject, co_firstlineno) + 4);
#if PY_VERSION_HEX < 0x030c0000
EXPECT("a frame's object comes right before the previous frame",
       offsetof(_PyInterpreterFrame, frame_obj) == offsetof(_PyInterpreterFrame, previous) - 8);
EXPECT("a frame object's frame follows its header and one pointer",
       offsetof(PyFrameObject, f_frame) == sizeof(PyObject) + 8);
EXPECT("the owner follows is_entry",
       offsetof(_PyInterpreterFrame, owner) == offsetof(_PyInterpreterFrame, is_entry) + 1);
EXPECT("a thread's own frame is of owner 0", FRAME_OWNED_BY_THREAD == 0);
#endif
EXPECT("a generator's item of exc_info, and its frame",
       offsetof(_PyErr_StackItem, previous_item) == 8 &&
	       offsetof(PyGenObject, gi_frame_state) == offsetof(PyGenObject, gi_exc_state) + 27 &&
	       offsetof(PyGenObject, gi_iframe) == offsetof(PyGenObject, gi_exc_state) + 32 && FRAME_EXECUTING == 0);
#endif

#if PY_VERSION_HEX >= 0x030d0000
/* layout_from_debug_offsets also takes these for granted when it checks a table. */
EXPECT("a string's length follows its header", offsetof(PyASCIIObject, length) == sizeof(PyObject));
EXPECT("a bytes object's size follows its header", offsetof(PyBytesObject, ob_base.ob_size) == sizeof(PyObject));
EXPECT("the table starts the runtime", offsetof(_PyRuntimeState, debug_offsets) == 0);
EXPECT("a table starts with its cookie, version and whether it is free-threaded",
       offsetof(_Py_DebugOffsets, cookie) == 0 && offsetof(_Py_DebugOffsets, version) == 8 &&
	       offsetof(_Py_DebugOffsets, free_threaded) == 16);

EXPECT("a frame's function comes right after its previous frame",
       offsetof(_PyInterpreterFrame, f_funcobj) == offsetof(_PyInterpreterFrame, previous) + 8);

/* debug_read_exception rests on it. */
EXPECT("what a thread handles comes right after what it raises",
       offsetof(PyThreadState, exc_info) == offsetof(PyThreadState, current_exception) + 8 &&
	       offsetof(_PyErr_StackItem, exc_value) == 0);

/* debug_relations.c rests on these. */
#define UP_TO_8(size) (((size) + 7) / 8 * 8)
#define ENDS_WITH(type, field, bytes)                                                                                  \
	EXPECT(#type " ends with " #field, sizeof(type) == UP_TO_8(offsetof(type, field) + (bytes)))
ENDS_WITH(PyObject, ob_type, 8);
ENDS_WITH(PyBytesObject, ob_sval, 1);
ENDS_WITH(PyASCIIObject, state, 4);
ENDS_WITH(PyUnicodeObject, data, 8);
ENDS_WITH(PyCodeObject, co_code_adaptive, 1);
ENDS_WITH(_PyInterpreterFrame, localsplus, 8);
#if PY_VERSION_HEX >= 0x030e0000
ENDS_WITH(PyGenObject, gi_iframe, sizeof(_PyInterpreterFrame));
#endif
EXPECT("a frame's variables follow its owner",
       offsetof(_PyInterpreterFrame, localsplus) == UP_TO_8(offsetof(_PyInterpreterFrame, owner) + 1));
EXPECT("a frame begins with its code object and its previous frame",
       offsetof(_PyInterpreterFrame, previous) == offsetof(_PyInterpreterFrame, f_executable) + 8);
#if PY_VERSION_HEX >= 0x030e0000
EXPECT("the end of a frame's stack comes right after its position",
       offsetof(_PyInterpreterFrame, stackpointer) == offsetof(_PyInterpreterFrame, instr_ptr) + 8);
#endif
#if PY_VERSION_HEX >= 0x030f0000
EXPECT("the frame of a collection comes right after whether there is one",
       offsetof(struct _gc_runtime_state, frame) == offsetof(struct _gc_runtime_state, collecting) + 8);
#endif
EXPECT("a generator's state comes right before its frame",
       UP_TO_8(offsetof(PyGenObject, gi_frame_state) + 1) == offsetof(PyGenObject, gi_iframe));
EXPECT("a code object's names and kinds of variables, file, name, qualified name and lines follow each other",
       offsetof(PyCodeObject, co_localspluskinds) == offsetof(PyCodeObject, co_localsplusnames) + 8 &&
	       offsetof(PyCodeObject, co_filename) == offsetof(PyCodeObject, co_localspluskinds) + 8 &&
	       offsetof(PyCodeObject, co_name) == offsetof(PyCodeObject, co_filename) + 8 &&
	       offsetof(PyCodeObject, co_qualname) == offsetof(PyCodeObject, co_name) + 8 &&
	       offsetof(PyCodeObject, co_linetable) == offsetof(PyCodeObject, co_qualname) + 8);
EXPECT("a code object's counts of arguments",
       offsetof(PyCodeObject, co_argcount) == sizeof(PyVarObject) + 28 &&
	       offsetof(PyCodeObject, co_firstlineno) == offsetof(PyCodeObject, co_argcount) + 16);
EXPECT("interpreters follow what says whether the runtime ends",
       offsetof(_PyRuntimeState, interpreters.head) == offsetof(_PyRuntimeState, _finalizing) + 24);
EXPECT("an interpreter's number follows the next one",
       offsetof(PyInterpreterState, id) == offsetof(PyInterpreterState, next) + 8);
#if PY_VERSION_HEX >= 0x030e0000
EXPECT("an interpreter's main thread comes after the first of its list",
       offsetof(PyInterpreterState, threads.main) == offsetof(PyInterpreterState, threads.head) + 16);
#endif
EXPECT("a thread state's neighbours and interpreter, and its ids",
       offsetof(PyThreadState, next) == offsetof(PyThreadState, prev) + 8 &&
	       offsetof(PyThreadState, interp) == offsetof(PyThreadState, next) + 8 &&
	       offsetof(PyThreadState, native_thread_id) == offsetof(PyThreadState, thread_id) + 8);
EXPECT("an interpreter's collector, sys and builtins, and modules follow each other",
       offsetof(PyInterpreterState, sysdict) ==
		       offsetof(PyInterpreterState, gc) + sizeof(((PyInterpreterState *)0)->gc) &&
	       offsetof(PyInterpreterState, imports.modules) == offsetof(PyInterpreterState, builtins) + 8);

#define FIELD(path) PUT(#path, offsetof(_Py_DebugOffsets, path))

static void put_debug_offsets(void)
{
	PUT("size", sizeof(_Py_DebugOffsets));
	FIELD(runtime_state.size);
	FIELD(runtime_state.finalizing);
	FIELD(runtime_state.interpreters_head);
	FIELD(interpreter_state.size);
	FIELD(interpreter_state.id);
	FIELD(interpreter_state.next);
	FIELD(interpreter_state.threads_head);
	FIELD(interpreter_state.ceval_gil);
	FIELD(interpreter_state.gc);
	FIELD(interpreter_state.imports_modules);
	FIELD(interpreter_state.sysdict);
	FIELD(interpreter_state.builtins);
	FIELD(gc.size);
	FIELD(gc.collecting);
#if PY_VERSION_HEX >= 0x030e0000
	FIELD(interpreter_state.code_object_generation);
	FIELD(interpreter_state.threads_main);
#else
	PUT("interp_size", sizeof(PyInterpreterState));
	PUT("tstate_size", sizeof(PyThreadState));
	OFFSET("next_version", PyInterpreterState, func_state.next_version);
	EXPECT("it has 32 bits", sizeof(((PyInterpreterState *)0)->func_state.next_version) == 4);
#endif
	FIELD(thread_state.size);
	FIELD(thread_state.prev);
	FIELD(thread_state.next);
	FIELD(thread_state.interp);
	FIELD(thread_state.thread_id);
	FIELD(thread_state.native_thread_id);
	FIELD(thread_state.current_frame);
	FIELD(thread_state.status);
	FIELD(thread_state.datastack_chunk);
	PUT("frame_to_exc_info", offsetof(PyThreadState, exc_info) - offsetof(PyThreadState, current_frame));
	FIELD(interpreter_frame.size);
	FIELD(interpreter_frame.executable);
	FIELD(interpreter_frame.previous);
	FIELD(interpreter_frame.instr_ptr);
	FIELD(interpreter_frame.owner);
	FIELD(interpreter_frame.localsplus);
	FIELD(code_object.size);
	FIELD(code_object.filename);
	FIELD(code_object.name);
	FIELD(code_object.qualname);
	FIELD(code_object.linetable);
	FIELD(code_object.firstlineno);
	FIELD(code_object.argcount);
	FIELD(code_object.localsplusnames);
	FIELD(code_object.localspluskinds);
	FIELD(code_object.co_code_adaptive);
	FIELD(pyobject.size);
	FIELD(pyobject.ob_type);
	FIELD(bytes_object.size);
	FIELD(bytes_object.ob_size);
	FIELD(bytes_object.ob_sval);
	FIELD(unicode_object.size);
	FIELD(unicode_object.length);
	FIELD(unicode_object.state);
	FIELD(unicode_object.asciiobject_size);
#if PY_VERSION_HEX >= 0x030e0000
	PUT("executor", offsetof(PyThreadState, current_executor) - offsetof(PyThreadState, datastack_chunk));
	FIELD(interpreter_frame.tlbc_index);
	FIELD(code_object.co_tlbc);
	FIELD(interpreter_frame.stackpointer);
	FIELD(gen_object.size);
	FIELD(gen_object.gi_iframe);
	FIELD(gen_object.gi_frame_state);
#endif
#if PY_VERSION_HEX >= 0x030f0000
	FIELD(unicode_object.compactunicodeobject_size);
	FIELD(gc.frame);
	FIELD(thread_state.current_exception);
#endif
}
#else /* to 3.12: the offsets themselves */

static void put_states(void)
{
	OFFSET("interp_next", PyInterpreterState, next);
#if PY_VERSION_HEX >= 0x030c0000
	OFFSET("interp_modules", PyInterpreterState, imports.modules);
#else
	OFFSET("interp_modules", PyInterpreterState, modules);
#endif
#if PY_VERSION_HEX >= 0x03090000
	OFFSET("interp_collecting", PyInterpreterState, gc.collecting);
#elif PY_VERSION_HEX >= 0x03070000
	PUT("collecting_from_head",
	    offsetof(_PyRuntimeState, gc.collecting) - offsetof(_PyRuntimeState, interpreters.head));
#endif
#if PY_VERSION_HEX >= 0x03070000
	OFFSET("tstate_handled", PyThreadState, exc_info);
	OFFSET("handled_value", _PyErr_StackItem, exc_value);
#if PY_VERSION_HEX >= 0x030c0000
	OFFSET("tstate_raised", PyThreadState, current_exception);
#else
	OFFSET("tstate_raised", PyThreadState, curexc_type);
#endif
#endif
#if PY_VERSION_HEX >= 0x030b0000
	OFFSET("interp_threads_head", PyInterpreterState, threads.head);
#else
	OFFSET("interp_threads_head", PyInterpreterState, tstate_head);
#endif
	OFFSET("tstate_next", PyThreadState, next);
	OFFSET("tstate_interp", PyThreadState, interp);
	OFFSET("tstate_thread_id", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030b0000
	OFFSET("tstate_frame", PyThreadState, cframe);
	OFFSET("tstate_cframe", PyThreadState, cframe);
	OFFSET("cframe_previous", _PyCFrame, previous);
	OFFSET("cframe_frame", _PyCFrame, current_frame);
	EXPECT("previous follows current_frame",
	       offsetof(_PyCFrame, previous) == offsetof(_PyCFrame, current_frame) + 8);
	OFFSET("tstate_datastack_top", PyThreadState, datastack_top);
	OFFSET("tstate_exc_info", PyThreadState, exc_info);
#if PY_VERSION_HEX >= 0x030c0000
	OFFSET("tstate_status", PyThreadState, _status);
#endif
#else
	OFFSET("tstate_frame", PyThreadState, frame);
#if PY_VERSION_HEX >= 0x030a0000
	OFFSET("tstate_cframe", PyThreadState, cframe);
	OFFSET("cframe_previous", CFrame, previous);
#endif
#endif
#if PY_VERSION_HEX >= 0x030a0000
	OFFSET("tstate_cframe", PyThreadState, cframe);
#endif
#if PY_VERSION_HEX >= 0x03070000
	OFFSET("runtime_interp_head", _PyRuntimeState, interpreters.head);
#if PY_VERSION_HEX < 0x030c0000
	OFFSET("runtime_tstate_current", _PyRuntimeState, gilstate.tstate_current);
	PUT("gil_from_head",
	    (int)offsetof(_PyRuntimeState, ceval.gil) - (int)offsetof(_PyRuntimeState, interpreters.head));
#else
	OFFSET("interp_gil", PyInterpreterState, ceval.gil);
#endif
#else
	/* interp_head itself is what user space looks for. */
	PUT("runtime_interp_head", 0);
#endif
}

static void put_frame(void)
{
#if PY_VERSION_HEX >= 0x030b0000
#if PY_VERSION_HEX >= 0x030c0000
	OFFSET("frame_owner", _PyInterpreterFrame, owner);
#else
	/* 3.11's frames are all Python's, whoever owns them. */
	OFFSET("frame_entry", _PyInterpreterFrame, is_entry);
#endif
	OFFSET("frame_code", _PyInterpreterFrame, f_code);
	OFFSET("frame_previous", _PyInterpreterFrame, previous);
	OFFSET("frame_position", _PyInterpreterFrame, prev_instr);
	OFFSET("frame_mark", _PyInterpreterFrame, frame_obj);
#else
	OFFSET("frame_code", PyFrameObject, f_code);
	OFFSET("frame_previous", PyFrameObject, f_back);
	OFFSET("frame_position", PyFrameObject, f_lasti);
	OFFSET("frame_mark", PyFrameObject, f_trace);
#endif
}

static void put_code(void)
{
	OFFSET("code_type", PyObject, ob_type);
	OFFSET("code_filename", PyCodeObject, co_filename);
	OFFSET("code_name", PyCodeObject, co_name);
	OFFSET("code_firstlineno", PyCodeObject, co_firstlineno);
#if PY_VERSION_HEX >= 0x030a0000
	OFFSET("code_linetable", PyCodeObject, co_linetable);
#else
	OFFSET("code_linetable", PyCodeObject, co_lnotab);
#endif
#if PY_VERSION_HEX >= 0x030b0000
	OFFSET("code_qualname", PyCodeObject, co_qualname);
	OFFSET("code_adaptive", PyCodeObject, co_code_adaptive);
#else
	OFFSET("code_bytecode", PyCodeObject, co_code);
#endif
#if PY_VERSION_HEX >= 0x030c0000
	OFFSET("code_version", PyCodeObject, co_version);
#endif
}

static void put_strings(void)
{
#if PY_MAJOR_VERSION >= 3
	OFFSET("str_length", PyASCIIObject, length);
	OFFSET("str_hash", PyASCIIObject, hash);
	OFFSET("str_state", PyASCIIObject, state);
	PUT("str_ascii_data", sizeof(PyASCIIObject));
	PUT("str_compact_data", sizeof(PyCompactUnicodeObject));
#else
	OFFSET("str_length", PyStringObject, ob_size);
	OFFSET("str_hash", PyStringObject, ob_shash);
	OFFSET("str_ascii_data", PyStringObject, ob_sval);
#endif
	OFFSET("bytes_size", PyVarObject, ob_size);
	OFFSET("bytes_data", PyBytesObject, ob_sval);
}
#endif

int main(void)
{
	printf("headers %s\n", PY_VERSION);
	PUT("version_hex", PY_VERSION_HEX);
	PUT("major", PY_MAJOR_VERSION);
	PUT("minor", PY_MINOR_VERSION);
#if PY_VERSION_HEX >= 0x030d0000
	put_debug_offsets();
#else
	put_states();
	put_frame();
	put_code();
	put_strings();
#endif
	return 0;
}
