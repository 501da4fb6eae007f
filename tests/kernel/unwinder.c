// SPDX-License-Identifier: Apache-2.0
/*
 * unwinder PID TIMES: stops a process some times, and prints of each thread a line of JSON: the frames that the tables
 * lead to, and those that libdw finds in the same memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dump/freeze.h"
#include "symbols/walk/unwind.h"

static bool print_frame(void *arg, const struct unwind_frame *frame)
{
	int *count = arg;

	printf("%s%" PRIu64, (*count)++ ? ", " : "", frame->pc);
	return true;
}

static void print_stack(const char *key, struct unwind *unwind)
{
	int count = 0;
	enum unwind_end end;

	printf("\"%s\": [", key);
	end = unwind_take(unwind, print_frame, &count);
	printf("], \"%s_whole\": %s", key, end == UNWIND_WHOLE ? "true" : "false");
}

/* Returns 0, or 1 with a sentence on stderr. */
static int look(pid_t pid)
{
	struct dump_freeze freeze;
	struct unwind *unwind = NULL;
	struct error error = {.code = 0};
	int err = dump_freeze(pid, &freeze, &error);

	if (err) {
		fprintf(stderr, "unwinder: %s\n", error.text);
		return 1;
	}
	err = unwind_new(pid, &unwind);
	for (uint32_t i = 0; i < freeze.threads.count && !err; i++) {
		pid_t tid = *(const pid_t *)intern_item(&freeze.threads, i);
		struct unwind_registers registers;

		if (!dump_registers_of(&freeze, tid, &registers))
			continue;
		printf("{\"tid\": %d, ", tid);
		unwind_find(unwind, &registers, false);
		print_stack("tables", unwind);
		printf(", ");
		unwind_find_by_libdw(unwind, &registers);
		print_stack("libdw", unwind);
		printf("}\n");
	}
	unwind_free(unwind);
	dump_thaw(&freeze);
	return err != 0;
}

int main(int argc, char **argv)
{
	int failed = argc != 3;

	for (int i = 0; i < (failed ? 0 : atoi(argv[2])) && !failed; i++) {
		const struct timespec pause = {.tv_nsec = 1000000 + rand() % 5000000};

		failed = look((pid_t)atoi(argv[1]));
		nanosleep(&pause, NULL);
	}
	return failed;
}
