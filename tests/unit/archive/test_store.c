// SPDX-License-Identifier: Apache-2.0
/* A folder of epochs: what is kept, merged and removed, and that no sample is lost or doubled by it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "epochs.h"

/* The CPU time of a sample. */
static uint64_t period_ns = 52631578;

/* An epoch in which each of some functions has a number of samples. */
static struct profile *make_profile(unsigned number)
{
	struct profile *p = new_profile();
	uint32_t pid = process(p, 100 + (int)(number % 7), "worker");
	char name[32];

	profile_set_measure(p, &(struct profile_measure){"samples", "count", period_ns});
	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "f%u", (number + i) % 11);
		assert_int_equal(profile_add_sample(p, on(p, PROFILE_ROOT, name, "w.py", 1), pid, PROFILE_NONE, 1 + i),
				 0);
	}
	assert_int_equal(profile_add_account(p, "samples", "taken", "", 15), 0);
	return p;
}

#define SAMPLES_OF_EPOCH 15

static void add_epoch(struct archive_store *store, unsigned number, uint64_t begin_ms)
{
	struct profile *p = make_profile(number);

	commit_epoch(store, p, begin_ms);
	profile_free(p);
}

/* Values by function, process and number of epochs: the same for the same samples, in whatever files they are. */
static void assert_epochs(unsigned first, unsigned count)
{
	struct profile *found = read_all(), *wanted = new_profile();
	struct error error;
	size_t entries;
	const struct profile_account *account;
	const struct profile_sample *samples;

	for (unsigned i = first; i < first + count; i++) {
		struct profile *p = make_profile(i);

		assert_int_equal(profile_edit_add(wanted, p, NULL, &error), 0);
		profile_free(p);
	}
	assert_int_equal(profile_total(found), count * SAMPLES_OF_EPOCH);
	samples = profile_samples(found, &entries);
	for (size_t i = 0; i < entries; i++) {
		const struct profile_process *by = profile_process_at(found, samples[i].process);
		const struct profile_stack *stack = profile_stack_at(found, samples[i].stack);
		const struct profile_frame *frame = profile_frame_at(found, stack->frame);
		uint32_t owner = process(wanted, by->pid, "worker");
		uint32_t at = profile_find_sample(
			wanted, on(wanted, PROFILE_ROOT, profile_string(found, frame->name), "w.py", 1), owner,
			PROFILE_NONE);
		size_t unused;

		assert_int_not_equal(at, PROFILE_NONE);
		assert_int_equal(samples[i].value, profile_samples(wanted, &unused)[at].value);
	}
	account = profile_account_entries(found, &entries);
	assert_int_equal(entries, count ? 1 : 0);
	if (count)
		assert_int_equal(account[0].value, count * SAMPLES_OF_EPOCH);
	profile_free(found);
	profile_free(wanted);
}

static void test_hours_are_merged(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	struct archive_store store;

	(void)unused;
	open_store(&store);
	for (unsigned i = 0; i < 150; i++)
		add_epoch(&store, i, START_MS + i * MINUTE_MS);
	assert_int_equal(retain(&store, &limits, START_MS + 150 * MINUTE_MS), 0);
	assert_int_equal(store.list.count, 150);
	/* A day later the two hours that are over, each with the removal of 60 parts. */
	assert_int_equal(retain(&store, &limits, START_MS + 27 * HOUR_MS), 2 * 61);
	assert_int_equal(store.list.count, 2 + 30);
	assert_int_equal(store.list.epochs[0].span.length_ms, HOUR_MS);
	assert_int_equal(store.list.epochs[0].span.last, 60);
	assert_epochs(0, 150);
	archive_store_close(&store);
	/* Numbers go on. */
	open_store(&store);
	assert_int_equal(archive_list_next_number(&store.list), 151);
	/* Later, what is too old goes, and the newest stays. */
	assert_int_equal(retain(&store, &limits, START_MS + 7 * 24 * HOUR_MS + HOUR_MS + 1), 1);
	assert_epochs(60, 90);
	retain(&store, &limits, START_MS + 365 * 24 * HOUR_MS);
	assert_int_equal(store.list.count, 1);
	archive_store_close(&store);
	empty();
}

