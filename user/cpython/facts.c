// SPDX-License-Identifier: Apache-2.0
/* The rows of facts.h. A shape has the name of the first version that has it. */
#include "cpython/facts.h"

#include <stddef.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* To 3.7 Py_DEBUG implied Py_TRACE_REFS. */
static const struct cpython_build build_27 = {.debug_traces_refs = true, .holder_is_current = true};
static const struct cpython_build build_36 = {.debug_traces_refs = true};
static const struct cpython_build build_38 = {.has_debug_offsets = false};
static const struct cpython_build build_313 = {.has_debug_offsets = true};

/* co_argcount comes first to 3.10, then behind co_flags and, in 3.11, co_warmup; co_posonlyargcount is since 3.8. */
static const struct cpython_code code_27 = {.argcount = 0,
					    .stacksize = 8,
					    .flags = 12,
					    .consts = 24,
					    .names = 32,
					    .varnames = 40,
					    .freevars = 48,
					    .cellvars = 56};
static const struct cpython_code code_36 = {.argcount = 0,
					    .kwonlyargcount = 4,
					    .stacksize = 12,
					    .flags = 16,
					    .consts = 32,
					    .names = 40,
					    .varnames = 48,
					    .freevars = 56,
					    .cellvars = 64};
static const struct cpython_code code_38 = {.argcount = 0,
					    .kwonlyargcount = 8,
					    .stacksize = 16,
					    .flags = 20,
					    .consts = 40,
					    .names = 48,
					    .varnames = 56,
					    .freevars = 64,
					    .cellvars = 72};
static const struct cpython_code code_311 = {.argcount = 40,
					     .kwonlyargcount = 48,
					     .stacksize = 52,
					     .flags = 32,
					     .nlocalsplus = 60,
					     .consts = 8,
					     .names = 16,
					     .exception_table = 24};
static const struct cpython_code code_312 = {.argcount = 36,
					     .kwonlyargcount = 44,
					     .stacksize = 48,
					     .flags = 32,
					     .nlocalsplus = 56,
					     .consts = 8,
					     .names = 16,
					     .exception_table = 24};

/* EXTENDED_ARG (Include/opcode.h) has two bytes of argument in 2.7. */
static const struct cpython_bytecode bytecode_27 = {.extended_arg = 145, .extended_arg_size = 3};
static const struct cpython_bytecode bytecode_36 = {.extended_arg = 144, .extended_arg_size = 2};
static const struct cpython_bytecode bytecode_311 = {.caches = 1};
static const struct cpython_bytecode bytecode_312 = {.caches = 2};
static const struct cpython_bytecode bytecode_313 = {.caches = 0};

static const struct cpython_function function_27 = {.closure = 24, .name = 40, .qualname = 40};
static const struct cpython_function function_36 = {.closure = 32, .name = 48, .qualname = 88};
static const struct cpython_function function_310 = {.closure = 56, .name = 16, .qualname = 24};

/* f_iblock is an int in 2.7, and a char in 3.x. */
static const struct cpython_frame frame_27 = {.kind = CPYTHON_LOCALS_OF_OBJECT, .locals = 360, .block_stack = 4};
static const struct cpython_frame frame_36 = {.kind = CPYTHON_LOCALS_OF_OBJECT, .locals = 360, .block_stack = 8};
static const struct cpython_frame frame_37 = {.kind = CPYTHON_LOCALS_OF_OBJECT, .locals = 344, .block_stack = 8};
static const struct cpython_frame frame_310 = {.kind = CPYTHON_LOCALS_OF_OBJECT, .locals = 336, .block_stack = 8};
static const struct cpython_frame frame_311 = {.kind = CPYTHON_LOCALS_OF_FRAME, .locals = 72};
/* From 3.13 on debug offsets agree. */
static const struct cpython_frame frame_312 = {.kind = CPYTHON_LOCALS_BEHIND_OWNER};

static const struct cpython_dict dict_27 = {.has_own_table = true};
static const struct cpython_dict dict_36 = {.has_own_table = false};
static const struct cpython_dict dict_311 = {
	.has_log2_sizes = true, .values = CPYTHON_VALUES_BESIDE, .cached_keys = 856};
static const struct cpython_dict dict_312 = {
	.has_log2_sizes = true, .values = CPYTHON_VALUES_TAGGED, .cached_keys = 864};
static const struct cpython_dict dict_313 = {
	.has_log2_sizes = true, .values = CPYTHON_VALUES_INLINE, .cached_keys = 864};
