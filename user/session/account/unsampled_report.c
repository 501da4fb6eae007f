// SPDX-License-Identifier: Apache-2.0
/* Finds the chosen Python processes without a sample, and says of each what it did instead. */
#include "session/account/unsampled_report.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/procfs.h"
#include "base/text.h"
#include "container/cgroup.h"
#include "discovery/below.h"
#include "session/account/account.h"
#include "session/internal.h"

/* Processes that a line names. */
#define NAMED_MAX 8
/* A process that took less than this share of one CPU has others do its work, if it has children that run Python. */
#define IDLE_SHARE 0.1
/* Longest search for Pythons below a process at the end of a run, besides what SESSION_END_NAMES_S is for. */
#define LOOK_BELOW_S 0.1

/* What an unsampled process did. Those up to DID_READY took no CPU time at all. */
enum did {
	DID_SLEEP,
	DID_STOP,
	DID_TRACED,
	DID_FROZEN,
	DID_WAIT,
	DID_READY,
	DID_UNKNOWN, /* it was not looked at in time, or maps nothing */
	DID_RUN,
	DID_END,
	DID_KINDS,
};

/*
 * The sentences, for one process and for several. A process that has taken no CPU time since sampling began has not
 * changed its state since: a thread runs when it stops, continues, or wakes up. (The freezer of cgroup v1 freezes
 * sleeping threads as they are, since Linux 6.1: "frozen" describes the present only.)
 */
static const char *const sentences[DID_KINDS][2] = {
	[DID_SLEEP] = {"was asleep throughout", "were asleep throughout"},
	[DID_STOP] = {"was stopped throughout (SIGCONT continues it)",
		      "were stopped throughout (SIGCONT continues them)"},
	[DID_TRACED] = {"was held by a debugger throughout", "were held by a debugger throughout"},
	[DID_FROZEN] = {"is frozen by its control group, as a paused container is, and took no CPU time",
			"are frozen by their control groups, as paused containers are, and took no CPU time"},
	[DID_WAIT] = {"waited throughout in the kernel (state D: for a disk, a network file system, a lock)",
		      "waited throughout in the kernel (state D: for a disk, a network file system, a lock)"},
	[DID_UNKNOWN] =
		{"was not looked at before the run ended, or maps no executable file: whether it runs Python is "
		 "not known",
		 "were not looked at before the run ended, or map no executable file: whether they run Python is "
		 "not known"},
	[DID_READY] = {"took no CPU time, and is ready to run", "took no CPU time, and are ready to run"},
};

struct unsampled {
	const struct processes_record *process;
	enum did did;
	bool cpu_known;
	uint64_t cpu_ns;
	char state; /* now, of DID_RUN; 0: unknown */
};

struct finding {
	struct session *session;
	struct cgroup_mounts mounts;
	struct unsampled *items;
	size_t count, room;
	uint32_t *idle; /* PIDs of living chosen Pythons that took little CPU time */
	size_t nr_idle, idle_room;
	uint64_t idle_ns; /* CPU time that makes a process idle */
	bool failed;
};

/* Finds what the process, which lives, did. The state is read before the CPU time, which thus covers it. */
static void find_what_it_did(const struct finding *f, struct unsampled *u)
{
	const struct processes_record *process = u->process;
	uint64_t now_ns;
	bool frozen;

	if (procfs_read_state(process->pid, &u->state))
		u->state = 0;
	frozen = cgroup_is_frozen(&f->mounts, process->pid);
	u->did = DID_RUN;
	if (!u->state || !u->cpu_known || !process->cpu_begin_known || procfs_cpu_ns(process->pid, &now_ns) ||
	    now_ns != process->cpu_begin_ns)
		return;
	switch (u->state) {
	case 'T':
		u->did = DID_STOP;
		break;
	case 't':
		u->did = DID_TRACED;
		break;
	case 'R':
		u->did = DID_READY;
		break;
	case 'D':
		u->did = frozen ? DID_FROZEN : DID_WAIT;
		break;
	case 'S':
		u->did = frozen ? DID_FROZEN : DID_SLEEP;
		break;
	}
}

static void find_one(struct processes_record *process, void *arg)
{
	struct finding *f = arg;
	struct unsampled *u;
	uint64_t cpu_ns = 0;
	bool known;

	bool unknown =
		process->state == PROCESSES_LOOKING && !process->looked && !process->ended && !f->session->options.all;

	if (!process->wanted || (process->state != PROCESSES_PYTHON && !unknown))
		return;
	known = processes_get_cpu(process, &cpu_ns);
	if (!process->ended && known && cpu_ns < f->idle_ns) {
		if (array_reserve(&f->idle, &f->idle_room, f->nr_idle + 1, sizeof(*f->idle)))
			f->failed = true;
		else
			f->idle[f->nr_idle++] = (uint32_t)process->pid;
	}
	if (!processes_is_unsampled(process) && !unknown)
		return;
	if (array_reserve(&f->items, &f->room, f->count + 1, sizeof(*f->items))) {
		f->failed = true;
		return;
	}
	u = &f->items[f->count++];
	*u = (struct unsampled){.process = process, .did = DID_END, .cpu_known = known, .cpu_ns = cpu_ns};
	if (unknown)
		u->did = DID_UNKNOWN;
	else if (!process->ended)
		find_what_it_did(f, u);
}

