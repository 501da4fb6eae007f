// SPDX-License-Identifier: Apache-2.0
/* From the kernel's stack records to stacks in the profile; their code objects may come later, or never. */
#include "profiles.h"
#include "pysym_records.h"
#include "symbols/stacks.h"
#include "allocated.h"

struct world {
	struct pysym *names;
	struct profile *profile;
	struct stacks *stacks;
};

static struct world new_world(void)
{
	struct world w = {.names = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid()), .profile = new_profile()};

	w.stacks = stacks_new(w.names, w.profile);
	assert_non_null(w.stacks);
	return w;
}

static void free_world(struct world *w)
{
	stacks_free(w->stacks);
	profile_free(w->profile);
	pysym_free(w->names);
}

/* The function at CODE + 64 * i is called "f<i>" in any process. */
static void announce(struct world *w, uint64_t proc_id, int i)
{
	char name[32];
	struct record r;

	snprintf(name, sizeof(name), "f%d", i);
	r = whole_record(10 * i, name, "/a/b.py");
	r.event->code = CODE + 64 * (uint64_t)i;
	r.event->proc_id = proc_id;
	add(w->names, r);
}

/* A stack of the functions from leaf (down to) 0, the depth being told as it is. */
static int send(struct world *w, uint64_t proc_id, uint64_t id, int leaf, uint32_t depth, uint32_t flags)
{
	uint32_t kept = pybpf_kept_frames(depth);
	size_t size = sizeof(struct pybpf_stack_event) + kept * sizeof(struct pybpf_frame);
	struct pybpf_stack_event *event = calloc(1, size);
	struct pybpf_frame *frames = (void *)(event + 1);
	int err;

	assert_non_null(event);
	event->event.type = PYBPF_EVENT_STACK;
	event->event.size = (uint32_t)size;
	event->stack_id = id;
	event->proc_id = proc_id;
	event->depth = depth;
	event->flags = flags;
	for (uint32_t i = 0; i < kept; i++)
		frames[i] = (struct pybpf_frame){.code = CODE + 64 * (uint64_t)(leaf > (int)i ? leaf - (int)i : 0),
						 .sig = SIG};
	err = stacks_add(w->stacks, event, size);
	/* A torn record is refused before it is looked at. */
	assert_int_equal(stacks_add(w->stacks, event, size - 1), -EBADMSG);
	assert_int_equal(stacks_add(w->stacks, event, sizeof(*event) - 1), -EBADMSG);
	free(event);
	return err;
}

/* The stack of an id as folded text. */
static void assert_stack(const struct world *w, uint64_t id, const char *want)
{
	uint32_t stack = stacks_find(w->stacks, id);
	char *text = strdup("");

	assert_int_not_equal(stack, PROFILE_NONE);
	for (; stack != PROFILE_ROOT; stack = profile_stack_at(w->profile, stack)->parent) {
		const struct profile_frame *f =
			profile_frame_at(w->profile, profile_stack_at(w->profile, stack)->frame);
		char *longer;

		assert_true(asprintf(&longer, "%s%s%s", profile_string(w->profile, f->name), *text ? ";" : "", text) >=
			    0);
		free(text);
		text = longer;
	}
	assert_string_equal(text, want);
	free(text);
}

static int look(pid_t pid, const char *path, struct pysym_file *out)
{
	const char *name = strrchr(path, '/') + 1;

	(void)pid;
	*out = (struct pysym_file){.shown = (uint32_t)(name - path), .console_script = strcmp(name, "gunicorn") == 0};
	return 0;
}

static enum profile_origin origin_of(const struct world *w, const char *file)
{
	return profile_origin_of(w->profile, profile_add_string(w->profile, file));
}

