// SPDX-License-Identifier: Apache-2.0
/*
 * made-profiles FOLDER: saves hostile.pybpf, empty.pybpf and recursive.pybpf there, from which `pybpf report` makes
 * every format for the real readers; and long.pybpf, which is small but for a few texts, of which each takes memory
 * more than once.
 */
#include "output/file/file.h"
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

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: made-profiles FOLDER\n", stderr);
		return 2;
	}
	return save(hostile_profile(), argv[1], "hostile") || save(new_profile(), argv[1], "empty") ||
	       save(recursive_profile(), argv[1], "recursive") || save(long_profile(), argv[1], "long") ||
	       save(forging_profile(), argv[1], "forging");
}