/* Names the processes of one kind: "12 (python3), 13 (celery) and 4 more". */
static void print_names(const struct finding *f, enum did did, size_t count, FILE *out)
{
	size_t named = 0;

	for (size_t i = 0; i < f->count && named < NAMED_MAX; i++) {
		const struct processes_record *process = f->items[i].process;

		if (f->items[i].did != did)
			continue;
		fprintf(out, "%s%d (", named++ ? ", " : "", process->pid);
		text_print(process->comm, out);
		fputc(')', out);
	}
	if (count > named)
		fprintf(out, " and %zu more", count - named);
}

static const char *state_now(char state)
{
	switch (state) {
	case 'R':
		return "; it runs, or waits for a CPU, now";
	case 'S':
		return "; it is asleep now";
	case 'T':
		return "; it is stopped now";
	case 't':
		return "; it is held by a debugger now";
	case 'D':
		return "; it waits in the kernel now (state D)";
	default:
		return "";
	}
}

/* Prints a sentence about one process that ran without a sample in Python code, or that ended. */
static void print_one(const struct unsampled *u, double duration_s, FILE *out)
{
	const struct processes_record *process = u->process;

	fprintf(out, "pybpf: process %d (", process->pid);
	text_print(process->comm, out);
	fprintf(out, ") has no sample in Python code%s", u->did == DID_END ? ", and it ended" : "");
	if (u->cpu_known)
		fprintf(out, "; it took %.4f s of CPU time in %.2f s", (double)u->cpu_ns / 1e9, duration_s);
	if (process->undecided)
		fprintf(out, "; %" PRIu64 " sample%s taken before its interpreter was found", process->undecided,
			process->undecided == 1 ? " was" : "s were");
	fprintf(out, "%s\n", u->did == DID_RUN ? state_now(u->state) : "");
}

static void print_kind(const struct finding *f, enum did did, double duration_s, FILE *out)
{
	const struct unsampled *one = NULL;
	uint64_t cpu_ns = 0;
	size_t count = 0;

	for (size_t i = 0; i < f->count; i++) {
		if (f->items[i].did != did)
			continue;
		one = &f->items[i];
		cpu_ns += one->cpu_ns;
		count++;
	}
	if (!count)
		return;
	if (count == 1 && did >= DID_RUN) {
		print_one(one, duration_s, out);
		return;
	}
	fprintf(out, "pybpf: %s", count == 1 ? "process " : "");
	if (count == 1)
		print_names(f, did, count, out);
	else
		fprintf(out, "%zu processes", count);
	if (did < DID_RUN)
		fprintf(out, " %s", sentences[did][count > 1]);
	else
		fprintf(out, "%s took %.4f s of CPU time together in %.2f s and have no sample in Python code",
			did == DID_END ? " ended; they" : "", (double)cpu_ns / 1e9, duration_s);
	if (count > 1) {
		fputs(": ", out);
		print_names(f, did, count, out);
	}
	fputc('\n', out);
}

/*
 * Returns whether the process runs on the CPU that valgrind simulates: its executable is TOOL-PLATFORM in a directory
 * of valgrind's. One that has ended has its name only, which is cut.
 */
static bool is_simulated(const struct processes_record *process)
{
	static const char *const tools[] = {"memcheck-", "callgrind-", "cachegrind-", "helgrind-", "massif-",
					    "dhat-",     "drd-",       "lackey-",     "none-"};
	char path[64], target[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", process->pid);
	n = process->ended ? -1 : readlink(path, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		return strstr(target, "/valgrind/");
	}
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		if (!strncmp(process->comm, tools[i], strlen(tools[i])))
			return true;
	}
	return false;
}

struct simulated {
	pid_t first;
	uint64_t count;
};

static void count_simulated(struct processes_record *process, void *arg)
{
	struct simulated *found = arg;

	if (process->state != PROCESSES_PYTHON || !is_simulated(process))
		return;
	found->first = found->count++ ? found->first : process->pid;
}

void session_print_simulated(struct session *s, const struct session_account *account, FILE *out)
{
	struct simulated found = {0};

	if (!account->counters[PYBPF_COUNT_NO_THREAD_STATE])
		return;
	processes_visit_all(s->processes, count_simulated, &found);
	if (!found.count)
		return;
	fprintf(out, "pybpf: process %d", found.first);
	if (found.count > 1)
		fprintf(out, " and %" PRIu64 " more run", found.count - 1);
	else
		fputs(" runs", out);
	fputs(" under valgrind, on a CPU that it simulates: samples cannot identify Python threads there; `pybpf "
	      "dump` shows the stacks\n",
	      out);
}

/* What ends because the command has ended, such as multiprocessing's trackers, does so within this. */
#define ENDING_NS    200000000
#define ENDING_LOOKS 20

struct left_behind {
	const struct processes_record *first;
	uint64_t count;
};

