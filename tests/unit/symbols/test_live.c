// SPDX-License-Identifier: Apache-2.0
/* Code objects of which the rest is read from a live process. */
#include <time.h>

#include "pysym_records.h"

/* A live process has what the kernel could not copy. This test is its own: objects in its memory. */

struct object {
	uint8_t bytes[4096];
};

static struct live {
	struct object code, name, file, lines;
} live;

static uint32_t live_signature(const struct pybpf_layout *l)
{
	pid_t self = getpid();
	struct walk_memory own;
	struct walk_code read;

	walk_process_memory(&own, &self);
	assert_int_equal(walk_read_code(&own, l, (uint64_t)(uintptr_t)live.code.bytes, false, &read), 0);
	return read.sig;
}

static uint32_t live_code(const struct pybpf_layout *l, const char *name, int first_line)
{
	uint64_t part;

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
	return live_signature(l);
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

	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), 0);
	assert_string_equal(out.name, name);
	assert_string_equal(out.file, "os.py");
	assert_int_equal(out.line, 31);
	assert_int_equal(pysym_get_counters(s)->unnamed, 0);
	assert_int_equal(pysym_get_counters(s)->no_lines, 0);
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

/* Only the time that reading takes is limited: a caller may take long between two code objects. */
static void test_time_to_read(void **unused)
{
	const struct timespec longer = {.tv_nsec = 60000000};
	struct pybpf_layout l = layout_of(8);
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, getpid());
	struct pybpf_frame frame = {.code = (uint64_t)(uintptr_t)live.code.bytes};
	uint32_t sig = live_code(&l, "f", 30);
	struct pysym_frame out;

	(void)unused;
	pysym_read_for(s, 50000000);
	nanosleep(&longer, NULL);
	assert_live(s, sig, "f");
	/* The first one uses it up; what is known stays known. */
	pysym_read_for(s, 1);
	frame.sig = live_code(&l, "g", 31);
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), 0);
	frame.sig = live_code(&l, "h", 32);
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), -ENOENT);
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
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), 0);
	assert_true(out.name[0] == '[');
	assert_string_equal(out.file, "");
	assert_int_equal(out.line, -1);
	frame.sig += 1000;
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), -ENOENT);
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
		struct pybpf_frame frame = {.code = r.event->code, .position = 4};

		memcpy(live.lines.bytes + l.bytes_size, &lengths[i], 8);
		frame.sig = r.event->sig = live_signature(&l);
		add(s, r);
		assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), 0);
		assert_string_equal(out.name, "f");
		assert_true(out.line == -1 || out.line == 31);
		pysym_free(s);
	}
	for (size_t i = 0; i < 3 * sizeof(pointers) / sizeof(*pointers); i++) {
		const uint16_t fields[] = {l.code_name, l.code_filename, l.code_linetable};
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, getpid());
		struct pybpf_frame frame = {.code = (uint64_t)(uintptr_t)live.code.bytes, .position = 4};
		int err;

		live_code(&l, "f", 30);
		memcpy(live.code.bytes + fields[i % 3], &pointers[i / 3], 8);
		frame.sig = live_signature(&l);
		err = pysym_resolve(s, PROC, 0, &frame, &out);
		/* Without a name there is nothing to show; without file or lines there is less. */
		assert_int_equal(err, fields[i % 3] == l.code_name ? -ENOENT : 0);
		if (!err && fields[i % 3] == l.code_filename)
			assert_string_equal(out.file, "");
		if (!err && fields[i % 3] == l.code_linetable)
			assert_int_equal(out.line, -1);
		pysym_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_parts_are_read), cmocka_unit_test(test_unannounced_code_is_read),
		cmocka_unit_test(test_time_to_read),           cmocka_unit_test(test_reused_address),
		cmocka_unit_test(test_hostile_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
