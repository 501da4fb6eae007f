// SPDX-License-Identifier: Apache-2.0
/*
 * Who marks a page as used: the CPU, or the kernel at a page fault, as on arm64 without FEAT_HAFDBS (Cortex-A72 and
 * older). There a page that the kernel has marked as unused, to see whether it is used, cannot be read by a BPF program
 * until its own program touches it. Reclaim does so when memory is short; DAMON all the time (Linux 6.17 and later).
 */
#include "doctor/page_age.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGES       64
#define CLEAR_REFS  "/proc/self/clear_refs"
#define DAMON_STATE "/sys/module/damon_stat/parameters/enabled"

static int write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static void touch(volatile char *pages, long size)
{
	for (int i = 0; i < PAGES; i++)
		pages[i * size] = 1;
}

/* Counts the page faults of pages that have been marked as unused. Returns it, or a negative errno. */
static long count_faults(void)
{
	long size = sysconf(_SC_PAGESIZE), err;
	struct rusage before = {0}, after = {0};
	/* cppcheck-suppress invalidFunctionArg; -1 is what MAP_ANONYMOUS goes with. */
	char *pages = mmap(NULL, (size_t)(PAGES * size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return -errno;
	/* A huge page is one page. */
	madvise(pages, (size_t)(PAGES * size), MADV_NOHUGEPAGE);
	touch(pages, size);
	/* 1: the referenced bits of this process (Documentation/filesystems/proc.rst) */
	err = write_to(CLEAR_REFS, "1");
	getrusage(RUSAGE_SELF, &before);
	touch(pages, size);
	getrusage(RUSAGE_SELF, &after);
	munmap(pages, (size_t)(PAGES * size));
	return err ?: after.ru_minflt - before.ru_minflt;
}

static bool damon_runs(void)
{
	char state = 'N';
	int fd = open(DAMON_STATE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, &state, 1) != 1)
		state = 'N';
	close(fd);
	return state == 'Y';
}

void doctor_look_page_age(const struct doctor *d, struct doctor_item *item)
{
	long faults = count_faults();

	(void)d;
	if (faults < 0) {
		doctor_found(item, DOCTOR_SKIP, CLEAR_REFS ": %s", strerror((int)-faults));
		return;
	}
	/* Other faults are few: what is touched here lies in memory. */
	if (faults < PAGES / 2) {
		doctor_found(item, DOCTOR_OK, "marked as used by the CPU");
		return;
	}
	doctor_found(item, DOCTOR_OK,
		     "marked as used at a page fault: stacks are cut where memory is short, and pages are marked as "
		     "unused to see which are");
	if (!damon_runs())
		return;
	doctor_found(item, DOCTOR_WARN,
		     "marked as used at a page fault, and as unused by DAMON: deep stacks are cut where a program has "
		     "not touched its frames for a while");
	doctor_advise(item, "as root, `echo N >" DAMON_STATE "` stops DAMON's statistics until the next boot");
}