static void test_size_is_kept(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 20000};
	struct archive_store store;

	(void)unused;
	open_store(&store);
	for (unsigned i = 0; i < 200; i++) {
		add_epoch(&store, i, START_MS + i * MINUTE_MS);
		retain(&store, &limits, START_MS + (i + 1) * MINUTE_MS);
		assert_true(archive_store_size(&store) <= limits.keep_size);
	}
	/* Merged hours first: nothing is lost yet that fits so. */
	assert_true(store.list.epochs[0].span.last > store.list.epochs[0].span.first);
	limits.keep_size = store.list.epochs[store.list.count - 1].size;
	retain(&store, &limits, START_MS + 200 * MINUTE_MS);
	assert_int_equal(store.list.count, 1);
	assert_epochs(199, 1);
	archive_store_close(&store);
	empty();
}

/* Makes the file of an epoch empty, and returns its name. */
static const char *damage(const struct archive_store *store, size_t index)
{
	static char name[ARCHIVE_NAME_MAX];
	int fd;

	archive_name_write(&store->list.epochs[index].span, name);
	fd = openat(store->folder, name, O_WRONLY | O_TRUNC);
	assert_true(fd >= 0);
	close(fd);
	return name;
}

/* What cannot be read stays as it is; those before and after it are merged. */
static void test_what_cannot_be_merged(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	const uint64_t now_ms = START_MS + 48 * HOUR_MS;
	struct archive_store store;
	struct profile *all;
	struct error error;
	const char *name;

	(void)unused;
	open_store(&store);
	for (unsigned i = 0; i < 130; i++)
		add_epoch(&store, i, START_MS + i * MINUTE_MS);
	name = damage(&store, 10);
	assert_true(archive_store_retain(&store, &limits, now_ms, &error) < 0);
	assert_non_null(strstr(error.text, name));
	/* Ten, the damaged one, 49, the next hour. */
	assert_int_equal(retain(&store, &limits, now_ms), 11 + 50 + 61);
	assert_int_equal(store.list.count, 4 + 10);
	assert_int_equal(store.list.epochs[0].span.last, 10);
	assert_int_equal(store.list.epochs[1].span.last, 11);
	assert_int_equal(faccessat(store.folder, name, F_OK, 0), 0);
	archive_store_close(&store);
	/* After a start it is found once, and nothing changes. */
	open_store(&store);
	assert_true(archive_store_retain(&store, &limits, now_ms, &error) < 0);
	assert_int_equal(retain(&store, &limits, now_ms), 0);
	unlinkat(store.folder, name, 0);
	archive_store_close(&store);
	all = read_all();
	assert_int_equal(profile_total(all), 129 * SAMPLES_OF_EPOCH);
	profile_free(all);
	empty();
}

/* Puts a folder in the place of an epoch's file, which then cannot be removed. */
static void make_stuck(const struct archive_store *store, size_t index)
{
	char name[ARCHIVE_NAME_MAX];

	archive_name_write(&store->list.epochs[index].span, name);
	assert_int_equal(unlinkat(store->folder, name, 0), 0);
	assert_int_equal(mkdirat(store->folder, name, 0700), 0);
}

static void remove_stuck(const struct archive_store *store, size_t index)
{
	char name[ARCHIVE_NAME_MAX];

	archive_name_write(&store->list.epochs[index].span, name);
	assert_int_equal(unlinkat(store->folder, name, AT_REMOVEDIR), 0);
}

