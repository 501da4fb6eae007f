// SPDX-License-Identifier: Apache-2.0
/* Native frames between those of Python: joined where they fit, and left out, with a mark, where they do not. */
#include <errno.h>

#include "profiles.h"
#include "profile/mappings.h"
#include "symbols/native/native_frames.h"
#include "symbols/native/native_libraries.h"
#include "cpython/plumbing.h"
#include "symbols/native/native_roles.h"

#define LIBPYTHON 1
#define EXTENSION 2
#define LIBC      3
#define GREENLET  4
/* Functions of the extension. */
#define SLP_SWITCH      700
#define UNWIND_RESUME   701
#define INSTALL_CONTEXT 702
#define BOOTSTRAP       703
#define INITIALSTUB     704

#define EVAL(pc) (PYBPF_NATIVE_FRAME((uint64_t)LIBPYTHON, pc) | PYBPF_NATIVE_FRAME_EVAL)
#define CPY(pc)  PYBPF_NATIVE_FRAME((uint64_t)LIBPYTHON, pc)
#define EXT(pc)  PYBPF_NATIVE_FRAME((uint64_t)EXTENSION, pc)
#define CLIB(pc) PYBPF_NATIVE_FRAME((uint64_t)LIBC, pc)
#define GRN(pc)  PYBPF_NATIVE_FRAME((uint64_t)GREENLET, pc)
#define MOST     16

struct world {
	struct native_frames *native;
	struct profile *profile;
};

/* Its code is linked at 0x4000, and at 0x1000 in the file. */
static const struct native_file extension = {
	.build_id = {0xab, 0xcd, 0x01},
	.build_id_size = 3,
	.base = 0x4000,
	.nr_segments = 1,
	.segments = {{.offset = 0x1000, .size = 0x1f00, .delta = 0x1000}},
};

static void describe_files(struct world *w)
{
	assert_int_equal(native_frames_add_file(w->native, "/usr/lib/libpython3.12.so.1.0"), LIBPYTHON);
	assert_int_equal(native_frames_add_file(w->native, "/opt/app/ext.so"), EXTENSION);
	assert_int_equal(native_frames_add_file(w->native, "/lib/libc.so.6"), LIBC);
	assert_int_equal(native_frames_add_file(w->native, "/opt/_greenlet.cpython-312-x86_64-linux-gnu.so"), GREENLET);
	native_frames_describe_file(w->native, LIBPYTHON, &(struct native_file){.is_interpreter = 1, .base = 0x1000});
	native_frames_describe_file(w->native, EXTENSION, &extension);
}

static struct world new_world(bool all)
{
	struct world w = {.native = native_frames_new(&(struct native_frames_options){.all = all}),
			  .profile = new_profile()};

	describe_files(&w);
	return w;
}

static void free_world(struct world *w)
{
	native_frames_free(w->native);
	profile_free(w->profile);
}

static void name_extension(uint32_t pc, struct native_name *name)
{
	if (pc == SLP_SWITCH)
		snprintf(name->text, sizeof(name->text), "slp_switch");
	else if (pc == UNWIND_RESUME)
		snprintf(name->text, sizeof(name->text), "_Unwind_Resume");
	else if (pc == INSTALL_CONTEXT)
		snprintf(name->text, sizeof(name->text), "uw_install_context_1.isra.0");
	else if (pc == BOOTSTRAP)
		snprintf(name->text, sizeof(name->text), "greenlet::UserGreenlet::inner_bootstrap");
	else if (pc == INITIALSTUB)
		snprintf(name->text, sizeof(name->text), "g_initialstub");
	else
		snprintf(name->text, sizeof(name->text), "ext_%u", pc);
}

/* Gives all that is wanted a name: pc 7 of the extension is ext_7, of libpython slot_7 (plumbing) from 100 on py_7. */
static void name_all(struct world *w)
{
	uint32_t pcs[MOST], file, count;

	while ((count = native_frames_wanted(w->native, &file, pcs, MOST))) {
		for (uint32_t i = 0; i < count; i++) {
			struct native_name name = {.start = extension.base + pcs[i] / 256 * 256};

			assert_true(!i || pcs[i] > pcs[i - 1]);
			if (file == EXTENSION)
				name_extension(pcs[i], &name);
			else if (file == LIBPYTHON)
				snprintf(name.text, sizeof(name.text), "%s_%u", pcs[i] < 100 ? "slot" : "py", pcs[i]);
			native_frames_set_name(w->native, file, pcs[i], &name);
		}
	}
}

