// SPDX-License-Identifier: Apache-2.0
/* Code objects as the kernel announces them: whole, in part, lying; and frames that are named by them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "layout.h"
#include "pysym.h"
#include "walk_user.h"

#define PROC     7u
#define CODE     0x7f0000001000ULL
#define SIG      0xabcdef01u
#define TOO_MUCH 0x7fffffff

static struct pybpf_layout layout_of(int minor)
{
	struct layout_build build;

	assert_int_equal(layout_from_table(3, minor, false, &build), 0);
	return build.layout;
}

/* A PID that no process has: that of a child which is gone. */
static pid_t gone_pid(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static struct pysym *symbols(enum pysym_line_mode mode, bool full, int minor, pid_t pid)
{
	struct pysym *s = pysym_new(mode, full);
	struct pybpf_layout layout = layout_of(minor);

	assert_non_null(s);
	assert_int_equal(pysym_add_process(s, PROC, pid, "python3", &layout), 0);
	return s;
}

/* A record as the kernel writes it, on the heap so that the sanitizer guards its end. */
struct record {
	struct pybpf_code_event *event;
	size_t size;
};

static struct record new_record(int first_line)
{
	struct record r = {calloc(1, sizeof(*r.event)), sizeof(*r.event)};

	assert_non_null(r.event);
	r.event->event.type = PYBPF_EVENT_CODE;
	r.event->code = CODE;
	r.event->sig = SIG;
	r.event->proc_id = PROC;
	r.event->first_line = first_line;
	for (int i = 0; i < PYBPF_CODE_PARTS; i++) {
		r.event->part_addr[i] = 0x1000 + (uint64_t)i * 0x100;
		r.event->part_size[i] = PYBPF_SIZE_UNKNOWN;
	}
	return r;
}

/* Appends a part; size is what a whole copy would have. */
static void append(struct record *r, enum pybpf_code_part part, const void *bytes, size_t copied, size_t size)
{
	r->event = realloc(r->event, r->size + copied);
	assert_non_null(r->event);
	if (copied)
		memcpy((char *)r->event + r->size, bytes, copied);
	r->size += copied;
	r->event->part_copied[part] = (uint32_t)copied;
	r->event->part_size[part] = (uint32_t)size;
	r->event->event.size = (uint32_t)r->size;
}

/* A compact ASCII string object; returns its size. */
static size_t ascii(const struct pybpf_layout *l, const char *text, uint8_t *object, size_t room)
{
	uint64_t length = strlen(text);
	uint32_t state = (1u | 7u << 3) << l->str_kind_shift; /* kind 1, compact, ascii, ready */

	assert_true(l->str_ascii_data + length <= room);
	memset(object, 0, l->str_ascii_data);
	memcpy(object + l->str_length, &length, 8);
	memcpy(object + l->str_state, &state, 4);
	memcpy(object + l->str_ascii_data, text, length);
	return l->str_ascii_data + length;
}

static void append_text(struct record *r, const struct pybpf_layout *l, enum pybpf_code_part part, const char *text)
{
	uint8_t object[512];
	size_t size = ascii(l, text, object, sizeof(object));

	append(r, part, object, size, size);
}

/* 3.8's co_lnotab: 4 bytes of code on each of the lines first, first + 1, first + 2. */
static const uint8_t lnotab[] = {4, 1, 4, 1};

static struct record whole_record(int first_line, const char *name, const char *file)
{
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(first_line);

	append_text(&r, &l, PYBPF_CODE_NAME, name);
	append_text(&r, &l, PYBPF_CODE_FILE, file);
	append(&r, PYBPF_CODE_LINES, lnotab, sizeof(lnotab), sizeof(lnotab));
	return r;
}

static void add(struct pysym *s, struct record r)
{
	assert_int_equal(pysym_add_code(s, r.event, r.size), 0);
	free(r.event);
}

static struct pysym_frame resolved(struct pysym *s, int position)
{
	struct pybpf_frame frame = {.code = CODE, .sig = SIG, .position = position};
	struct pysym_frame out;

	assert_int_equal(pysym_resolve(s, PROC, &frame, &out), 0);
	return out;
}

static void test_complete_copy(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pysym_frame out;

	(void)unused;
	add(s, whole_record(10, "Class.method", "/usr/lib/python3.8/json/decoder.py"));
	out = resolved(s, 0);
	assert_string_equal(out.name, "Class.method");
	assert_string_equal(out.file, "json/decoder.py");
	assert_int_equal(out.line, 10);
	assert_false(out.hidden);
	assert_int_equal(resolved(s, 4).line, 11);
	assert_int_equal(resolved(s, 6).line, 11);
	assert_int_equal(resolved(s, 8).line, 12);
	/* Not begun, and a position that made no sense. */
	assert_int_equal(resolved(s, -1).line, 10);
	assert_int_equal(resolved(s, PYBPF_NO_POSITION).line, 10);
	assert_int_equal(pysym_counters(s)->codes, 1);
	assert_int_equal(pysym_counters(s)->unnamed, 0);
	assert_int_equal(pysym_counters(s)->no_lines, 0);
	pysym_free(s);
}

static void test_line_modes(void **unused)
{
	static const struct {
		enum pysym_line_mode mode;
		int line;
	} modes[] = {{PYSYM_LINES_CURRENT, 11}, {PYSYM_LINES_FIRST, 10}, {PYSYM_LINES_NONE, -1}};

	(void)unused;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		struct pysym *s = symbols(modes[i].mode, false, 8, gone_pid());

		add(s, whole_record(10, "f", "/a/b.py"));
		assert_int_equal(resolved(s, 4).line, modes[i].line);
		/* One identity for what is printed alike. */
		assert_int_equal(resolved(s, 4).cookie == resolved(s, 8).cookie, modes[i].mode != PYSYM_LINES_CURRENT);
		pysym_free(s);
	}
}

