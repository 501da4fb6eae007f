// SPDX-License-Identifier: Apache-2.0
/* The rows of a saved profile, which may have any numbers: what contradicts itself is refused. */
#include <errno.h>

#include "profile/parents.h"
#include "profile/saved.pb-c.h"
#include "profile/saved_internal.h"
#include "rich_profile.h"

/* A message whose rows are right, to make one of them wrong. */
struct rows {
	Pybpf__SavedProfile m;
	uint32_t name[2], file[2], kind[2], down[3], pid[1], inner[1], process_name[1], container[1];
	uint32_t thread_process[1], tid[1], thread_name[1], process[2], thread[2], sample[2], taken[2];
	uint32_t group[2], key[2], text[2], fact_key[2], fact_value[2], source_file[2], source_text[2];
	uint32_t origin_file[2], origin[2];
	uint32_t parent[1], above[2], parent_pid[2], parent_inner[2], parent_name[2], parent_container[2], ended[2];
	int32_t line[2], first_line[2], frame[3], stack[2];
	uint32_t mapping_file[2], build_id[2], path[2], mapping[2], marks[2];
	uint64_t start[2], limit[2], offset[2], address[2];
	uint32_t state[2], lines[2], column[2], end_column[2];
	uint64_t value[2], count[2], told[2];
	int64_t time[2];
};

#define SET(r, field, array) ((r)->m.field = (r)->array, (r)->m.n_##field = sizeof((r)->array) / sizeof((r)->array[0]))

static char some_texts[] = "a\0b\0c";
static char samples_text[] = "samples", count_text[] = "count";

static void right(struct rows *r)
{
	*r = (struct rows){
		.name = {1, 2},
		.file = {3, 3},
		.line = {1, 2},
		.first_line = {-1, 2},
		.kind = {0, 1},
		.down = {1, 1, 3},
		.frame = {0, 1, 0},
		.pid = {42},
		.inner = {1},
		.process_name = {1},
		.container = {0},
		.tid = {43},
		.thread_name = {2},
		.stack = {3, -1},
		.process = {0, 0},
		.thread = {1, 0},
		.value = {3, 4},
		.time = {10, -5},
		.sample = {0, 1},
		.taken = {3, 4},
		.group = {1, 1},
		.key = {2, 3},
		.told = {5, INT64_MAX},
		.fact_key = {1, 2},
		.fact_value = {3, 3},
		.source_file = {1, 2},
		.source_text = {3, 3},
		.origin_file = {3, 1},
		.origin = {PROFILE_STDLIB, 77},
		.parent = {2},
		.above = {0, 1},
		.parent_pid = {40, 41},
		.parent_inner = {0, 1},
		.parent_name = {1, 2},
		.parent_container = {0, 3},
		.ended = {1, 0},
	};
	pybpf__saved_profile__init(&r->m);
	r->m.texts = (ProtobufCBinaryData){sizeof(some_texts), (uint8_t *)some_texts};
	r->m.measure_name = samples_text;
	r->m.measure_unit = count_text;
	SET(r, frame_name, name);
	SET(r, frame_file, file);
	SET(r, frame_line, line);
	SET(r, frame_first_line, first_line);
	SET(r, frame_kind, kind);
	SET(r, stack_down, down);
	SET(r, stack_frame, frame);
	SET(r, process_pid, pid);
	SET(r, process_inner_pid, inner);
	SET(r, process_name, process_name);
	SET(r, process_container, container);
	SET(r, thread_process, thread_process);
	SET(r, thread_tid, tid);
	SET(r, thread_name, thread_name);
	SET(r, sample_stack, stack);
	SET(r, sample_process, process);
	SET(r, sample_thread, thread);
	SET(r, sample_value, value);
	SET(r, event_time, time);
	SET(r, event_sample, sample);
	SET(r, event_value, taken);
	SET(r, account_group, group);
	SET(r, account_key, key);
	SET(r, account_text, text);
	SET(r, account_value, told);
	SET(r, fact_key, fact_key);
	SET(r, fact_value, fact_value);
	SET(r, source_file, source_file);
	SET(r, source_text, source_text);
	SET(r, origin_file, origin_file);
	SET(r, origin, origin);
	SET(r, process_parent, parent);
	SET(r, parent_above, above);
	SET(r, parent_pid, parent_pid);
	SET(r, parent_inner_pid, parent_inner);
	SET(r, parent_name, parent_name);
	SET(r, parent_container, parent_container);
	SET(r, parent_ended, ended);
}

