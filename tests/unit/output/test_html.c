// SPDX-License-Identifier: Apache-2.0
/* The HTML report's data, unpacked as its page unpacks it. tests/e2e/test_html.py looks at what a browser makes of it.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>
#include <zlib.h>

#include "output/code.h"
#include "output/diff/diff.h"
#include "base/base64.h"
#include "base/gzip.h"
#include "comparisons.h"

#define DATA_BEGIN "<script type=\"application/octet-stream\" id=\"data\">"
#define DATA_END   "</script>"

static int digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* What a Base64 text of that length says; *size: how many bytes. Caller frees. */
static unsigned char *unbase64(const char *text, size_t length, size_t *size)
{
	unsigned char *bytes = malloc(length / 4 * 3 + 1);

	assert_non_null(bytes);
	assert_int_equal(length % 4, 0);
	*size = 0;
	for (size_t i = 0; i < length; i += 4) {
		int pad = text[i + 3] == '=' ? text[i + 2] == '=' ? 2 : 1 : 0;
		uint32_t bits = 0;

		assert_true(pad == 0 || i + 4 == length);
		for (size_t c = 0; c < 4 - (size_t)pad; c++) {
			assert_int_not_equal(digit(text[i + c]), -1);
			bits |= (uint32_t)digit(text[i + c]) << (18 - 6 * c);
		}
		for (int byte = 0; byte < 3 - pad; byte++)
			bytes[(*size)++] = (unsigned char)(bits >> (16 - 8 * byte));
	}
	return bytes;
}