/*
 * Builds a stack whose Python frames, root first, are the letters of `python`, capitals being entries, and returns it
 * as text. *join: how.
 */
static char *build(struct world *w, const uint64_t *frames, uint16_t count, enum pybpf_native_end end,
		   const char *python, enum native_join *join)
{
	const struct pybpf_stack_event event = {.nr_native = count, .native_end = end};
	uint32_t entries = 0, stack = PROFILE_ROOT;
	struct native_stack native;
	char *text = strdup("");

	for (const char *p = python; *p; p++)
		entries += *p < 'a';
	if (native_frames_begin(w->native, &event, frames, entries, false, &native) == -ENOENT) {
		name_all(w);
		assert_int_equal(native_frames_begin(w->native, &event, frames, entries, false, &native), 0);
	}
	for (const char *p = python; *p; p++) {
		const char name[] = {*p, '\0'};

		if (*p < 'a')
			assert_int_equal(native_frames_push_run(w->native, &native, w->profile, &stack), 0);
		stack = profile_add_stack(w->profile, stack,
					  profile_add_frame(w->profile, PROFILE_PYTHON, name, "a.py", 1, 1));
	}
	assert_int_equal(native_frames_push_rest(w->native, &native, w->profile, &stack), 0);
	*join = native.join;
	for (; stack != PROFILE_ROOT; stack = profile_stack_at(w->profile, stack)->parent) {
		const struct profile_frame *f =
			profile_frame_at(w->profile, profile_stack_at(w->profile, stack)->frame);
		char *longer;

		assert_true(asprintf(&longer, "%s%s%s", profile_string(w->profile, f->name), *text ? ";" : "", text) >
			    0);
		free(text);
		text = longer;
	}
	return text;
}

#define COUNT(array) (uint16_t)(sizeof(array) / sizeof(*(array)))

static void check(struct world *w, const uint64_t *frames, uint16_t count, enum pybpf_native_end end,
		  const char *python, enum native_join want_join, const char *want)
{
	enum native_join join;
	char *text = build(w, frames, count, end, python, &join);

	assert_string_equal(text, want);
	assert_int_equal(join, want_join);
	free(text);
}

/* Leaf first: what A has called, A's run, what called that by way of the extension, B's run, the program's start. */
static const uint64_t two_runs[] = {EXT(5), EVAL(1), CPY(8), EXT(6), CPY(120), EVAL(1), CPY(9), CLIB(3)};

static void test_as_many_runs_as_entries(void **state)
{
	struct world w = new_world(false);

	(void)state;
	/* In 3.11 and later several functions of Python share a run. */
	check(&w, two_runs, COUNT(two_runs), PYBPF_NATIVE_END_WHOLE, "BcA", NATIVE_JOIN_EXACT,
	      "B;c;py_120;ext_6;A;ext_5");
	free_world(&w);
}

static void test_all_shows_the_interpreter(void **state)
{
	struct world w = new_world(true);

	(void)state;
	check(&w, two_runs, COUNT(two_runs), PYBPF_NATIVE_END_WHOLE, "BA", NATIVE_JOIN_EXACT,
	      "[libc.so.6+0x3];slot_9;slot_1;B;py_120;ext_6;slot_8;slot_1;A;ext_5");
	free_world(&w);
}

static void test_a_run_without_a_frame_yet(void **state)
{
	struct world w = new_world(false);

	(void)state;
	check(&w, two_runs, COUNT(two_runs), PYBPF_NATIVE_END_WHOLE, "B", NATIVE_JOIN_PLUS_ONE, "B;py_120;ext_6;ext_5");
	free_world(&w);
}

static void test_runs_that_do_not_fit(void **state)
{
	struct world w = new_world(false);

	(void)state;
	/* What the last function called is certain; where the rest belongs is not. */
	check(&w, two_runs, COUNT(two_runs), PYBPF_NATIVE_END_WHOLE, "CBA", NATIVE_JOIN_OTHER,
	      "C;B;A;[native frames incomplete];ext_5");
	free_world(&w);
}

static void test_a_search_that_did_not_end(void **state)
{
	struct world w = new_world(false);

	(void)state;
	check(&w, two_runs, COUNT(two_runs) - 2, PYBPF_NATIVE_END_NO_ROW, "BA", NATIVE_JOIN_NONE,
	      "B;A;[native frames incomplete];ext_5");
	check(&w, two_runs, 1, PYBPF_NATIVE_END_FAULT, "BA", NATIVE_JOIN_NONE, "B;A;[native frames incomplete];ext_5");
	check(&w, two_runs, 0, PYBPF_NATIVE_END_NO_MAPPINGS, "BA", NATIVE_JOIN_NONE, "B;A;[native frames incomplete]");
	free_world(&w);
}