/* The module's code of an installed program is a package's, until a function is seen that is defined there. */
static void test_installed_programs_are_not_own(void **unused)
{
	static const struct {
		const char *name, *file;
	} codes[] = {
		{"<module>", "/venv/bin/gunicorn"}, {"<module>", "/srv/bin/serve"}, {"main", "/venv/bin/gunicorn"}};
	struct world w = new_world();

	(void)unused;
	pysym_look_at_paths_by(w.names, look);
	for (uint64_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct record r = whole_record(10, codes[i].name, codes[i].file);

		r.event->code = CODE + 64 * i;
		r.event->proc_id = PROC;
		add(w.names, r);
	}
	assert_int_equal(send(&w, PROC, 100, 1, 2, 0), 0);
	assert_int_equal(origin_of(&w, "gunicorn"), PROFILE_THIRD_PARTY);
	assert_int_equal(origin_of(&w, "serve"), PROFILE_OWN);
	assert_int_equal(send(&w, PROC, 101, 2, 3, 0), 0);
	assert_int_equal(origin_of(&w, "gunicorn"), PROFILE_OWN);
	free_world(&w);
}

static void test_named_at_once(void **unused)
{
	struct world w = new_world();

	(void)unused;
	for (int i = 0; i < 3; i++)
		announce(&w, PROC, i);
	assert_int_equal(send(&w, PROC, 100, 2, 3, 0), 0);
	assert_int_equal(send(&w, PROC, 101, 1, 2, PYBPF_STACK_FAULT), 0);
	assert_int_equal(send(&w, PROC, 102, 1, 2, PYBPF_STACK_NO_ROOT), 0);
	assert_int_equal(send(&w, PROC, 103, 0, 0, 0), 0);
	assert_stack(&w, 100, "f0;f1;f2");
	assert_stack(&w, 101, "[incomplete];f0;f1");
	assert_stack(&w, 102, "[root not reached];f0;f1");
	assert_stack(&w, 103, "[incomplete]");
	assert_int_equal(stacks_find(w.stacks, 104), PROFILE_NONE);
	assert_int_equal(stacks_count(w.stacks), 4);
	/* Where the thread is in another Python as well. */
	assert_int_equal(send(&w, PROC, 105, 1, 2, PYBPF_STACK_OUTER), 0);
	assert_int_equal(send(&w, PROC, 106, 1, 2, PYBPF_STACK_OUTER | PYBPF_STACK_FAULT), 0);
	assert_int_equal(send(&w, PROC, 107, 1, 2, PYBPF_STACK_BESIDE), 0);
	assert_stack(&w, 105, "[called from another Python];f0;f1");
	assert_stack(&w, 106, "[called from another Python];[incomplete];f0;f1");
	assert_stack(&w, 107, "f0;f1;[or in another Python]");
	assert_int_equal(stacks_count(w.stacks), 7);
	/* Once more is no other one. */
	assert_int_equal(send(&w, PROC, 100, 2, 3, 0), 0);
	assert_int_equal(stacks_count(w.stacks), 7);
	free_world(&w);
}

/* Samples without Python frames, by why there are none, and by the name of a thread that Python does not know. */
static void test_rows(void **unused)
{
	static const struct {
		struct pybpf_pseudo_stack pseudo;
		const char *stack;
	} wanted[] = {
		{{.no_frames_reason = PYBPF_COUNT_NO_THREAD_STATE, .comm = "blas"},
		 "[threads without Python];[thread blas]"},
		{{.no_frames_reason = PYBPF_COUNT_NO_THREAD_STATE, .comm = "omp"},
		 "[threads without Python];[thread omp]"},
		/* A name without an end, which no kernel sends. */
		{{.no_frames_reason = PYBPF_COUNT_NO_THREAD_STATE,
		  .comm = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p'}},
		 "[threads without Python];[thread abcdefghijklmnop]"},
		{{.no_frames_reason = PYBPF_COUNT_NO_THREAD_STATE}, "[threads without Python]"},
		{{.no_frames_reason = PYBPF_COUNT_NO_INTERPRETER}, "[no interpreter]"},
		{{.no_frames_reason = PYBPF_COUNT_NO_FRAMES}, "[outside of Python functions]"},
	};
	struct world w = new_world();

	(void)unused;
	announce(&w, PROC, 0);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		const struct pybpf_stack_event event = {
			.event = {.type = PYBPF_EVENT_STACK, .size = sizeof(event)},
			.stack_id = 100 + i,
			.proc_id = PROC,
			.pseudo = wanted[i].pseudo,
		};

		assert_int_equal(stacks_add(w.stacks, &event, sizeof(event)), 0);
		assert_stack(&w, 100 + i, wanted[i].stack);
	}
	/* A row is not made twice, and is no stack that was sent. */
	assert_int_equal(stacks_add_pseudo(w.stacks, &wanted[1].pseudo), stacks_find(w.stacks, 101));
	assert_int_equal(stacks_count(w.stacks), sizeof(wanted) / sizeof(*wanted));
	free_world(&w);
}

