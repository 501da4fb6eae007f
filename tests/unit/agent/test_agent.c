// SPDX-License-Identifier: Apache-2.0
/*
 * The agent on a played session, sink and clock: epochs add up to what was sampled, nothing grows in 10,000 of them,
 * and the rate keeps to the limit of CPU time.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/types.h>

#include "profiles.h"
#include "agent/internal.h"
#include "agent/sink.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "helper/helper.h"
#include "profile/edit.h"
#include "rights/priority.h"
#include "session/account/account.h"
#include "session/run/run.h"

/* The sanitizer's run-time has it. */
size_t __sanitizer_get_current_allocated_bytes(void); /* NOLINT(bugprone-reserved-identifier) */

static struct {
	double now, cpu_s; /* clocks */
	double cpu_per_s;  /* CPU time that pybpf takes in a second at the full rate, of its samples */
	double cpu_always; /* likewise, at any rate */
	double cpu_sinks;  /* likewise, by what the processes of the sinks say themselves */
	uint64_t realtime_ms;
	unsigned divisor;
	unsigned number; /* of the next sample */
	uint64_t asked, stacks;
	uint64_t samples, value; /* that were given, and what they count for, and of the epoch that goes on */
	unsigned forgotten;      /* epochs that began with nothing known */
	unsigned collected;      /* sessions, when the run has ended */
	unsigned broken;         /* the one of them that fails then, from 1 on; 0: none */
	bool busy;               /* the kernel's table of stacks fills up within an epoch */
	double memory_of_sample; /* share of the memory limit that the stack of each takes, until it is forgotten */
	double memory;           /* the share that is taken: new stacks are refused from 1 on */
	uint64_t refused;        /* samples whose stack was */
	uint64_t late;           /* what there was no time for, of each kind */
	double sinks_s;          /* CPU time of the processes of the sinks */
	bool counted;            /* sinks say what became of their requests: a number of its own for each count */
	struct profile *profile;
	double ends_at, stall_at, stall_s;
	char metrics[32768];     /* at the end, as Prometheus reads them */
	double cheap_at;         /* when samples begin to cost nothing; 0: they do not */
	double change_at;        /* when epochs become 1.1 s long; 0: they do not */
	bool ended;              /* no more samples are taken */
	double change_clocks_at; /* when the machine has slept, and the clock was set; 0: never */
	double sleep_s, set_s;   /* by so much */
	double cpu_of_sleep_s;   /* CPU time that pybpf takes then */
	double fight_until;      /* until then the clock is set by set_s in each tick, forth and back */
	double slept_s,
		booted_s; /* from `now` to CLOCK_BOOTTIME, and from there to CLOCK_REALTIME, beside realtime_ms */
} played;

static struct {
	unsigned epochs, late;
	uint64_t value, accounted;
	uint64_t end_ns[AGENT_MODES_MAX]; /* of the last epoch of each mode */
	unsigned of_mode[AGENT_MODES_MAX];
	double shortest_s, longest_s;
	unsigned weights;    /* bits: those that profiles had */
	unsigned fails;      /* the epoch that the sink fails to take, from 1 on; 0: none */
	unsigned taken;      /* epochs that it was handed */
	unsigned gaps;       /* epochs that do not begin where the one before has ended */
	double gap_s;        /* the last one */
	uint64_t gap_end_ns; /* where it begins */
} sunk;

uint64_t clock_ns(clockid_t clock)
{
	return clock == CLOCK_REALTIME ? played.realtime_ms * 1000000 +
						 (uint64_t)((played.now + played.slept_s + played.booted_s) * 1e9)
				       : (uint64_t)(clock_s(clock) * 1e9);
}

double clock_s(clockid_t clock)
{
	switch (clock) {
	case CLOCK_PROCESS_CPUTIME_ID:
		return played.cpu_s;
	case CLOCK_BOOTTIME:
		return played.now + played.slept_s;
	case CLOCK_REALTIME:
		return (double)played.realtime_ms / 1000 + played.now + played.slept_s + played.booted_s;
	default:
		return played.now;
	}
}

double helper_cpu_s(void)
{
	return 0;
}

unsigned long helper_unanswered(void)
{
	return played.late + 4;
}

size_t session_count_refused_processes(const struct session *s)
{
	(void)s;
	return 5;
}

size_t session_count_unread_threads(const struct session *s)
{
	(void)s;
	return 6;
}

bool helper_is_gone(void)
{
	return false;
}

void priority_restore(void)
{
}

int procfs_rss(pid_t pid, uint64_t *kib)
{
	*kib = (uint64_t)pid;
	return 0;
}