static int load_rows(const struct rows *r, struct profile **p, struct error *error)
{
	size_t size = pybpf__saved_profile__get_packed_size(&r->m);
	uint8_t *bytes = malloc(size);
	int err;

	assert_non_null(bytes);
	assert_int_equal(pybpf__saved_profile__pack(&r->m, bytes), size);
	*p = NULL;
	err = saved_load_bytes(bytes, size, p, &(struct saved_error){"x.pybpf", error});
	free(bytes);
	return err;
}

static void assert_rows_refused(struct rows *r, const char *words)
{
	struct profile *p;
	struct error error = {0};
	int err = load_rows(r, &p, &error);

	if (err != -EBADMSG || !strstr(error.text, words))
		print_error("wanted \"%s\", got %d and \"%s\"\n", words, err, error.text);
	assert_int_equal(err, -EBADMSG);
	assert_non_null(strstr(error.text, words));
	right(r);
}

#define WRONG(change, words)                                                                                           \
	do {                                                                                                           \
		change;                                                                                                \
		assert_rows_refused(r, words);                                                                         \
	} while (0)

/* Adds a process, to which the sample belongs, and not its thread. */
static void second_process(struct rows *r)
{
	static uint32_t pids[] = {42, 44}, inner[] = {1, 2}, names[] = {1, 2}, containers[] = {0, 0};

	r->m.process_pid = pids;
	r->m.process_inner_pid = inner;
	r->m.process_name = names;
	r->m.process_container = containers;
	r->m.n_process_pid = r->m.n_process_inner_pid = r->m.n_process_name = r->m.n_process_container = 2;
	r->m.n_process_parent = 0;
	r->process[0] = 1;
}

/* Makes the second frame the leaf of a wait, and counts samples. */
static void wait_rows(struct rows *r)
{
	r->file[1] = 0;
	r->line[1] = r->first_line[1] = -1;
	r->state[1] = 2;
	r->count[0] = 5;
	r->count[1] = 6;
	SET(r, frame_state, state);
	SET(r, sample_count, count);
}

static void test_rows_are_right(void **unused)
{
	struct rows r;
	struct profile *p;
	struct error error;
	size_t count;

	(void)unused;
	right(&r);
	assert_int_equal(load_rows(&r, &p, &error), 0);
	assert_int_equal(profile_total(p), 7);
	assert_int_equal(profile_stack_at(p, 3)->parent, 0);
	assert_int_equal(profile_stack_at(p, 2)->parent, 1);
	assert_int_equal(profile_stack_at(p, 2)->frame, 1);
	assert_int_equal(profile_events(p, &count)[1].time_ns, 5);
	assert_int_equal(profile_samples(p, &count)[1].stack, 2);
	profile_free(p);
}

static void test_parents(void **unused)
{
	struct rows rows, *r = &rows;
	const struct profile_parents *parents;
	uint32_t chain[PROFILE_PARENTS_MAX];
	uint32_t above[PROFILE_PARENTS_MAX + 1], pids[PROFILE_PARENTS_MAX + 1], other[PROFILE_PARENTS_MAX + 1] = {0};
	struct profile *p;
	struct error error;

	(void)unused;
	right(r);
	assert_int_equal(load_rows(r, &p, &error), 0);
	parents = profile_get_parents(p);
	assert_int_equal(profile_parents_chain(parents, 0, chain), 2);
	assert_int_equal(profile_parents_at(parents, chain[0])->process.pid, 40);
	assert_true(profile_parents_at(parents, chain[0])->ended);
	assert_int_equal(profile_parents_at(parents, chain[1])->process.pid, 41);
	assert_false(profile_parents_at(parents, chain[1])->ended);
	profile_free(p);

	right(r);
	WRONG(r->parent[0] = 3, "parent does not exist");
	WRONG(r->above[0] = 1, "invalid parent or end");
	WRONG(r->ended[1] = 2, "invalid parent or end");
	WRONG(r->parent_pid[0] = UINT32_MAX, "a parent has an invalid PID");
	WRONG(r->parent_inner[1] = (uint32_t)INT32_MIN, "a parent has an invalid PID");
	WRONG(r->parent_name[0] = 4, "a parent's text does not exist");
	WRONG(r->parent_container[0] = 4, "a parent's text does not exist");
	WRONG(r->m.n_parent_ended = 1, "its parents differ in length");
	WRONG((second_process(r), r->m.n_process_parent = 1), "its parents differ in length");
	WRONG((r->above[1] = 0, r->parent_pid[1] = 40, r->parent_inner[1] = 0, r->parent_name[1] = 1,
	       r->parent_container[1] = 0),
	      "a parent occurs twice");
	for (uint32_t i = 0; i <= PROFILE_PARENTS_MAX; i++) {
		above[i] = i;
		pids[i] = i + 1;
	}
	r->m.parent_above = above;
	r->m.parent_pid = pids;
	r->m.parent_inner_pid = r->m.parent_name = r->m.parent_container = r->m.parent_ended = other;
	r->m.n_parent_above = r->m.n_parent_pid = r->m.n_parent_inner_pid = r->m.n_parent_name =
		r->m.n_parent_container = r->m.n_parent_ended = PROFILE_PARENTS_MAX + 1;
	assert_rows_refused(r, "a chain of parents is too long");
}

