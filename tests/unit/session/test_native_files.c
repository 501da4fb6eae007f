// SPDX-License-Identifier: Apache-2.0
/* Which files have tables in a memory of one chunk, and how they come to them; answers about files are played. */
#include "session/native/files.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "played_native.h"
#include "session/native/room.h"

/*
 * Files by their inodes. The first two are the same one in two containers; two different ones of these do not fit. All
 * further ones have a page.
 */
enum {
	NONE,
	ONE,
	SAME,
	OTHER,
	LAST,
	FILES
};
static const struct {
	uint32_t pages;
	uint8_t build_id;
} files[FILES] = {[ONE] = {120, 1}, [SAME] = {120, 1}, [OTHER] = {200, 2}, [LAST] = {210, 3}};

static uint32_t asked;

int native_ask_rows(const struct native_source *source, bool flow, uint64_t first, struct native_rows *out)
{
	const uint64_t inode = source->mapped.file.inode, build_id = inode < FILES ? files[inode].build_id : inode;
	const uint32_t pages = inode < FILES ? files[inode].pages : 1;

	asked++;
	out->cpu_ns = 1;
	out->file = (struct native_file){
		.id = source->mapped.file,
		.build_id_size = sizeof(build_id),
		.has_flow = flow,
		.nr_rows = (pages + flow) * PYBPF_NATIVE_PAGE_ROWS,
	};
	memcpy(out->file.build_id, &build_id, sizeof(build_id));
	out->count = (uint32_t)(out->file.nr_rows - first);
	return 0;
}

int native_ask_ahead(const struct native_source *source, uint64_t base, const struct native_stop *stops, uint32_t count,
		     struct native_ahead_rows *out)
{
	(void)source;
	(void)base;
	(void)stops;
	(void)count;
	out->count = 0;
	out->cpu_ns = 0;
	return 0;
}

struct world {
	struct native_pages pages;
	struct native_frames *frames;
	struct native_files files;
	struct native_rows *rows;
	struct native_ahead_rows *ahead;
};

static struct world begin(void)
{
	struct world w = {.rows = malloc(sizeof(*w.rows)), .ahead = malloc(sizeof(*w.ahead))};

	chunks = 0;
	chunks_max = 1;
	asked = 0;
	w.frames = native_frames_new(&(struct native_frames_options){0});
	assert_true(w.rows && w.ahead && w.frames);
	return w;
}

/* Where the world does not move any more. */
static void start(struct world *w)
{
	native_pages_init(&w->pages, NULL);
	native_files_init(&w->files, &w->pages, w->frames);
}

static void end(struct world *w)
{
	native_files_free(&w->files);
	native_pages_free(&w->pages);
	native_frames_free(w->frames);
	free(w->rows);
	free(w->ahead);
}

/* A process maps the file from now on. */
static uint32_t map(struct world *w, uint64_t inode)
{
	struct native_source source = {.pid = (pid_t)inode, .mapped = {.file = {.inode = inode}}};
	uint32_t i;

	snprintf(source.mapped.path, sizeof(source.mapped.path), "/usr/lib/lib%u.so", (unsigned)inode);
	i = native_files_find(&w->files, &source);
	assert_int_not_equal(i, INTERN_NONE);
	native_files_at(&w->files, i)->users++;
	return i;
}

static void leave(struct world *w, uint32_t index)
{
	native_files_leave(&w->files, index, native_files_at(&w->files, index)->source.pid);
}

/* Does what there is to do at a time. */
static void work(struct world *w, double now)
{
	uint32_t i;

	while ((i = native_files_next_stopped(&w->files, now)) != INTERN_NONE)
		assert_int_equal(native_files_pass_stops(&w->files, i, now, w->ahead), 0);
	while ((i = native_files_next(&w->files, now)) != INTERN_NONE)
		assert_int_equal(native_files_make(&w->files, i, now, w->rows), 0);
}

/* Does it that number of times, every 0.1 s from a time on. */
static void work_often(struct world *w, double from, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		work(w, from + i / 10.0);
}

static const struct native_known_file *at(const struct world *w, uint32_t index)
{
	return native_files_at(&w->files, index);
}

