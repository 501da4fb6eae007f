// SPDX-License-Identifier: Apache-2.0
/* A run's account as JSON, on stderr, and in the profile: the same numbers. */
#include "session/account/account.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/internal.h"
#include "session/internal.h"

/* Each counter has its own value: 1000 and its place. */
static const struct session_account *make_account(void)
{
	static struct session_account a = {
		.unsent = 3,
		.unkept = 13,
		.taken = 90,
		.python = 80,
		.stacks = 1,
		.timed = 70,
		.timed_bytes = 2049,
		.processes = {.seen = 5,
			      .started = 2,
			      .several = 2,
			      .versions = "3.10 and 3.12",
			      .refused = 1,
			      .unanswered = 4,
			      .missed = 6,
			      .missed_ns = 1500000000,
			      .lost = 7,
			      .lost_others = 11,
			      .lost_mappings = 1,
			      .recovered = 3},
		.lost_records = 12,
		.names = {.codes = 40, .unnamed = 8, .no_lines = 9, .no_columns = 10},
		.duration_s = 2.5,
		.measured = true,
		.kernel_ns_per_sample = 1234.5,
		.user_cpu_s = 0.25,
		.peak_rss_kib = 2048,
		.time_to_first_sample_ms = 12.25,
		.freq = 99,
		.has_states = true,
		.state_ns = {[PYBPF_STATE_RUNNING] = 500000000, [PYBPF_STATE_NETWORK] = 1500000000},
		.min_block_ns = 500000,
		.short_waits = 1234567,
		.short_ns = 410000000,
		.undrawn_waits = 838,
		.undrawn_ns = 20000000,
		.refused_waits = 1,
		.refused_ns = 250000000,
		.idle_threads = 1,
		.idle_where = "1 in Queue.get",
		.lost_time_ns = 2000000,
		.lost_threads = 1,
		.refused_stacks_ns = 1250000000,
		.unsent_stacks_ns = 3000000,
	};

	for (uint64_t i = 0; i < PYBPF_NR_COUNTERS; i++)
		a.counters[i] = 1000 + i;
	a.lost = session_account_lost(&a);
	return &a;
}

static char *write_json(const struct session_account *a)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	session_account_json(a, out);
	fclose(out);
	return text;
}

/* The number at "key" or "object.key"; -1: null. */
static double number(const char *json, const char *object, const char *key)
{
	json_t *all = json_loads(json, JSON_REJECT_DUPLICATES, NULL), *value;
	double result;

	assert_non_null(all);
	value = json_object_get(object ? json_object_get(all, object) : all, key);
	assert_non_null(value);
	assert_true(json_is_number(value) || json_is_null(value));
	result = json_is_null(value) ? -1 : json_number_value(value);
	json_decref(all);
	return result;
}