static void count_left_behind(struct processes_record *process, void *arg)
{
	struct left_behind *found = arg;
	struct procfs_stat stat;

	if (process->state != PROCESSES_PYTHON || process->ended || procfs_read_stat(process->pid, &stat) ||
	    stat.start_time != process->start || strchr("ZXx", stat.state))
		return;
	found->first = found->count++ ? found->first : process;
}

void session_print_left_behind(struct session *s, FILE *out)
{
	const struct timespec pause = {.tv_nsec = ENDING_NS / ENDING_LOOKS};
	struct left_behind found;

	for (int looks = 0; looks <= ENDING_LOOKS; looks++) {
		if (looks)
			nanosleep(&pause, NULL);
		found = (struct left_behind){0};
		processes_visit_all(s->processes, count_left_behind, &found);
		if (!found.count)
			return;
	}
	fprintf(out, "pybpf: the command has ended, and the run with it; process %d (", found.first->pid);
	text_print(found.first->comm, out);
	putc(')', out);
	if (found.count > 1)
		fprintf(out, " and %" PRIu64 " more, which it started, are still running: sample them with -p\n",
			found.count - 1);
	else
		fprintf(out, ", which it started, is still running: sample it with -p %d\n", found.first->pid);
}

/* If chosen processes were idle and have others below them that run Python and were not chosen, says so. */
static void print_below(const struct finding *f, FILE *out)
{
	const struct discovery_filter *filter = f->session->options.filter;
	char below[512] = "";

	if (!filter || f->session->options.all || f->session->options.follow || !f->nr_idle)
		return;
	discovery_name_below(f->idle, f->nr_idle, &filter->pids, LOOK_BELOW_S, below, sizeof(below));
	if (!below[0])
		return;
	if (f->nr_idle == 1)
		fprintf(out, "pybpf: below process %u", f->idle[0]);
	else
		fputs("pybpf: below the chosen processes", out);
	fputs(" Python runs in ", out);
	text_print(below, out);
	fputs(", which --children samples, too\n", out);
}

/* Standard deviations within which 99.9 % of a normal distribution are. */
#define CHANCE 3.29

bool session_samples_are_few(uint64_t samples, double expected)
{
	return (double)samples < 0.95 * expected && (double)samples < expected - CHANCE * sqrt(expected) - 1;
}

static void find_python(struct processes_record *process, void *arg)
{
	const struct processes_record **only = arg;

	if (process->state == PROCESSES_PYTHON)
		*only = process;
}

/*
 * Timer samples miss the end of a time slice, where the kernel has interrupts off, and a beginning that another
 * timer's interrupt delays. Work that runs for tens of microseconds at a time therefore has fewer samples than CPU
 * time. With several processes it is unknown which one.
 */
static void print_unmet(const struct finding *f, const struct session_account *account, FILE *out)
{
	const struct processes_record *process = NULL;
	uint64_t asked = session_account_asked(account), cpu_ns;

	if (account->processes.seen != 1 || session_account_lost(account) || !account->freq)
		return;
	processes_visit_all(f->session->processes, find_python, &process);
	if (!process || process->ended || process->started || !processes_get_cpu(process, &cpu_ns) ||
	    !session_samples_are_few(asked, (double)cpu_ns / 1e9 * account->freq))
		return;
	fprintf(out,
		"pybpf: process %d took %.3f s of CPU time, of which its samples stand for %.3f s: timer samples "
		"rarely hit work shorter than a millisecond, or time that the host takes from a virtual machine; "
		"--mode=wall measures the time of each thread\n",
		process->pid, (double)cpu_ns / 1e9, (double)asked / account->freq);
}

void session_print_unsampled(struct session *s, const struct session_account *account, FILE *out)
{
	struct finding f = {.session = s, .idle_ns = (uint64_t)(account->duration_s * IDLE_SHARE * 1e9)};
	uint64_t forgotten = account->processes.unsampled;
	bool asleep = false;

	if (cgroup_mounts_read(&f.mounts))
		f.mounts = (struct cgroup_mounts){0};
	processes_visit_all(s->processes, find_one, &f);
	for (enum did did = 0; did < DID_KINDS && !f.failed; did++)
		print_kind(&f, did, account->duration_s, out);
	if (forgotten)
		fprintf(out, "pybpf: %" PRIu64 " %sPython process%s ended without a sample in Python code\n", forgotten,
			f.count ? "more " : "", text_es(forgotten));
	if (!f.failed)
		print_below(&f, out);
	print_unmet(&f, account, out);
	for (size_t i = 0; i < f.count; i++) {
		const struct unsampled *u = &f.items[i];

		asleep |= u->did == DID_SLEEP || u->did == DID_WAIT ||
			  (u->did == DID_RUN && u->state == 'S' && u->cpu_known && u->cpu_ns < f.idle_ns);
	}
	if (asleep && !account->python)
		fputs("pybpf: samples are taken of running threads only: record while the process works, or for longer "
		      "(-d); --mode=wall shows where it sleeps\n",
		      out);
	cgroup_mounts_free(&f.mounts);
	free(f.items);
	free(f.idle);
}