/* Files of before waits were counted have no such columns; a wait is a note without file and line. */
static void test_waits(void **unused)
{
	struct rows rows, *r = &rows;
	struct profile *p;
	struct error error;
	size_t count;

	(void)unused;
	right(r);
	assert_int_equal(load_rows(r, &p, &error), 0);
	assert_false(profile_has_counts(p));
	assert_false(profile_has_states(p));
	profile_free(p);
	wait_rows(r);
	assert_int_equal(load_rows(r, &p, &error), 0);
	assert_int_equal(profile_samples(p, &count)[1].count, 6);
	assert_string_equal(profile_string(p, profile_state_of(p, 2)), "b");
	assert_int_equal(profile_state_of(p, 1), 0);
	profile_free(p);
#define WRONG_WAIT(change, words) WRONG((wait_rows(r), change), words)
	WRONG_WAIT(r->state[1] = 4, "an invalid state");
	WRONG_WAIT(r->state[0] = 1, "an invalid state");
	WRONG_WAIT(r->file[1] = 3, "an invalid state");
	WRONG_WAIT(r->line[1] = 3, "an invalid state");
	WRONG_WAIT(r->m.n_frame_state = 1, "frames differ in length");
	WRONG_WAIT(r->m.n_sample_count = 1, "samples differ in length");
	WRONG_WAIT(r->count[0] = UINT64_MAX, "too many samples");
	WRONG_WAIT(r->count[0] = INT64_MAX, "too many samples");
}

/* Puts the first frame into an expression of two lines. */
static void expression_rows(struct rows *r)
{
	r->lines[0] = 2;
	r->column[0] = 7;
	r->end_column[0] = 3;
	SET(r, frame_lines, lines);
	SET(r, frame_column, column);
	SET(r, frame_end_column, end_column);
}

/* Files without columns have none of theirs. */
static void test_expressions(void **unused)
{
	struct rows rows, *r = &rows;
	struct profile *p;
	struct error error;

	(void)unused;
	right(r);
	assert_int_equal(load_rows(r, &p, &error), 0);
	assert_false(profile_has_columns(p));
	profile_free(p);
	expression_rows(r);
	assert_int_equal(load_rows(r, &p, &error), 0);
	assert_true(profile_has_columns(p));
	assert_int_equal(profile_frame_at(p, 0)->end_line, 2);
	assert_int_equal(profile_frame_at(p, 0)->column, 7);
	assert_int_equal(profile_frame_at(p, 0)->end_column, 3);
	assert_int_equal(profile_frame_at(p, 1)->end_line, 0);
	profile_free(p);
	right(r);
#define WRONG_SPAN(change) WRONG((expression_rows(r), change), "an invalid expression")
	WRONG_SPAN(r->lines[0] = 1);
	WRONG_SPAN(r->lines[0] = 0);
	WRONG_SPAN((r->line[0] = 2, r->lines[0] = INT32_MAX));
	WRONG_SPAN(r->lines[0] = UINT32_MAX);
	WRONG_SPAN(r->line[0] = 0);
	WRONG_SPAN(r->column[0] = (uint32_t)INT32_MAX + 1);
	WRONG_SPAN(r->end_column[0] = UINT32_MAX);
	WRONG_SPAN(r->column[1] = 1);
	WRONG_SPAN((r->lines[1] = 1, r->end_column[1] = 1));
	WRONG((expression_rows(r), r->m.n_frame_column = 1), "frames differ in length");
	WRONG((expression_rows(r), r->m.n_frame_lines = r->m.n_frame_column = r->m.n_frame_end_column = 1),
	      "frames differ in length");
}