static void test_a_shared_table_goes_with_its_last_user(void **state)
{
	struct world w = begin();
	uint32_t one, same, other;

	(void)state;
	start(&w);
	one = map(&w, ONE);
	same = map(&w, SAME);
	work(&w, 0);
	assert_int_equal(at(&w, same)->state, NATIVE_FILE_THERE);
	assert_int_equal(at(&w, same)->shown.first, at(&w, one)->shown.first);
	assert_int_equal(at(&w, same)->number, at(&w, one)->number);
	assert_int_equal(w.files.there, 1);

	leave(&w, one);
	leave(&w, same);
	other = map(&w, OTHER);
	work(&w, 10);
	assert_int_equal(at(&w, other)->shown.pages, 0);
	work(&w, 11.2);
	assert_int_equal(at(&w, other)->shown.pages, files[OTHER].pages);
	assert_int_equal(w.pages.used, files[OTHER].pages);
	assert_int_equal(w.files.there, 1);
	assert_int_equal(w.files.rows, files[OTHER].pages * PYBPF_NATIVE_PAGE_ROWS);
	assert_int_equal(w.files.refused, 0);

	/* Likewise the other way round. */
	leave(&w, other);
	map(&w, SAME);
	map(&w, ONE);
	work(&w, 20);
	work(&w, 21.2);
	assert_int_equal(at(&w, one)->shown.pages, files[ONE].pages);
	assert_int_equal(at(&w, one)->shown.first, at(&w, same)->shown.first);
	assert_int_equal(w.pages.used, files[ONE].pages);
	assert_int_equal(w.files.there, 1);
	end(&w);
}

static void test_a_refused_file_is_tried_again(void **state)
{
	struct world w = begin();
	uint32_t one, same, other, before;

	(void)state;
	start(&w);
	one = map(&w, ONE);
	same = map(&w, SAME);
	work(&w, 0);
	leave(&w, one);
	other = map(&w, OTHER);
	work(&w, 10);
	before = asked;
	work_often(&w, 11, 4890);
	assert_int_equal(at(&w, other)->state, NATIVE_FILE_REFUSED);
	assert_int_equal(w.pages.used, files[SAME].pages);
	/* What finds no room does not keep a helper busy. */
	assert_int_equal(asked, before);

	leave(&w, same);
	work_often(&w, 500, 700);
	assert_int_equal(at(&w, other)->shown.pages, files[OTHER].pages);
	assert_int_equal(w.files.refused, 1);
	end(&w);
}

/* A stack of two frames was in the file. */
static void meet(const struct world *w, uint32_t index)
{
	const uint32_t number = at(w, index)->number;
	const uint64_t frames[] = {PYBPF_NATIVE_FRAME(number, 16), PYBPF_NATIVE_FRAME(number, 32)};
	const struct pybpf_stack_event event = {.nr_native = 2, .native_end = PYBPF_NATIVE_END_WHOLE};
	struct native_stack stack;

	assert_int_equal(native_frames_begin(w->frames, &event, frames, 0, true, &stack), 0);
}

static void test_a_table_that_no_stack_was_in_gives_way(void **state)
{
	const struct native_stop stop = {.pc = 16};
	struct world w = begin();
	uint32_t small, one, other;

	(void)state;
	start(&w);
	small = map(&w, 1000);
	work(&w, 0);
	one = map(&w, ONE);
	work(&w, 0);
	other = map(&w, OTHER);
	work(&w, 10);
	assert_int_equal(at(&w, other)->state, NATIVE_FILE_REFUSED);
	work(&w, 20);
	assert_int_equal(at(&w, one)->shown.pages, files[ONE].pages);

	native_files_want_stop(&w.files, other, &stop, 20);
	work(&w, 20);
	assert_int_equal(at(&w, one)->shown.pages, 0);
	assert_int_equal(native_room_next_taken_away(&w.files), one);
	assert_int_equal(native_room_next_taken_away(&w.files), INTERN_NONE);
	assert_int_equal(at(&w, small)->shown.pages, 1);
	work(&w, 21.2);
	assert_int_equal(at(&w, other)->shown.pages, files[OTHER].pages);
	assert_int_equal(w.files.there, 2);
	assert_int_equal(w.files.refused, 2);

	/* What a stack was in stays, and the other one comes again when it leaves. */
	meet(&w, other);
	native_files_want_stop(&w.files, one, &stop, 30);
	work_often(&w, 30, 2700);
	assert_int_equal(at(&w, other)->shown.pages, files[OTHER].pages);
	assert_int_equal(at(&w, one)->state, NATIVE_FILE_REFUSED);
	assert_int_equal(native_room_next_taken_away(&w.files), INTERN_NONE);
	leave(&w, other);
	work_often(&w, 300, 700);
	assert_int_equal(at(&w, one)->shown.pages, files[ONE].pages);
	end(&w);
}