/* The instruction that the last function executes; 23 is BINARY_ADD in 3.8 (its Include/opcode.h). */
static void test_opcodes(void **unused)
{
	static const struct {
		uint32_t opcode;
		const char *stack;
	} wanted[] = {
		{0, "f0"},
		{PYBPF_OPCODE(23), "f0;BINARY_ADD"},
		{PYBPF_OPCODE(255), "f0;<255>"},
		{PYBPF_OPCODE_UNKNOWN, "f0;[opcode not read]"},
		{UINT32_MAX, "f0;[opcode not read]"},
	};
	struct world w = new_world();

	(void)unused;
	announce(&w, PROC, 0);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		struct {
			struct pybpf_stack_event event;
			struct pybpf_frame frame;
		} record = {
			.event = {.event = {.type = PYBPF_EVENT_STACK, .size = sizeof(record)},
				  .stack_id = 100 + i,
				  .proc_id = PROC,
				  .depth = 1,
				  .opcode = wanted[i].opcode},
			.frame = {.code = CODE, .sig = SIG},
		};

		assert_int_equal(stacks_add(w.stacks, &record.event, sizeof(record)), 0);
		assert_stack(&w, 100 + i, wanted[i].stack);
	}
	free_world(&w);
}

/* Too many addresses in the kernel, and more than the record holds. */
static void test_kernel_beyond_the_record(void **unused)
{
	struct {
		struct pybpf_stack_event event;
		struct pybpf_frame frames[1];
		uint64_t kernel[2];
	} stack = {
		.event = {.event = {.type = PYBPF_EVENT_STACK, .size = sizeof(stack)},
			  .stack_id = 7,
			  .proc_id = PROC,
			  .depth = 1},
		.frames = {{.code = CODE, .sig = SIG}},
		.kernel = {1, 2},
	};
	static const uint32_t wrong[] = {3, PYBPF_KERNEL_FRAMES, PYBPF_KERNEL_FRAMES + 1, UINT32_MAX};
	struct kernel_names *names = kernel_names_open("/dev/null");
	struct world w = new_world();

	(void)unused;
	announce(&w, PROC, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		stack.event.nr_kernel = wrong[i];
		assert_int_equal(stacks_add(w.stacks, &stack.event, sizeof(stack)), -EBADMSG);
	}
	stack.event.nr_kernel = 2;
	assert_int_equal(stacks_add(w.stacks, &stack.event, sizeof(stack)), 0);
	assert_stack(&w, 7, "f0");
	stacks_name_kernel(w.stacks, names);
	assert_int_equal(stacks_add(w.stacks, &stack.event, sizeof(stack)), 0);
	stack.event.stack_id = 8;
	assert_int_equal(stacks_add(w.stacks, &stack.event, sizeof(stack)), 0);
	assert_stack(&w, 8, "f0;[unknown]_[k];[unknown]_[k]");
	stacks_name_kernel(w.stacks, NULL);
	kernel_names_free(names);
	free_world(&w);
}