/* A sample of one of many processes and functions, which come and go. */
static void sample(void)
{
	const unsigned n = played.number++;
	char name[32], process_name[32];
	uint32_t owner, stack;

	played.asked++;
	if (played.memory >= 1) {
		played.refused++;
		return;
	}
	played.memory += played.memory_of_sample;
	snprintf(name, sizeof(name), "f%u", n / 7 % 50000);
	snprintf(process_name, sizeof(process_name), "python%u", n / 1000 % 100);
	owner = process(played.profile, 1 + (int)(n / 100 % 30000), process_name);
	stack = on(played.profile, PROFILE_ROOT, name, "app.py", 1);
	assert_int_equal(profile_add_sample(played.profile, stack, owner, PROFILE_NONE, played.divisor), 0);
	played.samples++;
	played.value += played.divisor;
	played.stacks += 1 + (played.busy ? 499 : 0);
}

static void change(struct agent *a)
{
	const struct agent_options options = {.epoch_s = 1.1, .fixed_epochs = true, .max_cpu = 1};

	played.change_at = 0;
	assert_int_equal(agent_change(a, &options), 0);
}

static void change_clocks(void)
{
	if (played.now < played.fight_until)
		played.set_s = -played.set_s;
	else
		played.change_clocks_at = 0;
	played.slept_s += played.sleep_s;
	played.booted_s += played.set_s;
	played.cpu_s += played.cpu_of_sleep_s;
}

/* Time passes in ticks, with some samples in each. */
enum session_end session_run(struct session_run *run)
{
	while (played.now < played.ends_at) {
		double tick = run->interval_s;

		if (played.stall_s > 0 && played.now >= played.stall_at) {
			tick = played.stall_s;
			played.stall_s = 0;
		}
		if (played.cheap_at > 0 && played.now > played.cheap_at)
			played.cpu_per_s = 0;
		if (played.change_at > 0 && played.now > played.change_at)
			change(run->watcher);
		if (played.change_clocks_at > 0 && played.now > played.change_clocks_at)
			change_clocks();
		played.now += tick;
		played.cpu_s += tick * (played.cpu_always + played.cpu_per_s / played.divisor);
		played.sinks_s += tick * played.cpu_sinks;
		played.late++;
		sample();
		if (run->on_interval(run->watcher) < 0)
			return SESSION_END_ERROR;
	}
	return SESSION_END_SIGNAL;
}

int session_end_epoch(struct session *s, bool forget, int (*take)(const struct profile *profile, void *arg), void *arg)
{
	int err = take(played.profile, arg);

	(void)s;
	if (forget) {
		profile_free(played.profile);
		played.profile = new_profile();
		played.stacks = 0;
		played.memory = 0;
		played.forgotten++;
	} else {
		profile_clear_samples(played.profile);
	}
	return err;
}

#define ROOM_FOR_STACKS 32768

bool session_is_half_full(const struct session *s)
{
	(void)s;
	return played.stacks * 2 > ROOM_FOR_STACKS;
}

int session_count_samples(struct session *s, struct session_account *account)
{
	(void)s;
	*account = (struct session_account){
		.freq = 19, .taken = played.samples, .python = played.samples, .lost = played.refused};
	account->counters[PYBPF_COUNT_ASKED] = played.asked;
	account->counters[PYBPF_COUNT_MEMORY_FULL] = played.refused;
	account->processes.missed = played.late;
	session_count_states(s, account);
	return 0;
}

/* What session_count_samples() fills in. */
struct session_account session_account_since(const struct session_account *now, const struct session_account *before)
{
	struct session_account since = *now;

	since.taken -= before->taken;
	since.python -= before->python;
	since.lost -= before->lost;
	since.counters[PYBPF_COUNT_ASKED] -= before->counters[PYBPF_COUNT_ASKED];
	since.counters[PYBPF_COUNT_MEMORY_FULL] -= before->counters[PYBPF_COUNT_MEMORY_FULL];
	since.processes.missed -= before->processes.missed;
	since.late_initial_stacks -= before->late_initial_stacks;
	since.unread_initial_ns -= before->unread_initial_ns;
	since.unread_names -= before->unread_names;
	return since;
}

bool session_nears_memory_limit(const struct session *s)
{
	(void)s;
	return played.memory >= 0.8;
}

static const struct profile_measure measure = {"samples", "count", 1000000000 / 19};

int session_describe_epochs(struct session *s, const struct session_account *account, struct profile *profile)
{
	(void)s;
	assert_int_equal(profile_add_account(profile, "python", "python", "", account->python), 0);
	return profile_set_measure(profile, &measure);
}

void session_count_states(const struct session *s, struct session_account *account)
{
	(void)s;
	account->late_initial_stacks = 2 * played.late;
	account->unread_initial_ns = 1000000000 * played.late;
	account->unread_names = 3 * played.late;
}

double session_get_begin(const struct session *s)
{
	(void)s;
	return played.now;
}