/* A file that nobody needs does not take the room that is made for one that a stack has ended in. */
static void test_room_is_kept_for_what_is_wanted(void **state)
{
	const struct native_stop stop = {.pc = 16};
	struct world w = begin();
	uint32_t one, again, other;

	(void)state;
	start(&w);
	one = map(&w, ONE);
	work(&w, 0);
	again = map(&w, OTHER);
	work(&w, 10);
	other = map(&w, LAST);
	work(&w, 20);
	assert_int_equal(at(&w, again)->state, NATIVE_FILE_REFUSED);
	assert_int_equal(at(&w, other)->state, NATIVE_FILE_REFUSED);
	native_files_want_stop(&w.files, other, &stop, 30);
	work(&w, 30);
	/* Both are due. */
	work(&w, 50);
	assert_int_equal(at(&w, other)->shown.pages, files[LAST].pages);
	assert_int_equal(at(&w, again)->shown.pages, 0);
	assert_int_equal(at(&w, one)->shown.pages, 0);
	end(&w);
}

/* The last user's table becomes better, as any other; who comes back has another one, and frames of its own. */
static void test_the_last_user_has_the_table_alone(void **state)
{
	const struct native_stop stop = {.pc = 16};
	struct world w = begin();
	uint32_t one, same;

	(void)state;
	start(&w);
	chunks_max = 2;
	one = map(&w, ONE);
	same = map(&w, SAME);
	work(&w, 0);
	native_files_want_stop(&w.files, same, &stop, 1);
	assert_int_equal(native_files_next_stopped(&w.files, 1), INTERN_NONE);

	leave(&w, one);
	assert_int_equal(native_files_of(&w.files, at(&w, one)->number), same);
	native_files_want_stop(&w.files, same, &stop, 2);
	assert_int_equal(native_files_next_stopped(&w.files, 2), same);
	work(&w, 2);
	assert_int_equal(at(&w, same)->shown.pages, files[SAME].pages + 1);
	assert_int_equal(w.files.there, 1);
	assert_int_equal(w.pages.used, files[SAME].pages + 1);

	map(&w, ONE);
	work(&w, 4);
	assert_int_equal(at(&w, one)->shown.pages, files[ONE].pages);
	assert_int_not_equal(at(&w, one)->number, at(&w, same)->number);
	assert_int_equal(w.files.there, 2);
	end(&w);
}

static uint32_t map_made(struct world *w, uint64_t life)
{
	const struct native_source source = {
		.pid = 1,
		.life = life,
		.mapped = {.start = 0x1000, .end = 0x2000, .offset = 0x1000, .file = {.size = life, .mtime_ns = 1}}};
	uint32_t i = native_files_find(&w->files, &source);

	if (i != INTERN_NONE)
		native_files_at(&w->files, i)->users++;
	return i;
}

static void forget_made(struct world *w, uint32_t index, uint64_t life)
{
	native_files_leave(&w->files, index, 1);
	native_files_forget_made(&w->files, life, 0);
}

/* Any number of processes one after another, and many at once. */
static void test_code_of_processes_that_have_ended(void **state)
{
	struct world w = begin();
	uint32_t last_number = 0, i;

	(void)state;
	start(&w);
	for (uint64_t life = 1; life <= NATIVE_MADE_MAX + 1; life++) {
		i = map_made(&w, life);
		assert_int_not_equal(i, INTERN_NONE);
		assert_int_equal(at(&w, i)->id.size, life);
		/* No frame of one is another's. */
		assert_true(at(&w, i)->number > last_number);
		last_number = at(&w, i)->number;
		forget_made(&w, i, life);
		native_files_forget_made(&w.files, life, 0);
	}
	assert_int_equal(w.files.known.count, 1);
	for (uint64_t life = 1; life <= NATIVE_MADE_MAX; life++)
		i = map_made(&w, 10000 + life);
	assert_int_not_equal(i, INTERN_NONE);
	assert_int_equal(map_made(&w, 1), INTERN_NONE);
	forget_made(&w, i, 10000 + NATIVE_MADE_MAX);
	assert_int_equal(map_made(&w, 1), i);
	assert_int_equal(w.files.known.count, NATIVE_MADE_MAX);
	/* And so many in all: the names of each stay until stacks are forgotten. */
	while (w.files.made_ever < NATIVE_MADE_EVER_MAX) {
		forget_made(&w, i, at(&w, i)->id.size);
		i = map_made(&w, 20000 + w.files.made_ever);
		assert_int_not_equal(i, INTERN_NONE);
	}
	forget_made(&w, i, at(&w, i)->id.size);
	assert_int_equal(map_made(&w, 40000), INTERN_NONE);
	/* Until they are forgotten. */
	native_files_forget_stacks(&w.files, INTERN_NONE, 0);
	assert_int_not_equal(map_made(&w, 40000), INTERN_NONE);
	end(&w);
}