/* Callers in another interpreter: the mark is no code object, and nothing waits for it. */
static void test_other_interpreter(void **unused)
{
	struct {
		struct pybpf_stack_event event;
		struct pybpf_frame frames[3];
	} stack = {
		.event = {.event = {.type = PYBPF_EVENT_STACK, .size = sizeof(stack)},
			  .stack_id = 7,
			  .proc_id = PROC,
			  .depth = 3},
		.frames = {{.code = CODE + 64, .sig = SIG},
			   {.kind = PYBPF_FRAME_MARKER, .code = PYBPF_MARKER_INTERPRETER},
			   {.code = CODE, .sig = SIG}},
	};
	struct world w = new_world();

	(void)unused;
	announce(&w, PROC, 0);
	announce(&w, PROC, 1);
	assert_int_equal(stacks_add(w.stacks, &stack.event, sizeof(stack)), 0);
	assert_stack(&w, 7, "f0;[another interpreter];f1");
	stack.event.stack_id = 8;
	stack.event.flags = PYBPF_STACK_NO_CALLERS;
	stack.event.depth = 1;
	assert_int_equal(stacks_add(w.stacks, &stack.event, sizeof(stack)), 0);
	assert_stack(&w, 8, "[incomplete];f1");
	free_world(&w);
}

/* A process that pysym does not know is no reason to end: nothing is kept, whoever sent it can hand it on again. */
static void test_unknown_process(void **unused)
{
	struct world w = new_world();
	struct pybpf_layout layout = layout_of(8);
	size_t bytes = allocated_bytes();

	(void)unused;
	assert_int_equal(send(&w, PROC + 1, 100, 1, 2, 0), -ENOENT);
	assert_int_equal(allocated_bytes(), bytes);
	assert_int_equal(stacks_finish_process(w.stacks, PROC + 1), 0);
	assert_int_equal(stacks_finish(w.stacks), 0);
	assert_int_equal(stacks_find(w.stacks, 100), PROFILE_NONE);
	assert_int_equal(stacks_count(w.stacks), 0);
	assert_int_equal(pysym_add_process(w.names, PROC + 1, gone_pid(), &layout), 0);
	announce(&w, PROC + 1, 0);
	announce(&w, PROC + 1, 1);
	assert_int_equal(send(&w, PROC + 1, 100, 1, 2, 0), 0);
	assert_stack(&w, 100, "f0;f1");
	free_world(&w);
}

/* What waits for code objects of one process is named at that process's end, and not before. */
static void test_put_off(void **unused)
{
	struct world w = new_world();
	struct pybpf_layout layout = layout_of(8);

	(void)unused;
	assert_int_equal(pysym_add_process(w.names, PROC + 1, gone_pid(), &layout), 0);
	announce(&w, PROC, 0);
	assert_int_equal(send(&w, PROC, 100, 1, 2, 0), 0);
	assert_int_equal(send(&w, PROC, 101, 2, 3, 0), 0);
	assert_int_equal(send(&w, PROC + 1, 200, 0, 1, 0), 0);
	assert_int_equal(stacks_find(w.stacks, 100), PROFILE_NONE);
	announce(&w, PROC, 1);
	assert_int_equal(stacks_finish_process(w.stacks, PROC), 0);
	assert_stack(&w, 100, "f0;f1");
	assert_stack(&w, 101, "f0;f1;[unnamed]");
	assert_int_equal(stacks_find(w.stacks, 200), PROFILE_NONE);
	pysym_remove_process(w.names, PROC);
	assert_int_equal(stacks_finish_process(w.stacks, PROC), 0);
	announce(&w, PROC + 1, 0);
	assert_int_equal(stacks_finish(w.stacks), 0);
	assert_stack(&w, 200, "f0");
	assert_int_equal(stacks_count(w.stacks), 3);
	free_world(&w);
}