double session_get_epoch_end(const struct session *s)
{
	(void)s;
	return played.now;
}

void session_divide_rate(struct session *s, unsigned divisor)
{
	(void)s;
	/* All samples of the rate before have been taken. */
	assert_int_equal(profile_total(played.profile), 0);
	played.divisor = divisor;
}

void session_detach(struct session *s)
{
	(void)s;
	played.ended = true;
}

void session_join_memory(struct session *s, struct session *other)
{
	(void)s;
	(void)other;
}

int session_get_memory(struct session *s, uint64_t *own_bytes, uint64_t *map_bytes)
{
	(void)s;
	*own_bytes = *map_bytes = 0;
	return 0;
}

int session_collect(struct session *s, const struct profile **profile, struct session_account *account)
{
	session_count_samples(s, account);
	/* The first session has all of them, as session_end_epoch() gives them. */
	if (played.collected)
		profile_clear_samples(played.profile);
	if (++played.collected == played.broken)
		return -EIO;
	*profile = played.profile;
	/* As the session does: only its last profile is described. */
	return profile_set_measure(played.profile, &measure);
}

static bool is_wanted(const struct agent_options *options)
{
	(void)options;
	return true;
}

/* Each of so many samples counts for one of the weights, and all together for the value. */
static void note_weights(const char *weights, uint64_t samples, uint64_t value)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (const char *at = weights ?: "1"; at; at = strchr(at + 1, ' ')) {
		const uint64_t weight = strtoul(at, NULL, 10);

		sunk.weights |= 1u << weight;
		least = weight < least ? weight : least;
		most = weight > most ? weight : most;
	}
	assert_in_range(value, samples * least, samples * most);
}

/* Each begins where the one before has ended, unless the machine slept or its clock was set. */
static void note_gap(uint64_t end_ns, uint64_t begin_ns)
{
	const int64_t gap_ns = (int64_t)(begin_ns - end_ns);

	if (llabs(gap_ns) < 10000)
		return;
	assert_true(played.sleep_s != 0 || played.set_s != 0);
	sunk.gaps++;
	sunk.gap_s = (double)gap_ns / 1e9;
	sunk.gap_end_ns = end_ns;
}

static int take(struct agent *a, const struct agent_epoch *epoch)
{
	const char *start = profile_find_fact(epoch->profile, PROFILE_FACT_START);
	const double length_s = (double)epoch->length_ns / 1e9;
	uint64_t *end_ns = &sunk.end_ns[epoch->part - a->parts];
	size_t count;
	const struct profile_account *account = profile_account_entries(epoch->profile, &count);

	assert_int_equal(strtoull(start, NULL, 10), epoch->begin_ns);
	if (*end_ns)
		note_gap(*end_ns, epoch->begin_ns);
	assert_int_equal(profile_get_measure(epoch->profile).period_ns, measure.period_ns);
	assert_int_equal(count, 1);
	*end_ns = epoch->begin_ns + epoch->length_ns;
	sunk.of_mode[epoch->part - a->parts]++;
	sunk.epochs += epoch->part == a->parts;
	sunk.value += profile_total(epoch->profile);
	sunk.accounted += epoch->part == a->parts ? account[0].value : 0;
	if (sunk.epochs == 1 || length_s < sunk.shortest_s)
		sunk.shortest_s = length_s;
	if (length_s > sunk.longest_s)
		sunk.longest_s = length_s;
	if (epoch->part != a->parts)
		return 0;
	note_weights(profile_find_fact(epoch->profile, PROFILE_FACT_WEIGHT), account[0].value,
		     profile_total(epoch->profile));
	/* Sampling goes on while an epoch is handed on. */
	if (!played.ended)
		sample();
	return ++sunk.taken == sunk.fails ? -EPIPE : 0;
}

/* Each count has a number of its own. */
static void count(const struct agent *a, struct agent_metrics *metrics)
{
	struct push_counts *push = &metrics->push[PUSH_OTLP].counts;

	(void)a;
	metrics->serve.cpu_s = played.sinks_s;
	if (!played.counted)
		return;
	*push = (struct push_counts){.submitted = 1,
				     .found = 2,
				     .sent = 3,
				     .sent_bytes = 4,
				     .retried = 5,
				     .rejected_profiles = 6,
				     .waiting = 7,
				     .waiting_bytes = 8,
				     .spooled = 9,
				     .spooled_bytes = 10,
				     .restarts = 11};
	for (unsigned i = 0; i < PUSH_CAUSES; i++)
		push->dropped[i] = 20 + i;
	metrics->serve = (struct serve_counts){
		.answered = 31, .wrong = 32, .denied = 33, .unavailable = 34, .left = 35, .cut = 36, .restarts = 37};
	metrics->modes[0].files = (struct archive_keeper_counts){
		.written = 41, .written_bytes = 42, .failed = 43, .merged = 44, .removed = 45, .kept = 46, .size = 47};
	metrics->modes[0].unsent = 51;
	metrics->modes[1].lost_time_ns = 52000000000;
	metrics->modes[1].lost_threads = 53;
	metrics->modes[1].map_bytes = 54;
	metrics->rss_bytes = 55;
}