static void test_without_python(void **state)
{
	static const uint64_t frames[] = {EXT(5), EXT(6), CLIB(7)};
	static const uint64_t nowhere[] = {0};
	struct world w = new_world(false);

	(void)state;
	check(&w, frames, COUNT(frames), PYBPF_NATIVE_END_WHOLE, "", NATIVE_JOIN_EXACT, "ext_6;ext_5");
	check(&w, frames, 2, PYBPF_NATIVE_END_NO_ROW, "", NATIVE_JOIN_NONE, "[native frames incomplete];ext_6;ext_5");
	check(&w, nowhere, 1, PYBPF_NATIVE_END_NO_MAPPING, "", NATIVE_JOIN_NONE,
	      "[native frames incomplete];[unknown code]");
	free_world(&w);
}

/* Stripped libraries. */
static void test_without_names(void **state)
{
	static const uint64_t frames[] = {CPY(200), CPY(210), EXT(0x20), EVAL(1)};
	const struct pybpf_stack_event event = {.nr_native = COUNT(frames), .native_end = PYBPF_NATIVE_END_WHOLE};
	struct world w = new_world(false);
	uint32_t stack = PROFILE_ROOT;
	struct native_stack native;

	(void)state;
	assert_int_equal(native_frames_begin(w.native, &event, frames, 1, true, &native), 0);
	assert_int_equal(native_frames_push_run(w.native, &native, w.profile, &stack), 0);
	assert_int_equal(stack, PROFILE_ROOT);
	assert_int_equal(native_frames_push_rest(w.native, &native, w.profile, &stack), 0);
	/* The interpreter is one frame, however many of its functions call each other. */
	assert_string_equal(
		profile_string(w.profile, profile_frame_at(w.profile, profile_stack_at(w.profile, stack)->frame)->name),
		"[CPython]");
	stack = profile_stack_at(w.profile, stack)->parent;
	assert_string_equal(
		profile_string(w.profile, profile_frame_at(w.profile, profile_stack_at(w.profile, stack)->frame)->name),
		"[ext.so+0x4020]");
	assert_int_equal(profile_stack_at(w.profile, stack)->parent, PROFILE_ROOT);
	free_world(&w);
}

static const struct profile_frame *leaf_of(const struct world *w, uint32_t stack)
{
	return profile_frame_at(w->profile, profile_stack_at(w->profile, stack)->frame);
}

/* A function is at its first address, wherever in it the instruction was; one without a symbol where its name says. */
static void test_places(void **state)
{
	static const uint64_t frames[] = {EXT(0x1eff), EXT(0x340), EXT(0x310), CLIB(0x20), CPY(300)};
	static const uint64_t starts[] = {0, 0x4300, 0x4300, 0, 0};
	const struct pybpf_stack_event event = {.nr_native = COUNT(frames), .native_end = PYBPF_NATIVE_END_WHOLE};
	struct world w = new_world(true);
	const struct profile_mapping *mapping;
	struct native_stack native;
	uint32_t stack = PROFILE_ROOT;

	(void)state;
	assert_int_equal(native_frames_begin(w.native, &event, frames, 0, false, &native), -ENOENT);
	for (size_t i = 1; i < 3; i++) {
		const struct native_name name = {.text = "f", .start = starts[i]};

		native_frames_set_name(w.native, EXTENSION, PYBPF_NATIVE_FRAME_PC(frames[i]), &name);
	}
	assert_int_equal(native_frames_begin(w.native, &event, frames, 0, true, &native), 0);
	assert_int_equal(native_frames_push_rest(w.native, &native, w.profile, &stack), 0);
	assert_int_equal(leaf_of(&w, stack)->address, 0x5eff);
	assert_int_equal(leaf_of(&w, stack)->marks, PROFILE_CODE_NAMELESS);
	stack = profile_stack_at(w.profile, stack)->parent;
	assert_int_equal(leaf_of(&w, stack)->address, 0x4300);
	assert_int_equal(leaf_of(&w, stack)->marks, 0);
	assert_ptr_equal(leaf_of(&w, stack), leaf_of(&w, profile_stack_at(w.profile, stack)->parent));
	mapping = profile_mapping_at(w.profile, leaf_of(&w, stack)->mapping - 1);
	assert_int_equal(profile_mapping_count(w.profile), 1);
	assert_string_equal(profile_string(w.profile, mapping->path), "/opt/app/ext.so");
	assert_string_equal(profile_string(w.profile, mapping->build_id), "abcd01");
	assert_true(mapping->start == 0x4000 && mapping->limit == 0x6000 && mapping->offset == 0x1000);
	/* Where the code of the others is was not said. */
	stack = profile_stack_at(w.profile, profile_stack_at(w.profile, stack)->parent)->parent;
	assert_true(!leaf_of(&w, stack)->mapping && !leaf_of(&w, stack)->address);
	free_world(&w);
}