/* The text that was compressed; caller frees. */
static char *unzipped(unsigned char *bytes, size_t size, size_t *length)
{
	size_t room = 1 << 20;
	char *text = malloc(room);
	z_stream z = {.next_in = bytes, .avail_in = (uInt)size, .next_out = (Bytef *)text};
	int state = Z_OK;

	assert_non_null(text);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	while (state == Z_OK) {
		if (z.total_out == room)
			text = realloc(text, room *= 2);
		assert_non_null(text);
		z.next_out = (Bytef *)text + z.total_out;
		z.avail_out = (uInt)(room - z.total_out);
		state = inflate(&z, Z_NO_FLUSH);
	}
	assert_int_equal(state, Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	*length = z.total_out;
	inflateEnd(&z);
	return text;
}

/* The data of a page, which it frees. */
static json_t *data_of(char *page)
{
	char *begin = strstr(page, DATA_BEGIN), *end, *text;
	unsigned char *bytes;
	size_t size, length;
	json_error_t error;
	json_t *data;

	assert_non_null(begin);
	begin += strlen(DATA_BEGIN);
	end = strstr(begin, DATA_END);
	assert_non_null(end);
	bytes = unbase64(begin, (size_t)(end - begin), &size);
	text = unzipped(bytes, size, &length);
	data = json_loadb(text, length, 0, &error);
	if (!data)
		fail_msg("%s at %d", error.text, error.position);
	free(text);
	free(bytes);
	free(page);
	return data;
}

static json_int_t number(const json_t *data, const char *table, const char *column, size_t row)
{
	const json_t *value = json_array_get(json_object_get(json_object_get(data, table), column), row);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

static const char *text(const json_t *data, json_int_t index)
{
	const char *found = json_string_value(json_array_get(json_object_get(data, "strings"), (size_t)index));

	assert_non_null(found);
	return found;
}

static const char *frame_name(const json_t *data, size_t frame)
{
	return text(data, number(data, "frames", "name", frame));
}

/* Follows a sample's stack down to its root: names, leaf first, each with a semicolon. */
static void assert_stack(const json_t *data, size_t sample, const char *want)
{
	char *got = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&got, &size);

	assert_non_null(out);
	for (json_int_t s = number(data, "samples", "stack", sample); s; s -= number(data, "stacks", "down", (size_t)s))
		fprintf(out, "%s;", frame_name(data, (size_t)number(data, "stacks", "frame", (size_t)s)));
	fclose(out);
	assert_string_equal(got, want);
	free(got);
}

static void test_everything(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = profile_add_process(
		p, &(struct profile_process_info){.pid = 7, .inner_pid = 1, .name = "app", .container = "web"});
	uint32_t thread = profile_add_thread(p, owner, 8, "worker");
	uint32_t outer = profile_add_stack(p, PROFILE_ROOT, profile_add_frame(p, PROFILE_PYTHON, "main", "a.py", 3, 1));
	uint32_t inner = profile_add_stack(
		p, outer, profile_add_frame(p, PROFILE_NOTE, "[cut]", "", PROFILE_NO_LINE, PROFILE_NO_LINE));
	json_t *data;

	(void)unused;
	assert_int_equal(profile_add_sample(p, inner, owner, thread, 5), 0);
	assert_int_equal(profile_add_sample(p, outer, owner, PROFILE_NONE, 2), 0);
	assert_int_equal(profile_add_event(p, 5000000, 0, 1), 0);
	assert_int_equal(profile_add_event(p, 2000000, 1, 2), 0);
	assert_int_equal(profile_add_account(p, "lost", "full", "when it was full", 4), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, "here"), 0);
	assert_int_equal(profile_set_origin(p, "socket.py", PROFILE_STDLIB), 0);
	assert_int_equal(profile_set_source(p, "a.py", "def main():\n\t</script>\n"), 0);
	profile_set_roots(p, PROFILE_ROOT_THREAD | PROFILE_ROOT_CONTAINER);
	data = data_of(written(p, output_html));

	assert_string_equal(json_string_value(json_object_get(data, "format")), "pybpf-html");
	assert_int_equal(json_integer_value(json_object_get(data, "version")), 1);
	assert_string_equal(json_string_value(json_object_get(json_object_get(data, "facts"), "host")), "here");
	assert_stack(data, 0, "[cut];main;");
	assert_stack(data, 1, "main;");
	assert_int_equal(number(data, "frames", "line", 0), 3);
	assert_int_equal(number(data, "frames", "first_line", 0), 1);
	assert_int_equal(number(data, "frames", "line", 1), -1);
	assert_int_equal(number(data, "frames", "kind", 1), PROFILE_NOTE);
	assert_int_equal(number(data, "frames", "code", 0), OUTPUT_CODE_PYTHON);
	assert_int_equal(number(data, "frames", "code", 1), OUTPUT_CODE_NOTE);
	assert_string_equal(text(data, number(data, "origins", "file", 0)), "socket.py");
	assert_int_equal(number(data, "origins", "origin", 0), PROFILE_STDLIB);
	assert_int_equal(json_array_size(json_object_get(json_object_get(data, "origins"), "file")), 1);
	assert_int_equal(number(data, "samples", "value", 0), 5);
	assert_int_equal(number(data, "samples", "thread", 0), 0);
	assert_int_equal(number(data, "samples", "thread", 1), -1);
	assert_string_equal(text(data, number(data, "processes", "container", 0)), "web");
	assert_int_equal(number(data, "processes", "inner_pid", 0), 1);
	assert_int_equal(number(data, "threads", "tid", 0), 8);
	/* Microseconds, and less than 0 where it was earlier. */
	assert_int_equal(number(data, "events", "later_us", 0), 5000);
	assert_int_equal(number(data, "events", "later_us", 1), -3000);
	assert_int_equal(number(data, "events", "sample", 1), 1);
	{
		const json_t *roots = json_object_get(data, "roots");

		assert_int_equal(json_array_size(roots), 2);
		assert_string_equal(json_string_value(json_array_get(roots, 0)), "container");
		assert_string_equal(text(data, number(data, "sources", "file", 0)), "a.py");
		assert_string_equal(text(data, number(data, "sources", "text", 0)), "def main():\n\t</script>\n");
	}
	assert_true(json_is_null(json_object_get(data, "diff")));
	json_decref(data);
	profile_free(p);
}

static size_t occurrences(const char *page, const char *what)
{
	size_t n = 0;

	for (const char *c = page; (c = strstr(c, what)); c += strlen(what))
		n++;
	return n;
}