static void test_full_filenames(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, true, 8, gone_pid());

	(void)unused;
	add(s, whole_record(10, "f", "/usr/lib/python3.8/json/decoder.py"));
	assert_string_equal(resolved(s, 0).file, "/usr/lib/python3.8/json/decoder.py");
	pysym_free(s);
}

static void test_cookie(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	uint32_t *cookie;

	(void)unused;
	add(s, whole_record(10, "f", "/a/b.py"));
	cookie = resolved(s, 0).cookie;
	assert_int_equal(*cookie, UINT32_MAX);
	*cookie = 5;
	assert_int_equal(*resolved(s, 0).cookie, 5);
	assert_int_equal(*resolved(s, 4).cookie, UINT32_MAX);
	pysym_free(s);
}

/* What was returned stays valid however much comes after it. */
static void test_many_codes(void **unused)
{
	enum {
		N = 5000
	};
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pysym_frame *frames = calloc(N, sizeof(*frames));
	char name[32];

	(void)unused;
	assert_non_null(frames);
	for (int i = 0; i < N; i++) {
		struct pybpf_frame frame = {.code = CODE + (uint64_t)i / 2 * 16, .sig = SIG + (uint32_t)i % 2};
		struct record r;

		snprintf(name, sizeof(name), "f%d", i);
		r = whole_record(i, name, "/a/b.py");
		r.event->code = frame.code;
		r.event->sig = frame.sig;
		add(s, r);
		assert_int_equal(pysym_resolve(s, PROC, &frame, &frames[i]), 0);
	}
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_string_equal(frames[i].name, name);
		assert_string_equal(frames[i].file, "b.py");
		assert_int_equal(*frames[i].cookie, UINT32_MAX);
	}
	assert_int_equal(pysym_counters(s)->codes, N);
	free(frames);
	pysym_free(s);
}

/* The first announcement stands: frames were named by it. */
static void test_announced_twice(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());

	(void)unused;
	add(s, whole_record(10, "first", "/a/b.py"));
	add(s, whole_record(20, "second", "/a/c.py"));
	assert_string_equal(resolved(s, 0).name, "first");
	assert_int_equal(pysym_counters(s)->codes, 1);
	pysym_free(s);
}

/* The same address in another process, and with another signature, is another code object. */
static void test_same_address(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout layout = layout_of(8);
	struct pybpf_frame frame = {.code = CODE, .sig = SIG};
	struct pysym_frame out;
	struct record r;

	(void)unused;
	assert_int_equal(pysym_add_process(s, PROC + 1, gone_pid(), "other", &layout), 0);
	add(s, whole_record(10, "one", "/a/b.py"));
	r = whole_record(10, "two", "/a/b.py");
	r.event->sig++;
	add(s, r);
	r = whole_record(10, "three", "/a/b.py");
	r.event->proc_id++;
	add(s, r);
	assert_int_equal(pysym_resolve(s, PROC, &frame, &out), 0);
	assert_string_equal(out.name, "one");
	assert_int_equal(pysym_resolve(s, PROC + 1, &frame, &out), 0);
	assert_string_equal(out.name, "three");
	frame.sig++;
	assert_int_equal(pysym_resolve(s, PROC, &frame, &out), 0);
	assert_string_equal(out.name, "two");
	assert_int_equal(pysym_resolve(s, PROC + 1, &frame, &out), -ENOENT);
	pysym_free(s);
}

