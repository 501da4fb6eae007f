// SPDX-License-Identifier: Apache-2.0
/* pprof files, read by zlib and protobuf-c. */
#include <locale.h>
#include <stdbool.h>
#include <zlib.h>

#include "output/formats/pprof.pb-c.h"
#include "profile/mappings.h"
#include "profiles_hostile.h"

static Pprof__Profile *read_back(const struct profile *p)
{
	size_t size, room = 64 << 20;
	char *packed = written_bytes(p, output_pprof, &(struct output_options){0}, &size);
	uint8_t *plain = malloc(room);
	z_stream z = {.next_in = (unsigned char *)packed,
		      .avail_in = (unsigned)size,
		      .next_out = plain,
		      .avail_out = (unsigned)room};
	Pprof__Profile *got;

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	got = pprof__profile__unpack(NULL, z.total_out, plain);
	assert_non_null(got);
	inflateEnd(&z);
	free(plain);
	free(packed);
	assert_true(got->n_string_table > 0);
	assert_string_equal(got->string_table[0], "");
	return got;
}

static const char *text(const Pprof__Profile *got, int64_t index)
{
	assert_in_range(index, 0, got->n_string_table - 1);
	return got->string_table[index];
}

static const Pprof__Function *function_at(const Pprof__Profile *got, const Pprof__Sample *sample, size_t depth,
					  int64_t *line)
{
	*line = -1;
	assert_true(depth < sample->n_location_id);
	for (size_t i = 0; i < got->n_location; i++) {
		const Pprof__Location *location = got->location[i];

		if (location->id != sample->location_id[depth])
			continue;
		assert_int_equal(location->n_line, 1);
		*line = location->line[0]->line;
		for (size_t f = 0; f < got->n_function; f++) {
			if (got->function[f]->id == location->line[0]->function_id)
				return got->function[f];
		}
	}
	fail_msg("sample names an unknown location or function");
	return NULL;
}

static const Pprof__Label *label(const Pprof__Profile *got, const Pprof__Sample *sample, const char *key)
{
	for (size_t i = 0; i < sample->n_label; i++) {
		if (strcmp(text(got, sample->label[i]->key), key) == 0)
			return sample->label[i];
	}
	return NULL;
}

static bool has_comment(const Pprof__Profile *got, const char *want)
{
	for (size_t i = 0; i < got->n_comment; i++) {
		if (strcmp(text(got, got->comment[i]), want) == 0)
			return true;
	}
	return false;
}