static const struct agent_sink sink = {.name = "played", .is_wanted = is_wanted, .take = take, .count = count};

static bool is_never_wanted(const struct agent_options *options)
{
	(void)options;
	return false;
}

static const struct agent_sink unused_sink = {.name = "unused", .is_wanted = is_never_wanted};

const struct agent_sink *const agent_sinks[AGENT_SINKS] = {&sink, [1 ... AGENT_SINKS - 1] = &unused_sink};

static unsigned warnings;

static void on_message(enum log_level level, const char *text)
{
	(void)text;
	warnings += level <= LOG_WARN;
}

static int begin(void **state)
{
	(void)state;
	memset(&played, 0, sizeof(played));
	memset(&sunk, 0, sizeof(sunk));
	warnings = 0;
	played.divisor = 1;
	played.now = 1000;
	played.realtime_ms = 1795780800000;
	played.profile = new_profile();
	log_set_sink(on_message);
	return 0;
}

static int end(void **state)
{
	(void)state;
	profile_free(played.profile);
	return 0;
}

#define EPOCH_S 10.0

static void read_metrics(const struct agent *agent)
{
	FILE *out = fmemopen(played.metrics, sizeof(played.metrics), "w");

	assert_non_null(out);
	assert_int_equal(agent_write_metrics(agent, out), 0);
	assert_int_equal(fclose(out), 0);
}

/* Runs for so many epochs, with so many modes. Returns the metrics at the end. */
static struct agent_metrics run_modes(size_t modes, unsigned epochs, double max_cpu)
{
	const struct agent_options options = {.epoch_s = EPOCH_S,
					      .max_cpu = max_cpu,
					      .freq = 19,
					      .modes = {SESSION_CPU, SESSION_WALL, SESSION_GIL},
					      .nr_modes = modes};
	struct session *sessions[AGENT_MODES_MAX] = {NULL};
	struct agent_metrics metrics;
	struct error error;
	struct agent *agent = agent_new(&options, &error);

	assert_non_null(agent);
	played.ends_at = played.now + epochs * EPOCH_S;
	played.collected = 0;
	played.ended = false;
	assert_int_equal(agent_run(agent, sessions, NULL, NULL), 0);
	agent_get_metrics(agent, &metrics);
	read_metrics(agent);
	agent_free(agent);
	assert_int_equal(metrics.epochs, sunk.epochs);
	assert_int_equal(metrics.modes[0].taken, played.samples);
	/* No sample is lost or doubled, and all are accounted for. */
	assert_int_equal(sunk.value, played.value);
	assert_int_equal(sunk.accounted, played.samples);
	return metrics;
}

static struct agent_metrics run_for(unsigned epochs, double max_cpu)
{
	return run_modes(1, epochs, max_cpu);
}

static void test_epochs(void **state)
{
	(void)state;
	run_for(200, 1);
	assert_true(sunk.epochs > 180 && sunk.epochs < 220);
	/* They vary by a fifth; the last one is what is left. */
	assert_true(sunk.longest_s > EPOCH_S * 1.1 && sunk.longest_s < EPOCH_S * 1.25);
	assert_int_equal(warnings, 0);
	/* What is not met any more is forgotten. */
	assert_true(played.forgotten >= sunk.epochs / 10 - 1);
}

/* They end their epochs together, and what one has taken no other has. */
static void test_modes_beside_each_other(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.cpu_per_s = 0.03;
	played.cpu_always = 0.001;
	metrics = run_modes(3, 20, 0.01);
	assert_int_equal(metrics.divisor, 8);
	assert_int_equal(metrics.modes[1].taken, metrics.modes[0].taken);
	for (size_t i = 1; i < 3; i++)
		assert_int_equal(sunk.end_ns[i], sunk.end_ns[0]);
}

/* What one session cannot give at the end keeps the last epoch of the other from nothing. */
static void test_one_that_fails(void **state)
{
	const struct agent_options options = {
		.epoch_s = EPOCH_S, .fixed_epochs = true, .max_cpu = 1, .freq = 19, .nr_modes = 2};
	struct session *sessions[AGENT_MODES_MAX] = {NULL};
	struct error error;
	struct agent *agent = agent_new(&options, &error);

	(void)state;
	assert_non_null(agent);
	played.ends_at = played.now + 2.5 * EPOCH_S;
	played.broken = 1;
	assert_int_equal(agent_run(agent, sessions, NULL, NULL), -EIO);
	agent_free(agent);
	assert_int_equal(sunk.of_mode[0], 2);
	assert_int_equal(sunk.of_mode[1], 3);
}