static void test_unknown(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_frame frame = {.code = CODE, .sig = SIG};
	struct pysym_frame out;
	struct record r = whole_record(1, "f", "/a/b.py");
	const char *comm;

	(void)unused;
	/* Nothing was announced, and the process can't be asked any more. */
	assert_int_equal(pysym_resolve(s, PROC, &frame, &out), -ENOENT);
	assert_int_equal(pysym_resolve(s, PROC + 1, &frame, &out), -ENOENT);
	r.event->proc_id = PROC + 1;
	assert_true(pysym_add_code(s, r.event, r.size) < 0);
	free(r.event);
	assert_int_equal(pysym_process(s, PROC + 1, &comm), 0);
	assert_string_equal(comm, "");
	assert_int_equal(pysym_counters(s)->codes, 0);
	pysym_free(s);
	pysym_free(NULL);
}

static void test_processes(void **unused)
{
	struct pysym *s = pysym_new(PYSYM_LINES_CURRENT, false);
	struct pybpf_layout layout = layout_of(8);
	char name[256];
	const char *comm;

	(void)unused;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(pysym_add_process(s, 1, 100, "one", &layout), 0);
	assert_int_equal(pysym_add_process(s, 2, 100, name, &layout), 0);
	assert_int_equal(pysym_process(s, 1, &comm), 100);
	assert_string_equal(comm, "one");
	assert_int_equal(pysym_process(s, 2, &comm), 100);
	assert_true(strlen(comm) >= 15 && strncmp(comm, name, strlen(comm)) == 0);
	pysym_free(s);
}

/* _Py_InitCleanup, which 3.12 pushes below an inlined __init__: one object for name and file, no line. */
static void test_trampoline(void **unused)
{
	static const struct {
		uint64_t name, file;
		int first_line;
		bool hidden;
	} cases[] = {{1, 1, 0, true}, {1, 2, 0, false}, {1, 1, 1, false}, {1, 2, 1, false}};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
		struct record r = whole_record(cases[i].first_line, "f", "f");

		r.event->part_addr[PYBPF_CODE_NAME] = cases[i].name * 0x1000;
		r.event->part_addr[PYBPF_CODE_FILE] = cases[i].file * 0x1000;
		add(s, r);
		assert_int_equal(resolved(s, 0).hidden, cases[i].hidden);
		pysym_free(s);
	}
}

/* Parts that the kernel could not copy, of a process that is gone. */

static void test_no_name(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(10);
	struct pysym_frame out;

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
	append(&r, PYBPF_CODE_LINES, lnotab, sizeof(lnotab), sizeof(lnotab));
	add(s, r);
	out = resolved(s, 4);
	assert_string_equal(out.file, "b.py");
	assert_int_equal(out.line, 11);
	assert_true(out.name[0] == '['); /* says that it has none */
	assert_int_equal(pysym_counters(s)->unnamed, 1);
	pysym_free(s);
}

static void test_no_file(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(10);
	struct pysym_frame out;

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append(&r, PYBPF_CODE_LINES, lnotab, sizeof(lnotab), sizeof(lnotab));
	add(s, r);
	out = resolved(s, 4);
	assert_string_equal(out.name, "f");
	assert_string_equal(out.file, "");
	assert_int_equal(out.line, 11);
	pysym_free(s);
}

static void test_no_lines(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(10);

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
	append(&r, PYBPF_CODE_LINES, lnotab, 2, 4); /* half of it would give false lines */
	add(s, r);
	assert_int_equal(resolved(s, 8).line, 10);
	assert_int_equal(pysym_counters(s)->no_lines, 1);
	pysym_free(s);
}

/* A function of one instruction, before 3.10, has a table of no bytes, which is a whole table. */
static void test_empty_line_table(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(10);

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
	append(&r, PYBPF_CODE_LINES, NULL, 0, 0);
	add(s, r);
	assert_int_equal(resolved(s, 8).line, 10);
	assert_int_equal(pysym_counters(s)->no_lines, 0);
	pysym_free(s);
}