/* The stack as text: NAME, or NAME:LINE, and ^ in front of what is inlined. */
static void check_lines(const struct world *w, uint32_t stack, const char *want)
{
	char text[512] = "";

	for (; stack != PROFILE_ROOT; stack = profile_stack_at(w->profile, stack)->parent) {
		const struct profile_frame *f = leaf_of(w, stack);
		size_t size = strlen(text);

		size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%s%s", size ? ";" : "",
					 f->marks & PROFILE_CODE_INLINED ? "^" : "",
					 profile_string(w->profile, f->name));
		if (f->line != PROFILE_NO_LINE)
			snprintf(text + size, sizeof(text) - size, ":%d", f->line);
	}
	assert_string_equal(text, want);
}

/* A file that says that its code is all there is: nothing could read a profile with such a mapping. */
static void test_code_without_end(void **state)
{
	static const uint64_t frames[] = {EXT(0x10)};
	const struct pybpf_stack_event event = {.nr_native = COUNT(frames), .native_end = PYBPF_NATIVE_END_WHOLE};
	static const uint64_t sizes[] = {UINT64_MAX - 0x4000, UINT64_MAX - 0x4fff, UINT64_MAX};
	struct native_file endless = extension;
	struct native_stack native;

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct world w = new_world(false);
		uint32_t stack = PROFILE_ROOT;

		endless.segments[0].size = sizes[i];
		native_frames_describe_file(w.native, EXTENSION, &endless);
		assert_int_equal(native_frames_begin(w.native, &event, frames, 0, true, &native), 0);
		assert_int_equal(native_frames_push_rest(w.native, &native, w.profile, &stack), 0);
		assert_int_equal(profile_mapping_count(w.profile), 0);
		assert_int_equal(leaf_of(&w, stack)->address, 0);
		free_world(&w);
	}
}

static const struct native_line inlined[] = {
	{.line = 7, .function = "f_by_debug", .file = "/src/f.c"},
	{.line = 9, .function = "g", .file = "/src/g.h"},
};
static const struct native_line of_interpreter[] = {
	{.line = 5, .function = "list_sort", .file = "/src/list.c"},
	{.line = 6, .function = "PyObject_Call", .file = "/src/call.c"},
};

/* Says what is at the instructions that want lines: nothing at 0x500 and 0x600. Returns their number. */
static uint32_t line_all(struct world *w)
{
	uint32_t pcs[MOST], file, count, all = 0;

	while ((count = native_frames_want_lines(w->native, &file, pcs, MOST))) {
		const struct native_line *lines = file == EXTENSION ? inlined : of_interpreter;

		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(
				native_frames_set_lines(w->native, file, pcs[i], lines, pcs[i] < 0x500 ? 2 : 0), 0);
		all += count;
	}
	return all;
}