/* A sink that fails ends the run. The last epoch begins where the one before has ended, which take() looks at. */
static void test_a_sink_that_fails(void **state)
{
	const struct agent_options options = {
		.epoch_s = EPOCH_S, .fixed_epochs = true, .max_cpu = 1, .freq = 19, .nr_modes = 2};
	struct session *sessions[AGENT_MODES_MAX] = {NULL};
	struct error error;
	struct agent *agent = agent_new(&options, &error);

	(void)state;
	assert_non_null(agent);
	played.ends_at = played.now + 5 * EPOCH_S;
	sunk.fails = 2;
	assert_int_equal(agent_run(agent, sessions, NULL, NULL), -EIO);
	agent_free(agent);
	assert_int_equal(sunk.of_mode[0], 3);
	assert_int_equal(sunk.of_mode[1], 3);
	assert_int_equal(sunk.value, played.value);
}

/* A client's profile that cannot take samples is lost alone: the epoch has them, and the run goes on. */
static void test_a_clients_profile_that_is_lost(void **state)
{
	static struct agent a;
	struct agent_part part = {.agent = &a};
	struct profile *other = new_profile();

	(void)state;
	profile_set_measure(other, &(struct profile_measure){"wall", "microseconds", 0});
	take_in(other, on(other, PROFILE_ROOT, "f", "app.py", 1), process(other, 1, "python"), 1);
	a = (struct agent){.pulled = {{.part = &part, .profile = other}, {.part = &part, .profile = new_profile()}},
			   .nr_pulled = 2};
	sample();
	assert_int_equal(agent_keep_samples(played.profile, &part), 0);
	assert_int_equal(profile_total(part.held), 1);
	assert_true(a.pulled[0].is_lost && !a.pulled[0].profile && !a.pulled[1].is_lost);
	assert_int_equal(profile_total(a.pulled[1].profile), 1);
	assert_int_equal(warnings, 1);
	agent_drop_pulled(&a);
	profile_free(part.held);
}

static void test_nothing_grows(void **state)
{
	size_t before, after;

	(void)state;
	run_for(100, 1);
	before = __sanitizer_get_current_allocated_bytes();
	memset(&sunk, 0, sizeof(sunk));
	profile_clear_samples(played.profile);
	played.samples = played.value = played.asked = 0;
	run_for(10000, 1);
	after = __sanitizer_get_current_allocated_bytes();
	assert_true(sunk.epochs > 9000);
	assert_true(after < before + (1 << 20));
}

static void test_a_full_table(void **state)
{
	(void)state;
	played.busy = true;
	run_for(20, 1);
	/* Taken before the table is full, and again and again within an epoch. */
	assert_true(played.forgotten >= 10);
}

/* What is known is forgotten before the limit is reached, and not ten epochs later. */
static void test_memory_that_fills_up(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	/* At most 0.19 of the limit in an epoch: it has 50 samples, or a fifth more. */
	played.memory_of_sample = 0.003;
	metrics = run_for(30, 1);
	assert_int_equal(metrics.modes[0].lost, 0);
	assert_int_equal(warnings, 0);
	/* Nor is it forgotten long before. */
	assert_true(played.forgotten <= sunk.epochs / 4);
}

/* One epoch takes more than there is: the next one begins with nothing known, and what is lost is said and counted. */
static void test_memory_that_fills_up_in_an_epoch(void **state)
{
	struct agent_metrics metrics;
	char row[80];

	(void)state;
	played.memory_of_sample = 0.03;
	metrics = run_for(20, 1);
	assert_true(played.forgotten >= sunk.epochs - 2);
	assert_true(played.refused > 0 && played.refused < played.asked / 2);
	assert_int_equal(metrics.modes[0].lost, played.refused);
	snprintf(row, sizeof(row), "pybpf_samples_lost_total{mode=\"cpu\",cause=\"memory_limit\"} %" PRIu64 "\n",
		 played.refused);
	assert_non_null(strstr(played.metrics, row));
	assert_in_range(warnings, sunk.epochs - 1, sunk.epochs);
}

static void assert_row(const char *name, const char *labels, uint64_t value)
{
	char row[160];

	snprintf(row, sizeof(row), "\n%s%s %" PRIu64 "\n", name, labels, value);
	if (!strstr(played.metrics, row))
		fail_msg("there is no row %s", row);
}