static void test_nothing_copied(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pysym_frame out;

	(void)unused;
	add(s, new_record(10));
	out = resolved(s, 4);
	assert_true(out.name[0] == '[');
	assert_string_equal(out.file, "");
	assert_int_equal(out.line, 10);
	assert_int_equal(pysym_counters(s)->unnamed, 1);
	pysym_free(s);
}

/* String objects that are cut, or whose header promises more than was copied. */
static void test_lying_strings(void **unused)
{
	struct pybpf_layout l = layout_of(8);
	uint8_t object[512];
	size_t size = ascii(&l, "the_name", object, sizeof(object));

	(void)unused;
	for (size_t copied = 0; copied < size; copied++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
		struct record r = new_record(10);

		append(&r, PYBPF_CODE_NAME, object, copied, size);
		append(&r, PYBPF_CODE_FILE, object, copied, copied);
		append(&r, PYBPF_CODE_LINES, lnotab, sizeof(lnotab), sizeof(lnotab));
		add(s, r);
		assert_true(resolved(s, 0).name[0] == '[');
		assert_string_equal(resolved(s, 0).file, "");
		pysym_free(s);
	}
	for (int shift = 4; shift < 64; shift++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
		struct record r = new_record(10);
		uint64_t length = (1ULL << shift) + 8;

		memcpy(object + l.str_length, &length, 8);
		append(&r, PYBPF_CODE_NAME, object, size, size);
		append(&r, PYBPF_CODE_FILE, object, size, size);
		add(s, r);
		assert_true(resolved(s, 0).name[0] == '[');
		pysym_free(s);
	}
}

/* Records whose sizes contradict each other are refused, and leave nothing behind. */
static void test_lying_sizes(void **unused)
{
	static const uint32_t lies[] = {
		TOO_MUCH, 0x80000000u, 0xffffffffu, 0xfffffff0u, 0xffffffffu - sizeof(struct pybpf_code_event),
		1u << 20, 10000};
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_frame frame = {.code = CODE, .sig = SIG};
	struct pysym_frame out;

	(void)unused;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		for (int parts = 1; parts < 8; parts++) {
			struct record r = whole_record(1, "f", "/a/b.py");

			for (int part = 0; part < PYBPF_CODE_PARTS; part++) {
				if (parts & 1 << part)
					r.event->part_copied[part] = r.event->part_size[part] = lies[i];
			}
			assert_int_equal(pysym_add_code(s, r.event, r.size), -EBADMSG);
			free(r.event);
		}
	}
	/* Sums that wrap around in 32 bits to what there is. */
	{
		struct record r = whole_record(1, "f", "/a/b.py");

		r.event->part_copied[PYBPF_CODE_NAME] = 0x80000000u;
		r.event->part_copied[PYBPF_CODE_FILE] = 0x80000000u;
		assert_int_equal(pysym_add_code(s, r.event, r.size), -EBADMSG);
		free(r.event);
	}
	assert_int_equal(pysym_resolve(s, PROC, &frame, &out), -ENOENT);
	assert_int_equal(pysym_counters(s)->codes, 0);
	pysym_free(s);
}

/* Every size that a torn record could have. */
static void test_torn_records(void **unused)
{
	struct record r = whole_record(1, "f", "/a/b.py");

	(void)unused;
	for (size_t size = 0; size < r.size; size++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
		/* An object of its own, so that a read beyond it is seen; the header it must have to be called at all.
		 */
		void *copy = malloc(size > 0 ? size : 1);

		assert_non_null(copy);
		memcpy(copy, r.event, size);
		assert_int_equal(pysym_add_code(s, copy, size), -EBADMSG);
		free(copy);
		pysym_free(s);
	}
	free(r.event);
}

/* A line table that is none gives the function's first line. */
static void test_malformed_lines(void **unused)
{
	static const uint8_t junk[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 11, gone_pid());
	struct pybpf_layout l = layout_of(11);
	struct record r = new_record(10);

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
	append(&r, PYBPF_CODE_LINES, junk, sizeof(junk), sizeof(junk));
	add(s, r);
	for (int position = 0; position < 1000; position++)
		assert_int_equal(resolved(s, position).line, 10);
	assert_int_equal(resolved(s, INT32_MAX).line, 10);
	assert_int_equal(resolved(s, INT32_MIN + 1).line, 10);
	pysym_free(s);
}