static const struct cpython_dict dict_315 = {
	.has_log2_sizes = true, .values = CPYTHON_VALUES_INLINE, .cached_keys = 872};

/* An immortal object has UINT32_MAX references; from 3.14 on 32 bits of counter, 16 of its overflow, and flags. */
#define NO_REFS_27  (~0ull << 33)
#define NO_REFS_314 (0xffffull << 32)

/* ob_hash stands before the items of a tuple from 3.14 on. A dict of 2.7 has 8 entries within itself. */
static const struct cpython_objects objects_27 = {
	.has_c_int = true,
	.has_hash_first = true,
	.has_len_in_deque = true,
	.has_python_decimal = true,
	.tuple_items = 8,
	.dict_used = 8,
	.default_factory = 232,
	.no_refs = NO_REFS_27,
};
static const struct cpython_objects objects_36 = {
	.has_ready = true, .has_fold = true, .tuple_items = 8, .default_factory = 32, .no_refs = NO_REFS_27};
static const struct cpython_objects objects_312 = {
	.has_long_tag = true, .has_fold = true, .tuple_items = 8, .default_factory = 32, .no_refs = NO_REFS_27};
static const struct cpython_objects objects_314 = {
	.has_long_tag = true, .has_fold = true, .tuple_items = 16, .default_factory = 32, .no_refs = NO_REFS_314};

static const struct cpython_repr repr_27 = {.has_old_literals = true, .has_exception_comma = true};
static const struct cpython_repr repr_36 = {.has_exception_comma = true};
static const struct cpython_repr repr_37 = {.names_timedelta = true};
static const struct cpython_repr repr_315 = {.names_timedelta = true, .bytearray_like_bytes = true};

#define EVAL_LOOP_36 "_PyEval_EvalFrameDefault"

/* In 2.7 two underscores put the class into the names of attributes, and join() waits for a condition. */
static const struct cpython_names names_27 = {
	.eval_loop = "PyEval_EvalFrameEx",
	.ident = "_Thread__ident",
	.name = "_Thread__name",
	.daemon = "_Thread__daemonic",
	.join_waits = "wait",
	.path_parts = "_parts",
};
static const struct cpython_names names_36 = {EVAL_LOOP_36, "_ident", "_name", "_daemonic", "_wait_for_tstate_lock",
					      "_parts"};
static const struct cpython_names names_312 = {EVAL_LOOP_36, "_ident", "_name", "_daemonic", "_wait_for_tstate_lock",
					       "_raw_paths"};
static const struct cpython_names names_313 = {EVAL_LOOP_36, "_ident", "_name", "_daemonic", NULL, "_raw_paths"};

static const struct cpython_threads threads_27 = {.greenlet_words = 3};
static const struct cpython_threads threads_36 = {.greenlet_words = 3, .is_interp_unsure = true};
static const struct cpython_threads threads_37 = {.greenlet_words = 5, .has_contexts = true, .is_interp_unsure = true};
static const struct cpython_threads threads_310 = {.greenlet_words = 5, .has_contexts = true};
static const struct cpython_threads threads_311 = {.greenlet_words = 3, .has_contexts = true};
static const struct cpython_threads threads_313 = {
	.lock = CPYTHON_LOCK_EITHER, .has_parking = true, .greenlet_words = 3, .has_contexts = true};
static const struct cpython_threads threads_314 = {.lock = CPYTHON_LOCK_MUTEX,
						   .has_parking = true,
						   .splits_exit = true,
						   .greenlet_words = 3,
						   .has_contexts = true};

static const struct cpython_generator generator_27 = {.kind = CPYTHON_GENERATOR_RUNNING};
static const struct cpython_generator generator_310 = {
	.kind = CPYTHON_GENERATOR_F_STATE, .created = -2, .suspended = -1, .executing = 0};
/* 3.11 has gi_code before. */
static const struct cpython_generator generator_311 = {
	.kind = CPYTHON_GENERATOR_INSIDE, .frame = 64, .state = 59, .created = -2, .suspended = -1, .executing = 0};
static const struct cpython_generator generator_312 = {
	.kind = CPYTHON_GENERATOR_INSIDE, .frame = 56, .state = 51, .created = -2, .suspended = -1, .executing = 0};