/* What there was no time for is in the metrics, once, of each epoch and the last one; and what there is at the end. */
static void test_what_there_was_no_time_for(void **state)
{
	(void)state;
	run_modes(2, 20, 1);
	assert_true(sunk.epochs > 10 && played.late > 100);
	assert_row("pybpf_processes_missed_total", "{mode=\"cpu\"}", played.late);
	assert_row("pybpf_processes_missed_total", "{mode=\"wall\"}", played.late);
	assert_row("pybpf_threads_woke_unread_total", "{mode=\"wall\"}", 2 * played.late);
	assert_row("pybpf_threads_unnamed_total", "{mode=\"cpu\"}", 3 * played.late);
	assert_row("pybpf_threads_unnamed_total", "{mode=\"wall\"}", 3 * played.late);
	assert_row("pybpf_wait_seconds_without_stack_total", "{mode=\"wall\",cause=\"not_read\"}", played.late);
	assert_row("pybpf_questions_unanswered_total", "", played.late + 4);
	assert_row("pybpf_processes_refused", "{mode=\"wall\"}", 5);
	assert_row("pybpf_threads_unread", "{mode=\"wall\"}", 6);
	assert_null(strstr(played.metrics, "pybpf_threads_unread{mode=\"cpu\"}"));
}

/* Each row has its own count, and no other. */
static void test_rows(void **state)
{
	static const char *const causes[PUSH_CAUSES] = {
		[PUSH_QUEUE_FULL] = "queue_full", [PUSH_SPOOL_FULL] = "spool_full", [PUSH_SPOOL_ERROR] = "spool_error",
		[PUSH_GIVEN_UP] = "given_up",     [PUSH_REFUSED] = "refused",       [PUSH_NOT_TRUSTED] = "not_trusted",
		[PUSH_CRASHED] = "crashed",       [PUSH_ENDED] = "ended",
	};
	static const struct {
		const char *name, *labels;
		uint64_t value;
	} rows[] = {
		{"pybpf_requests_submitted_total", "{receiver=\"otlp\"}", 1},
		{"pybpf_requests_found_total", "{receiver=\"otlp\"}", 2},
		{"pybpf_requests_sent_total", "{receiver=\"otlp\"}", 3},
		{"pybpf_requests_sent_bytes_total", "{receiver=\"otlp\"}", 4},
		{"pybpf_requests_retried_total", "{receiver=\"otlp\"}", 5},
		{"pybpf_profiles_rejected_total", "{receiver=\"otlp\"}", 6},
		{"pybpf_requests_waiting", "{receiver=\"otlp\"}", 7 + 9},
		{"pybpf_requests_waiting_bytes", "{receiver=\"otlp\"}", 8},
		{"pybpf_requests_spooled_bytes", "{receiver=\"otlp\"}", 10},
		{"pybpf_sender_restarts_total", "{receiver=\"otlp\"}", 11},
		{"pybpf_http_requests_total", "{outcome=\"answered\"}", 31},
		{"pybpf_http_requests_total", "{outcome=\"wrong\"}", 32},
		{"pybpf_http_requests_total", "{outcome=\"denied\"}", 33},
		{"pybpf_http_requests_total", "{outcome=\"unavailable\"}", 34},
		{"pybpf_http_requests_total", "{outcome=\"client_left\"}", 35},
		{"pybpf_http_clients_cut_total", "", 36},
		{"pybpf_http_restarts_total", "", 37},
		{"pybpf_files_written_total", "{mode=\"cpu\"}", 41},
		{"pybpf_files_written_bytes_total", "{mode=\"cpu\"}", 42},
		{"pybpf_files_failed_total", "{mode=\"cpu\"}", 43},
		{"pybpf_files_merged_total", "{mode=\"cpu\"}", 44},
		{"pybpf_files_removed_total", "{mode=\"cpu\"}", 45},
		{"pybpf_files", "{mode=\"cpu\"}", 46},
		{"pybpf_files_bytes", "{mode=\"cpu\"}", 47},
		{"pybpf_epochs_unsent_total", "{mode=\"cpu\"}", 51},
		{"pybpf_wait_seconds_lost_total", "{mode=\"wall\"}", 52},
		{"pybpf_threads_lost_total", "{mode=\"wall\"}", 53},
		{"pybpf_map_memory_bytes", "{mode=\"wall\"}", 54},
		{"pybpf_resident_memory_bytes", "", 55},
		{"pybpf_reload_failed_total", "", 2},
	};
	const struct agent_options options = {.epoch_s = EPOCH_S,
					      .dir = "/dir",
					      .push = {.urls = {[PUSH_OTLP] = "http://a/"}, .hosts_share = 0.5},
					      .modes = {SESSION_CPU, SESSION_WALL},
					      .nr_modes = 2};
	struct error error;
	struct agent *agent = agent_new(&options, &error);

	(void)state;
	assert_non_null(agent);
	played.counted = true;
	agent_count_refused_change(agent);
	agent_count_refused_change(agent);
	read_metrics(agent);
	agent_free(agent);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_row(rows[i].name, rows[i].labels, rows[i].value);
	for (unsigned i = 0; i < PUSH_CAUSES; i++) {
		char labels[80];

		snprintf(labels, sizeof(labels), "{receiver=\"otlp\",cause=\"%s\"}", causes[i]);
		assert_row("pybpf_requests_dropped_total", labels, 20 + i);
	}
}