static void test_json(void **state)
{
	static const struct {
		const char *object, *key;
		double value;
	} wanted[] = {
		{NULL, "duration_s", 2.5},
		{NULL, "freq_hz", 99},
		{"samples", "asked", 1000 + PYBPF_COUNT_ASKED},
		{"samples", "taken", 90},
		{"samples", "python", 80},
		/* Eight causes, the ring buffer, and pybpf's memory. */
		{"samples", "lost", 8 * 1000 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 3 + 13},
		{"lost", "not_ready", 1001},
		{"lost", "unreadable", 1008},
		{"lost", "ring_buffer_full", 3},
		{"lost", "no_memory", 13},
		{"without_python", "no_interpreter", 1000 + PYBPF_COUNT_NO_INTERPRETER},
		{"without_python", "no_frames", 1000 + PYBPF_COUNT_NO_FRAMES},
		{"incomplete", "cut", 1000 + PYBPF_COUNT_CUT},
		{"incomplete", "untimed", 1000 + PYBPF_COUNT_UNTIMED},
		{NULL, "stacks", 1},
		{"records", "lost", 12},
		{"state_s", "network", 1.5},
		{"threads", "idle", 1},
		{"waits", "short", 1234567},
		{"waits", "short_s", 0.41},
		{"waits", "undrawn", 838},
		{"waits", "undrawn_s", 0.02},
		{"waits", "untimed", 1},
		{"waits", "untimed_s", 0.25},
		{"threads", "lost_time_s", 0.002},
		{"waits", "stack_refused_s", 1.25},
		{"waits", "stack_unsent_s", 0.003},
		{"code_objects", "seen", 40},
		{"code_objects", "unnamed", 8},
		{"code_objects", "without_lines", 9},
		{"code_objects", "without_columns", 10},
		{"processes", "seen", 5},
		{"processes", "started", 2},
		{"processes", "several_pythons", 2},
		{"processes", "refused", 1},
		{"processes", "unanswered", 4},
		{"processes", "missed", 6},
		{"processes", "missed_cpu_s", 1.5},
		{"processes", "missed_samples", 1000 + PYBPF_COUNT_MISSED},
		{"processes", "lost_events", 7},
		{"processes", "lost_other_events", 11},
		{"processes", "lost_mappings", 1},
		{"processes", "recovered", 3},
		{NULL, "kernel_ns_per_sample", 1234.5},
		{NULL, "user_cpu_s", 0.25},
		{NULL, "peak_rss_kib", 2048},
		{NULL, "time_to_first_sample_ms", 12.25},
	};
	struct session_account unknown = *make_account();
	char *text = write_json(make_account());

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		assert_true(number(text, wanted[i].object, wanted[i].key) == wanted[i].value);
	assert_non_null(strstr(text, "\"source\": \"cpu-clock\""));
	free(text);
	unknown.time_to_first_sample_ms = unknown.kernel_ns_per_sample = -1;
	unknown.source = KERNEL_SOURCE_CYCLES;
	text = write_json(&unknown);
	assert_true(number(text, NULL, "time_to_first_sample_ms") == -1);
	assert_true(number(text, NULL, "kernel_ns_per_sample") == -1);
	assert_non_null(strstr(text, "\"source\": \"cycles\""));
	free(text);
}

static uint64_t kept(const struct profile *p, const char *group, const char *key)
{
	size_t count;
	const struct profile_account *account = profile_account_entries(p, &count);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(profile_string(p, account[i].group), group) == 0 &&
		    strcmp(profile_string(p, account[i].key), key) == 0)
			return account[i].value;
	}
	fail_msg("the profile's account has no %s of %s", key, group);
	return 0;
}

static void test_profile_keeps_it(void **state)
{
	struct profile *p = profile_new();

	(void)state;
	assert_int_equal(session_account_keep(make_account(), p), 0);
	assert_int_equal(kept(p, "asked", "asked"), 1000);
	assert_int_equal(kept(p, "lost", "no_scratch"), 1000 + PYBPF_COUNT_NO_SCRATCH);
	assert_int_equal(kept(p, "lost", "ring_buffer_full"), 3);
	assert_int_equal(kept(p, "without", "no_thread_state"), 1000 + PYBPF_COUNT_NO_THREAD_STATE);
	assert_int_equal(kept(p, "python", "python"), 80);
	assert_int_equal(kept(p, "incomplete", "cycle"), 1000 + PYBPF_COUNT_CYCLE);
	assert_int_equal(kept(p, "processes", "missed"), 6);
	assert_string_equal(profile_find_fact(p, PROFILE_FACT_DURATION), "2.500");
	assert_string_equal(profile_find_fact(p, PROFILE_FACT_FREQ), "99");
	assert_string_equal(profile_find_fact(p, PROFILE_FACT_EVENT), "cpu-clock");
	profile_free(p);
}

