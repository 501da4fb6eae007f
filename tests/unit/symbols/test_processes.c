// SPDX-License-Identifier: Apache-2.0
/* Processes that come and go: what is forgotten with them, what they share, and what is asked of one that is gone. */
#include <sys/stat.h>

#include "pysym_records.h"
#include "allocated.h"

static void add_process(struct pysym *s, uint64_t proc_id, pid_t pid)
{
	struct pybpf_layout layout = layout_of(8);

	assert_int_equal(pysym_add_process(s, proc_id, pid, &layout), 0);
	assert_true(pysym_has_process(s, proc_id));
}

static void add_to(struct pysym *s, uint64_t proc_id, uint64_t code, int line, const char *name, const char *file)
{
	struct record r = whole_record(line, name, file);

	r.event->code = code;
	r.event->proc_id = proc_id;
	add(s, r);
}

static int find(struct pysym *s, uint64_t proc_id, uint64_t code, int position, struct pysym_frame *out)
{
	struct pybpf_frame frame = {.code = code, .sig = SIG, .position = position};

	return pysym_resolve(s, proc_id, 0, &frame, out);
}

static void test_removed(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pysym_frame out;

	(void)unused;
	add_process(s, PROC + 1, gone_pid());
	add_to(s, PROC, CODE, 10, "f", "/a/b.py");
	add_to(s, PROC + 1, CODE, 10, "f", "/a/b.py");
	add_to(s, PROC + 1, CODE + 64, 20, "g", "/a/c.py");
	assert_int_equal(find(s, PROC, CODE, 0, &out), 0);
	pysym_remove_process(s, PROC);
	assert_false(pysym_has_process(s, PROC));
	assert_int_equal(find(s, PROC, CODE, 0, &out), -ENOENT);
	/* What the other one has in common with it stays. */
	assert_int_equal(find(s, PROC + 1, CODE, 4, &out), 0);
	assert_string_equal(out.name, "f");
	assert_string_equal(out.file, "b.py");
	assert_int_equal(out.line, 11);
	pysym_remove_process(s, PROC);
	pysym_remove_process(s, PROC + 2);
	/* The number may come again. */
	add_process(s, PROC, gone_pid());
	assert_int_equal(find(s, PROC, CODE, 0, &out), -ENOENT);
	assert_int_equal(pysym_get_counters(s)->codes, 3);
	pysym_free(s);
}

/* Each Python of a process has its own layout: 3.8's line table and strings say something else to 3.12's. */
static void test_several_pythons(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	const struct pybpf_layout later = layout_of(12);
	/* One instruction, 5 lines below the function's first: kind 13, no columns (PEP 657). */
	const uint8_t lines[] = {0x80 | 13 << 3, 5 << 1};
	struct pybpf_frame frame = {.code = CODE + 64, .sig = SIG, .position = later.code_adaptive};
	struct record r = new_record(20);
	struct pysym_frame out;

	(void)unused;
	pysym_add_runtime(s, PROC, 1, &later);
	add_to(s, PROC, CODE, 10, "f", "/a/b.py");
	r.event->code = CODE + 64;
	r.event->event.runtime = 1;
	append_text(&r, &later, PYBPF_CODE_NAME, "g");
	append_text(&r, &later, PYBPF_CODE_FILE, "/a/c.py");
	append(&r, PYBPF_CODE_LINES, lines, sizeof(lines), sizeof(lines));
	add(s, r);
	assert_int_equal(find(s, PROC, CODE, 4, &out), 0);
	assert_string_equal(out.name, "f");
	assert_int_equal(out.line, 11);
	assert_int_equal(pysym_resolve(s, PROC, 1, &frame, &out), 0);
	assert_string_equal(out.name, "g");
	assert_string_equal(out.file, "c.py");
	assert_int_equal(out.line, 25);
	/* No process has so many. */
	frame.code = CODE + 128;
	assert_int_equal(pysym_resolve(s, PROC, PYBPF_MAX_RUNTIMES, &frame, &out), -ENOENT);
	r = whole_record(10, "h", "/a/b.py");
	r.event->event.runtime = PYBPF_MAX_RUNTIMES;
	assert_int_equal(pysym_add_code(s, r.event, r.size), -EBADMSG);
	free(r.event);
	pysym_free(s);
}

struct visited {
	uint64_t codes, sigs;
	int count;
};

static void visit(void *arg, uint64_t code, uint32_t sig)
{
	struct visited *v = arg;

	v->codes += code;
	v->sigs += sig;
	v->count++;
}