static void test_late_epochs(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.stall_at = played.now + 10 * EPOCH_S;
	played.stall_s = 300;
	metrics = run_for(20, 1);
	assert_int_equal(metrics.late_epochs, 1);
	assert_int_equal(warnings, 1);
	assert_true(sunk.longest_s >= 300);
}

/* What is sampled before and after is in epochs of their own, each with its time to within a tick. */
static void change_clocks_in_a_run(double sleep_s, double set_s)
{
	double at_s = played.now + 3.5 * EPOCH_S, real_s = (double)played.realtime_ms / 1000 + at_s;

	played.change_clocks_at = at_s;
	played.sleep_s = sleep_s;
	played.set_s = set_s;
	run_for(10, 1);
	assert_int_equal(warnings, 1);
	assert_int_equal(sunk.gaps, 1);
	assert_true(fabs(sunk.gap_s - sleep_s - set_s) < 0.01);
	assert_true(fabs((double)sunk.gap_end_ns / 1e9 - real_s) <= 2 * 0.02 * EPOCH_S);
}

static void test_a_sleep(void **state)
{
	(void)state;
	change_clocks_in_a_run(36000, 0);
	assert_non_null(strstr(played.metrics, "pybpf_suspends_total 1\n"));
	assert_non_null(strstr(played.metrics, "pybpf_clock_jumps_total 0\n"));
}

static void test_a_clock_that_is_set(void **state)
{
	(void)state;
	change_clocks_in_a_run(0, -7200);
	assert_non_null(strstr(played.metrics, "pybpf_suspends_total 0\n"));
	assert_non_null(strstr(played.metrics, "pybpf_clock_jumps_total 1\n"));
}

/* One epoch in the length of an epoch ends early, and that, and that there is more, is said once each. */
static void test_a_clock_that_others_fight_over(void **state)
{
	const double begin_s = played.now + 5 * EPOCH_S;
	struct agent_metrics metrics;

	(void)state;
	played.change_clocks_at = begin_s;
	played.fight_until = begin_s + 20 * EPOCH_S;
	played.set_s = 5;
	metrics = run_for(40, 1);
	assert_true(metrics.clock_jumps > 500);
	/* Epochs that end as planned are not fewer than half of the others. */
	assert_in_range(metrics.epochs, 40, 40 + 2 * 20);
	assert_in_range(warnings, 20, 2 * 21);
	assert_int_equal(metrics.late_epochs, 0);
}

/* A sleep ends an epoch however short the time since the last change was in which the machine was awake. */
static void test_sleeps_that_follow_each_other(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.change_clocks_at = played.now + 5.5 * EPOCH_S;
	played.fight_until = played.change_clocks_at + 0.1 * EPOCH_S;
	played.sleep_s = 2 * EPOCH_S;
	metrics = run_for(10, 1);
	assert_true(metrics.suspends >= 3);
	assert_int_equal(sunk.gaps, metrics.suspends);
	assert_int_equal(warnings, metrics.suspends);
}

/* The end of an epoch that is cut costs a large share of its short time. It does not lower the rate. */
static void test_a_sleep_costs_no_rate(void **state)
{
	(void)state;
	played.change_clocks_at = played.now + 3.5 * EPOCH_S;
	played.sleep_s = 3600;
	played.cpu_of_sleep_s = 0.095;
	run_for(10, 0.01);
	/* That of the sleep alone. */
	assert_int_equal(warnings, 1);
}

static void test_epochs_that_become_shorter(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.change_at = played.now + 10 * EPOCH_S;
	metrics = run_for(20, 1);
	/* The one that went on was longer already, as it was planned. */
	assert_int_equal(metrics.late_epochs, 0);
	assert_int_equal(warnings, 0);
	assert_true(sunk.epochs > 8 * EPOCH_S);
}

static void test_the_rate_keeps_to_the_limit(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.cpu_per_s = 0.03;
	played.cpu_always = 0.001;
	metrics = run_for(10, 0.01);
	assert_int_equal(metrics.divisor, 8);
	assert_row("pybpf_rate_divisor", "", 8);
	/* The last one is what is left of the run: where that is short, its end takes more than a hundredth of it. */
	assert_true(metrics.epoch_cpu_s / metrics.epoch_s < 0.01 || metrics.epoch_s < 0.8 * EPOCH_S);
	assert_int_equal(sunk.weights, 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8);
}