/* Instructions on one line are one frame; what runs Python's functions is left out, also where it is inlined. */
static void test_lines(void **state)
{
	static const uint64_t frames[] = {EXT(0x310), CPY(300), EXT(0x340), EXT(0x500), EXT(0x600), CPY(9)};
	static const char *const names[] = {"f", "list_sort", "f", "h", "", "slot_9"};
	const struct pybpf_stack_event event = {.nr_native = COUNT(frames), .native_end = PYBPF_NATIVE_END_WHOLE};
	struct world w = {.native = native_frames_new(&(struct native_frames_options){.lines = true}),
			  .profile = new_profile()};
	struct native_stack native;
	uint32_t stack = PROFILE_ROOT;

	(void)state;
	describe_files(&w);
	assert_int_equal(native_frames_begin(w.native, &event, frames, 0, false, &native), -ENOENT);
	for (size_t i = 0; i < COUNT(frames); i++) {
		struct native_name name = {.start = 0x4300};

		snprintf(name.text, sizeof(name.text), "%s", names[i]);
		native_frames_set_name(w.native, PYBPF_NATIVE_FRAME_FILE(frames[i]), PYBPF_NATIVE_FRAME_PC(frames[i]),
				       &name);
	}
	native_frames_set_row(w.native, EXTENSION, 0x600, 0x5f0);
	assert_int_equal(native_frames_count_without_lines(w.native), 5);
	assert_int_equal(native_frames_begin(w.native, &event, frames, 0, false, &native), -ENOENT);
	assert_int_equal(line_all(&w), 5);
	assert_int_equal(native_frames_begin(w.native, &event, frames, 0, false, &native), 0);
	assert_int_equal(native_frames_push_rest(w.native, &native, w.profile, &stack), 0);
	check_lines(&w, stack, "^g:9;f:7;list_sort:5;^g:9;f:7;h;[ext.so+0x45f0]");
	assert_int_equal(leaf_of(&w, stack)->address, 0x4310);
	assert_string_equal(profile_string(w.profile, leaf_of(&w, stack)->file), "g.h");
	assert_string_equal(profile_string(w.profile, profile_library_of(w.profile, leaf_of(&w, stack))), "ext.so");
	for (int i = 0; i < 3; i++)
		stack = profile_stack_at(w.profile, stack)->parent;
	assert_int_equal(leaf_of(&w, stack)->address, 0x4310);
	free_world(&w);
}

struct gaps {
	int of_process, of_file;
};

static void count_gap(void *arg, uint64_t proc_id, const struct native_gap *gap)
{
	struct gaps *gaps = arg;

	assert_int_equal(proc_id, 77);
	assert_true(!gap->file || (gap->file == PYBPF_NATIVE_FRAME_FILE(EXT(2)) && gap->pc == 2 && !gap->is_innermost));
	++*(gap->file ? &gaps->of_file : &gaps->of_process);
}

static void test_gaps_are_told(void **state)
{
	static const uint64_t frames[] = {CPY(3), EXT(2)};
	struct world w = new_world(false);
	struct gaps gaps = {0, 0};

	(void)state;
	native_frames_set_on_gap(w.native, count_gap, &gaps);
	for (int end = PYBPF_NATIVE_END_WHOLE; end < PYBPF_NR_NATIVE_ENDS; end++) {
		const struct pybpf_stack_event event = {
			.proc_id = 77, .native_end = (uint16_t)end, .nr_native = COUNT(frames)};
		struct native_stack native;

		assert_int_equal(native_frames_begin(w.native, &event, frames, 1, true, &native), 0);
	}
	assert_int_equal(gaps.of_process, 3);
	assert_int_equal(gaps.of_file, 1);
	free_world(&w);
}

static void test_roles(void **state)
{
	(void)state;
	assert_int_equal(native_role_of("slp_switch", "a.so"), NATIVE_ROLE_SWITCH);
	assert_int_equal(native_role_of("_ZL10slp_switchv", "a.so"), NATIVE_ROLE_SWITCH);
	assert_int_equal(native_role_of("slp_switching", "_greenlet.so"), NATIVE_ROLE_NONE);
	assert_int_equal(native_role_of("_Unwind_Resume", "libgcc_s.so.1"), NATIVE_ROLE_UNWINDER);
	assert_int_equal(native_role_of("greenlet::UserGreenlet::inner_bootstrap", "a.so"), NATIVE_ROLE_GREENLET);
	assert_int_equal(native_role_of("_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object", "a.so"),
			 NATIVE_ROLE_GREENLET);
	assert_int_equal(native_role_of("g_initialstub", "greenlet.so"), NATIVE_ROLE_OLD_GREENLET);
	assert_int_equal(native_role_of("", "_greenlet.cpython-39-x86_64-linux-gnu.so"), NATIVE_ROLE_OF_GREENLET);
	assert_int_equal(native_role_of("", "greenlet.so"), NATIVE_ROLE_OF_GREENLET);
	assert_int_equal(native_role_of("", "my_greenlet.so"), NATIVE_ROLE_NONE);
}