/* Containers of a new image each second, for an hour, beside a process that lives; stacks are forgotten each 10 s. */
static void test_files_that_come_and_go(void **state)
{
	struct world w = begin();
	uint32_t lasting, came, first = 0;

	(void)state;
	start(&w);
	lasting = map(&w, ONE);
	for (uint32_t now = 0; now < 3600; now++) {
		came = map(&w, 1000 + now);
		first = first ?: at(&w, came)->number;
		work(&w, now);
		assert_int_equal(at(&w, came)->shown.pages, 1);
		leave(&w, came);
		if (now % 10 == 9)
			native_files_forget_stacks(&w.files, INTERN_NONE, now);
	}
	assert_in_range(w.files.known.count, 1, 40);
	assert_in_range(w.pages.used, files[ONE].pages, files[ONE].pages + 40);
	assert_in_range(w.files.there, 1, 40);
	assert_int_equal(at(&w, lasting)->shown.pages, files[ONE].pages);
	assert_string_equal(native_frames_file_name(w.frames, at(&w, lasting)->number), "lib1.so");
	assert_string_equal(native_frames_file_name(w.frames, first), "");
	/* What they cost is not. */
	assert_int_equal(w.files.costs.tables_ns, 3601);
	assert_int_equal(at(&w, lasting)->costs.tables_ns, 1);
	end(&w);
}

static void forget_often(struct world *w, uint32_t busy)
{
	for (int i = 0; i < 5; i++)
		native_files_forget_stacks(&w->files, busy, 0);
}

static void test_a_file_that_was_forgotten_comes_back(void **state)
{
	struct world w = begin();
	uint32_t one, same;

	(void)state;
	start(&w);
	one = map(&w, ONE);
	same = map(&w, SAME);
	work(&w, 0);
	/* The table stays as long as one of its files is mapped, or asked about. */
	leave(&w, one);
	forget_often(&w, INTERN_NONE);
	assert_true(at(&w, one)->is_over);
	assert_int_equal(at(&w, same)->shown.pages, files[SAME].pages);
	assert_int_equal(w.pages.used, files[SAME].pages);
	leave(&w, same);
	forget_often(&w, same);
	assert_int_equal(w.pages.used, files[SAME].pages);
	assert_int_equal(w.files.there, 1);
	forget_often(&w, INTERN_NONE);
	assert_int_equal(w.pages.used, 0);
	assert_int_equal(w.files.there, 0);
	assert_int_equal(w.files.rows, 0);

	assert_int_equal(map(&w, ONE), one);
	work(&w, 10);
	assert_int_equal(at(&w, one)->shown.pages, files[ONE].pages);
	assert_string_equal(native_frames_file_name(w.frames, at(&w, one)->number), "lib1.so");
	/* Another one takes the place that is left. */
	assert_int_equal(map(&w, 1000), same);
	assert_int_equal(w.files.known.count, 2);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_shared_table_goes_with_its_last_user),
		cmocka_unit_test(test_a_refused_file_is_tried_again),
		cmocka_unit_test(test_a_table_that_no_stack_was_in_gives_way),
		cmocka_unit_test(test_room_is_kept_for_what_is_wanted),
		cmocka_unit_test(test_the_last_user_has_the_table_alone),
		cmocka_unit_test(test_code_of_processes_that_have_ended),
		cmocka_unit_test(test_files_that_come_and_go),
		cmocka_unit_test(test_a_file_that_was_forgotten_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