/* 3.10 counts positions in code units; from 3.11 on in bytes from the code object's start. */
static void test_positions_by_version(void **unused)
{
	/* 3.10: pairs of bytes and line delta: 4 bytes on line 10, 4 on 11, 4 without a line, 4 on 13. */
	static const uint8_t pep626[] = {4, 0, 4, 1, 4, 0x80, 4, 2};
	/* 3.11: entries of kind 13 (line delta, no columns), 2 code units each: 10, 11; kind 15: none; 13. */
	static const uint8_t pep657[] = {0x80 | 13 << 3 | 1, 0, 0x80 | 13 << 3 | 1, 2, 0x80 | 15 << 3 | 1,
					 0x80 | 13 << 3 | 1, 4};
	static const int lines[] = {10, 11, 10, 13}; /* without a line: the first */

	(void)unused;
	for (int minor = 10; minor < 12; minor++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, minor, gone_pid());
		struct pybpf_layout l = layout_of(minor);
		struct record r = new_record(10);

		append_text(&r, &l, PYBPF_CODE_NAME, "f");
		append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
		if (minor == 10)
			append(&r, PYBPF_CODE_LINES, pep626, sizeof(pep626), sizeof(pep626));
		else
			append(&r, PYBPF_CODE_LINES, pep657, sizeof(pep657), sizeof(pep657));
		add(s, r);
		for (int unit = 0; unit < 8; unit++) {
			int position = minor == 10 ? unit : l.code_adaptive + 2 * unit;

			assert_int_equal(resolved(s, position).line, lines[unit / 2]);
		}
		pysym_free(s);
	}
}

/* A live process has what the kernel could not copy. This test is its own: objects in its memory. */

struct object {
	uint8_t bytes[4096];
};

static struct live {
	struct object code, name, file, lines;
} live;

static uint32_t live_code(const struct pybpf_layout *l, const char *name, int first_line)
{
	struct walk_memory own;
	static pid_t self;
	uint64_t part;
	struct walk_code read;

	self = getpid();
	memset(&live, 0, sizeof(live));
	ascii(l, name, live.name.bytes, sizeof(live.name.bytes));
	ascii(l, "/usr/lib/python3.8/os.py", live.file.bytes, sizeof(live.file.bytes));
	part = sizeof(lnotab);
	memcpy(live.lines.bytes + l->bytes_size, &part, 8);
	memcpy(live.lines.bytes + l->bytes_data, lnotab, sizeof(lnotab));
	part = (uint64_t)(uintptr_t)live.name.bytes;
	memcpy(live.code.bytes + l->code_name, &part, 8);
	part = (uint64_t)(uintptr_t)live.file.bytes;
	memcpy(live.code.bytes + l->code_filename, &part, 8);
	part = (uint64_t)(uintptr_t)live.lines.bytes;
	memcpy(live.code.bytes + l->code_linetable, &part, 8);
	memcpy(live.code.bytes + l->code_firstlineno, &first_line, 4);
	walk_process_memory(&own, &self);
	assert_int_equal(walk_read_code(&own, l, (uint64_t)(uintptr_t)live.code.bytes, &read), 0);
	return read.sig;
}

static struct record live_record(const struct pybpf_layout *l, const char *name)
{
	struct record r = new_record(30);

	r.event->sig = live_code(l, name, 30);
	r.event->code = (uint64_t)(uintptr_t)live.code.bytes;
	return r;
}

static void assert_live(struct pysym *s, uint32_t sig, const char *name)
{
	struct pybpf_frame frame = {.code = (uint64_t)(uintptr_t)live.code.bytes, .sig = sig, .position = 4};
	struct pysym_frame out;

	assert_int_equal(pysym_resolve(s, PROC, &frame, &out), 0);
	assert_string_equal(out.name, name);
	assert_string_equal(out.file, "os.py");
	assert_int_equal(out.line, 31);
	assert_int_equal(pysym_counters(s)->unnamed, 0);
	assert_int_equal(pysym_counters(s)->no_lines, 0);
}

static void test_missing_parts_are_read(void **unused)
{
	struct pybpf_layout l = layout_of(8);
	char long_name[3000];

	(void)unused;
	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	for (int i = 0; i < 3; i++) {
		const char *name = i == 2 ? long_name : "f";
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, getpid());
		struct record r = live_record(&l, name);
		uint32_t sig = r.event->sig;

		if (i == 1) {
			append_text(&r, &l, PYBPF_CODE_NAME, "f");
			append(&r, PYBPF_CODE_FILE, live.file.bytes, 50, 80);
		} else if (i == 2) {
			append(&r, PYBPF_CODE_NAME, live.name.bytes, PYBPF_COPY_STRING,
			       l.str_ascii_data + sizeof(long_name) - 1);
		}
		add(s, r);
		assert_live(s, sig, name);
		pysym_free(s);
	}
}