/* What the processes of the sinks take is a part of what pybpf takes. */
static void test_the_rate_is_lowered_for_sinks(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.cpu_sinks = 0.006;
	played.cpu_per_s = 0.003;
	metrics = run_for(10, 0.01);
	assert_int_equal(metrics.divisor, 2);
	assert_true(fabs(metrics.cpu_s - played.cpu_s - played.sinks_s) < 1e-9);
}

/* Nor can one of them, that reports any time, do more than that. */
static void test_sinks_that_lie(void **state)
{
	struct agent_metrics metrics;

	played.cpu_sinks = 1e12;
	metrics = run_for(10, 0.01);
	assert_true(metrics.epoch_cpu_s <= metrics.epoch_s + 1e-9);
	end(state);
	begin(state);
	played.cpu_sinks = -1e12;
	metrics = run_for(10, 0.01);
	assert_true(metrics.epoch_cpu_s >= 0);
}

static void test_the_rate_rises_again(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.cpu_per_s = 0.03;
	played.cheap_at = played.now + 10 * EPOCH_S;
	metrics = run_for(30, 0.01);
	assert_int_equal(metrics.divisor, 1);
	assert_int_equal(sunk.weights, 1u << 1 | 1u << 2 | 1u << 4);
	/* Lowered twice, and raised twice. */
	assert_int_equal(warnings, 4);
}

/* Most of what pybpf takes is not for samples: fewer of them would save nothing, and the limit is kept. */
static void test_what_a_lower_rate_does_not_save(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.cpu_always = 0.0085;
	played.cpu_per_s = 0.0002;
	metrics = run_for(50, 0.01);
	assert_int_equal(metrics.divisor, 2);
	assert_int_equal(warnings, 1);
}

/* Likewise, and it is cheaper for a while: the rate rises although what is left is more than a third of the limit. */
static void test_the_rate_rises_beside_other_costs(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.cpu_always = 0.005;
	played.cpu_per_s = 0.0035;
	played.cheap_at = played.now + 10 * EPOCH_S;
	metrics = run_for(30, 0.01);
	assert_int_equal(metrics.divisor, 1);
	assert_int_equal(warnings, 2);
}

static void test_what_costs_always_has_an_end(void **state)
{
	struct agent_metrics metrics;

	(void)state;
	played.cpu_always = 0.5;
	metrics = run_for(20, 0.01);
	assert_int_equal(metrics.divisor, 16);
	/* One of each change, and one that no further change follows. */
	assert_int_equal(warnings, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_epochs, begin, end),
		cmocka_unit_test_setup_teardown(test_modes_beside_each_other, begin, end),
		cmocka_unit_test_setup_teardown(test_one_that_fails, begin, end),
		cmocka_unit_test_setup_teardown(test_a_sink_that_fails, begin, end),
		cmocka_unit_test_setup_teardown(test_a_clients_profile_that_is_lost, begin, end),
		cmocka_unit_test_setup_teardown(test_nothing_grows, begin, end),
		cmocka_unit_test_setup_teardown(test_a_full_table, begin, end),
		cmocka_unit_test_setup_teardown(test_memory_that_fills_up, begin, end),
		cmocka_unit_test_setup_teardown(test_memory_that_fills_up_in_an_epoch, begin, end),
		cmocka_unit_test_setup_teardown(test_what_there_was_no_time_for, begin, end),
		cmocka_unit_test_setup_teardown(test_rows, begin, end),
		cmocka_unit_test_setup_teardown(test_late_epochs, begin, end),
		cmocka_unit_test_setup_teardown(test_a_sleep, begin, end),
		cmocka_unit_test_setup_teardown(test_a_clock_that_is_set, begin, end),
		cmocka_unit_test_setup_teardown(test_a_clock_that_others_fight_over, begin, end),
		cmocka_unit_test_setup_teardown(test_sleeps_that_follow_each_other, begin, end),
		cmocka_unit_test_setup_teardown(test_a_sleep_costs_no_rate, begin, end),
		cmocka_unit_test_setup_teardown(test_epochs_that_become_shorter, begin, end),
		cmocka_unit_test_setup_teardown(test_the_rate_keeps_to_the_limit, begin, end),
		cmocka_unit_test_setup_teardown(test_the_rate_is_lowered_for_sinks, begin, end),
		cmocka_unit_test_setup_teardown(test_sinks_that_lie, begin, end),
		cmocka_unit_test_setup_teardown(test_the_rate_rises_again, begin, end),
		cmocka_unit_test_setup_teardown(test_what_a_lower_rate_does_not_save, begin, end),
		cmocka_unit_test_setup_teardown(test_the_rate_rises_beside_other_costs, begin, end),
		cmocka_unit_test_setup_teardown(test_what_costs_always_has_an_end, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
