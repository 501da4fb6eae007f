// SPDX-License-Identifier: Apache-2.0
/* What imports cost, and the functions of importlib. */
#include "profile/edit.h"
#include "profile/imports.h"
#include "profiles.h"

#define BOOTSTRAP "<frozen importlib._bootstrap>"

/* Returns the stack of a module's body that the import system calls from a stack. */
static uint32_t imported(struct profile *p, uint32_t from, const char *file)
{
	uint32_t s = on(p, from, "_find_and_load", BOOTSTRAP, 1000);

	s = on(p, s, "_load_unlocked", BOOTSTRAP, 700);
	s = on(p, s, "exec_module", "<frozen importlib._bootstrap_external>", 800);
	return on(p, s, "<module>", file, 1);
}

static const struct profile_import *find(const struct profile *p, const struct profile_imports *imports,
					 const char *file)
{
	const struct profile_import *found = NULL;

	for (uint32_t i = 1; i < imports->count; i++) {
		if (strcmp(profile_string(p, imports->nodes[i].file), file) == 0) {
			assert_null(found);
			found = &imports->nodes[i];
		}
	}
	assert_non_null(found);
	return found;
}

static void test_tree(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python3"), script = on(p, PROFILE_ROOT, "<module>", "app.py", 1);
	uint32_t pandas = imported(p, script, "pandas/__init__.py"), numpy = imported(p, pandas, "numpy/__init__.py");
	uint32_t lazy = imported(p, on(p, script, "handler", "app.py", 9), "lazy.py");
	struct profile_imports imports;

	(void)unused;
	take_in(p, script, owner, 1);
	take_in(p, on(p, pandas, "table", "pandas/core.py", 3), owner, 2);
	take_in(p, numpy, owner, 4);
	take_in(p, on(p, on(p, numpy, "_find_and_load", BOOTSTRAP, 1000), "get_data", BOOTSTRAP, 3), owner, 8);
	take_in(p, on(p, script, "_find_and_load", BOOTSTRAP, 1000), owner, 16);
	take_in(p, lazy, owner, 32);
	take_in(p, on(p, script, "handler", "app.py", 9), owner, 64);
	assert_int_equal(profile_imports_build(p, &imports), 0);
	assert_int_equal(imports.nodes[0].total, 2 + 4 + 8 + 16 + 32);
	assert_int_equal(find(p, &imports, "pandas/__init__.py")->total, 14);
	assert_int_equal(find(p, &imports, "pandas/__init__.py")->self, 2);
	assert_int_equal(find(p, &imports, "pandas/__init__.py")->depth, 1);
	assert_int_equal(find(p, &imports, "numpy/__init__.py")->total, 12);
	assert_int_equal(find(p, &imports, "numpy/__init__.py")->self, 4);
	assert_int_equal(find(p, &imports, "numpy/__init__.py")->depth, 2);
	assert_int_equal(find(p, &imports, "lazy.py")->self, 32);
	/* The largest first, and what the import system did beside them. */
	assert_string_equal(profile_string(p, imports.nodes[imports.nodes[0].first_child].file), "lazy.py");
	assert_int_equal(imports.count, 1 + 3 + 2);
	profile_imports_free(&imports);
	profile_free(p);
}

/* 2.7's import system has no functions of Python; runpy and exec() import nothing. */
static void test_what_is_an_import(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python"), script = on(p, PROFILE_ROOT, "<module>", "app.py", 1);
	uint32_t run = on(p, PROFILE_ROOT, "_run_code", "runpy.py", 80);
	uint32_t frozen = on(p, PROFILE_ROOT, "_run_code", "<frozen runpy>", 80);
	struct profile_imports imports;

	(void)unused;
	take_in(p, on(p, script, "<module>", "old.py", 1), owner, 1);
	take_in(p, on(p, run, "<module>", "pkg/__main__.py", 1), owner, 2);
	take_in(p, on(p, frozen, "<module>", "other/__main__.py", 1), owner, 4);
	take_in(p, on(p, script, "<module>", "<string>", 1), owner, 8);
	take_in(p, imported(p, script, "<frozen os>"), owner, 16);
	assert_int_equal(profile_imports_build(p, &imports), 0);
	assert_int_equal(imports.nodes[0].total, 17);
	assert_int_equal(find(p, &imports, "old.py")->self, 1);
	assert_int_equal(find(p, &imports, "<frozen os>")->self, 16);
	profile_imports_free(&imports);
	profile_free(p);
}

