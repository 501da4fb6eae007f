// SPDX-License-Identifier: Apache-2.0
/* Files that take too long to read end the search, not what it has found. Stands in for file.c and clock.c. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "discovery/internal.h"

#define BIAS 0x740

/* What the files of this process are, in the order of the search; after them the time is over. */
static enum {
	PYTHON,
	MOVED_PYTHON,
	ASYNCIO,
	C_LIBRARY,
	NOTHING
} kinds[3];
static size_t analysed;

uint64_t clock_ns(clockid_t clock)
{
	(void)clock;
	return analysed < sizeof(kinds) / sizeof(*kinds) ? 0 : 3600ull * 1000000000;
}

double clock_s(clockid_t clock)
{
	return (double)clock_ns(clock) / 1e9;
}

int discovery_analyse(struct elf_file *elf, struct discovery_file *out)
{
	int kind = kinds[analysed++];

	out->code_count = elf_file_code_segments(elf, out->code, DISCOVERY_CODE_SEGMENTS);
	if (kind == ASYNCIO)
		out->asyncio = (struct pybpf_asyncio){.loaded = 1, .running_task = 8};
	if (kind == C_LIBRARY)
		out->thread_bias = BIAS;
	if (kind != PYTHON && kind != MOVED_PYTHON)
		return 0;
	out->kind = DISCOVERY_FILE_PYTHON;
	out->runtime = calloc(1, sizeof(*out->runtime));
	assert_non_null(out->runtime);
	out->runtime->version = (struct discovery_version){.major = 3, .minor = 14, .text = "3.14"};
	/* Where nothing is mapped. */
	out->runtime->build_in_memory = kind == MOVED_PYTHON;
	out->runtime->runtime = UINT64_MAX / 2;
	return 0;
}

void discovery_file_clear(struct discovery_file *file)
{
	free(file->runtime);
	file->runtime = NULL;
}

void discovery_pypy_version(struct elf_file *elf, char *out, size_t size)
{
	(void)elf;
	(void)size;
	out[0] = '\0';
}

static enum discovery_result look(int first, int second, int third, struct discovery_python *python,
				  struct error *error)
{
	struct discovery *discovery = discovery_new();
	enum discovery_result result;
	size_t count;

	assert_non_null(discovery);
	kinds[0] = first;
	kinds[1] = second;
	kinds[2] = third;
	analysed = 0;
	result = discovery_runtimes(discovery, getpid(), python, 1, &count, error);
	assert_int_equal(analysed, 3);
	discovery_free(discovery);
	return result;
}

static void what_was_met_belongs_to_the_python_before_it(void **state)
{
	struct discovery_python python;
	struct error error;

	(void)state;
	assert_int_equal(look(PYTHON, C_LIBRARY, ASYNCIO, &python, &error), DISCOVERY_OK);
	assert_non_null(strstr(error.text, "take too long to read: after 3 of"));
	assert_int_equal(python.thread_bias, BIAS);
	assert_int_equal(python.asyncio.running_task, 8);
}

static void a_contradiction_is_told(void **state)
{
	struct discovery_python python;
	struct error error;

	(void)state;
	assert_int_equal(look(MOVED_PYTHON, NOTHING, NOTHING, &python, &error), DISCOVERY_CONTRADICTED);
	assert_non_null(strstr(error.text, "debug offsets are not usable"));
}

static void without_a_python_the_process_is_refused(void **state)
{
	struct discovery_python python;
	struct error error;

	(void)state;
	assert_int_equal(look(NOTHING, C_LIBRARY, ASYNCIO, &python, &error), DISCOVERY_UNSUPPORTED);
	assert_non_null(strstr(error.text, "take too long to read"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_met_belongs_to_the_python_before_it),
		cmocka_unit_test(a_contradiction_is_told),
		cmocka_unit_test(without_a_python_the_process_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