static void test_each_code(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct visited v = {0};
	uint64_t codes = 0;

	(void)unused;
	add_process(s, PROC + 1, gone_pid());
	pysym_each_code(s, PROC, visit, &v);
	pysym_each_code(s, PROC + 2, visit, &v);
	assert_int_equal(v.count, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		add_to(s, PROC, CODE + 64 * i, 10, "f", "/a/b.py");
		codes += CODE + 64 * i;
	}
	add_to(s, PROC + 1, CODE, 10, "f", "/a/b.py");
	pysym_each_code(s, PROC, visit, &v);
	assert_int_equal(v.count, 1000);
	assert_int_equal(v.codes, codes);
	assert_int_equal(v.sigs, 1000ull * SIG);
	memset(&v, 0, sizeof(v));
	pysym_each_code(s, PROC + 1, visit, &v);
	assert_int_equal(v.count, 1);
	assert_int_equal(v.codes, CODE);
	pysym_free(s);
}

/* Frames that print alike have one identity, whatever process they are of. */
static void test_shared_cookies(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout other = layout_of(11);
	struct pysym_frame out;
	uint64_t proc_id = PROC;

	(void)unused;
	add_process(s, PROC + 1, gone_pid());
	add_to(s, PROC, CODE, 10, "f", "/a/b.py");
	add_to(s, PROC + 1, CODE + 64, 10, "f", "/a/b.py");
	add_to(s, PROC + 1, CODE + 128, 11, "f", "/a/b.py");
	add_to(s, PROC + 1, CODE + 192, 10, "g", "/a/b.py");
	add_to(s, PROC + 1, CODE + 256, 10, "f", "/a/c.py");
	assert_int_equal(find(s, PROC, CODE, 4, &out), 0);
	*out.cookie = 5;
	assert_int_equal(find(s, PROC + 1, CODE + 64, 4, &out), 0);
	assert_int_equal(*out.cookie, 5);
	for (uint64_t code = CODE + 128; code <= CODE + 256; code += 64) {
		assert_int_equal(find(s, PROC + 1, code, 4, &out), 0);
		assert_int_equal(*out.cookie, UINT32_MAX);
	}
	/* Equal bytes mean other lines to another Python. */
	proc_id += 2;
	assert_int_equal(pysym_add_process(s, proc_id, gone_pid(), &other), 0);
	add_to(s, proc_id, CODE, 10, "f", "/a/b.py");
	assert_int_equal(find(s, proc_id, CODE, 4, &out), 0);
	assert_int_equal(*out.cookie, UINT32_MAX);
	pysym_free(s);
}

static void fill(struct pysym *s, uint64_t proc_id, int functions)
{
	char name[32], file[32];
	struct pysym_frame out;

	for (int i = 0; i < functions; i++) {
		uint64_t code = CODE + 64 * (uint64_t)i;

		snprintf(name, sizeof(name), "function_%d", i);
		snprintf(file, sizeof(file), "/srv/app/module_%d.py", i / 10);
		add_to(s, proc_id, code, i, name, file);
		for (int position = 0; position < 10; position++)
			assert_int_equal(find(s, proc_id, code, position, &out), 0);
	}
}

/* Workers of one program cost what tells them apart, and nothing is left of those that ended. */
static void test_memory(void **unused)
{
	enum {
		WORKERS = 200,
		FUNCTIONS = 300,
		FILES = FUNCTIONS / 10
	};
	struct pysym *s = pysym_new(PYSYM_LINES_CURRENT, false);
	pid_t pid = gone_pid();
	size_t empty = allocated_bytes(), one, all;

	(void)unused;
	add_process(s, 1, pid);
	fill(s, 1, FUNCTIONS);
	one = allocated_bytes() - empty;
	/* A function, ten positions, a code object; each further worker has code objects and files of its own alone. */
	assert_true(one > FUNCTIONS * (150 + 10 * 12 + 24));
	for (uint32_t i = 2; i <= WORKERS; i++) {
		add_process(s, i, pid);
		fill(s, i, FUNCTIONS);
	}
	all = allocated_bytes() - empty;
	assert_true((all - one) / (WORKERS - 1) < (FUNCTIONS + FILES) * (24 + 12 + 16) + 512);
	assert_true((all - one) / (WORKERS - 1) > FUNCTIONS * 24);
	for (uint32_t i = 2; i <= WORKERS; i++)
		pysym_remove_process(s, i);
	/* Tables of what there was once keep their size. */
	assert_true(allocated_bytes() - empty < one + one / 4);
	pysym_remove_process(s, 1);
	assert_int_equal(allocated_bytes(), empty);
	assert_int_equal(pysym_get_counters(s)->codes, WORKERS * FUNCTIONS);
	pysym_free(s);
}

