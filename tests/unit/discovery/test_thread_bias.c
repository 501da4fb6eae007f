// SPDX-License-Identifier: Apache-2.0
/* How far pthread_self() is from arm64's thread pointer, from its instructions and from C libraries. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discovery/internal.h"

#define BTI         0xd503245f /* bti c */
#define MRS(to)     (0xd53bd040 | (to))
#define SUB(by, of) (0xd1000000 | (by) << 10 | (of) << 5)
#define RET         0xd65f03c0
#define NOP         0xd503201f

static void every_shape_of_the_function_is_decoded(void **state)
{
	static const struct {
		uint32_t code[4];
		uint16_t bias;
	} shapes[] = {
		{{MRS(0), SUB(0x740, 0), RET, NOP}, 0x740}, /* glibc 2.36 */
		{{BTI, MRS(0), SUB(0x720, 0), RET}, 0x720}, /* glibc 2.41 */
		{{MRS(0), SUB(0xc8, 0), RET, 0}, 0xc8},     /* musl 1.2 */
		{{MRS(3), SUB(0x6f0, 3), RET, 0}, 0x6f0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		assert_int_equal(discovery_decode_thread_bias(shapes[i].code, 4), shapes[i].bias);
}

static void other_functions_tell_nothing(void **state)
{
	static const uint32_t others[][4] = {
		{MRS(0), SUB(0x740, 1), RET, NOP},            /* of another register */
		{MRS(0), SUB(0x740, 0) | 1, RET, NOP},        /* to another register */
		{MRS(0), SUB(0x740, 0) | 1u << 22, RET, NOP}, /* by 0x740 << 12 */
		{MRS(0), SUB(0x740, 0), NOP, RET},
		{BTI, MRS(0), RET, NOP},
		{NOP, MRS(0), SUB(0x740, 0), RET},
	};
	static const uint32_t code[] = {BTI, MRS(0), SUB(0x720, 0), RET};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(discovery_decode_thread_bias(others[i], 4), 0);
	for (size_t count = 0; count < 4; count++)
		assert_int_equal(discovery_decode_thread_bias(code, count), 0);
}

/* Opens a file of arm64 as one of this machine's. */
static struct elf_file *open_foreign(const char *path)
{
	char copy[] = "/tmp/test_thread_bias.XXXXXX", command[8192];
	int fd = mkstemp(copy), own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const off_t machine = offsetof(Elf64_Ehdr, e_machine);
	struct elf_file *elf = NULL;
	uint16_t number;

	assert_true(fd >= 0 && own >= 0);
	snprintf(command, sizeof(command), "cp '%s' %s", path, copy);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
	assert_int_equal(pread(own, &number, sizeof(number), machine), sizeof(number));
	assert_int_equal(pwrite(fd, &number, sizeof(number), machine), sizeof(number));
	assert_int_equal(elf_file_open(fd, &elf), 0);
	unlink(copy);
	close(own);
	close(fd);
	return elf;
}

static const char *cache_folder(char *room, size_t size)
{
	const char *chosen = getenv("PYBPF_TEST_CACHE"), *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (chosen)
		return chosen;
	snprintf(room, size, "%s%s/pybpf-tests", caches ? caches : home ? home : "", caches ? "" : "/.cache");
	return room;
}

static void c_libraries_of_arm64_have_theirs(void **state)
{
	static const struct {
		const char *suite;
		uint16_t bias;
	} libraries[] = {{"bookworm", 0x740}, {"trixie", 0x720}};
	char room[2048], path[4096];
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		struct elf_file *elf;

		snprintf(path, sizeof(path), "%s/arm64-%s/lib/aarch64-linux-gnu/libc.so.6",
			 cache_folder(room, sizeof(room)), libraries[i].suite);
		if (access(path, R_OK))
			continue;
		elf = open_foreign(path);
		assert_int_equal(discovery_thread_bias(elf), libraries[i].bias);
		elf_file_free(elf);
		found++;
	}
	if (!found) {
		print_message("no C library of arm64: tools/setup-pythons arm64-bookworm arm64-trixie fetches them\n");
		skip();
	}
}

static void this_program_is_no_c_library(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_file *elf;

	(void)state;
	assert_int_equal(elf_file_open(fd, &elf), 0);
	assert_int_equal(discovery_thread_bias(elf), 0);
	elf_file_free(elf);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_shape_of_the_function_is_decoded),
		cmocka_unit_test(other_functions_tell_nothing),
		cmocka_unit_test(c_libraries_of_arm64_have_theirs),
		cmocka_unit_test(this_program_is_no_c_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