/* Makes the second frame one of compiled code. */
static void code_rows(struct rows *r)
{
	r->kind[1] = PROFILE_NATIVE;
	r->first_line[1] = -1;
	r->mapping_file[0] = r->path[1] = 1;
	r->build_id[1] = 2;
	r->start[0] = 0x1000;
	r->limit[0] = 0x3000;
	r->mapping[1] = 1;
	r->address[1] = 0x2fff;
	r->marks[1] = PROFILE_CODE_INLINED | 1u << 31; /* of a version to come */
	SET(r, mapping_file, mapping_file);
	SET(r, mapping_build_id, build_id);
	SET(r, mapping_path, path);
	SET(r, mapping_start, start);
	SET(r, mapping_limit, limit);
	SET(r, mapping_offset, offset);
	SET(r, frame_mapping, mapping);
	SET(r, frame_address, address);
	SET(r, frame_marks, marks);
}

static void test_compiled_code(void **unused)
{
	struct rows rows, *r = &rows;
	struct profile *p;
	struct error error;

	(void)unused;
	right(r);
	assert_int_equal(load_rows(r, &p, &error), 0);
	assert_false(profile_has_code_places(p));
	profile_free(p);
	code_rows(r);
	assert_int_equal(load_rows(r, &p, &error), 0);
	assert_true(profile_has_code_places(p));
	assert_int_equal(profile_frame_at(p, 1)->mapping, 1);
	assert_int_equal(profile_frame_at(p, 1)->marks, PROFILE_CODE_INLINED | 1u << 31);
	assert_int_equal(profile_frame_at(p, 1)->address, 0x2fff);
	assert_int_equal(profile_frame_at(p, 0)->mapping, 0);
	assert_string_equal(profile_string(p, profile_library_of(p, profile_frame_at(p, 1))), "a");
	profile_free(p);
	right(r);
#define WRONG_CODE(change, words) WRONG((code_rows(r), change), words)
	WRONG_CODE(r->address[1] = 0x3000, "an invalid place");
	WRONG_CODE(r->address[1] = 0xfff, "an invalid place");
	WRONG_CODE(r->mapping[1] = 0, "an invalid place");
	WRONG_CODE(r->mapping[1] = 3, "an invalid place");
	WRONG_CODE(r->mapping[0] = 1, "an invalid place");
	WRONG_CODE(r->marks[0] = 1, "an invalid place");
	WRONG_CODE(r->first_line[1] = 1, "an invalid place");
	WRONG_CODE(r->limit[0] = 0xfff, "a mapping ends before it begins");
	WRONG_CODE(r->build_id[0] = 4, "a mapping's text does not exist");
	WRONG_CODE((r->build_id[1] = 0, r->mapping_file[1] = 1, r->start[1] = 0x1000, r->limit[1] = 0x3000),
		   "a mapping occurs twice");
	WRONG_CODE(r->m.n_mapping_offset = 1, "mappings differ in length");
	WRONG_CODE(r->m.n_frame_marks = 1, "frames differ in length");
	WRONG_CODE(r->m.n_frame_mapping = r->m.n_frame_address = r->m.n_frame_marks = 1, "frames differ in length");
}