static void test_stacks_and_labels(void **unused)
{
	struct profile *p = new_profile();
	struct profile_process_info info = {.pid = 42,
					    .inner_pid = 7,
					    .name = "web",
					    .container = "box",
					    .service = "shop",
					    .attributes = "service.version=1.4\ncontainer.id=4f79\n"};
	uint32_t owner = profile_add_process(p, &info), other = process(p, 50, "job");
	uint32_t worker = profile_add_thread(p, owner, 43, "worker");
	uint32_t module = profile_add_frame(p, PROFILE_PYTHON, "<module>", "app.py", 10, 1);
	uint32_t f = profile_add_frame(p, PROFILE_PYTHON, "f", "app.py", 5, 3);
	uint32_t f_again = profile_add_frame(p, PROFILE_PYTHON, "f", "app.py", 6, 3);
	uint32_t root = profile_add_stack(p, PROFILE_ROOT, module);
	const Pprof__Function *function, *again;
	const Pprof__Sample *sample;
	Pprof__Profile *got;
	int64_t line;

	(void)unused;
	assert_int_equal(profile_add_sample(p, profile_add_stack(p, root, f), owner, worker, 5), 0);
	assert_int_equal(profile_add_sample(p, profile_add_stack(p, root, f_again), other, PROFILE_NONE, 2), 0);
	take_in(p, PROFILE_ROOT, owner, 100);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 10101010}), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_START, "1700000000123456789"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, "2.5"), 0);
	assert_int_equal(profile_add_account(p, "lost", "full", "without room", 3), 0);
	assert_int_equal(profile_add_account(p, "lost", "none", "that are not", 0), 0);
	got = read_back(p);
	assert_int_equal(got->n_sample_type, 2);
	assert_string_equal(text(got, got->sample_type[0]->type), "samples");
	assert_string_equal(text(got, got->sample_type[0]->unit), "count");
	assert_string_equal(text(got, got->sample_type[1]->type), "cpu");
	assert_string_equal(text(got, got->sample_type[1]->unit), "nanoseconds");
	assert_string_equal(text(got, got->default_sample_type), "cpu");
	assert_string_equal(text(got, got->period_type->type), "cpu");
	assert_int_equal(got->period, 10101010);
	assert_true(got->time_nanos == 1700000000123456789);
	assert_true(got->duration_nanos == 2500000000);
	assert_true(has_comment(got, "lost: 3 without room"));
	assert_false(has_comment(got, "lost: 0 that are not"));
	assert_int_equal(got->n_mapping, 1);
	assert_int_equal(got->n_function, 2);
	assert_int_equal(got->n_location, 3);

	assert_int_equal(got->n_sample, 2);
	sample = got->sample[0];
	assert_int_equal(sample->n_value, 2);
	assert_int_equal(sample->value[0], 5);
	assert_int_equal(sample->value[1], 50505050);
	assert_int_equal(sample->n_location_id, 2);
	function = function_at(got, sample, 0, &line); /* the leaf */
	assert_string_equal(text(got, function->name), "f");
	assert_string_equal(text(got, function->filename), "app.py");
	assert_int_equal(function->start_line, 3);
	assert_int_equal(line, 5);
	assert_string_equal(text(got, function_at(got, sample, 1, &line)->name), "<module>");
	assert_int_equal(line, 10);
	assert_int_equal(label(got, sample, "pid")->num, 42);
	assert_int_equal(label(got, sample, "inner_pid")->num, 7);
	assert_int_equal(label(got, sample, "thread_id")->num, 43);
	assert_string_equal(text(got, label(got, sample, "process")->str), "web");
	assert_string_equal(text(got, label(got, sample, "container")->str), "box");
	assert_string_equal(text(got, label(got, sample, "thread")->str), "worker");
	assert_string_equal(text(got, label(got, sample, "service")->str), "shop");
	assert_string_equal(text(got, label(got, sample, "version")->str), "1.4");
	assert_string_equal(text(got, label(got, sample, "container_id")->str), "4f79");
	assert_null(label(got, sample, "namespace"));

	sample = got->sample[1];
	again = function_at(got, sample, 0, &line);
	assert_ptr_equal(again, function);
	assert_int_equal(line, 6);
	assert_int_equal(label(got, sample, "pid")->num, 50);
	assert_null(label(got, sample, "inner_pid"));
	assert_null(label(got, sample, "container"));
	assert_null(label(got, sample, "thread"));
	assert_null(label(got, sample, "thread_id"));
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

/* Without a period there are no seconds; a value that is too large for the format stays the largest. */
static void test_other_measures(void **unused)
{
	struct profile *p = new_profile();
	Pprof__Profile *got;

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "f", "", PROFILE_NO_LINE), process(p, 1, "x"), UINT64_MAX);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	got = read_back(p);
	assert_int_equal(got->n_sample_type, 1);
	assert_string_equal(text(got, got->sample_type[0]->type), "allocated");
	assert_string_equal(text(got, got->sample_type[0]->unit), "bytes");
	assert_string_equal(text(got, got->default_sample_type), "allocated");
	/* Parca crashes where a profile has none. */
	assert_string_equal(text(got, got->period_type->type), text(got, got->sample_type[0]->type));
	assert_int_equal(got->period, 1);
	assert_int_equal(got->sample[0]->n_value, 1);
	assert_true(got->sample[0]->value[0] == INT64_MAX);
	assert_int_equal(got->location[0]->line[0]->line, 0);
	assert_int_equal(got->function[0]->start_line, 0);
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

