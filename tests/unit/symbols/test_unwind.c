// SPDX-License-Identifier: Apache-2.0
/* Stacks by call frame information of a library that is made shorter between two looks at it. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbols/walk/unwind.h"

/* A function of it calls the tests, so that it is on the stack of each. */
#define LIBRARY "libcmocka.so.0"
/* The variable of the environment that has this program stand in a test. */
#define STANDS "TEST_UNWIND_STANDS"

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (!strstr(info->dlpi_name, LIBRARY))
		return 0;
	assert_non_null(realpath(info->dlpi_name, arg));
	return 1;
}

static void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	struct stat st = {.st_size = 0};

	assert_true(in >= 0 && out >= 0 && !fstat(in, &st));
	assert_int_equal(sendfile(out, in, NULL, (size_t)st.st_size), st.st_size);
	close(in);
	close(out);
}

/* Starts this program with the library of that folder. Returns when it stands in a test. */
static pid_t start(const char *folder)
{
	char byte;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		setenv("LD_LIBRARY_PATH", folder, 1);
		setenv(STANDS, "1", 1);
		execl("/proc/self/exe", "test_unwind", NULL);
		_exit(1);
	}
	assert_true(child > 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	return child;
}

static struct unwind_registers stop(pid_t child)
{
	struct user_regs_struct registers;
	struct iovec all = {&registers, sizeof(registers)};
	int status;

	assert_int_equal(ptrace(PTRACE_SEIZE, child, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, child, NULL, NULL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &all), 0);
	return unwind_registers_from(&registers);
}

struct seen {
	const char *library;
	size_t frames, in_library;
};

static bool take(void *arg, const struct unwind_frame *frame)
{
	struct seen *seen = arg;

	seen->frames++;
	seen->in_library += frame->file && !strcmp(frame->file, seen->library);
	/* All of it is read. */
	return !frame->name || strlen(frame->name) > 0;
}

static void test_library_that_shrinks(void **state)
{
	char folder[] = "/tmp/test_unwind_XXXXXX", path[PATH_MAX] = "", copy[PATH_MAX];
	struct unwind_registers registers;
	struct seen before, after;
	struct unwind *unwind;
	pid_t child;

	(void)state;
	assert_int_equal(dl_iterate_phdr(find_library, path), 1);
	assert_non_null(mkdtemp(folder));
	snprintf(copy, sizeof(copy), "%s/" LIBRARY, folder);
	copy_file(path, copy);
	child = start(folder);
	registers = stop(child);
	assert_int_equal(unwind_new(child, &unwind), 0);
	assert_non_null(unwind);
	before = after = (struct seen){.library = copy};
	assert_true(unwind_find(unwind, &registers, false));
	assert_int_equal(unwind_take(unwind, take, &before), UNWIND_WHOLE);
	assert_true(before.in_library >= 2 && before.frames > before.in_library);
	assert_int_equal(truncate(copy, 0), 0);
	/* What is not known any more is missing, and nothing else happens. */
	unwind_find(unwind, &registers, false);
	unwind_take(unwind, take, &after);
	assert_true(after.frames > 0 && after.frames <= before.frames);
	unwind_free(unwind);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	unlink(copy);
	rmdir(folder);
}

static void stand(void **state)
{
	(void)state;
	assert_int_equal(write(STDOUT_FILENO, "", 1), 1);
	for (;;)
		pause();
}

/* DWARF counts registers in the order of the platform's ABI (x86-64: figure 3.36; arm64: x0 to x30, sp, pc). */
static void test_registers(void **state)
{
	struct user_regs_struct in = {0};
	struct unwind_registers out;

	(void)state;
#if defined(__x86_64__)
	in.rax = 0, in.rdx = 1, in.rcx = 2, in.rbx = 3, in.rsi = 4, in.rdi = 5, in.rbp = 6, in.rsp = 7;
	in.r8 = 8, in.r9 = 9, in.r10 = 10, in.r11 = 11, in.r12 = 12, in.r13 = 13, in.r14 = 14, in.r15 = 15;
	in.rip = 16;
#elif defined(__aarch64__)
	for (int i = 0; i < 31; i++)
		in.regs[i] = (uint64_t)i;
	in.sp = 31;
	in.pc = 32;
#endif
	out = unwind_registers_from(&in);
	for (uint64_t i = 0; i < UNWIND_REGISTERS; i++)
		assert_int_equal(out.values[i], i);
}

/* With addresses of 48 bits, 47 and 39: what a signed return address was before it was signed. */
static void test_signatures(void **state)
{
	(void)state;
	assert_int_equal(unwind_strip_signature(0x0049aaaab7c81234, 0xfffff0a1b000), 0xaaaab7c81234);
	assert_int_equal(unwind_strip_signature(0x007fd555b7c81234, 0x7ffff0a1b000), 0x5555b7c81234);
	assert_int_equal(unwind_strip_signature(0x005a96d5b7c81234, 0x7ff0a1b000), 0x55b7c81234);
	assert_int_equal(unwind_strip_signature(0xaaaab7c81234, 0xfffff0a1b000), 0xaaaab7c81234);
	assert_int_equal(unwind_strip_signature(0x0049aaaab7c81234, 0), 0x0049aaaab7c81234);
}

int main(void)
{
	const struct CMUnitTest standing[] = {cmocka_unit_test(stand)};
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_registers), cmocka_unit_test(test_signatures),
					   cmocka_unit_test(test_library_that_shrinks)};

	return getenv(STANDS) ? cmocka_run_group_tests(standing, NULL, NULL)
			      : cmocka_run_group_tests(tests, NULL, NULL);
}
