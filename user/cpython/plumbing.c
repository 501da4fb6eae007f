// SPDX-License-Identifier: Apache-2.0
#include "cpython/plumbing.h"

#include <fnmatch.h>
#include <stddef.h>

/*
 * Functions of CPython, 2.7 to 3.15, between one Python function and the next, or between one and the C function that
 * it calls: evaluation, calls, descriptors of calls, generators, imports, functions that trace others; and those that
 * begin a program or a thread.
 */
static const char *const in_interpreter[] = {
	"_PyEval_*",
	"_PyEvalFrame*",
	"_PyFrame_*",
	"_PyThreadState_P*Frame",
	"initialize_locals",
	"clear_thread_frame",
	"_PyObject_MakeTpCall",
	"PyEval_*",
	"py_trampoline_evaluator",
	"_TAIL_CALL_*",
	"_PyJIT_Entry",
	"_PyFunction_*",
	"PyFunction_*",
	"function_call*",
	"function_code_fastcall",
	"fast_function",
	"call_function*",
	"do_call*",
	"ext_do_call",
	"_PyObject_Call*",
	"PyObject_Call*",
	"_PyObject_FastCall*",
	"_PyObject_Vectorcall*",
	"PyObject_Vectorcall*",
	"_PyVectorcall_*",
	"PyVectorcall_*",
	"object_vacall",
	"_PyStack_*",
	"_PyCFunction_*",
	"PyCFunction_*",
	"_PyMethodDef_*",
	"_PyMethodDescr_*",
	"cfunction_*",
	"cfunction_vectorcall_*",
	"method_vectorcall*",
	"method_call*",
	"methoddescr_call",
	"instancemethod_call",
	"instance_call",
	"classmethoddescr_call",
	"wrapper_call",
	"wrapperdescr_call",
	"wrapperdescr_raw_call",
	"wrap_*",
	"slot_*",
	"_Py_slot_*",
	"vectorcall_*",
	"lookup_maybe_method",
	"call_method*",
	"call_maybe",
	"call_unbound*",
	"call_attribute",
	"type_call",
	"type_new",
	"type_vectorcall",
	"_PyGen_Send*",
	"gen_send_ex*",
	"gen_send",
	"gen_iternext",
	"gen_close*",
	"gen_throw",
	"_gen_throw",
	"coro_send",
	"coro_wrapper_*",
	"PyIter_Send",
	"async_gen_asend_*",
	"run_eval_code_obj",
	"run_mod",
	"pyrun_*",
	"PyRun_*",
	"_PyRun_*",
	"pymain_*",
	"Py_RunMain",
	"Py_Main",
	"Py_BytesMain",
	"_Py_UnixMain",
	"builtin_exec*",
	"builtin_eval*",
	"builtin___build_class__",
	"builtin___import__*",
	"import_name",
	"import_find_and_load",
	"PyImport_ImportModuleLevelObject",
	"trace_call_function",
	"trace_function_entry",
	"trace_function_exit",
	"trace_trampoline",
	"profile_trampoline",
	"call_trampoline",
	"call_trace",
	"call_trace_*",
	"call_exc_trace",
	"call_profile_func",
	"maybe_call_line_trace",
	"sys_trace_*",
	"sys_profile_*",
	"trace_line",
	"call_instrumentation_vector*",
	"call_one_instrument*",
	"_Py_call_instrumentation*",
	"thread_run",
	"t_bootstrap",
	"pythread_wrapper",
};

/* What lies below main(), and below the first function of a thread, in the C library or in the program. */
static const char *const anywhere[] = {
	"_start", "main",   "__libc_start_*", "libc_start_*",       "start_thread",
	"clone",  "clone3", "__clone*",       "generic_start_main",
};

static bool has(const char *const *patterns, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	}
	return false;
}

bool cpython_is_plumbing(const char *name, bool is_of_interpreter)
{
	return has(anywhere, sizeof(anywhere) / sizeof(*anywhere), name) ||
	       (is_of_interpreter && has(in_interpreter, sizeof(in_interpreter) / sizeof(*in_interpreter), name));
}
