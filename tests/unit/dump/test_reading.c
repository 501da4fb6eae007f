// SPDX-License-Identifier: Apache-2.0
/* What the error of a read means for a thread, and how a thread is shown that could not be read. */
#include "dump/reading.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "dump/dump.h"
#include "helper/helper.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* /proc and the interpreter's lists say that a thread is gone; nobody else does. */
static void test_errors(void **state)
{
	static const int gone[] = {-ESRCH, -ENOENT};
	static const int failed[] = {-ENOMEM, -EINTR};
	static const int unread[] = {-ETIMEDOUT, -ECONNRESET, -EPROTO, -EBUSY,  -ENOTCONN, -EFAULT,
				     -EPERM,     -EACCES,     -EIO,    -EINVAL, -EMFILE,   -ENOSYS};

	(void)state;
	assert_int_equal(dump_judge_reading(0), DUMP_READ);
	for (size_t i = 0; i < COUNT(gone); i++)
		assert_int_equal(dump_judge_reading(gone[i]), DUMP_GONE);
	for (size_t i = 0; i < COUNT(failed); i++)
		assert_int_equal(dump_judge_reading(failed[i]), DUMP_FAILED);
	for (size_t i = 0; i < COUNT(unread); i++)
		assert_int_equal(dump_judge_reading(unread[i]), DUMP_UNREAD);
}

enum {
	READ,
	UNREAD,     /* its state is known */
	ALL_UNREAD, /* that is not, either */
	FOREIGN,    /* no interpreter knows it */
	THREADS,
};

static char name[] = "worker", version[] = "/usr/bin/python3", command[] = "python3 app.py";

struct snapshot {
	struct ps_row row;
	struct dump_thread threads[THREADS];
	struct dump_process process;
};

static void make_snapshot(struct snapshot *p)
{
	static struct dump_line no_lines[1];

	*p = (struct snapshot){
		.row = {.process = {.pid = 100, .inside = 100}, .supported = true, .command = command},
	};
	p->row.python.path = version;
	for (int i = 0; i < THREADS; i++)
		p->threads[i] = (struct dump_thread){
			.tid = 100 + i,
			.inside = 100 + i,
			.name = name,
			.is_python = i != FOREIGN,
			.state.wait.state = PYBPF_STATE_SLEEP,
			.stack = PROFILE_ROOT,
		};
	p->threads[UNREAD].unread = -ETIMEDOUT;
	p->threads[ALL_UNREAD].unread = -ECONNRESET;
	p->threads[ALL_UNREAD].state_unread = true;
	p->threads[ALL_UNREAD].state.wait.state = PYBPF_STATE_RUNNING;
	p->process = (struct dump_process){.row = &p->row,
					   .stacks = profile_new(),
					   .lines = no_lines,
					   .threads = p->threads,
					   .count = THREADS,
					   .at_s = 2,
					   .incomplete = -ETIMEDOUT};
	assert_non_null(p->process.stacks);
}

static char *text_of(const struct dump_process *process, const struct dump_process *before, bool json)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json j = {.out = out};

	assert_non_null(out);
	if (json)
		dump_json(process, before, &j);
	else
		dump_text(process, before, DUMP_TRACEBACKS, out);
	fclose(out);
	return text;
}

/* Returns how often the word is in the text. */
static size_t count(const char *text, const char *word)
{
	size_t found = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		found++;
	return found;
}

static void test_text(void **state)
{
	struct snapshot p;
	char *text, line[256];

	(void)state;
	make_snapshot(&p);
	text = text_of(&p.process, NULL, false);
	assert_int_equal(count(text, "\nThread "), THREADS);
	snprintf(line, sizeof(line), "\nNot all of it could be read: %s\n", helper_describe_error(-ETIMEDOUT));
	assert_int_equal(count(text, line), 1);
	snprintf(line, sizeof(line), "\nThread 101 \"worker\": [sleep], not read: %s\n  [stack not shown: ",
		 helper_describe_error(-ETIMEDOUT));
	assert_int_equal(count(text, line), 1);
	snprintf(line, sizeof(line), "\nThread 102 \"worker\": [unknown], not read: %s\n  [stack not shown: ",
		 helper_describe_error(-ECONNRESET));
	assert_int_equal(count(text, line), 1);
	assert_int_equal(count(text, "no Python function"), 1);
	assert_int_equal(count(text, "not a thread of Python"), 1);
	free(text);
	/* All is there. */
	p.process.incomplete = 0;
	p.threads[UNREAD].unread = p.threads[ALL_UNREAD].unread = 0;
	text = text_of(&p.process, NULL, false);
	assert_int_equal(count(text, "ot read") + count(text, "could"), 0);
	free(text);
	profile_free(p.process.stacks);
}

static void test_json(void **state)
{
	struct snapshot p;
	char *text, line[256];

	(void)state;
	make_snapshot(&p);
	text = text_of(&p.process, NULL, true);
	assert_int_equal(count(text, "\"complete\":false"), 1);
	assert_int_equal(count(text, "\"unread\":null"), 2);
	snprintf(line, sizeof(line), "\"unread\":\"%s\"", helper_describe_error(-ECONNRESET));
	assert_int_equal(count(text, line), 1);
	assert_int_equal(count(text, "\"state\":\"unknown\",\"cause\":\"[unknown]\""), 1);
	assert_int_equal(count(text, "\"state\":\"sleep\""), 3);
	free(text);
	p.process.incomplete = 0;
	p.process.with_native = true;
	p.threads[READ].native_unread = true;
	text = text_of(&p.process, NULL, true);
	assert_int_equal(count(text, "\"complete\":true"), 1);
	assert_int_equal(count(text, "\"native_frames\":null,\"native_whole\":null,\"native_fits\":null"), 1);
	free(text);
	profile_free(p.process.stacks);
}

/* Two threads of which nothing was read would look the same: they have not "not run". */
static void test_change(void **state)
{
	struct snapshot before, now;
	char *text;

	(void)state;
	make_snapshot(&before);
	make_snapshot(&now);
	before.process.at_s = 1;
	assert_int_equal(dump_index_make(&before.process), 0);
	assert_int_equal(dump_index_make(&now.process), 0);
	assert_int_equal(dump_compare(&before.process, &now.process, &now.threads[READ]), DUMP_CHANGE_NONE);
	for (int i = UNREAD; i <= ALL_UNREAD; i++)
		assert_int_equal(dump_compare(&before.process, &now.process, &now.threads[i]), DUMP_CHANGE_UNKNOWN);
	now.threads[UNREAD].unread = 0;
	assert_int_equal(dump_compare(&before.process, &now.process, &now.threads[UNREAD]), DUMP_CHANGE_UNKNOWN);
	before.threads[UNREAD].unread = 0;
	assert_int_equal(dump_compare(&before.process, &now.process, &now.threads[UNREAD]), DUMP_CHANGE_NONE);
	assert_int_equal(dump_count_ended(&before.process, &now.process), 0);
	text = text_of(&now.process, &before.process, false);
	assert_int_equal(
		count(text, ": 3 not run, 0 in the same place, 0 moved, 0 new, 0 ended, of 1 it is not known\n"), 1);
	free(text);
	text = text_of(&now.process, &before.process, true);
	assert_int_equal(count(text, "\"change\":null"), 1);
	free(text);
	dump_index_free(&before.process.index);
	dump_index_free(&now.process.index);
	profile_free(before.process.stacks);
	profile_free(now.process.stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