static void test_lines(void **state)
{
	static const char *const wanted[] = {
		"pybpf: 2.50 s, waits measured, CPU time sampled at 99 Hz on the CPU clock: 1000 samples asked, 90 "
		"taken, 80 with Python frames; "
		"1 distinct stack\n",
		"pybpf: 2.00 thread-seconds: 25.0 % on CPU, 75.0 % network\n",
		"pybpf: 1 thread slept throughout and is left out (--idle keeps them): 1 in Queue.get\n",
		"pybpf: 1,234,567 waits shorter than 500 us are left out: 410.0 ms\n",
		"pybpf: 838 waits shorter than 1 ms are not in the time line: 20.0 ms\n",
		"pybpf: 1 wait is not in the time line, 250.0 ms: the ring buffer or the memory for times was full\n",
		"pybpf: lost: 0.002 s of waits that found no room (see --max-stacks), 1 thread\n",
		"pybpf: without Python frames: 1009 where no interpreter ran: starting or ended; "
		"1010 in other programs, which are not in the profile; 1011 on threads that Python does not know; "
		"1012 on Python threads outside of any Python function\n",
		"\npybpf: lost: 1001 taken before the interpreter was found; ",
		"; 1008 whose frames were being switched, or not readable; "
		"3 whose stack never found room in the ring buffer; 13 for which pybpf found no memory\n",
		"pybpf: incomplete: 1016 deeper than 8,192 frames: leaf and root kept; ",
		"\npybpf: 5 Python processes, 2 of them started during the run\n",
		"\npybpf: 2 processes had more than one Python, one of them: 3.10 and 3.12\n",
		"\npybpf: 6 processes ended before it was known what they ran, with at least 1.500 s of CPU time\n",
		"\npybpf: 1 process left out: a Python that is not supported or not readable, see `pybpf ps`\n",
		"\npybpf: 4 questions about files or memory had no answer in time: a file system may not answer\n",
		"\npybpf: 7 starts or ends of processes to be profiled were lost, as a buffer of the kernel was full: "
		"pybpf then examined all processes and found 3 that it had missed; processes that ended before then "
		"are missing\n",
		"\npybpf: 1 record of files that processes map was lost, ",
		"\npybpf: 8 of 40 code objects could not be named\n",
		"\npybpf: 9 of 40 code objects are shown without lines: ",
		"\npybpf: 12 records that the kernel sent were broken or found no memory: what they reported is "
		"missing; samples of a lost stack are counted as \"whose stack never found room in the ring buffer\"\n",
		"\npybpf: the time of 70 waits and samples was kept, in 3 KiB of memory\n",
		"\npybpf: cost: 1234 ns of kernel program per sample; pybpf itself 0.250 s of CPU, 2.0 MiB at most; "
		"first sample after 12 ms\n",
	};
	struct profile *p = profile_new();
	const char *at;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	assert_int_equal(session_account_keep(make_account(), p), 0);
	session_account_print(make_account(), p, true, out);
	fclose(out);
	at = text;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		const char *found = strstr(at, wanted[i]);

		if (!found)
			fail_msg("\"%s\" is not there, or not behind the others, in\n%s", wanted[i], text);
		else
			at = found;
	}
	free(text);
	profile_free(p);
}

static char *print(const struct session_account *a)
{
	struct profile *p = profile_new();
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	session_account_print(a, p, false, out);
	fclose(out);
	profile_free(p);
	return text;
}

static void assert_prints(const struct session_account *a, const char *wanted)
{
	char *text = print(a);

	if (!strstr(text, wanted))
		fail_msg("\"%s\" is not in\n%s", wanted, text);
	free(text);
}

static void test_lines_of_cpu_mode(void **state)
{
	struct session_account a = {
		.freq = 99,
		.state_ns = {[PYBPF_STATE_RUNNING] = 960000000, [PYBPF_STATE_QUEUED] = 120000000},
		.schedstat = {.processes = 2, .threads = 4, .asleep_ns = 10920000000},
	};
	char *text;

	(void)state;
	assert_prints(&a, "\npybpf: 12.00 thread-seconds: 8.0 % on CPU, 1.0 % waiting for a CPU, 91.0 % asleep "
			  "(--mode=wall says for what)\n");
	text = print(&a);
	assert_null(strstr(text, "without "));
	free(text);
	a.schedstat.ended_processes = 1;
	a.schedstat.ended_threads = 3;
	assert_prints(&a, "\npybpf: that is without 1 process that ended, and without 3 threads that ended (");
	a.schedstat.ended_threads_ns = 250000000;
	a.schedstat.unread_threads = 1;
	assert_prints(&a,
		      "without 1 process that ended, and without threads that ended, which took 0.25 s of CPU time, "
		      "and without 1 thread that was found during the run (--mode=wall has all)\n");
	a.schedstat.late_threads = 2000;
	assert_prints(&a, "found during the run, and without 2000 threads that could not be read in time (--mode=wall "
			  "has all)\n");
	a = (struct session_account){.schedstat = {.ended_processes = 1}};
	text = print(&a);
	assert_null(strstr(text, "thread-seconds"));
	free(text);
}

