// SPDX-License-Identifier: Apache-2.0
/* Tells the waits that are not in the profile, not named there, or without a time of their own. */
#include "session/waits/left_out.h"

#include <inttypes.h>
#include <stdio.h>

#include "kernel/waits.h"
#include "output/amount.h"
#include "session/account/account_entry.h"
#include "session/account/account_text.h"
#include "session/internal.h"
#include "session/measure.h"

static void tell(const struct session *s, struct session_account *account)
{
	account->min_block_ns = s->options.min_block_ns;
	account->short_waits = s->waits.short_waits;
	account->short_ns = s->waits.short_ns;
	account->unnamed_waits = kernel_get_unnamed_waits(s->kernel);
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
	session_print_grouped(count, out);
	fprintf(out, " wait%s ", count == 1 ? "" : "s");
}

static void print_undrawn(const struct session_account *a, FILE *out)
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

static void print_short(const struct session_account *a, FILE *out)
{
	char amount[OUTPUT_AMOUNT_MAX];

	if (!a->min_block_ns)
		return;
	print_waits(a->short_waits, out);
	fputs("shorter than ", out);
	print_time(a->min_block_ns, out);
	fprintf(out, " %s left out: %s\n", a->short_waits == 1 ? "is" : "are", output_duration(a->short_ns, amount));
}

static void print_without_stacks(const struct session_account *a, FILE *out)
{
	if (a->refused_stacks_ns)
		fprintf(out,
			"pybpf: %.3f s of waits have no stack, which was new when the memory was used up (see "
			"--max-memory)\n",
			(double)a->refused_stacks_ns / 1e9);
	if (a->unsent_stacks_ns)
		fprintf(out,
			"pybpf: %.3f s of waits have no stack, which found no room in the ring buffer or the table\n",
			(double)a->unsent_stacks_ns / 1e9);
}

static void print(const struct session_account *a, const struct profile *p, FILE *out)
{
	(void)p;
	print_short(a, out);
	print_undrawn(a, out);
	print_without_stacks(a, out);
	if (a->unnamed_waits)
		fprintf(out,
			"pybpf: of %" PRIu64 " wait%s only the state is told: there were more than %d peers, files and "
			"processes\n",
			a->unnamed_waits, a->unnamed_waits == 1 ? "" : "s", KERNEL_WAITS_MAX);
	if (a->lost_time_ns || a->lost_threads)
		fprintf(out,
			"pybpf: lost: %.3f s of waits that found no room (see --max-stacks), %" PRIu64 " thread%s\n",
			(double)a->lost_time_ns / 1e9, a->lost_threads, a->lost_threads == 1 ? "" : "s");
}

/* Those of intervals, too: the object is one. */
static const struct session_entry entries[] = {
	{"waits", "short", SESSION_COUNT(short_waits)},
	{"waits", "short_s", SESSION_SECONDS(short_ns)},
	{"waits", "undrawn", SESSION_COUNT(undrawn_waits)},
	{"waits", "unnamed", SESSION_COUNT(unnamed_waits)},
	{"waits", "undrawn_s", SESSION_SECONDS(undrawn_ns)},
	{"waits", "untimed", SESSION_COUNT(refused_waits)},
	{"waits", "untimed_s", SESSION_SECONDS(refused_ns)},
	{"threads", "lost", SESSION_EPOCH_COUNT(lost_threads)},
	{"threads", "lost_time_s", SESSION_EPOCH_SECONDS(lost_time_ns)},
	{"waits", "stack_refused_s", SESSION_EPOCH_SECONDS(refused_stacks_ns)},
	{"waits", "stack_unsent_s", SESSION_EPOCH_SECONDS(unsent_stacks_ns)},
	{0},
};

static bool is_wanted(const struct session_options *options)
{
	return options->mode != SESSION_CPU;
}

const struct session_measure session_left_out_measure = {
	.name = "waits that are left out",
	.is_wanted = is_wanted,
	.tell = tell,
	.print = print,
	.entries = entries,
};
