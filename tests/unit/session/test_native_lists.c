// SPDX-License-Identifier: Apache-2.0
/* Lists of what processes map, where there is no room for them, and what is asked when a process ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "played_native.h"
#include "session/internal.h"
#include "session/native/internal.h"

#define PROC_ID 7

static uint32_t lists, lists_max;

int kernel_put_native_list(struct kernel *k, uint64_t proc_id, const struct pybpf_native_list *list)
{
	(void)k;
	(void)list;
	assert_int_equal(proc_id, PROC_ID);
	if (!lists_max)
		return -E2BIG;
	lists = 1;
	return 0;
}

void kernel_delete_native_list(struct kernel *k, uint64_t proc_id)
{
	(void)k;
	assert_int_equal(proc_id, PROC_ID);
	lists = 0;
}

static struct session *begin(void)
{
	struct session *s = calloc(1, sizeof(*s));
	struct session_native_state *n = calloc(1, sizeof(*n));

	chunks = lists = 0;
	chunks_max = lists_max = 1;
	assert_true(s && n);
	s->native = n;
	n->frames = native_frames_new(&(struct native_frames_options){0});
	native_pages_init(&n->pages, NULL);
	native_files_init(&n->files, &n->pages, n->frames);
	intern_init(&n->mappers, sizeof(struct mapper), sizeof(uint64_t));
	return s;
}

static void end(struct session *s)
{
	struct session_native_state *n = s->native;

	for (uint32_t i = 0; i < n->mappers.count; i++)
		free(((struct mapper *)intern_item(&n->mappers, i))->mappings);
	intern_free(&n->mappers);
	native_files_free(&n->files);
	native_pages_free(&n->pages);
	native_frames_free(n->frames);
	free(n);
	free(s);
}

/* A process maps one file, or code that it has made. */
static struct mapper *add_process(struct session *s, bool is_made)
{
	struct session_native_state *n = s->native;
	const struct native_source source = {
		.pid = 1,
		.mapped = {.start = 0x1000,
			   .end = 0x2000,
			   .file = {.inode = !is_made, .size = PROC_ID, .mtime_ns = is_made}}};
	const struct mapper fresh = {.proc_id = PROC_ID, .pid = 1, .is_unshown = true, .count = 1};
	uint32_t i = intern_add(&n->mappers, &fresh, &(bool){false});
	struct mapper *mapper = intern_item(&n->mappers, i);

	mapper->mappings = calloc(1, sizeof(*mapper->mappings));
	assert_non_null(mapper->mappings);
	mapper->mappings[0] = (struct mapping){0x1000, 0x2000, 0, native_files_find(&n->files, &source), 0};
	return mapper;
}

/* Tables that it leads to may be others' soon. */
static void test_a_list_that_cannot_be_replaced_is_removed(void **state)
{
	struct session *s = begin();
	struct mapper *mapper = add_process(s, false);
	uint32_t first;

	(void)state;
	native_show_changed(s, 0);
	assert_int_equal(mapper->shown.count, 1);
	assert_int_equal(lists, 1);
	assert_false(mapper->is_unshown);

	assert_int_equal(native_pages_take(&s->native->pages, PYBPF_NATIVE_CHUNK_PAGES - 1, 0, &first), 0);
	native_note_users(s->native, mapper->mappings[0].file);
	native_show_changed(s, 10);
	assert_int_equal(lists, 0);
	assert_int_equal(mapper->shown.count, 0);
	/* The page that it had is free a second later. */
	assert_true(mapper->is_unshown);
	native_show_changed(s, 11.1);
	assert_int_equal(lists, 1);
	assert_int_equal(mapper->shown.count, 1);
	end(s);
}

static void test_a_process_learns_that_a_table_is_gone(void **state)
{
	struct session *s = begin();
	struct mapper *mapper = add_process(s, false);
	struct native_files *files = &s->native->files;
	uint64_t before;

	(void)state;
	native_show_changed(s, 0);
	before = mapper->shown.generation;
	native_show_changed(s, 1);
	assert_int_equal(mapper->shown.generation, before);
	native_files_at(files, mapper->mappings[0].file)->is_taken_away = files->has_taken_away = true;
	native_show_changed(s, 2);
	assert_int_not_equal(mapper->shown.generation, before);
	before = mapper->shown.generation;
	native_show_changed(s, 3);
	assert_int_equal(mapper->shown.generation, before);
	end(s);
}

/* Only time helps where pages are given back; where there are too many processes, it does not. */
static void test_a_list_too_many_is_not_tried_at_once(void **state)
{
	struct session *s = begin();
	struct mapper *mapper = add_process(s, false);

	(void)state;
	lists_max = 0;
	native_show_changed(s, 0);
	assert_false(mapper->is_unshown);
	assert_int_equal(mapper->shown.count, 0);
	assert_int_equal(s->native->pages.used, 0);
	end(s);
}

/* A question about code that goes away with its process is not waited for. */
static void test_a_question_about_a_process_that_has_ended(void **state)
{
	struct session *s = begin();
	struct session_native_state *n = s->native;
	struct mapper *mapper = add_process(s, true);
	const struct native_stop stop = {.pc = 16};

	(void)state;
	n->job_file = mapper->mappings[0].file;
	native_files_want_stop(&n->files, n->job_file, &stop, 0);
	assert_int_equal(native_files_next_stopped(&n->files, 0), n->job_file);
	n->job = JOB_STOPS;
	native_forget_question(n, PROC_ID + 1);
	assert_int_equal(n->job, JOB_STOPS);
	native_forget_question(n, PROC_ID);
	assert_int_equal(n->job, JOB_NONE);
	end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_list_that_cannot_be_replaced_is_removed),
		cmocka_unit_test(test_a_process_learns_that_a_table_is_gone),
		cmocka_unit_test(test_a_list_too_many_is_not_tried_at_once),
		cmocka_unit_test(test_a_question_about_a_process_that_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