/* It is said once; all others go as they are due, and what cannot go counts for the size. */
static void test_what_cannot_be_removed(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	const uint64_t later_ms = START_MS + 7 * 24 * HOUR_MS + 2 * HOUR_MS;
	struct archive_store store;
	struct error error;

	(void)unused;
	open_store(&store);
	for (unsigned i = 0; i < 10; i++)
		add_epoch(&store, i, START_MS + i * 20 * MINUTE_MS);
	make_stuck(&store, 0);
	assert_int_equal(archive_store_retain(&store, &limits, later_ms, &error), -EISDIR);
	assert_non_null(strstr(error.text, "cannot remove 2026"));
	/* Six of ten are too old, of which five can be removed; three others are of one hour. */
	assert_int_equal(retain(&store, &limits, later_ms), 5 + 1 + 3);
	assert_int_equal(store.list.count, 3);
	limits.keep_size = 1;
	assert_int_equal(retain(&store, &limits, later_ms), 1);
	assert_int_equal(store.list.count, 2);
	assert_int_equal(store.list.epochs[0].span.first, 1);
	assert_int_equal(store.list.epochs[1].span.first, 10);
	remove_stuck(&store, 0);
	archive_store_close(&store);
	empty();
}

/* In place of the C library's. refusal: what it ends with while the folder lets no file go; 0: it does. */
static int refusal;
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc's are reserved ones.
int unlinkat(int at, const char *name, int flags)
{
	if (!refusal)
		return (int)syscall(SYS_unlinkat, at, name, flags);
	errno = refusal;
	return -1;
}

/* Files that were opened to be read since the count was reset. */
static unsigned opened;
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc's are reserved ones.
int openat(int at, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list rest;

	if (flags & O_CREAT) {
		va_start(rest, flags);
		mode = va_arg(rest, mode_t);
		va_end(rest);
	}
	opened += !(flags & (O_CREAT | O_DIRECTORY));
	if (!refusal || !(flags & O_CREAT))
		return (int)syscall(SYS_openat, at, name, flags, mode);
	errno = refusal;
	return -1;
}

/* No epoch is to blame: that is said once, and all go as they are due when the folder lets them go. */
static void test_a_folder_that_lets_nothing_go(void **unused)
{
	static const int refusals[] = {EROFS, EACCES, EPERM};
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	const uint64_t later_ms = START_MS + 7 * 24 * HOUR_MS + 2 * HOUR_MS;
	struct archive_store store;
	struct error error;

	(void)unused;
	for (size_t k = 0; k < sizeof(refusals) / sizeof(*refusals); k++) {
		open_store(&store);
		for (unsigned i = 0; i < 10; i++)
			add_epoch(&store, i, START_MS + i * 20 * MINUTE_MS);
		for (int turn = 0; turn < 2; turn++) {
			refusal = refusals[k];
			assert_int_equal(archive_store_retain(&store, &limits, later_ms, &error), -refusal);
			assert_int_equal(error.code, -refusal);
			assert_non_null(strstr(error.text, "the folder lets no file come or go"));
			assert_int_equal(archive_store_retain(&store, &limits, later_ms, &error), -refusal);
			assert_int_equal(error.code, 0);
			refusal = 0;
			assert_int_equal(archive_store_retain(&store, &limits, later_ms, &error), 1);
		}
		/* Six of ten were too old, and one each turn has gone. */
		assert_int_equal(retain(&store, &limits, later_ms), 4 + 1 + 3);
		assert_int_equal(store.list.count, 2);
		archive_store_close(&store);
		empty();
	}
}

/* Six epochs of each of two hours, and one more. */
static void open_two_hours(struct archive_store *store)
{
	open_store(store);
	for (unsigned i = 0; i < 13; i++)
		add_epoch(store, i, START_MS + i * 10 * MINUTE_MS);
}

