// SPDX-License-Identifier: Apache-2.0
/* Profiles whose names are hidden. */
#include "edited_profile.h"

static void test_anonymized(void **unused)
{
	static const char *const names[] = {"web",    "shop",   "front", "job",   "4f797c539e6c", "worker",
					    "Server", "run",    "work",  "app",   "lib",          "secret",
					    "there",  "python", "print", "frozen"};
	struct profile *p = service(), *to, *other;
	struct profile_edit edit = {.anonymize = true}, later = {.anonymize = true};
	uint32_t odd = on(p, PROFILE_ROOT, "Server.run.<locals>.<lambda>", "<frozen lib.web>", 3);
	const struct profile_stack *stack;
	struct error error;
	size_t count;

	(void)unused;
	take_in(p, odd, 0, 3);
	take_in(p, profile_add_stack(p, odd, profile_add_frame(p, PROFILE_NOTE, "[3 frames cut]", "", -1, -1)), 0, 3);
	take_in(p, profile_add_stack(p, odd, profile_add_frame(p, PROFILE_THREAD, "[thread secret]", "", -1, -1)), 0,
		3);
	assert_int_equal(profile_set_source(p, "app.py", "print(1)"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, "there"), 0);
	assert_int_equal(profile_set_fact(p, "command", "secret"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_CPUS, "2"), 0);
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	assert_int_equal(profile_edit_check(&later, &error), 0);
	to = edited(p, &edit);
	for (uint32_t i = 0; i < profile_string_count(to); i++) {
		for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
			if (strstr(profile_string(to, i), names[n]))
				print_error("%s is in %s\n", names[n], profile_string(to, i));
			assert_null(strstr(profile_string(to, i), names[n]));
		}
	}
	profile_sources(to, &count);
	assert_int_equal(count, 0);
	assert_string_equal(profile_find_fact(to, PROFILE_FACT_CPUS), "2");
	/* The structure stays: as many of each, and the same on every stack. */
	assert_int_equal(profile_stack_count(to), profile_stack_count(p));
	assert_int_equal(profile_frame_count(to), profile_frame_count(p));
	assert_int_equal(profile_thread_count(to), profile_thread_count(p));
	assert_int_equal(profile_total(to), profile_total(p));
	stack = profile_stack_at(to, 2);
	assert_int_equal(profile_frame_at(to, stack->frame)->name,
			 profile_frame_at(to, profile_stack_at(to, 3)->frame)->name);
	assert_int_equal(profile_frame_at(to, stack->frame)->line, 3);
	assert_string_equal(profile_string(to, profile_frame_at(to, profile_stack_at(to, 1)->frame)->name), "<module>");
	/* Equal in what is added with the same salt, and in nothing else. */
	other = edited(p, &edit);
	assert_same_profile(to, other);
	profile_free(other);
	other = edited(p, &later);
	assert_string_not_equal(profile_string(other, profile_frame_at(other, 1)->name),
				profile_string(to, profile_frame_at(to, 1)->name));
	profile_free(other);
	profile_free(to);
	profile_free(p);
}

/* Compiled code stays where it is; with hidden names nothing says which file it was. */
static void test_places_of_compiled_code(void **unused)
{
	const struct profile_mapping_info info = {"libz.so.1", "c0ffee", "/usr/lib/libz.so.1", 0x2000, 0x9000, 0x1000};
	struct profile *p = new_profile(), *to, *twice = new_profile();
	struct profile_edit edit = {.no_sources = false};
	struct profile_code code = {.address = 0x2345, .line = PROFILE_NO_LINE};
	const struct profile_frame *frame;
	struct error error;

	(void)unused;
	code.mapping = profile_add_mapping(p, &info);
	take_in(p, profile_add_stack(p, PROFILE_ROOT, profile_add_code(p, "deflate", "libz.so.1", &code)),
		process(p, 1, "x"), 1);
	code.line = 30;
	code.marks = PROFILE_CODE_INLINED;
	take_in(p, profile_add_stack(p, PROFILE_ROOT, profile_add_code(p, "longest_match", "deflate.c", &code)), 0, 2);
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	to = edited(p, &edit);
	assert_same_rows(p, to);
	profile_free(to);
	for (int i = 0; i < 2; i++)
		assert_int_equal(profile_edit_add(twice, p, &edit, &error), 0);
	assert_int_equal(profile_frame_count(twice), 2);
	assert_int_equal(profile_frame_at(twice, 1)->address, 0x2345);
	assert_int_equal(profile_mapping_count(twice), 1);
	assert_string_equal(profile_string(twice, profile_mapping_at(twice, 0)->build_id), "c0ffee");
	profile_free(twice);
	edit = (struct profile_edit){.anonymize = true};
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	to = edited(p, &edit);
	frame = profile_frame_at(to, 0);
	assert_true(!frame->mapping && !frame->address);
	frame = profile_frame_at(to, 1);
	assert_true(frame->mapping && !frame->address && frame->marks == PROFILE_CODE_INLINED);
	assert_int_equal(profile_library_of(to, frame), profile_frame_at(to, 0)->file);
	for (uint32_t i = 0; i < profile_string_count(to); i++)
		assert_null(strstr(profile_string(to, i), "libz") ?: strstr(profile_string(to, i), "c0ffee"));
	profile_free(to);
	profile_free(p);
}