static void test_waits(void **unused)
{
	static const char *const types[] = {"samples", "waits", "wall"};
	struct profile *p = new_profile();
	uint32_t f = on(p, PROFILE_ROOT, "f", "a.py", 1), owner = process(p, 1, "x");
	uint32_t wait = profile_add_stack(p, f, profile_add_wait(p, "lock", "[lock]", 0));
	Pprof__Profile *got;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", "microseconds", 0}), 0);
	assert_int_equal(profile_add_time(p, wait, owner, PROFILE_NONE, 500, 7), 0);
	assert_int_equal(profile_add_time(p, f, owner, PROFILE_NONE, 200, 3), 0);
	got = read_back(p);
	assert_int_equal(got->n_sample_type, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(text(got, got->sample_type[i]->type), types[i]);
		assert_string_equal(text(got, got->sample_type[i]->unit), i < 2 ? "count" : "microseconds");
	}
	assert_string_equal(text(got, got->default_sample_type), "wall");
	assert_int_equal(got->sample[0]->n_value, 3);
	assert_memory_equal(got->sample[0]->value, ((const int64_t[]){0, 7, 500}), 3 * sizeof(int64_t));
	assert_memory_equal(got->sample[1]->value, ((const int64_t[]){3, 0, 200}), 3 * sizeof(int64_t));
	assert_string_equal(text(got, label(got, got->sample[0], "state")->str), "lock");
	assert_string_equal(text(got, label(got, got->sample[1], "state")->str), "on CPU");
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

/* Epochs are merged, and only profiles of the same types are: one without any wait has them, too. */
static void test_types_do_not_depend_on_samples(void **unused)
{
	struct profile *p = new_profile();
	Pprof__Profile *got;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"gil", "microseconds", 0}), 0);
	got = read_back(p);
	assert_int_equal(got->n_sample_type, 3);
	assert_string_equal(text(got, got->sample_type[1]->type), "waits");
	assert_string_equal(text(got, got->sample_type[2]->type), "gil");
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

static void test_empty(void **unused)
{
	struct profile *p = new_profile();
	Pprof__Profile *got = read_back(p);

	(void)unused;
	assert_int_equal(got->n_sample, 0);
	assert_int_equal(got->n_sample_type, 1);
	assert_true(has_comment(got, "No sample has Python frames."));
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

/* Is all of it UTF-8? C's own decoder takes only what is. */
static void assert_utf8(const char *bytes)
{
	assert_int_not_equal(mbstowcs(NULL, bytes, 0), (size_t)-1);
}

/* Controls (C1's too), separators of lines, what turns text around: of the names made to harm, all that does. */
static bool is_harmful(const char *text)
{
	/* NOLINTBEGIN(misc-misleading-bidirectional): that they mislead is what is looked for. */
	static const char *const sequences[] = {"\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xac", "\xe2\x80\xae",
						"\xe2\x81\xa6", "\xd8\x9c",     "\xc2\x85",     "\xc2\x9b"};
	/* NOLINTEND(misc-misleading-bidirectional) */

	for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++) {
		if (strstr(text, sequences[i]))
			return true;
	}
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	}
	return false;
}

static bool has_text(const Pprof__Profile *got, const char *want)
{
	for (size_t i = 0; i < got->n_string_table; i++) {
		if (strcmp(got->string_table[i], want) == 0)
			return true;
	}
	return false;
}