/* Nor is an hour that is over: it is read again when its sum can be written, not at each turn. */
static void test_a_folder_that_takes_nothing(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	const uint64_t now_ms = START_MS + 48 * HOUR_MS;
	struct archive_store store;
	struct error error;

	(void)unused;
	open_two_hours(&store);
	refusal = EROFS;
	opened = 0;
	assert_int_equal(archive_store_retain(&store, &limits, now_ms, &error), -EROFS);
	assert_non_null(strstr(error.text, "the folder lets no file come or go"));
	assert_int_equal(opened, 6);
	assert_int_equal(archive_store_retain(&store, &limits, now_ms, &error), -EROFS);
	assert_int_equal(error.code, 0);
	assert_int_equal(opened, 6);
	assert_int_equal(store.list.count, 13);
	refusal = 0;
	assert_int_equal(retain(&store, &limits, now_ms), 2 * (1 + 6));
	assert_int_equal(store.list.count, 3);
	assert_epochs(0, 13);
	/* The next refusal is reported again. */
	for (unsigned i = 13; i < 16; i++)
		add_epoch(&store, i, now_ms + (i - 13) * 40 * MINUTE_MS);
	refusal = EROFS;
	assert_int_equal(archive_store_retain(&store, &limits, now_ms + 26 * HOUR_MS, &error), -EROFS);
	assert_int_equal(error.code, -EROFS);
	refusal = 0;
	archive_store_close(&store);
	empty();
}

/* A part that cannot be removed keeps neither the other parts nor the next hour. */
static void test_a_part_that_cannot_be_removed(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	const uint64_t now_ms = START_MS + 48 * HOUR_MS;
	struct archive_store store;
	struct error error;

	(void)unused;
	open_two_hours(&store);
	assert_int_equal(archive_store_retain(&store, &limits, now_ms, &error), 1);
	/* The sum of the first hour is before its parts. */
	make_stuck(&store, 1);
	assert_int_equal(archive_store_retain(&store, &limits, now_ms, &error), -EISDIR);
	assert_int_equal(retain(&store, &limits, now_ms), 5 + 7);
	assert_int_equal(store.list.count, 4);
	remove_stuck(&store, 1);
	assert_epochs(0, 13);
	archive_store_close(&store);
	empty();
}

/* However many files an hour has, one turn reads a bounded number of them. */
static void test_many_files_of_an_hour(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	const uint64_t now_ms = START_MS + 48 * HOUR_MS;
	struct archive_store store;
	struct error error;
	size_t before;

	(void)unused;
	open_store(&store);
	for (unsigned i = 0; i < 250; i++)
		add_epoch(&store, i, START_MS + i * 1000);
	add_epoch(&store, 250, START_MS + HOUR_MS);
	do {
		struct archive_step step = archive_retain(&store.list, &limits, now_ms);

		before = store.list.count;
		assert_true(step.last - step.first < ARCHIVE_MERGE_FILES);
		assert_true(archive_store_retain(&store, &limits, now_ms, &error) >= 0);
	} while (store.list.count != before);
	assert_int_equal(store.list.count, 2);
	assert_epochs(0, 251);
	archive_store_close(&store);
	empty();
}

/* One of another measure begins what is merged next. */
static void test_another_measure(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	const uint64_t now_ms = START_MS + 48 * HOUR_MS;
	struct archive_store store;
	struct error error;

	(void)unused;
	open_store(&store);
	for (unsigned i = 0; i < 61; i++) {
		period_ns = i < 20 ? 52631578 : 10101010;
		add_epoch(&store, i, START_MS + i * MINUTE_MS);
	}
	assert_true(archive_store_retain(&store, &limits, now_ms, &error) < 0);
	assert_non_null(strstr(error.text, "cannot be added to those before it"));
	assert_int_equal(retain(&store, &limits, now_ms), 21 + 41);
	assert_int_equal(store.list.count, 3);
	period_ns = 52631578;
	archive_store_close(&store);
	empty();
}

static void test_a_clock_that_jumps_back(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	struct archive_store store;

	(void)unused;
	open_store(&store);
	for (unsigned i = 0; i < 60; i++)
		add_epoch(&store, i, START_MS + i * MINUTE_MS);
	/* The hour once more. */
	for (unsigned i = 60; i < 120; i++)
		add_epoch(&store, i, START_MS + (i - 60) * MINUTE_MS);
	add_epoch(&store, 120, START_MS + 2 * HOUR_MS);
	retain(&store, &limits, START_MS + 48 * HOUR_MS);
	assert_epochs(0, 121);
	archive_store_close(&store);
	empty();
}