/* Not announced at all: its announcement found no room, or is on its way. */
static void test_unannounced_code_is_read(void **unused)
{
	struct pybpf_layout l = layout_of(8);
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, getpid());
	uint32_t sig = live_code(&l, "f", 30);

	(void)unused;
	assert_live(s, sig, "f");
	pysym_free(s);
}

/* The address holds another code object by now: its name would be a lie. */
static void test_reused_address(void **unused)
{
	struct pybpf_layout l = layout_of(8);
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, getpid());
	struct record r = live_record(&l, "before");
	struct pybpf_frame frame = {.code = r.event->code, .sig = r.event->sig};
	struct pysym_frame out;

	(void)unused;
	live_code(&l, "after", 31);
	add(s, r);
	assert_int_equal(pysym_resolve(s, PROC, &frame, &out), 0);
	assert_true(out.name[0] == '[');
	assert_string_equal(out.file, "");
	assert_int_equal(out.line, 30);
	frame.sig += 1000;
	assert_int_equal(pysym_resolve(s, PROC, &frame, &out), -ENOENT);
	pysym_free(s);
}

/* Lengths of 2^63 and pointers to nowhere in the process itself. */
static void test_hostile_process(void **unused)
{
	static const uint64_t lengths[] = {1ULL << 63, UINT64_MAX, 1ULL << 62, 1ULL << 40, 1u << 31, 100000};
	static const uint64_t pointers[] = {0, 1, 8, 1ULL << 63, UINT64_MAX - 7, UINT64_MAX};
	struct pybpf_layout l = layout_of(8);
	struct pysym_frame out;

	(void)unused;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, getpid());
		struct record r = live_record(&l, "f");
		struct pybpf_frame frame = {.code = r.event->code, .sig = r.event->sig, .position = 4};

		memcpy(live.lines.bytes + l.bytes_size, &lengths[i], 8);
		add(s, r);
		assert_int_equal(pysym_resolve(s, PROC, &frame, &out), 0);
		assert_string_equal(out.name, "f");
		assert_true(out.line == 30 || out.line == 31);
		pysym_free(s);
	}
	for (size_t i = 0; i < 3 * sizeof(pointers) / sizeof(*pointers); i++) {
		const uint16_t fields[] = {l.code_name, l.code_filename, l.code_linetable};
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, getpid());
		struct pybpf_frame frame = {.code = (uint64_t)(uintptr_t)live.code.bytes, .position = 4};
		struct walk_memory own;
		struct walk_code read;
		pid_t self = getpid();
		int err;

		live_code(&l, "f", 30);
		memcpy(live.code.bytes + fields[i % 3], &pointers[i / 3], 8);
		walk_process_memory(&own, &self);
		assert_int_equal(walk_read_code(&own, &l, frame.code, &read), 0);
		frame.sig = read.sig;
		err = pysym_resolve(s, PROC, &frame, &out);
		/* Without a name there is nothing to show; without file or lines there is less. */
		assert_int_equal(err, fields[i % 3] == l.code_name ? -ENOENT : 0);
		if (!err && fields[i % 3] == l.code_filename)
			assert_string_equal(out.file, "");
		if (!err && fields[i % 3] == l.code_linetable)
			assert_int_equal(out.line, 30);
		pysym_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete_copy),
		cmocka_unit_test(test_line_modes),
		cmocka_unit_test(test_full_filenames),
		cmocka_unit_test(test_cookie),
		cmocka_unit_test(test_many_codes),
		cmocka_unit_test(test_announced_twice),
		cmocka_unit_test(test_same_address),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_trampoline),
		cmocka_unit_test(test_no_name),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_no_lines),
		cmocka_unit_test(test_empty_line_table),
		cmocka_unit_test(test_nothing_copied),
		cmocka_unit_test(test_lying_strings),
		cmocka_unit_test(test_lying_sizes),
		cmocka_unit_test(test_torn_records),
		cmocka_unit_test(test_malformed_lines),
		cmocka_unit_test(test_positions_by_version),
		cmocka_unit_test(test_missing_parts_are_read),
		cmocka_unit_test(test_unannounced_code_is_read),
		cmocka_unit_test(test_reused_address),
		cmocka_unit_test(test_hostile_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