static void test_wrong_tables(void **unused)
{
	struct rows rows, *r = &rows;

	(void)unused;
	right(r);
	WRONG(r->m.texts.len--, "its last text has no end");
	WRONG(r->m.measure_name = "", "what its values are");
	WRONG(r->name[1] = 4, "text does not exist");
	WRONG(r->file[0] = UINT32_MAX, "text does not exist");
	WRONG(r->line[0] = -2, "invalid line or kind");
	WRONG(r->first_line[0] = INT32_MIN, "invalid line or kind");
	WRONG(r->kind[1] = PROFILE_FRAME_KINDS, "invalid line or kind");
	WRONG(r->m.n_frame_line = 1, "frames differ in length");
	WRONG(r->m.n_frame_kind = 0, "frames differ in length");
	WRONG((r->name[1] = 1, r->line[1] = 1, r->first_line[1] = -1, r->kind[1] = 0), "a frame occurs twice");
	WRONG(r->down[1] = 0, "a stack's caller is not before it");
	WRONG(r->down[1] = 3, "a stack's caller is not before it");
	WRONG(r->down[2] = UINT32_MAX, "a stack's caller is not before it");
	WRONG(r->frame[0] = 2, "frame does not exist");
	WRONG(r->frame[0] = -1, "frame does not exist");
	WRONG((r->frame[0] = 1, r->frame[1] = INT32_MIN), "frame does not exist");
	WRONG((r->frame[2] = -1, r->down[2] = 3), "a stack occurs twice");
	WRONG(r->m.n_stack_frame = 2, "stacks differ in length");
	WRONG(r->pid[0] = UINT32_MAX, "an invalid PID");
	WRONG(r->inner[0] = (uint32_t)INT32_MIN, "an invalid PID");
	WRONG(r->process_name[0] = 4, "a process's text does not exist");
	WRONG(r->container[0] = 4, "a process's text does not exist");
	WRONG(r->m.n_process_inner_pid = 0, "processes differ in length");
	WRONG(r->thread_process[0] = 1, "a thread has an invalid process, name or TID");
	WRONG(r->thread_name[0] = 4, "a thread has an invalid process, name or TID");
	WRONG(r->tid[0] = UINT32_MAX, "a thread has an invalid process, name or TID");
	WRONG(r->m.n_thread_tid = 0, "threads differ in length");
}

static void test_wrong_values(void **unused)
{
	struct rows rows, *r = &rows;

	(void)unused;
	right(r);
	WRONG(r->stack[0] = 4, "stack does not exist");
	WRONG(r->stack[1] = INT32_MIN, "stack does not exist");
	WRONG(r->process[0] = 1, "process does not exist");
	WRONG(r->thread[0] = 2, "a thread that its process has not");
	WRONG(second_process(r), "a thread that its process has not");
	WRONG(r->m.n_sample_thread = 1, "samples differ in length");
	WRONG((r->thread[0] = 0, r->stack[1] = 0), "a sample occurs twice");
	WRONG(r->value[0] = UINT64_MAX, "too many samples");
	WRONG(r->value[0] = INT64_MAX, "too many samples");
	WRONG(r->m.period_ns = INT64_MAX, "too many samples");
	WRONG(r->m.period_ns = UINT64_MAX / 6, "too many samples");
	WRONG(r->time[0] = -1, "an invalid time");
	WRONG(r->time[1] = -11, "an invalid time");
	WRONG((r->time[0] = INT64_MAX, r->time[1] = 1), "an invalid time");
	WRONG(r->sample[1] = 2, "of no sample");
	WRONG(r->taken[0] = 4, "of no sample");
	WRONG(r->sample[1] = 0, "of no sample");
	/* Each has no more than the sample's value, but both have. */
	WRONG((r->sample[1] = r->sample[0], r->value[0] = 3, r->taken[0] = r->taken[1] = 2), "of no sample");
	WRONG(r->m.n_event_value = 1, "events differ in length");
	WRONG(r->m.n_event_sample = 1, "events differ in length");
	WRONG(r->group[0] = 4, "its account has an invalid text");
	WRONG(r->told[0] = (uint64_t)INT64_MAX + 1, "its account has an invalid text or number");
	WRONG(r->key[1] = 2, "something twice");
	WRONG(r->m.n_account_text = 0, "account differ in length");
	WRONG(r->fact_key[1] = 4, "a fact's text does not exist");
	WRONG(r->fact_key[1] = 1, "a fact occurs twice");
	WRONG(r->m.n_fact_value = 1, "facts or sources differ in length");
	WRONG(r->source_text[1] = 4, "a source's text does not exist");
	WRONG(r->source_file[1] = 1, "the source of a file occurs twice");
	WRONG(r->m.n_source_text = 1, "facts or sources differ in length");
	WRONG(r->origin_file[1] = 4, "the text of a file's origin does not exist");
	WRONG(r->m.n_origin = 1, "files' origins differ in length");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_right), cmocka_unit_test(test_parents),
		cmocka_unit_test(test_waits),          cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_compiled_code),  cmocka_unit_test(test_wrong_tables),
		cmocka_unit_test(test_wrong_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