/* In the child: retains, and is killed at its n-th system call that changes something. Returns whether it was. */
static bool killed_at(unsigned n)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	struct archive_store store;
	struct error error;
	unsigned calls = 0;
	bool entering = true;
	int status;
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		if (archive_store_open(&store, path, &error) || archive_store_begin(&store, &error))
			_exit(1);
		while (archive_store_retain(&store, &limits, START_MS + 48 * HOUR_MS, &error) == 1)
			;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(long)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD));
	while (!ptrace(PTRACE_SYSCALL, pid, NULL, NULL) && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		struct __ptrace_syscall_info info = {0};

		if (!entering || ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) <= 0) {
			entering = true;
			continue;
		}
		entering = info.op != PTRACE_SYSCALL_INFO_ENTRY;
		if (info.entry.nr != SYS_renameat && info.entry.nr != SYS_unlinkat && info.entry.nr != SYS_write)
			continue;
		if (++calls == n) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return true;
		}
	}
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	return false;
}

static void test_killed_at_any_moment(void **unused)
{
	struct archive_store store;
	bool killed = true;
	unsigned n;

	(void)unused;
	for (n = 1; killed; n++) {
		open_store(&store);
		for (unsigned i = 0; i < 7; i++)
			add_epoch(&store, i, START_MS + (i < 6 ? i : 60 + i) * MINUTE_MS);
		archive_store_close(&store);
		killed = killed_at(n);
		assert_epochs(0, 7);
		/* The next one goes on with what was left, to the same end. */
		assert_false(killed_at(1000));
		assert_epochs(0, 7);
		open_store(&store);
		assert_int_equal(store.list.count, 2);
		archive_store_close(&store);
		empty();
	}
	/* A write, a rename and the removal of each part, at least. */
	assert_true(n > 8);
}

static void test_refused_folders(void **unused)
{
	struct archive_store store, other;
	struct error error;

	(void)unused;
	open_store(&store);
	assert_int_equal(archive_store_open(&other, path, &error), -EBUSY);
	archive_store_close(&other);
	archive_store_close(&store);
	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(archive_store_open(&other, path, &error), -EACCES);
	archive_store_close(&other);
	empty();
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(archive_store_open(&other, path, &error), -ENOTDIR);
	archive_store_close(&other);
	unlink(path);
}

/* A file that has no name has no place in the list. */
static void test_a_name_that_cannot_be_given(void **unused)
{
	const struct archive_span span = {.begin_ms = 1000};
	struct archive_store store;
	struct archive_file file;
	struct profile *p = make_profile(1);

	(void)unused;
	open_store(&store);
	add_epoch(&store, 0, 0);
	assert_int_equal(archive_store_make(&store, &file), 0);
	assert_int_equal(archive_store_copy(p, file.fd), 0);
	assert_int_equal(unlinkat(store.folder, file.name, 0), 0);
	assert_int_equal(archive_store_commit(&store, &file, &span), -ENOENT);
	assert_int_equal(file.fd, -1);
	assert_int_equal(store.list.count, 1);
	add_epoch(&store, 1, 2000);
	assert_int_equal(store.list.count, 2);
	archive_store_close(&store);
	assert_epochs(0, 2);
	profile_free(p);
	empty();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hours_are_merged),
		cmocka_unit_test(test_size_is_kept),
		cmocka_unit_test(test_what_cannot_be_merged),
		cmocka_unit_test(test_what_cannot_be_removed),
		cmocka_unit_test(test_a_folder_that_lets_nothing_go),
		cmocka_unit_test(test_a_folder_that_takes_nothing),
		cmocka_unit_test(test_a_part_that_cannot_be_removed),
		cmocka_unit_test(test_many_files_of_an_hour),
		cmocka_unit_test(test_another_measure),
		cmocka_unit_test(test_a_clock_that_jumps_back),
		cmocka_unit_test(test_killed_at_any_moment),
		cmocka_unit_test(test_refused_folders),
		cmocka_unit_test(test_a_name_that_cannot_be_given),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