static const struct cpython_generator generator_313 = {
	.kind = CPYTHON_GENERATOR_INSIDE,
	.frame = 56,
	.state = 51,
	.created = -3,
	.suspended = -2,
	.executing = 0,
	.tells_await = true,
	.awaits = -1,
	.awaits_locked = -1,
};
static const struct cpython_generator generator_314 = {
	.kind = CPYTHON_GENERATOR_IN_LAYOUT,
	.created = -3,
	.suspended = -2,
	.executing = 0,
	.tells_await = true,
	.awaits = -1,
	.awaits_locked = -1,
	.awaited_below_top = 8,
};
/* An index that belongs to what is awaited lies on top of it. */
static const struct cpython_generator generator_315 = {
	.kind = CPYTHON_GENERATOR_IN_LAYOUT,
	.created = 0,
	.suspended = 1,
	.executing = 4,
	.tells_await = true,
	.awaits = 2,
	.awaits_locked = 3,
	.awaited_below_top = 16,
};

/*
 * TaskObj is in no header: taken from the DWARF of 3.7.16, 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0. Its size
 * tells 3.10's before and after FutureObj.fut_exception_tb. In the callback that wakes a task the task is
 * TaskWakeupMethWrapper.ww_task to 3.9, later PyCFunctionObject.m_self, after m_ml.
 *
 * PyThreadState (Include/cpython/pystate.h) has context_ver, id, datastack_chunk and datastack_top one after the other
 * from 3.12 on, and in 3.11 trace_info, of 48 bytes, after id.
 */
static const struct cpython_tasks tasks_27 = {.kind = CPYTHON_TASKS_NONE};
static const struct cpython_tasks tasks_37 = {.kind = CPYTHON_TASKS_IN_SETS,
					      .contexts_behind_id = 88,
					      .forms = {{120, 96, 0}},
					      .wakeup_task = 0,
					      .dict_before_id = 24,
					      .has_loop_holder = true};
static const struct cpython_tasks tasks_38 = {.kind = CPYTHON_TASKS_IN_SETS,
					      .contexts_behind_id = 72,
					      .forms = {{128, 96, 104}},
					      .wakeup_task = 0,
					      .dict_before_id = 24,
					      .has_loop_holder = true};
static const struct cpython_tasks tasks_39 = {.kind = CPYTHON_TASKS_IN_SETS,
					      .contexts_behind_id = 72,
					      .forms = {{168, 136, 144}},
					      .wakeup_task = 0,
					      .dict_before_id = 24,
					      .has_loop_holder = true};
static const struct cpython_tasks tasks_310 = {.kind = CPYTHON_TASKS_IN_SETS,
					       .contexts_behind_id = 72,
					       .forms = {{168, 136, 144}, {176, 144, 152}},
					       .wakeup_task = 8,
					       .dict_before_id = 24,
					       .has_loop_holder = true};
static const struct cpython_tasks tasks_311 = {.kind = CPYTHON_TASKS_IN_SETS,
					       .contexts_before_top = 72,
					       .forms = {{160, 120, 128}},
					       .wakeup_task = 8,
					       .dict_before_id = 24,
					       .has_loop_holder = true};
static const struct cpython_tasks tasks_312 = {.kind = CPYTHON_TASKS_IN_SETS,
					       .contexts_before_top = 24,
					       .forms = {{160, 120, 128}},
					       .wakeup_task = 8,
					       .dict_before_id = 24};
/*
 * _PyThreadStateImpl.asyncio_running_loop is at 304 in 3.13.0 and 3.13.5, and at 312 in 3.13.18; thread_id is at 152.
 */
static const struct cpython_tasks tasks_313 = {.kind = CPYTHON_TASKS_IN_SETS,
					       .contexts_before_top = 24,
					       .forms = {{128, 104, 112}},
					       .wakeup_task = 8,
					       .loop_behind_id = {152, 160}};
static const struct cpython_tasks tasks_314 = {.kind = CPYTHON_TASKS_IN_LISTS, .contexts_before_top = 24};

