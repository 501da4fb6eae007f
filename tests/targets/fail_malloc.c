// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded, it lets one allocation of a program fail, or all from one on. glibc's own callers of malloc (strdup,
 * asprintf, open_memstream, getline...) come this way as well. Counted is from main() on.
 *
 *   FAIL_AT=N        the N-th allocation fails, counted from 1; 0: none
 *   FAIL_FOR_GOOD=1  so does every later one
 *   FAIL_COUNT=FILE  8 bytes there, which exist, receive the number of allocations so far
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* glibc's names. NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

typedef int main_fn(int argc, char **argv, char **envp);
typedef int start_fn(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
		     void (*rtld_fini)(void), void *stack_end);
start_fn __libc_start_main;
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

static main_fn *real_main;
static uint64_t own_count, *count = &own_count;
static uint64_t fail_at;
static bool for_good, counting;

static bool fails(void)
{
	uint64_t n;

	if (!counting)
		return false;
	n = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	if (!fail_at || (for_good ? n < fail_at : n != fail_at))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t nmemb, size_t size)
{
	return fails() ? NULL : __libc_calloc(nmemb, size);
}

void *realloc(void *ptr, size_t size)
{
	return fails() ? NULL : __libc_realloc(ptr, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memptr, size_t alignment, size_t size)
{
	if (fails())
		return ENOMEM;
	*memptr = __libc_memalign(alignment, size);
	return *memptr ? 0 : ENOMEM;
}

static int counted_main(int argc, char **argv, char **envp)
{
	const char *text = getenv("FAIL_AT"), *path = getenv("FAIL_COUNT");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	fail_at = text ? strtoull(text, NULL, 10) : 0;
	for_good = getenv("FAIL_FOR_GOOD") != NULL;
	if (fd >= 0) {
		void *shared = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		close(fd);
		if (shared != MAP_FAILED)
			count = shared;
	}
	/* Not for what it starts. */
	unsetenv("LD_PRELOAD");
	counting = true;
	return real_main(argc, argv, envp);
}

/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end)
{
	start_fn *next = (start_fn *)dlsym(RTLD_NEXT, "__libc_start_main");

	real_main = main;
	return next(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