static void test_plumbing(void **state)
{
	static const char *const yes[] = {
		"_PyEval_EvalFrameDefault",     "slot_tp_call", "PyObject_Call",           "run_mod",
		"method_vectorcall_NOARGS",     "gen_send_ex2", "builtin___import___impl", "call_trampoline",
		"_Py_call_instrumentation_line"};
	static const char *const no[] = {"list_sort", "sre_ucs1_match",  "gc_collect_main", "dict_lookup",
					 "long_mul",  "PyObject_Malloc", "scanner_call",    "sys_settrace"};

	(void)state;
	for (size_t i = 0; i < COUNT(yes); i++) {
		assert_true(cpython_is_plumbing(yes[i], true));
		assert_false(cpython_is_plumbing(yes[i], false));
	}
	for (size_t i = 0; i < COUNT(no); i++)
		assert_false(cpython_is_plumbing(no[i], true));
	assert_true(cpython_is_plumbing("_start", false));
}

/* A function of C++ may be called clone, and one of the interpreter's file, which is linked with it, PyObject_Call. */
static void test_demangled_names_are_no_plumbing(void **state)
{
	static const uint64_t frames[] = {EXT(2), CPY(3), EXT(4), CLIB(5)};
	static const char *const names[] = {"clone", "PyObject_Call", "clone", "start_thread"};
	const struct pybpf_stack_event event = {.nr_native = COUNT(frames), .native_end = PYBPF_NATIVE_END_WHOLE};
	struct world w = new_world(false);
	struct native_stack native;
	uint32_t stack = PROFILE_ROOT;

	(void)state;
	assert_int_equal(native_frames_begin(w.native, &event, frames, 0, false, &native), -ENOENT);
	for (size_t i = 0; i < COUNT(frames); i++) {
		struct native_name name = {.is_demangled = i < 2};

		snprintf(name.text, sizeof(name.text), "%s", names[i]);
		native_frames_set_name(w.native, PYBPF_NATIVE_FRAME_FILE(frames[i]), PYBPF_NATIVE_FRAME_PC(frames[i]),
				       &name);
	}
	assert_int_equal(native_frames_begin(w.native, &event, frames, 0, false, &native), 0);
	assert_int_equal(native_frames_push_rest(w.native, &native, w.profile, &stack), 0);
	for (size_t i = 0; i < 2; i++) {
		const struct profile_stack *top = profile_stack_at(w.profile, stack);

		assert_string_equal(profile_string(w.profile, profile_frame_at(w.profile, top->frame)->name), names[i]);
		stack = top->parent;
	}
	assert_int_equal(stack, PROFILE_ROOT);
	free_world(&w);
}

/* The last function of Python has called greenlet, which copies another one's stack back. */
static void test_greenlets_are_switched(void **state)
{
	static const uint64_t named[] = {CLIB(5), EXT(SLP_SWITCH), EXT(6), EVAL(1), CPY(9), CLIB(3)},
			      nameless[] = {CLIB(5), GRN(0x20), GRN(0x30), EVAL(1), CPY(9), CLIB(3)},
			      called_python[] = {EXT(5), EVAL(1), EXT(SLP_SWITCH), EXT(6), EVAL(1), CPY(9), CLIB(3)};
	struct world w = new_world(false);
	struct native_stack native;
	const struct pybpf_stack_event event = {.nr_native = COUNT(named), .native_end = PYBPF_NATIVE_END_WHOLE};

	(void)state;
	check(&w, named, COUNT(named), PYBPF_NATIVE_END_WHOLE, "A", NATIVE_JOIN_NONE,
	      "A;[native frames incomplete];slp_switch;[libc.so.6+0x5]");
	check(&w, nameless, COUNT(nameless), PYBPF_NATIVE_END_WHOLE, "A", NATIVE_JOIN_NONE,
	      "A;[native frames incomplete];[_greenlet.cpython-312-x86_64-linux-gnu.so+0x20];[libc.so.6+0x5]");
	check(&w, named, COUNT(named), PYBPF_NATIVE_END_WHOLE, "", NATIVE_JOIN_NONE,
	      "[native frames incomplete];slp_switch;[libc.so.6+0x5]");
	check(&w, called_python, COUNT(called_python), PYBPF_NATIVE_END_WHOLE, "AB", NATIVE_JOIN_EXACT,
	      "A;ext_6;slp_switch;B;ext_5");
	assert_int_equal(native_frames_begin(w.native, &event, named, 1, false, &native), 0);
	assert_int_equal(native.end, PYBPF_NATIVE_END_SWITCH);
	free_world(&w);
}