static void test_table(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python3"), script = on(p, PROFILE_ROOT, "<module>", "app.py", 1);
	struct output_options options = {.by_import = true};
	size_t size;
	uint32_t pandas = imported(p, script, "pandas/__init__.py");
	char *text;

	(void)unused;
	take_in(p, script, owner, 10);
	text = written_bytes(p, output_text, &options, &size);
	assert_string_equal(text, "No sample is in an import.\n");
	free(text);
	take_in(p, imported(p, pandas, "numpy/__init__.py"), owner, 60);
	take_in(p, pandas, owner, 10);
	take_in(p, imported(p, script, "json/__init__.py"), owner, 20);
	options.rows = 2;
	text = written_bytes(p, output_text, &options, &size);
	assert_string_equal(text, "imports: 90 of 100 samples, 90.0 %\n\n"
				  "     total    share        self  module, below the one that imported it\n"
				  "        70    70.0%          10  pandas/__init__.py\n"
				  "        60    60.0%          60    numpy/__init__.py\n"
				  "and 1 more (--limit)\n");
	free(text);
	profile_free(p);
}

/* Other threads are no part of what shares are of, where threads are told apart. */
static void test_share_of_threads_that_import(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python3"), script = on(p, PROFILE_ROOT, "<module>", "app.py", 1);
	uint32_t main = profile_add_thread(p, owner, 1, "main"), pool = profile_add_thread(p, owner, 2, "pool");
	struct output_options options = {.by_import = true};
	size_t size;
	char *text;

	(void)unused;
	assert_int_equal(profile_add_sample(p, script, owner, main, 20), 0);
	assert_int_equal(profile_add_sample(p, imported(p, script, "json/__init__.py"), owner, main, 60), 0);
	assert_int_equal(profile_add_sample(p, on(p, PROFILE_ROOT, "work", "app.py", 9), owner, pool, 1000), 0);
	text = written_bytes(p, output_text, &options, &size);
	assert_string_equal(text, "imports: 60 of the 80 samples of threads that import, 75.0 % (all threads: 1080)\n\n"
				  "     total    share        self  module, below the one that imported it\n"
				  "        60    75.0%          60  json/__init__.py\n");
	free(text);
	/* A sample of no thread: they are not told apart. */
	take_in(p, script, owner, 120);
	text = written_bytes(p, output_text, &options, &size);
	assert_non_null(strstr(text, "imports: 60 of 1200 samples, 5.0 %\n"));
	free(text);
	profile_free(p);
}

static void test_folded(void **unused)
{
	struct profile *p = new_profile(), *to = new_profile();
	uint32_t owner = process(p, 1, "python3"), script = on(p, PROFILE_ROOT, "<module>", "app.py", 1);
	uint32_t body = imported(p, script, "m.py");
	struct profile_edit edit = {.fold_imports = true};
	struct error error;

	(void)unused;
	take_in(p, body, owner, 1);
	take_in(p, on(p, on(p, script, "_find_and_load", BOOTSTRAP, 1000), "_find_spec", BOOTSTRAP, 9), owner, 2);
	take_in(p, on(p, body, "import_module", "importlib/__init__.py", 12), owner, 4);
	take_in(p, on(p, body, "import_module", "own/importlib.py", 12), owner, 8);
	assert_true(profile_has_importlib(p));
	assert_int_equal(profile_edit_check(&edit, &error), 0);
	assert_int_equal(profile_edit_add(to, p, &edit, &error), 0);
	assert_folded(to, "<module> (app.py:1);_find_and_load (" BOOTSTRAP ":1000);<module> (m.py:1) 1\n"
			  "<module> (app.py:1);_find_and_load (" BOOTSTRAP ":1000) 2\n"
			  "<module> (app.py:1);_find_and_load (" BOOTSTRAP ":1000);<module> (m.py:1);import_module "
			  "(importlib/__init__.py:12) 4\n"
			  "<module> (app.py:1);_find_and_load (" BOOTSTRAP ":1000);<module> (m.py:1);import_module "
			  "(own/importlib.py:12) 8\n");
	profile_free(to);
	profile_edit_free(&edit);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),   cmocka_unit_test(test_what_is_an_import),
		cmocka_unit_test(test_table),  cmocka_unit_test(test_share_of_threads_that_import),
		cmocka_unit_test(test_folded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
