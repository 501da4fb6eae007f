// SPDX-License-Identifier: Apache-2.0
/*
 * made-profiles FOLDER: saves hostile.pybpf, empty.pybpf and recursive.pybpf there, from which `pybpf report` makes
 * every format for the real readers.
 */
#include "output_file.h"
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

static int save(struct profile *p, const char *folder, const char *name)
{
	struct output_file file;
	char why[256];
	char path[4096];
	int err;

	snprintf(path, sizeof(path), "%s/%s.pybpf", folder, name);
	err = output_file_open(&file, path, why, sizeof(why));
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
	       save(recursive_profile(), argv[1], "recursive");
}