/* Below a greenlet's first function is what runs elsewhere, or what did. */
static void test_greenlets_begin(void **state)
{
	static const uint64_t named[] = {EXT(5), EVAL(1), CPY(8), EXT(BOOTSTRAP), EXT(6), EVAL(1), CLIB(3)},
			      old[] = {EXT(5), EVAL(1), CPY(8), EXT(INITIALSTUB), EXT(6), EVAL(1), CLIB(3)},
			      nameless[] = {EXT(5), EVAL(1), CPY(8), GRN(0x20), GRN(0x30), EVAL(1), CLIB(3)};
	struct world w = new_world(false), all = new_world(true);

	(void)state;
	check(&w, named, COUNT(named), PYBPF_NATIVE_END_WHOLE, "A", NATIVE_JOIN_EXACT, "A;ext_5");
	check(&w, named, COUNT(named), PYBPF_NATIVE_END_NO_MAPPING, "A", NATIVE_JOIN_EXACT, "A;ext_5");
	check(&all, named, COUNT(named), PYBPF_NATIVE_END_FAULT, "A", NATIVE_JOIN_EXACT,
	      "greenlet::UserGreenlet::inner_bootstrap;slot_8;slot_1;A;ext_5");
	check(&w, named, COUNT(named), PYBPF_NATIVE_END_WHOLE, "AB", NATIVE_JOIN_OTHER,
	      "A;B;[native frames incomplete];ext_5");
	/* These two may be another function as well: then all fit. */
	check(&w, old, COUNT(old), PYBPF_NATIVE_END_NO_MAPPING, "A", NATIVE_JOIN_EXACT, "A;ext_5");
	check(&w, old, COUNT(old), PYBPF_NATIVE_END_WHOLE, "AB", NATIVE_JOIN_EXACT, "A;ext_6;B;ext_5");
	check(&w, nameless, COUNT(nameless), PYBPF_NATIVE_END_NO_MAPPING, "A", NATIVE_JOIN_EXACT,
	      "[_greenlet.cpython-312-x86_64-linux-gnu.so+0x20];A;ext_5");
	check(&w, nameless, COUNT(nameless), PYBPF_NATIVE_END_NO_MAPPING, "ABC", NATIVE_JOIN_NONE,
	      "A;B;C;[native frames incomplete];ext_5");
	free_world(&w);
	free_world(&all);
}

/* Registers of the handler's frame are where an unwinder had saved its caller's. */
static void test_registers_are_restored(void **state)
{
	static const uint64_t own[] = {EXT(UNWIND_RESUME), EXT(6), EVAL(1), CPY(9), CLIB(3)},
			      installs[] = {EXT(INSTALL_CONTEXT), EXT(UNWIND_RESUME), EXT(6), EVAL(1), CPY(9), CLIB(3)},
			      nameless[] = {CLIB(5), EXT(UNWIND_RESUME), EXT(6), EVAL(1), CPY(9), CLIB(3)},
			      searches[] = {EXT(7), EXT(UNWIND_RESUME), EXT(6), EVAL(1), CPY(9), CLIB(3)},
			      deeper[] = {CLIB(5), CLIB(6), EXT(UNWIND_RESUME), EXT(6), EVAL(1), CPY(9), CLIB(3)};
	struct world w = new_world(false);

	(void)state;
	check(&w, own, COUNT(own), PYBPF_NATIVE_END_WHOLE, "A", NATIVE_JOIN_NONE,
	      "A;[native frames incomplete];_Unwind_Resume");
	check(&w, installs, COUNT(installs), PYBPF_NATIVE_END_WHOLE, "A", NATIVE_JOIN_NONE,
	      "A;[native frames incomplete];_Unwind_Resume;uw_install_context_1.isra.0");
	check(&w, nameless, COUNT(nameless), PYBPF_NATIVE_END_WHOLE, "A", NATIVE_JOIN_NONE,
	      "A;[native frames incomplete];_Unwind_Resume;[libc.so.6+0x5]");
	check(&w, searches, COUNT(searches), PYBPF_NATIVE_END_WHOLE, "A", NATIVE_JOIN_EXACT,
	      "A;ext_6;_Unwind_Resume;ext_7");
	check(&w, deeper, COUNT(deeper), PYBPF_NATIVE_END_WHOLE, "A", NATIVE_JOIN_EXACT,
	      "A;ext_6;_Unwind_Resume;[libc.so.6+0x6];[libc.so.6+0x5]");
	free_world(&w);
}

/* Another profile begins. The process with the extension lives. */
static void begin_profile(struct world *w)
{
	native_frames_keep_file(w->native, EXTENSION);
	native_frames_forget_profile(w->native);
	profile_free(w->profile);
	w->profile = new_profile();
}