/* Counts of what went wrong stay when the process goes. */
static void test_counters(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());

	(void)unused;
	add(s, new_record(10));
	pysym_remove_process(s, PROC);
	assert_int_equal(pysym_get_counters(s)->codes, 1);
	assert_int_equal(pysym_get_counters(s)->unnamed, 1);
	assert_int_equal(pysym_get_counters(s)->no_lines, 1);
	pysym_free(s);
}

/* 64 MiB of line tables are held at a time; those of processes that ended do not count. */
static void test_lines_budget(void **unused)
{
	enum {
		SIZE = PYBPF_COPY_LINES,
		FIT = (64 << 20) / SIZE
	};
	struct pysym *s = pysym_new(PYSYM_LINES_CURRENT, false);
	uint8_t *lines = calloc(1, SIZE);
	struct pybpf_layout l = layout_of(8);
	pid_t pid = gone_pid();

	(void)unused;
	assert_non_null(lines);
	for (uint64_t proc_id = 1; proc_id <= 3; proc_id++) {
		add_process(s, proc_id, pid);
		/* Two more than there is room for, each table another one. */
		for (uint32_t i = 0; i < FIT + 2; i++) {
			struct record r = new_record(10);

			memcpy(lines, &i, sizeof(i));
			append_text(&r, &l, PYBPF_CODE_NAME, "f");
			append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
			append(&r, PYBPF_CODE_LINES, lines, SIZE, SIZE);
			r.event->code = CODE + 64 * (uint64_t)i;
			r.event->proc_id = proc_id;
			add(s, r);
		}
		assert_int_equal(pysym_get_counters(s)->no_lines, 2 * proc_id);
		assert_true(allocated_bytes() > 64 << 20);
		pysym_remove_process(s, proc_id);
	}
	free(lines);
	pysym_free(s);
}

/* Packages below a directory that stands for the root of the file system: this process's own. */
static char dir[256];

static const char *const tree[] = {"", "/pkg", "/pkg/__init__.py"};

static int make_tree(void **unused)
{
	const char *base = getenv("TMPDIR");
	char path[512];

	(void)unused;
	snprintf(dir, sizeof(dir), "%s/pybpf-pysym-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s%s", dir, tree[1]);
	if (mkdir(path, 0755))
		return -1;
	snprintf(path, sizeof(path), "%s%s", dir, tree[2]);
	return mknod(path, S_IFREG | 0644, 0);
}

static int remove_tree(void **unused)
{
	char path[512];

	(void)unused;
	for (size_t i = sizeof(tree) / sizeof(*tree); i-- > 0;) {
		snprintf(path, sizeof(path), "%s%s", dir, tree[i]);
		if (remove(path))
			return -1;
	}
	return 0;
}

static const char *shown(struct pysym *s, uint64_t proc_id, const char *name)
{
	static uint64_t code = CODE;
	char path[512];
	struct pysym_frame out;

	code += 64;
	snprintf(path, sizeof(path), "%s/pkg/%s", dir, name);
	add_to(s, proc_id, code, 10, "f", path);
	assert_int_equal(find(s, proc_id, code, 0, &out), 0);
	return out.file;
}

/* A path is looked at once in each process, while it lives; later what another one had stands in. */
static void test_packages(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, getpid());

	(void)unused;
	add_process(s, PROC + 1, gone_pid());
	/* Nobody has looked at it. */
	assert_string_equal(shown(s, PROC + 1, "early.py"), "early.py");
	assert_string_equal(shown(s, PROC, "mod.py"), "pkg/mod.py");
	assert_string_equal(shown(s, PROC + 1, "mod.py"), "pkg/mod.py");
	/* What was printed of a process stays. */
	assert_string_equal(shown(s, PROC, "early.py"), "pkg/early.py");
	assert_string_equal(shown(s, PROC + 1, "early.py"), "early.py");
	pysym_free(s);
}

static void test_full_paths(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, true, 8, getpid());
	char path[512];

	(void)unused;
	snprintf(path, sizeof(path), "%s/pkg/mod.py", dir);
	assert_string_equal(shown(s, PROC, "mod.py"), path);
	pysym_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_several_pythons),
		cmocka_unit_test(test_each_code),
		cmocka_unit_test(test_shared_cookies),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_lines_budget),
		cmocka_unit_test_setup_teardown(test_packages, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_full_paths, make_tree, remove_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