static void test_lines_of_unread_threads(void **state)
{
	struct session_account a = {.freq = 99, .has_states = true, .state_ns = {[PYBPF_STATE_SLEEP] = 100000000000}};
	char *text;

	(void)state;
	a.late_initial_stacks = 3;
	a.unread_initial_ns = 900000000;
	text = print(&a);
	assert_null(strstr(text, "not read"));
	free(text);
	a.unread_initial_ns = 1100000000;
	assert_prints(&a,
		      "\npybpf: the stacks of 3 threads that did not run when pybpf began were not read before they "
		      "ran or pybpf ended: 1.10 thread-seconds are in [asleep since before the run]\n");
	a.late_initial_stacks = 0;
	a.unread_initial_stacks = 1;
	a.unread_initial_ns = 0;
	assert_prints(&a,
		      "\npybpf: the stack of 1 thread that did not run when pybpf began was not read before it ran or "
		      "pybpf ended: 0.00 thread-seconds are in [asleep since before the run]\n");
	a.unread_names = 1234;
	assert_prints(&a, "\npybpf: the names of 1,234 threads could not be read in time\n");
}

/* Every number of 8 bytes is another one, and more than `least`. */
static void fill(struct session_account *a, uint64_t least)
{
	for (size_t i = 0; i < sizeof(*a) / sizeof(uint64_t); i++) {
		const uint64_t number = least + i * i;

		memcpy((char *)a + i * sizeof(number), &number, sizeof(number));
	}
}

/* No counter, cause or state may be left out of an epoch, nor may what is known of the whole run alone be in one. */
static void test_what_epochs_have(void **state)
{
	static struct session_account now, before, since;

	(void)state;
	fill(&now, 1000000);
	fill(&before, 1000);
	before.counters[PYBPF_COUNT_JIT] = now.counters[PYBPF_COUNT_JIT] - 7;
	before.state_ns[PYBPF_STATE_NETWORK] = now.state_ns[PYBPF_STATE_NETWORK] + 1;
	now.freq = 19;
	now.has_states = true;
	since = session_account_since(&now, &before);
	for (int i = 0; i < PYBPF_NR_COUNTERS; i++)
		assert_int_equal(since.counters[i], i == PYBPF_COUNT_JIT ? 7 : 999000);
	/* Numbers that change meanwhile are not read at one moment. */
	for (int i = 0; i < PYBPF_NR_STATES; i++)
		assert_int_equal(since.state_ns[i], i == PYBPF_STATE_NETWORK ? 0 : 999000);
	assert_int_equal(since.taken, 999000);
	assert_int_equal(since.python, 999000);
	assert_int_equal(since.lost, 999000);
	assert_int_equal(session_account_lost(&since), session_account_lost(&now) - session_account_lost(&before));
	assert_int_equal(since.freq, 19);
	assert_int_equal(since.source, now.source);
	assert_true(since.has_states);
	assert_int_equal(since.names.codes, 0);
	assert_int_equal(since.processes.seen, 0);
	assert_int_equal(since.processes.missed, 999000);
	assert_int_equal(since.processes.missed_ns, 999000);
	/* How many there are now does not add up. */
	assert_int_equal(since.unread_initial_stacks, 0);
	assert_int_equal(since.stacks, 0);
	assert_true(since.duration_s == 0);
}

/* All that is known of the time of threads while a run goes on is in its epochs. */
static void test_times_that_epochs_have(void **state)
{
	static struct session_account none, now, since;
	static struct pybpf_bpf__bss bss = {.wait_lost_ns = 31, .threads_lost = 32};
	static struct pybpf_bpf skel = {.bss = &bss};
	static struct kernel kernel = {.skel = &skel};
	static struct session s = {.kernel = &kernel, .options.mode = SESSION_WALL};
	size_t numbers = 0;

	(void)state;
	memset(&s.waits, 5, sizeof(s.waits));
	s.thread_names.unread = 33;
	session_count_states(&s, &now);
	since = session_account_since(&now, &none);
	for (size_t at = 0; at < sizeof(now); at += sizeof(uint64_t)) {
		numbers += memcmp((char *)&now + at, (char *)&none + at, sizeof(uint64_t)) != 0;
		if (memcmp((char *)&now + at, (char *)&since + at, sizeof(uint64_t)) != 0)
			fail_msg("the number at byte %zu of the account is not in an epoch's", at);
	}
	assert_true(numbers > PYBPF_NR_STATES + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_profile_keeps_it),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_lines_of_cpu_mode),
		cmocka_unit_test(test_lines_of_unread_threads),
		cmocka_unit_test(test_what_epochs_have),
		cmocka_unit_test(test_times_that_epochs_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