/* By the names of shapes. Ascending. */
// clang-format off
#define ROW(major, minor, api, build, code, bytecode, function, frame, dict, objects, repr, names, threads, generator, \
	    tasks)                                                                                                     \
	{major, minor, api, &build_##build, &code_##code, &bytecode_##bytecode, &function_##function, &frame_##frame,  \
	 &dict_##dict, &objects_##objects, &repr_##repr, &names_##names, &threads_##threads, &generator_##generator,   \
	 &tasks_##tasks}
static const struct cpython_facts versions[] = {
	/*  version came_with                  build  code  byte  fun  frame  dict  obj  repr  names  thr  gen  tasks */
	ROW(2, 7,   NULL,                         27,   27,   27,   27,    27,   27,  27,   27,    27,  27,  27,    27),
	ROW(3, 6,   NULL,                         36,   36,   36,   36,    36,   36,  36,   36,    36,  36,  27,    27),
	ROW(3, 7,   "_PyRuntime",                 36,   36,   36,   36,    37,   36,  36,   37,    36,  37,  27,    37),
	ROW(3, 8,   "Py_InitializeFromConfig",    38,   38,   36,   36,    37,   36,  36,   37,    36,  37,  27,    38),
	ROW(3, 9,   "PyFrame_GetCode",            38,   38,   36,   36,    37,   36,  36,   37,    36,  37,  27,    39),
	ROW(3, 10,  "PyModule_AddObjectRef",      38,   38,   36,  310,   310,   36,  36,   37,    36, 310, 310,   310),
	ROW(3, 11,  "Py_Version",                 38,  311,  311,  310,   311,  311,  36,   37,    36, 311, 311,   311),
	ROW(3, 12,  "PyType_FromMetaclass",       38,  312,  312,  310,   312,  312, 312,   37,   312, 311, 312,   312),
	ROW(3, 13,  "PyList_GetItemRef",         313,  312,  313,  310,   312,  313, 312,   37,   313, 313, 313,   313),
	ROW(3, 14,  NULL,                        313,  312,  313,  310,   312,  313, 314,   37,   313, 314, 314,   314),
	ROW(3, 15,  NULL,                        313,  312,  313,  310,   312,  315, 314,  315,   313, 314, 315,   314),
};
// clang-format on

static bool is_before(const struct cpython_facts *facts, int major, int minor)
{
	return facts->major < major || (facts->major == major && facts->minor < minor);
}

const struct cpython_facts *cpython_facts_of(int major, int minor)
{
	const struct cpython_facts *found = &versions[0];

	for (size_t i = 1; i < ARRAY_SIZE(versions) && is_before(&versions[i], major, minor + 1); i++)
		found = &versions[i];
	return found;
}

const struct cpython_facts *cpython_facts(const struct pybpf_layout *layout)
{
	return cpython_facts_of(layout->major, layout->minor);
}

/* Sets where the thread state has what leads to asyncio's tasks. */
static void fill_in_thread(struct pybpf_layout *layout, const struct cpython_tasks *tasks)
{
	uint16_t id = layout->tstate_thread_id, top = layout->tstate_datastack_top;

	layout->tstate_contexts = tasks->contexts_behind_id          ? id + tasks->contexts_behind_id
				  : top > tasks->contexts_before_top ? top - tasks->contexts_before_top
								     : 0;
	layout->tstate_dict = tasks->dict_before_id ? id - tasks->dict_before_id : 0;
	for (size_t i = 0; i < ARRAY_SIZE(layout->tstate_loop); i++)
		layout->tstate_loop[i] = tasks->loop_behind_id[i] ? id + tasks->loop_behind_id[i] : 0;
	layout->has_loop_holder = tasks->has_loop_holder;
	layout->wakeup_task = tasks->wakeup_task;
}

void cpython_fill_in(struct pybpf_layout *layout)
{
	const struct cpython_facts *facts = cpython_facts(layout);

	layout->extended_arg = facts->bytecode->extended_arg;
	layout->extended_arg_size = facts->bytecode->extended_arg_size;
	layout->caches = facts->bytecode->caches;
	layout->has_frame_objects = facts->frame->kind == CPYTHON_LOCALS_OF_OBJECT;
	layout->has_log2_sizes = facts->dict->has_log2_sizes;
	layout->function_closure = facts->function->closure;
	layout->function_qualname = facts->function->qualname;
	layout->tuple_items = facts->objects->tuple_items;
	fill_in_thread(layout, facts->tasks);
}

bool cpython_is_newer(const struct pybpf_layout *layout)
{
	return is_before(&versions[ARRAY_SIZE(versions) - 1], layout->major, layout->minor);
}

const struct cpython_facts *cpython_by_api(bool (*has)(const char *name, const void *arg), const void *arg)
{
	for (size_t i = ARRAY_SIZE(versions); i; i--) {
		if (versions[i - 1].came_with && has(versions[i - 1].came_with, arg))
			return &versions[i - 1];
	}
	return NULL;
}
