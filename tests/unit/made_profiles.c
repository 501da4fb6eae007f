// SPDX-License-Identifier: Apache-2.0
/*
 * made-profiles FOLDER: saves hostile.pybpf, empty.pybpf and recursive.pybpf there, from which `pybpf report` makes
 * every format for the real readers; long.pybpf, which is small but for a few texts, of which each takes memory
 * more than once; compiled.pybpf and lines.pybpf, whose sums are known; and a folder of epochs, epochs/.
 */
#include <errno.h>
#include <sys/stat.h>

#include "output/file/file.h"
#include "profile/mappings.h"
#include "profiles_hostile.h"

/* Functions that call each other in circles, in two processes; in one of them each is the root once. */
static struct profile *recursive_profile(void)
{
	static const char *const names[] = {"even", "odd", "walk", "visit"};
	struct profile *p = new_profile();
	uint32_t owners[] = {process(p, 42, "python3"), process(p, 43, "python3")};

	for (unsigned i = 0; i < 400; i++) {
		uint32_t s = PROFILE_ROOT;

		for (unsigned depth = 0; depth <= i % 23; depth++) {
			unsigned which = (i / 4 + depth * (1 + i % 3)) % 4;

			s = on(p, s, names[which], "round.py", (int)(10 * which + depth % 3) + 1);
		}
		take_in(p, s, owners[i % 2], i + 1);
	}
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 10000000}), 0);
	return p;
}

static struct profile *long_profile(void)
{
	static char name[40001], comm[20001], container[20001];
	struct profile *p = new_profile();
	uint32_t owner, thread, stack;

	memset(name, 'n', sizeof(name) - 1);
	memset(comm, 'c', sizeof(comm) - 1);
	memset(container, 'k', sizeof(container) - 1);
	owner = profile_add_process(
		p, &(struct profile_process_info){.pid = 7, .inner_pid = 1, .name = comm, .container = container});
	thread = profile_add_thread(p, owner, 8, comm);
	stack = on(p, on(p, PROFILE_ROOT, "main", "main.py", 3), name, name, 9);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 10000000}), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, name), 0);
	assert_int_equal(profile_add_sample(p, stack, owner, thread, 2), 0);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(profile_add_event(p, 10000000 * i, 0, 1), 0);
	return p;
}

static struct profile *forging_profile(void)
{
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): that it misleads is its use. */
	static const char text[] = "x\npybpf: all is well\r\033[2J\xe2\x80\xae\xe2\x80\x8b";
	struct profile *p = new_profile();
	uint32_t owner, thread, stack;

	owner = profile_add_process(
		p, &(struct profile_process_info){.pid = 7, .inner_pid = 1, .name = text, .container = text});
	thread = profile_add_thread(p, owner, 8, text);
	stack = on(p, PROFILE_ROOT, text, text, 9);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){text, text, 10000000}), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, text), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, text), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_EVENT, text), 0);
	assert_int_equal(profile_add_account(p, text, text, text, 1), 0);
	assert_int_equal(profile_add_sample(p, stack, owner, thread, 2), 0);
	assert_int_equal(profile_add_event(p, 10000000, 0, 1), 0);
	return p;
}

/*
 * Code of each kind. Of 100 samples 60 are in compiled code itself: 41 in libopenblas.so.0 (30 from fit, 8 from load, 3
 * of a thread without Python), 7 in numpy's, 6 in python3.12 (4 from line 26), 4 in uwsgi (from load, whose line is not
 * known) and 2 in no file; 5 are in the kernel.
 */
static struct profile *compiled_profile(void)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), main = on(p, PROFILE_ROOT, "<module>", "app.py", 90);
	uint32_t fit = on(p, main, "fit", "model.py", 80), load = on(p, main, "load", "model.py", 20);
	uint32_t sort = on(p, main, "load", "model.py", 26), unlined, dot;
	uint32_t solve = on(p, fit, "solve", "numpy/linalg/_linalg.py", 451);
	uint32_t ufunc =
		on_native(p, solve, "ufunc_generic_fastcall", "_multiarray_umath.cpython-312-x86_64-linux-gnu.so");

	assert_int_equal(profile_set_origin(p, "numpy/linalg/_linalg.py", PROFILE_THIRD_PARTY), 0);
	dot = on_native(p, ufunc, "dgemm_", "libopenblas.so.0");
	take_in(p, dot, owner, 20);
	take_in(p, on_native(p, dot, "[libopenblas.so.0+0x4711]", "libopenblas.so.0"), owner, 10);
	take_in(p, on_native(p, load, "dgemm_", "libopenblas.so.0"), owner, 8);
	take_in(p, on_native(p, PROFILE_ROOT, "blas_thread_server", "libopenblas.so.0"), owner, 3);
	take_in(p, ufunc, owner, 7);
	take_in(p, on_native(p, load, "list_sort_impl", "python3.12"), owner, 2);
	take_in(p, on_native(p, sort, "list_sort_impl", "python3.12"), owner, 4);
	unlined = profile_add_frame(p, PROFILE_PYTHON, "load", "model.py", PROFILE_NO_LINE, 18);
	take_in(p, on_native(p, profile_add_stack(p, main, unlined), "[CPython]", "uwsgi"), owner, 4);
	take_in(p, on_native(p, load, "[vdso]", ""), owner, 2);
	take_in(p,
		profile_add_stack(p, dot,
				  profile_add_frame(p, PROFILE_KERNEL, "do_syscall_64_[k]", "", PROFILE_NO_LINE,
						    PROFILE_NO_LINE)),
		owner, 5);
	take_in(p, fit, owner, 30);
	take_in(p, load, owner, 5);
	return p;
}