/* What names hold changes nothing of the page but its data. */
static void test_names_made_to_harm(void **unused)
{
	/* U+202E: what follows is shown from right to left. */
	static const char backwards[] = {(char)0xe2, (char)0x80, (char)0xae, 'g', 'p', 'j', '\0'};
	static const char *const names[] = {"</script><script>window.pwned=1</script>",
					    "<img src=x onerror=window.pwned=1>",
					    "<!--<script>",
					    "@PYBPF_DATA@",
					    "\"';&\\\n\r\x01\x7f",
					    "\xff\xc0\x80\xed\xa0\x80",
					    backwards};
	struct profile *p = new_profile(), *empty = new_profile();
	char *page, *plain = written(empty, output_html);
	uint32_t stack = PROFILE_ROOT;
	json_t *data;

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		stack = on(p, stack, names[i], names[i], 1);
		assert_int_equal(profile_set_source(p, names[i], names[i]), 0);
		assert_int_equal(profile_set_fact(p, names[i], names[i]), 0);
		assert_int_equal(profile_add_account(p, names[i], names[i], names[i], 1), 0);
	}
	take_in(p, stack, process(p, 1, names[0]), 1);
	page = written(p, output_html);
	assert_int_equal(occurrences(page, "<"), occurrences(plain, "<"));
	assert_int_equal(occurrences(page, ">"), occurrences(plain, ">"));
	assert_int_equal(occurrences(page, "@PYBPF_DATA@"), 0);
	data = data_of(page);
	assert_string_equal(frame_name(data, 0), names[0]);
	assert_string_equal(frame_name(data, 6), names[6]);
	json_decref(data);
	free(plain);
	profile_free(empty);
	profile_free(p);
}

static void assert_column(const json_t *table, const char *column, const char *want)
{
	char *got = json_dumps(json_object_get(table, column), 0);

	assert_non_null(got);
	assert_string_equal(got, want);
	free(got);
}

/* The unit is half a second. Nothing is judged of so few samples: the verdicts are made up. */
static void test_comparison(void **unused)
{
	struct profile *runs[] = {work(2, 3, 500000000, "10"), work(6, 0, 500000000, "10")};
	const struct diff_options times = {.basis = DIFF_TIME, .confidence = 0.95, .tolerance = -1};
	const char *const name = "<a>";
	const json_t *both, *rows;
	char *page = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&page, &size);
	struct diff_function *f, *g;
	struct diff *d;
	json_t *data;

	(void)unused;
	/* Without frames: in no total. */
	take_in(runs[0], PROFILE_ROOT, process(runs[0], 1, "python3"), 100);
	take_in(runs[1], PROFILE_ROOT, process(runs[1], 1, "python3"), 50);
	d = compared(runs[0], runs[1], &times);
	d->runs[DIFF_BEFORE].names = &name;
	f = (struct diff_function *)function(d, "f", PROFILE_NO_LINE);
	f->verdict = DIFF_NEW;
	f->change = INFINITY;
	g = (struct diff_function *)function(d, "g", PROFILE_NO_LINE);
	g->verdict = DIFF_SHRANK;
	g->change = -0.5;
	assert_int_equal(output_diff_html(d, &(struct output_diff_options){0}, out), 0);
	fclose(out);
	data = data_of(page);
	both = json_object_get(data, "diff");
	rows = json_object_get(both, "functions");
	assert_string_equal(json_string_value(json_object_get(both, "before")), "<a>");
	assert_string_equal(json_string_value(json_object_get(both, "after")), "new");
	assert_int_equal(json_integer_value(json_object_get(both, "before_total")), 5);
	assert_int_equal(json_integer_value(json_object_get(both, "after_total")), 6);
	assert_string_equal(json_string_value(json_object_get(both, "unit")), "s");
	assert_true(json_real_value(json_object_get(both, "after_unit")) == 0.5);
	assert_non_null(strstr(json_string_value(json_object_get(both, "notes")), "\n"));
	assert_stack(data, 1, "g;main;");
	assert_int_equal(number(data, "samples", "before", 1), 3);
	assert_int_equal(number(data, "samples", "value", 1), 0);
	assert_column(rows, "name", "[\"main\", \"f\", \"g\"]");
	assert_column(rows, "before", "[2.5, 1, 1.5]");
	assert_column(rows, "after", "[3, 3, 0]");
	assert_column(rows, "self_before", "[0, 1, 1.5]");
	assert_column(rows, "self_after", "[0, 3, 0]");
	/* JSON has no infinity. */
	assert_column(rows, "change", "[0, null, -0.5]");
	assert_column(rows, "words", "[\"few\", \"new\", \"shrank\"]");
	assert_column(rows, "verdict", "[0, 1, -1]");
	json_decref(data);
	diff_free(d);
	profile_free(runs[0]);
	profile_free(runs[1]);
}