/* Names, and files that nobody has mapped any more, go when they were not met for some time. */
static void test_what_is_not_met_is_forgotten(void **state)
{
	static const uint64_t rare[] = {EXT(5)}, often[] = {EXT(6), CLIB(3)};
	struct world w = new_world(true);
	struct native_stack native;
	const struct pybpf_stack_event event = {.nr_native = 1, .native_end = PYBPF_NATIVE_END_WHOLE};
	const struct native_name same = {.text = "ext_5", .start = extension.base},
				 other = {.text = "other", .start = extension.base},
				 elsewhere = {.text = "ext_5", .start = extension.base + 1};
	uint32_t pcs[MOST], file;

	(void)state;
	check(&w, rare, 1, PYBPF_NATIVE_END_WHOLE, "", NATIVE_JOIN_EXACT, "ext_5");
	assert_true(native_frames_has_name(w.native, EXTENSION, 5, &same));
	assert_false(native_frames_has_name(w.native, EXTENSION, 5, &other));
	assert_false(native_frames_has_name(w.native, EXTENSION, 5, &elsewhere));
	for (int i = 0; i < 5; i++) {
		check(&w, often, 2, PYBPF_NATIVE_END_WHOLE, "", NATIVE_JOIN_EXACT, "[libc.so.6+0x3];ext_6");
		begin_profile(&w);
		/* A name that was met is not asked for again. */
		assert_int_equal(native_frames_begin(w.native,
						     &(struct pybpf_stack_event){.nr_native = 2,
										 .native_end = PYBPF_NATIVE_END_WHOLE},
						     often, 0, false, &native),
				 0);
	}
	assert_string_equal(native_frames_file_name(w.native, LIBC), "libc.so.6");
	assert_string_equal(native_frames_file_name(w.native, LIBPYTHON), "");
	assert_int_equal(native_frames_begin(w.native, &event, rare, 0, false, &native), -ENOENT);
	assert_int_equal(native_frames_wanted(w.native, &file, pcs, MOST), 1);
	assert_int_equal(pcs[0], 5);
	/* Without a name, nothing speaks against another one. */
	assert_true(native_frames_has_name(w.native, EXTENSION, 5, &other));
	assert_true(native_frames_has_name(w.native, EXTENSION, 7, &other));
	/* It goes as well when nobody has given it a name. */
	for (int i = 0; i < 3; i++)
		begin_profile(&w);
	assert_int_equal(native_frames_wanted(w.native, &file, pcs, MOST), 0);
	assert_string_equal(native_frames_file_name(w.native, LIBC), "");
	assert_string_equal(native_frames_file_name(w.native, EXTENSION), "ext.so");
	/* No frame of a file is another one's. */
	assert_int_equal(native_frames_add_file(w.native, "/new.so"), GREENLET + 1);
	free_world(&w);
}

/* Frames have room for 24 bits of them; those in use are left out. */
static void test_numbers_begin_anew(void **state)
{
	struct native_libraries l;

	(void)state;
	native_libraries_init(&l);
	assert_int_equal(native_libraries_add(&l, "/a.so"), 1);
	l.newest = 0xfffffe;
	assert_int_equal(native_libraries_add(&l, "/b.so"), 0xffffff);
	assert_int_equal(native_libraries_add(&l, "/c.so"), 2);
	assert_string_equal(native_library_at(&l, PYBPF_NATIVE_FRAME_FILE(PYBPF_NATIVE_FRAME(0xffffffull, 5)))->name,
			    "b.so");
	native_libraries_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_many_runs_as_entries),
		cmocka_unit_test(test_greenlets_are_switched),
		cmocka_unit_test(test_greenlets_begin),
		cmocka_unit_test(test_registers_are_restored),
		cmocka_unit_test(test_all_shows_the_interpreter),
		cmocka_unit_test(test_a_run_without_a_frame_yet),
		cmocka_unit_test(test_runs_that_do_not_fit),
		cmocka_unit_test(test_a_search_that_did_not_end),
		cmocka_unit_test(test_without_python),
		cmocka_unit_test(test_without_names),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_code_without_end),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_gaps_are_told),
		cmocka_unit_test(test_plumbing),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_demangled_names_are_no_plumbing),
		cmocka_unit_test(test_what_is_not_met_is_forgotten),
		cmocka_unit_test(test_numbers_begin_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