static void test_hostile_names(void **unused)
{
	struct profile *p = hostile_profile();
	Pprof__Profile *got = read_back(p);
	int64_t total = 0, line;

	(void)unused;
	for (size_t i = 0; i < got->n_string_table; i++) {
		assert_utf8(got->string_table[i]);
		assert_false(is_harmful(got->string_table[i]));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(got->string_table[i], got->string_table[j]);
	}
	assert_int_equal(got->n_sample, NR_HOSTILE + 1);
	for (size_t i = 0; i < got->n_sample; i++) {
		const Pprof__Function *leaf = function_at(got, got->sample[i], 0, &line);

		assert_int_equal(got->sample[i]->n_location_id, i + 1);
		assert_int_equal(line, i + 1);
		total += got->sample[i]->value[0];
		/* What is UTF-8 and harms nobody is there as it is. */
		if (i < NR_HOSTILE && mbstowcs(NULL, hostile_names[i], 0) != (size_t)-1 &&
		    !is_harmful(hostile_names[i]))
			assert_string_equal(text(got, leaf->name), hostile_names[i]);
		if (i == NR_HOSTILE)
			assert_int_equal(strlen(text(got, leaf->name)), HOSTILE_LONG);
	}
	assert_int_equal(total, (1 << (NR_HOSTILE + 1)) - 1);
	assert_true(has_text(got, "line\\x0abreak\\x0d\\x0a\\x09tab"));
	assert_true(has_comment(got, "line\\x0abreak\\x0d\\x0a\\x09tab: line\\x0abreak\\x0d\\x0a\\x09tab"));
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

/* More than any buffer on the way holds, in stacks that share little. */
static void test_many_samples(void **unused)
{
	enum {
		N = 20000
	};
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x");
	Pprof__Profile *got;
	char name[32];

	(void)unused;
	for (int i = 0; i < N; i++) {
		uint32_t s = PROFILE_ROOT;

		for (int depth = 0; depth < 20; depth++) {
			snprintf(name, sizeof(name), "f%d", (i * 31 + depth * 7) % 997);
			s = on(p, s, name, "many.py", depth * 1000 + i % 1000);
		}
		take_in(p, s, owner, (uint64_t)i + 1);
	}
	got = read_back(p);
	assert_true(got->n_sample > N / 2);
	{
		int64_t total = 0;

		for (size_t i = 0; i < got->n_sample; i++) {
			assert_int_equal(got->sample[i]->n_location_id, 20);
			total += got->sample[i]->value[0];
		}
		assert_true((uint64_t)total == profile_total(p));
	}
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

static void test_full_disk(void **unused)
{
	struct profile *p = hostile_profile();
	FILE *out = fopen("/dev/full", "w");
	int err;

	(void)unused;
	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	err = output_pprof(p, &(struct output_options){0}, out);
	assert_true(err < 0);
	fclose(out);
	profile_free(p);
}

/* The column where an expression begins, from 1; of a frame without columns none. */
static void test_columns(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	Pprof__Profile *got;

	(void)unused;
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 4, 9}), owner, 5);
	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 3), owner, 6);
	got = read_back(p);
	assert_int_equal(got->location[0]->line[0]->column, 5);
	assert_int_equal(got->location[1]->line[0]->column, 0);
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

/* A file of compiled code is a mapping, once; code that is in none has none. */
static void test_mappings(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), f = on(p, PROFILE_ROOT, "f", "app.py", 5), in_c;
	const Pprof__Sample *sample;
	Pprof__Profile *got;

	(void)unused;
	in_c = on_native(p, on_native(p, f, "deflate", "libz.so.1"), "longest_match", "libz.so.1");
	take_in(p, on_native(p, on_native(p, in_c, "memcpy", "libc.so.6"), "[vdso]", ""), owner, 1);
	got = read_back(p);
	assert_int_equal(got->n_mapping, 3);
	assert_string_equal(text(got, got->mapping[1]->filename), "libz.so.1");
	assert_true(got->mapping[1]->has_functions);
	assert_false(got->mapping[1]->has_filenames || got->mapping[1]->has_line_numbers);
	sample = got->sample[0];
	assert_int_equal(sample->n_location_id, 5);
	for (size_t i = 0; i < 5; i++) {
		static const uint64_t mappings[] = {0, 3, 2, 2, 1};

		assert_int_equal(got->location[sample->location_id[i] - 1]->mapping_id, mappings[i]);
	}
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

static uint32_t on_code(struct profile *p, uint32_t stack, const char *name, struct profile_code code)
{
	return profile_add_stack(p, stack, profile_add_code(p, name, code.line < 0 ? "libz.so.1" : "match.h", &code));
}