/* The parts of names and paths that tell nothing stay. */
static void test_hidden_names(void **unused)
{
	struct profile *p = new_profile(), *to;
	struct profile_edit edit = {.anonymize = true};
	struct error error;
	char *text;

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "A.f.<locals>.<lambda>", "pkg/A.py", 3), process(p, 1, "x"), 1);
	take_in(p, on(p, PROFILE_ROOT, "A", "/A/f", -1), process(p, 1, "x"), 2);
	take_in(p, on(p, PROFILE_ROOT, "", "<string>", 1), process(p, 1, "x"), 4);
	take_in(p, on(p, PROFILE_ROOT, "...", "//.py", 1), process(p, 1, "x"), 8);
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	to = edited(p, &edit);
	text = written(to, output_folded);
	/* The hashes of one salt are 12 digits each, whatever they are. */
	for (char *c = text; *c; c++) {
		if (strchr("0123456789abcdef", *c) && c > text && strchr("fm", c[-1]) &&
		    strspn(c, "0123456789abcdef") >= 12) {
			memset(c, '#', 12);
			c += 11;
		}
	}
	assert_string_equal(text, "f############.f############.<locals>.<lambda> (m############/m############.py:3) 1\n"
				  "f############ (/m############/m############) 2\n"
				  " (<string>:1) 4\n"
				  "... (//m############:1) 8\n");
	free(text);
	profile_free(to);
	profile_free(p);
}

static uint32_t noted(struct profile *p, const char *note)
{
	uint32_t frame = profile_add_frame(p, PROFILE_NOTE, note, "", PROFILE_NO_LINE, PROFILE_NO_LINE);

	return profile_add_stack(p, PROFILE_ROOT, frame);
}

/* A remark stays, but for the address or file that a wait is for. */
static void test_hidden_notes(void **unused)
{
	struct profile *p = new_profile(), *to;
	struct profile_edit edit = {.anonymize = true};
	struct error error;
	char *text, *held, *function;

	(void)unused;
	take_in(p, noted(p, "[7 frames cut]"), process(p, 1, "x"), 1);
	take_in(p, noted(p, "[network: tcp 10.0.0.5:5432]"), process(p, 1, "x"), 2);
	take_in(p, noted(p, "[other: read [eventfd]]"), process(p, 1, "x"), 4);
	take_in(p, noted(p, "[GIL: held in secret.<lambda>]"), process(p, 1, "x"), 5);
	take_in(p, on(p, PROFILE_ROOT, "secret", "a.py", 1), process(p, 1, "x"), 6);
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	to = edited(p, &edit);
	text = written(to, output_folded);
	assert_ptr_equal(strstr(text, "[7 frames cut] 1\n[network: w"), text);
	assert_null(strstr(text, "10.0.0.5"));
	assert_null(strstr(text, "eventfd"));
	assert_non_null(strstr(text, "\n[other: w"));
	assert_null(strstr(text, "secret"));
	/* The holder has the hash that it has as a frame. */
	held = strstr(text, "\n[GIL: held in f");
	assert_non_null(held);
	held += strlen("\n[GIL: held in ");
	assert_ptr_equal(strstr(held, ".<lambda>] 5"), held + 13);
	function = strndup(held, 13);
	assert_non_null(strstr(strchr(held, '\n'), function));
	free(function);
	free(text);
	profile_free(to);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anonymized),
		cmocka_unit_test(test_places_of_compiled_code),
		cmocka_unit_test(test_hidden_names),
		cmocka_unit_test(test_hidden_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