/* Nothing of what was put off is lost, or left behind. */
static void test_many_put_off(void **unused)
{
	enum {
		PROCESSES = 50,
		STACKS = 20
	};
	struct world w = new_world();
	struct pybpf_layout layout = layout_of(8);
	size_t before, waiting, table;

	(void)unused;
	/* Numbers that only their upper halves tell apart. */
	for (uint64_t p = 0; p < PROCESSES; p++)
		assert_int_equal(pysym_add_process(w.names, p << 32, gone_pid(), &layout), 0);
	before = allocated_bytes();
	for (uint64_t p = 0; p < PROCESSES; p++) {
		for (uint64_t i = 0; i < STACKS; i++)
			assert_int_equal(send(&w, p << 32, p * STACKS + i, 3, 4, 0), 0);
	}
	waiting = allocated_bytes() - before;
	assert_true(waiting > PROCESSES * STACKS * (sizeof(struct pybpf_stack_event) + 4 * sizeof(struct pybpf_frame)));
	for (uint64_t p = 0; p < PROCESSES; p += 2)
		assert_int_equal(stacks_finish_process(w.stacks, p << 32), 0);
	assert_int_equal(stacks_count(w.stacks), PROCESSES / 2 * STACKS);
	assert_int_equal(stacks_finish(w.stacks), 0);
	assert_int_equal(stacks_count(w.stacks), PROCESSES * STACKS);
	for (uint64_t id = 0; id < PROCESSES * STACKS; id++)
		assert_stack(&w, id, "[unnamed];[unnamed];[unnamed];[unnamed]");
	/* What is left is the table, and the profile's one stack. */
	table = allocated_bytes() - before;
	assert_true(table < waiting);
	assert_true(table < PROCESSES * STACKS * 40 + 2048);
	/* Some are left for the end of all. */
	assert_int_equal(send(&w, 0, 5000, 3, 4, 0), 0);
	free_world(&w);
}

static void test_removed(void **unused)
{
	struct world w = new_world();
	uint32_t index;

	(void)unused;
	announce(&w, PROC, 0);
	announce(&w, PROC, 1);
	assert_int_equal(send(&w, PROC, 100, 1, 2, 0), 0);
	assert_int_equal(send(&w, PROC, 101, 0, 1, 0), 0);
	index = stacks_find(w.stacks, 100);
	stacks_remove(w.stacks, 100);
	stacks_remove(w.stacks, 100);
	stacks_remove(w.stacks, 102);
	assert_int_equal(stacks_find(w.stacks, 100), PROFILE_NONE);
	assert_stack(&w, 101, "f0");
	assert_int_equal(stacks_count(w.stacks), 2);
	/* Sent again it is the same one in the profile. */
	assert_int_equal(send(&w, PROC, 100, 1, 2, 0), 0);
	assert_int_equal(stacks_find(w.stacks, 100), index);
	free_world(&w);
}

/* Deeper than what is kept: the root half is a ring. */
static void test_cut(void **unused)
{
	struct world w = new_world();
	uint32_t stack, depth = 0;
	bool noted = false;

	(void)unused;
	announce(&w, PROC, 0);
	assert_int_equal(send(&w, PROC, 100, 0, PYBPF_MAX_FRAMES + 7, PYBPF_STACK_CUT), 0);
	stack = stacks_find(w.stacks, 100);
	for (; stack != PROFILE_ROOT; stack = profile_stack_at(w.profile, stack)->parent, depth++) {
		const struct profile_frame *f = profile_frame_at(w.profile, profile_stack_at(w.profile, stack)->frame);

		if (f->kind == PROFILE_NOTE) {
			assert_int_equal(depth, PYBPF_HALF_FRAMES);
			assert_string_equal(profile_string(w.profile, f->name), "[7 frames cut]");
			noted = true;
		}
	}
	assert_true(noted);
	assert_int_equal(depth, PYBPF_MAX_FRAMES + 1);
	free_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named_at_once),
		cmocka_unit_test(test_installed_programs_are_not_own),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_other_interpreter),
		cmocka_unit_test(test_kernel_beyond_the_record),
		cmocka_unit_test(test_unknown_process),
		cmocka_unit_test(test_put_off),
		cmocka_unit_test(test_many_put_off),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
