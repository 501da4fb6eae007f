// SPDX-License-Identifier: Apache-2.0
#include "session/account_threads.h"

#include <inttypes.h>

#include "output/amount.h"
#include "session/session.h"
#include "session/wait_name.h"

/* Prints the threads and processes whose time is not in the line above. */
static void print_left_out(const struct session_account_sched *sched, FILE *out)
{
	const char *separator = "pybpf: that is without ", *and = ", and without ";

	if (sched->ended_processes) {
		fprintf(out, "%s%" PRIu64 " process%s that ended", separator, sched->ended_processes,
			sched->ended_processes == 1 ? "" : "es");
		separator = and;
	}
	if (sched->ended_threads_ns) {
		fprintf(out, "%sthreads that ended, which took %.2f s of CPU time", separator,
			(double)sched->ended_threads_ns / 1e9);
		separator = and;
	} else if (sched->ended_threads) {
		fprintf(out, "%s%" PRIu64 " thread%s that ended", separator, sched->ended_threads,
			sched->ended_threads == 1 ? "" : "s");
		separator = and;
	}
	if (sched->unread_threads) {
		fprintf(out, "%s%" PRIu64 " thread%s that %s found during the run", separator, sched->unread_threads,
			sched->unread_threads == 1 ? "" : "s", sched->unread_threads == 1 ? "was" : "were");
		separator = and;
	}
	if (sched->late_threads) {
		fprintf(out, "%s%" PRIu64 " thread%s that could not be read in time", separator, sched->late_threads,
			sched->late_threads == 1 ? "" : "s");
		separator = and;
	}
	if (separator == and)
		fputs(" (--mode=wall has all)\n", out);
}

void session_print_sched(const struct session_account *a, FILE *out)
{
	uint64_t running = a->state_ns[PYBPF_STATE_RUNNING], queued = a->state_ns[PYBPF_STATE_QUEUED];
	double total = (double)(running + queued + a->sched.asleep_ns);

	if (a->sched.threads && total > 0) {
		fprintf(out,
			"pybpf: %.2f thread-seconds: %.1f %% %s, %.1f %% %s, %.1f %% asleep (--mode=wall says for "
			"what)\n",
			total / 1e9, 100 * (double)running / total, session_state_name(PYBPF_STATE_RUNNING),
			100 * (double)queued / total, session_state_name(PYBPF_STATE_QUEUED),
			100 * (double)a->sched.asleep_ns / total);
		print_left_out(&a->sched, out);
	}
}

/* Prints a number with a comma after each three digits. */
static void print_grouped(uint64_t number, FILE *out)
{
	uint64_t part = 1;

	while (number / part >= 1000)
		part *= 1000;
	fprintf(out, "%" PRIu64, number / part);
	for (part /= 1000; part; part /= 1000)
		fprintf(out, ",%03" PRIu64, number / part % 1000);
}

static void print_time(uint64_t ns, FILE *out)
{
	if (ns < 1000000)
		fprintf(out, "%.6g us", (double)ns / 1e3);
	else if (ns < 1000000000)
		fprintf(out, "%.6g ms", (double)ns / 1e6);
	else
		fprintf(out, "%.6g s", (double)ns / 1e9);
}

static void print_waits(uint64_t count, FILE *out)
{
	fputs("pybpf: ", out);
	print_grouped(count, out);
	fprintf(out, " wait%s ", count == 1 ? "" : "s");
}

/* The part of all time from which on threads that woke before their stacks were read are told of. */
#define LATE_SHARE 0.01

void session_print_unread(const struct session_account *a, FILE *out)
{
	uint64_t threads = a->unread_sleepers + a->late_sleepers, total_ns = 0;

	for (int i = 0; i < PYBPF_NR_STATES; i++)
		total_ns += a->state_ns[i];
	if (!threads || (!a->unread_sleepers && (double)a->unread_sleepers_ns < LATE_SHARE * (double)total_ns))
		return;
	fputs(threads == 1 ? "pybpf: the stack of " : "pybpf: the stacks of ", out);
	print_grouped(threads, out);
	fprintf(out,
		" thread%s that did not run when pybpf began %s not read before %s ran or pybpf ended: %.2f "
		"thread-seconds are in [asleep since before the run]\n",
		threads == 1 ? "" : "s", threads == 1 ? "was" : "were", threads == 1 ? "it" : "they",
		(double)a->unread_sleepers_ns / 1e9);
}

void session_print_unnamed(const struct session_account *a, FILE *out)
{
	if (!a->unread_names)
		return;
	fputs(a->unread_names == 1 ? "pybpf: the name of " : "pybpf: the names of ", out);
	print_grouped(a->unread_names, out);
	fprintf(out, " thread%s could not be read in time\n", a->unread_names == 1 ? "" : "s");
}

void session_print_undrawn(const struct session_account *a, FILE *out)
{
	char amount[OUTPUT_AMOUNT_MAX];

	if (a->undrawn_waits) {
		print_waits(a->undrawn_waits, out);
		fputs("shorter than ", out);
		print_time(PYBPF_INTERVAL_NS, out);
		fprintf(out, " %s not in the time line: %s\n", a->undrawn_waits == 1 ? "is" : "are",
			output_duration(a->undrawn_ns, amount));
	}
	if (a->refused_waits) {
		print_waits(a->refused_waits, out);
		fprintf(out, "%s not in the time line, %s: the ring buffer or the memory for times was full\n",
			a->refused_waits == 1 ? "is" : "are", output_duration(a->refused_ns, amount));
	}
}

void session_print_short(const struct session_account *a, FILE *out)
{
	char amount[OUTPUT_AMOUNT_MAX];

	if (!a->min_block_ns)
		return;
	print_waits(a->short_waits, out);
	fputs("shorter than ", out);
	print_time(a->min_block_ns, out);
	fprintf(out, " %s left out: %s\n", a->short_waits == 1 ? "is" : "are", output_duration(a->short_ns, amount));
}