/* Build-ids and addresses; without a symbol no function, which readers find out by them. */
static void test_addresses(void **unused)
{
	const struct profile_mapping_info info = {"libz.so.1", "c0ffee", "/lib/libz.so.1", 0x2000, 0x9000, 0x1000};
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), mapping = profile_add_mapping(p, &info);
	Pprof__Profile *got;

	(void)unused;
	take_in(p,
		on_code(p, PROFILE_ROOT, "[libz.so.1+0x2345]",
			(struct profile_code){mapping, PROFILE_CODE_NAMELESS, 0x2345, PROFILE_NO_LINE}),
		owner, 1);
	take_in(p, on_code(p, PROFILE_ROOT, "deflate", (struct profile_code){mapping, 0, 0x3456, PROFILE_NO_LINE}),
		owner, 2);
	got = read_back(p);
	assert_int_equal(got->n_mapping, 2);
	assert_string_equal(text(got, got->mapping[1]->filename), "/lib/libz.so.1");
	assert_string_equal(text(got, got->mapping[1]->build_id), "c0ffee");
	assert_int_equal(got->mapping[1]->memory_start, 0x2000);
	assert_int_equal(got->mapping[1]->memory_limit, 0x9000);
	assert_int_equal(got->mapping[1]->file_offset, 0x1000);
	assert_false(got->mapping[1]->has_functions);
	assert_int_equal(got->n_location, 2);
	assert_int_equal(got->location[0]->address, 0x2345);
	assert_int_equal(got->location[0]->n_line, 0);
	assert_int_equal(got->location[1]->address, 0x3456);
	assert_int_equal(got->location[1]->n_line, 1);
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

/* Inlined functions are at the place of the one that they are in; at another address they are in another one. */
static void test_inlined(void **unused)
{
	const struct profile_mapping_info info = {"libz.so.1", "c0ffee", "/lib/libz.so.1", 0x2000, 0x9000, 0x1000};
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), mapping = profile_add_mapping(p, &info), outer;
	const Pprof__Location *location;
	Pprof__Profile *got;

	(void)unused;
	outer = on_code(p, PROFILE_ROOT, "deflate", (struct profile_code){mapping, 0, 0x2345, 10});
	take_in(p,
		on_code(p, on_code(p, outer, "match", (struct profile_code){mapping, PROFILE_CODE_INLINED, 0x2345, 20}),
			"longest", (struct profile_code){mapping, PROFILE_CODE_INLINED, 0x2345, 30}),
		owner, 1);
	take_in(p, outer, owner, 2);
	take_in(p, on_code(p, outer, "match", (struct profile_code){mapping, PROFILE_CODE_INLINED, 0x2400, 20}), owner,
		4);
	got = read_back(p);
	assert_int_equal(got->sample[0]->n_location_id, 1);
	location = got->location[got->sample[0]->location_id[0] - 1];
	assert_int_equal(location->n_line, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(location->line[i]->line, 30 - 10 * i);
	assert_int_equal(location->address, 0x2345);
	assert_int_equal(got->sample[1]->n_location_id, 1);
	assert_int_equal(got->location[got->sample[1]->location_id[0] - 1]->n_line, 1);
	assert_int_equal(got->sample[2]->n_location_id, 2);
	assert_true(got->mapping[1]->has_inline_frames && got->mapping[1]->has_line_numbers);
	pprof__profile__free_unpacked(got, NULL);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mappings),       cmocka_unit_test(test_stacks_and_labels),
		cmocka_unit_test(test_other_measures), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_waits),          cmocka_unit_test(test_types_do_not_depend_on_samples),
		cmocka_unit_test(test_hostile_names),  cmocka_unit_test(test_many_samples),
		cmocka_unit_test(test_full_disk),      cmocka_unit_test(test_columns),
		cmocka_unit_test(test_addresses),      cmocka_unit_test(test_inlined),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