/* Every length modulo three, and more than is written at once. */
static void test_packed(void **unused)
{
	static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 100000, 3000001};

	(void)unused;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *written_text = NULL, *plain = malloc(sizes[i] + 1), *back;
		size_t size = 0, length, zipped;
		FILE *out = open_memstream(&written_text, &size), *base64 = base64_open(out);
		FILE *packed = gzip_open(base64);
		unsigned char *bytes;
		uint32_t random = 1;

		assert_non_null(packed);
		assert_non_null(plain);
		for (size_t c = 0; c < sizes[i]; c++)
			plain[c] = (char)((random = random * 1664525 + 1013904223) >> 24);
		assert_int_equal(fwrite(plain, 1, sizes[i], packed), sizes[i]);
		assert_int_equal(fclose(packed), 0);
		assert_int_equal(fclose(base64), 0);
		assert_int_equal(fclose(out), 0);
		bytes = unbase64(written_text, size, &zipped);
		back = unzipped(bytes, zipped, &length);
		assert_int_equal(length, sizes[i]);
		assert_memory_equal(back, plain, length);
		free(back);
		free(bytes);
		free(plain);
		free(written_text);
	}
}

static void test_full_disk(void **unused)
{
	FILE *out = fopen("/dev/full", "w");
	struct profile *p = new_profile();

	(void)unused;
	assert_non_null(out);
	take_in(p, on(p, PROFILE_ROOT, "f", "a.py", 1), process(p, 1, "app"), 1);
	assert_int_equal(output_html(p, &(struct output_options){0}, out), -ENOSPC);
	fclose(out);
	profile_free(p);
}

/* A disk with room for that many bytes. */
static ssize_t write_to_disk(void *cookie, const char *bytes, size_t size)
{
	size_t *room = cookie, n = size < *room ? size : *room;

	(void)bytes;
	*room -= n;
	if (n < size)
		errno = ENOSPC;
	return (ssize_t)n;
}

/* Wherever the disk is full, in a small write or a large one, and whatever becomes of the bytes that were written. */
static void test_packed_on_a_full_disk(void **unused)
{
	enum {
		LARGE = 300000
	};

	(void)unused;
	for (size_t at = 0; at < LARGE; at += 7919) {
		size_t room = at;
		FILE *out = fopencookie(&room, "w", (cookie_io_functions_t){.write = write_to_disk});
		FILE *base64, *packed;
		bool failed;
		char *bytes;

		assert_non_null(out);
		base64 = base64_open(out);
		assert_non_null(base64);
		packed = gzip_open(base64);
		assert_non_null(packed);
		for (size_t size = 1; size <= LARGE; size *= 3) {
			uint32_t random = (uint32_t)size;

			bytes = malloc(size);
			assert_non_null(bytes);
			for (size_t i = 0; i < size; i++) {
				random = random * 1664525 + 1013904223;
				bytes[i] = (char)(random >> 24);
			}
			assert_true(fwrite(bytes, 1, size, packed) <= size);
			free(bytes);
			fflush(packed);
		}
		failed = fclose(packed);
		assert_true(!failed || errno == ENOSPC);
		failed |= fclose(base64) != 0;
		assert_true(!failed || errno == ENOSPC);
		assert_true(failed || fflush(out));
		fclose(out);
	}
}

/* There only if they were recorded; 0 of a frame without. */
static void test_columns(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	json_t *data;

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 3), owner, 6);
	data = data_of(written(p, output_html));
	assert_null(json_object_get(json_object_get(data, "frames"), "column"));
	json_decref(data);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 5, 4, 9}), owner, 5);
	data = data_of(written(p, output_html));
	assert_int_equal(number(data, "frames", "end_line", 0), 0);
	assert_int_equal(number(data, "frames", "end_line", 1), 5);
	assert_int_equal(number(data, "frames", "column", 1), 4);
	assert_int_equal(number(data, "frames", "end_column", 1), 9);
	json_decref(data);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything), cmocka_unit_test(test_names_made_to_harm),
		cmocka_unit_test(test_comparison), cmocka_unit_test(test_packed),
		cmocka_unit_test(test_full_disk),  cmocka_unit_test(test_packed_on_a_full_disk),
		cmocka_unit_test(test_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
