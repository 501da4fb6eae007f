// SPDX-License-Identifier: Apache-2.0
/* A small core file, made here as core(5) and elf(5) have it; cut off at each byte, and with each of its bytes changed.
 */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/core_file.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

#define PAGE     4096u
#define ANON     0x10000u /* kept whole */
#define LIBRARY  0x20000u /* two pages, of which the core has the first */
#define SEGMENTS 3u
#define PATH     "/usr/lib/libpython.so"

struct made {
	char bytes[4 * PAGE];
	size_t size;
};

static void put(struct made *m, const void *bytes, size_t size)
{
	memcpy(m->bytes + m->size, bytes, size);
	m->size += size;
}

static void put_note(struct made *m, uint32_t type, const void *content, size_t size)
{
	static const char zeros[4];
	const Elf64_Nhdr head = {.n_namesz = 5, .n_descsz = (Elf64_Word)size, .n_type = type};

	put(m, &head, sizeof(head));
	put(m, "CORE\0\0\0", 8);
	put(m, content, size);
	put(m, zeros, -size & 3);
}

static void put_notes(struct made *m)
{
	struct elf_prstatus status = {.pr_cursig = 11, .pr_pid = 4711};
	struct elf_prpsinfo info = {.pr_pid = 4711, .pr_fname = "python3", .pr_psargs = "python3 app.py"};
	const uint64_t files[] = {1, PAGE, LIBRARY, LIBRARY + 2 * PAGE, 3};
	char siginfo[128] = {0}, list[sizeof(files) + sizeof(PATH)];
	const int signal = 11;
	const uint64_t address = 0xdead000;

#if defined(__x86_64__)
	((uint64_t *)(void *)&status.pr_reg)[21] = 0x7000;
	((uint64_t *)(void *)&status.pr_reg)[15] = 202; /* futex */
	((uint64_t *)(void *)&status.pr_reg)[14] = 0x1234;
	((int64_t *)(void *)&status.pr_reg)[10] = -512; /* -ERESTARTSYS */
#endif
	put_note(m, NT_PRSTATUS, &status, sizeof(status));
	put_note(m, NT_PRPSINFO, &info, sizeof(info));
	memcpy(siginfo, &signal, sizeof(signal));
	memcpy(siginfo + 8, &(int){1}, sizeof(int)); /* SEGV_MAPERR */
	memcpy(siginfo + 16, &address, sizeof(address));
	put_note(m, NT_SIGINFO, siginfo, sizeof(siginfo));
	memcpy(list, files, sizeof(files));
	memcpy(list + sizeof(files), PATH, sizeof(PATH));
	put_note(m, NT_FILE, list, sizeof(list));
	status.pr_pid = 4712;
#if defined(__x86_64__)
	((int64_t *)(void *)&status.pr_reg)[15] = -1;
#endif
	status.pr_cursig = 0;
	put_note(m, NT_PRSTATUS, &status, sizeof(status));
#if !defined(__x86_64__)
	put_note(m, NT_ARM_TLS, &(uint64_t){0x7000}, 8);
#endif
}

static void make(struct made *m)
{
	Elf64_Phdr segments[SEGMENTS] = {
		{.p_type = PT_NOTE},
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_W,
		 .p_vaddr = ANON,
		 .p_memsz = PAGE,
		 .p_filesz = PAGE,
		 .p_offset = 2 * PAGE},
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_X,
		 .p_vaddr = LIBRARY,
		 .p_memsz = 2 * PAGE,
		 .p_filesz = PAGE,
		 .p_offset = 3 * PAGE},
	};
	const Elf64_Ehdr head = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_CORE,
		.e_machine = MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(head),
		.e_ehsize = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = SEGMENTS,
	};

	memset(m, 0, sizeof(*m));
	m->size = sizeof(head) + sizeof(segments);
	segments[0].p_offset = m->size;
	put_notes(m);
	segments[0].p_filesz = m->size - segments[0].p_offset;
	assert_true(m->size <= 2 * PAGE);
	memcpy(m->bytes, &head, sizeof(head));
	memcpy(m->bytes + sizeof(head), segments, sizeof(segments));
	memset(m->bytes + 2 * PAGE, 'a', PAGE);
	memset(m->bytes + 3 * PAGE, 'l', PAGE);
	m->size = 4 * PAGE;
}

static int open_made(const struct made *m, size_t size, struct core_file *core, struct error *error)
{
	int fd = memfd_create("core", MFD_CLOEXEC), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, m->bytes, size), size);
	err = core_file_open(fd, "a.core", core, error);
	close(fd);
	return err;
}