/* Of 10 samples of compiled code with lines 7 are in libz.so.1, 2 of them in a function without a line, and 3 in
 * another library. */
static struct profile *lined_profile(void)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), main = on(p, PROFILE_ROOT, "<module>", "app.py", 90), outer;
	const struct profile_mapping_info libz = {"libz.so.1", "c0ffee", "/lib/libz.so.1", 0x1000, 0x9000, 0x1000};
	const struct profile_mapping_info other = {"libother.so", "", "", 0x1000, 0x9000, 0x1000};
	struct profile_code code = {.mapping = profile_add_mapping(p, &libz), .address = 0x2345, .line = 30};

	outer = profile_add_stack(p, main, profile_add_code(p, "deflate", "deflate.c", &code));
	code.marks = PROFILE_CODE_INLINED;
	take_in(p, profile_add_stack(p, outer, profile_add_code(p, "match", "match.h", &code)), owner, 5);
	code = (struct profile_code){.mapping = code.mapping, .address = 0x3456, .line = PROFILE_NO_LINE};
	take_in(p, profile_add_stack(p, main, profile_add_code(p, "inflate", "libz.so.1", &code)), owner, 2);
	code = (struct profile_code){.mapping = profile_add_mapping(p, &other), .address = 0x2345, .line = 3};
	take_in(p, profile_add_stack(p, main, profile_add_code(p, "match", "match.h", &code)), owner, 3);
	return p;
}

/* Time of threads of a service with two containers, and of another one, in an hour; its version is the minor one. */
static struct profile *epoch(unsigned hour, unsigned version)
{
	struct profile *p = new_profile();
	const struct profile_process_info infos[] = {
		{.pid = 40, .name = "web", .container = "front-1", .service = "shop"},
		{.pid = 41, .name = "job", .container = "back-1", .service = "shop"},
		{.pid = 50, .name = "python3", .service = "search"},
	};
	const uint32_t network = profile_add_wait(p, "network", "[network: tcp 10.0.0.7:5432]", 0);
	const uint64_t start_ns = (UINT64_C(1795564800) + hour * UINT64_C(3600)) * 1000000000;
	char text[64];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)start_ns);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", PROFILE_UNIT_TIME, 0}), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, "node-3"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_START, text), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, "60.000"), 0);
	snprintf(text, sizeof(text), "container.id=4f79\nservice.version=1.%u\n", version);
	for (unsigned i = 0; i < 3; i++) {
		struct profile_process_info info = infos[i];
		uint32_t owner, main = on(p, PROFILE_ROOT, "main", "shop/main.py", 9), thread;

		info.attributes = i < 2 ? text : NULL;
		owner = profile_add_process(p, &info);
		thread = profile_add_thread(p, owner, info.pid, "MainThread");
		for (unsigned f = 0; f < 6; f++) {
			char name[16];
			uint32_t stack;

			snprintf(name, sizeof(name), "step_%u", f);
			stack = on(p, on(p, main, name, "shop/steps.py", 10 * (int)f), "again", "shop/main.py", 20);
			/* A function that calls itself counts once. */
			stack = on(p, stack, name, "shop/steps.py", 5);
			assert_int_equal(profile_add_time(p, stack, owner, thread, 1000 * (f + version + hour), 3), 0);
			stack = profile_add_stack(p, stack, network);
			assert_int_equal(profile_add_time(p, stack, owner, thread, 777 * (f * f + i), f + 1), 0);
		}
		thread = profile_add_thread(p, owner, info.pid + 100, "worker");
		assert_int_equal(profile_add_time(p, main, owner, thread, 5000 + 100 * i, 1), 0);
	}
	return p;
}

static int save(struct profile *p, const char *folder, const char *name)
{
	struct output_file file;
	struct error error;
	char path[4096];
	int err;

	snprintf(path, sizeof(path), "%s/%s.pybpf", folder, name);
	err = output_file_open(&file, path, &error);
	if (!err) {
		err = output_pybpf(p, &(struct output_options){0}, file.stream);
		err = err ?: output_file_commit(&file);
		output_file_discard(&file);
	}
	if (err)
		fprintf(stderr, "made-profiles: %s could not be written: %s\n", path, strerror(-err));
	profile_free(p);
	return err;
}

/* Epochs of one day, and one of the day before, of which the last two have a new version of the service. */
static int save_epochs(const char *folder)
{
	static const unsigned hours[] = {9, 33, 34, 34, 35};
	char path[3000], name[64];
	int err = 0;

	snprintf(path, sizeof(path), "%s/epochs", folder);
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	for (unsigned i = 0; i < 5 && !err; i++) {
		snprintf(name, sizeof(name), "202611%uT%02u0000.000Z-60000ms-%08u", hours[i] < 24 ? 25 : 26,
			 hours[i] % 24, i + 1);
		err = save(epoch(hours[i], i < 3 ? 4 : 5), path, name);
	}
	return err;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: made-profiles FOLDER\n", stderr);
		return 2;
	}
	return save(hostile_profile(), argv[1], "hostile") || save(new_profile(), argv[1], "empty") ||
	       save(recursive_profile(), argv[1], "recursive") || save(long_profile(), argv[1], "long") ||
	       save(forging_profile(), argv[1], "forging") || save(compiled_profile(), argv[1], "compiled") ||
	       save(lined_profile(), argv[1], "lines") || save_epochs(argv[1]);
}