static void test_what_is_in_it(void **unused)
{
	struct core_file core;
	struct error error;
	struct made m;
	(void)unused;

	make(&m);
	assert_int_equal(open_made(&m, m.size, &core, &error), 0);
	assert_int_equal(core.pid, 4711);
	assert_string_equal(core.comm, "python3");
	assert_string_equal(core.command, "python3 app.py");
	assert_int_equal(core.signal, 11);
	assert_true(core.has_address);
	assert_int_equal(core.address, 0xdead000);
	assert_int_equal(core.missing, 0);
	assert_int_equal(core.nr_threads, 2);
	assert_int_equal(core.threads[0].tid, 4711);
	assert_int_equal(core.threads[1].tid, 4712);
	assert_int_equal(core.threads[1].thread_pointer, 0x7000);
#if defined(__x86_64__)
	assert_int_equal(core.threads[0].call, 202);
	assert_int_equal(core.threads[0].args[0], 0x1234);
	assert_int_equal(core.threads[1].call, -1); /* it is in none */
#endif
	assert_int_equal(core.nr_maps, 2);
	assert_string_equal(core.maps[0].path, "");
	assert_true(core.maps[0].writable && !core.maps[0].executable);
	assert_string_equal(core.maps[1].path, PATH);
	assert_int_equal(core.maps[1].offset, 3 * PAGE);
	assert_true(core.maps[1].executable);
	core_file_close(&core);
}

static void test_reads(void **unused)
{
	const struct core_map *map;
	struct core_file core;
	struct error error;
	struct made m;
	char bytes[64];
	size_t done;
	(void)unused;

	make(&m);
	assert_int_equal(open_made(&m, m.size, &core, &error), 0);
	assert_int_equal(core_file_read(&core, ANON + PAGE - 8, bytes, 8, &map, &done), 0);
	assert_memory_equal(bytes, "aaaaaaaa", 8);
	assert_int_equal(core_file_read(&core, ANON + PAGE - 8, bytes, 9, &map, &done), -EFAULT);
	assert_int_equal(core_file_read(&core, 0, bytes, 1, &map, &done), -EFAULT);
	assert_int_equal(core_file_read(&core, UINT64_MAX - 2, bytes, 8, &map, &done), -EFAULT);
	/* The second page of the library is in its file only. */
	assert_int_equal(core_file_read(&core, LIBRARY + PAGE - 4, bytes, 8, &map, &done), -ENODATA);
	assert_int_equal(done, 4);
	assert_string_equal(map->path, PATH);
	assert_memory_equal(bytes, "llll", 4);
	core_file_close(&core);
}

/* Made shorter after it was opened: what it had is not there any more, and what it still has is. */
static void test_cut_meanwhile(void **unused)
{
	const size_t sizes[] = {3 * PAGE, 4 * PAGE - 8, 2 * PAGE + 16, 2 * PAGE, 100, 0};
	const struct core_map *map;
	struct core_file core;
	struct error error;
	struct made m;
	char bytes[PAGE];
	size_t done;
	(void)unused;

	make(&m);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const bool has_some = sizes[i] > 2 * PAGE, has_more = sizes[i] > 2 * PAGE + 16;
		int fd = memfd_create("core", MFD_CLOEXEC);

		assert_int_equal(write(fd, m.bytes, m.size), m.size);
		assert_int_equal(core_file_open(fd, "a.core", &core, &error), 0);
		assert_int_equal(core_file_read(&core, LIBRARY, bytes, PAGE, &map, &done), 0);
		assert_false(core_file_is_changed(&core));
		assert_int_equal(ftruncate(fd, (off_t)sizes[i]), 0);
		assert_int_equal(core_file_read(&core, LIBRARY, bytes, PAGE, &map, &done), -EFAULT);
		assert_int_equal(core_file_read(&core, ANON, bytes, 16, &map, &done), has_some ? 0 : -EFAULT);
		assert_int_equal(core_file_read(&core, ANON, bytes, 17, &map, &done), has_more ? 0 : -EFAULT);
		assert_true(core_file_is_changed(&core));
		core_file_close(&core);
		close(fd);
	}
}

/* Cut off anywhere: refused in one sentence, or open with what is missing counted. */
static void test_truncated(void **unused)
{
	struct made m;
	(void)unused;

	make(&m);
	for (size_t size = 0; size < m.size; size += size < 2 * PAGE ? 1 : 97) {
		struct error error = {0};
		struct core_file core;
		int err = open_made(&m, size, &core, &error);

		if (size < 2 * PAGE - PAGE / 2)
			assert_true(!err || error.text[0]);
		if (!err) {
			assert_int_equal(core.missing, size <= 2 * PAGE ? 2 * PAGE : 4 * PAGE - size);
			assert_int_equal(core.nr_threads, 2);
		}
		core_file_close(&core);
	}
}

/* Each byte of the headers and notes takes other values: no crash, and no read beyond the file. */
static void test_damaged(void **unused)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct made m;
	(void)unused;

	make(&m);
	for (size_t at = 0; at < 2 * PAGE; at++) {
		for (size_t i = 0; i < sizeof(values); i++) {
			const char was = m.bytes[at];
			struct error error = {0};
			struct core_file core;

			m.bytes[at] = (char)values[i];
			if (!open_made(&m, m.size, &core, &error)) {
				const struct core_map *map;
				char bytes[PAGE];
				size_t done;

				for (size_t k = 0; k < core.nr_maps; k++)
					core_file_read(&core, core.maps[k].start, bytes, sizeof(bytes), &map, &done);
			} else {
				assert_true(error.text[0]);
			}
			core_file_close(&core);
			m.bytes[at] = was;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_in_it), cmocka_unit_test(test_reads),
		cmocka_unit_test(test_cut_meanwhile), cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
