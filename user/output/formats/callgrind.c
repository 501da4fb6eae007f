// SPDX-License-Identifier: Apache-2.0
/*
 * Callgrind's format, version 1 (the manual of Valgrind, "Callgrind Format Specification"), for KCachegrind and
 * callgrind_annotate. A function is a name in a file; its self costs are listed by line. The processes are the roots:
 * each is a function without a file that calls the first function of its stacks.
 *
 * Costs are CPU time in microseconds, rounded one by one, and samples.
 *
 * A sampler does not see calls: "calls=" is the number of samples in which the callee was directly above the caller on
 * the stack. Readers compute a function's inclusive cost as the sum of the costs of the calls to it. So that recursion
 * does not count a sample twice, its cost is given only to the call of the function's outermost frame; calls of the
 * inner frames are written with a cost of 0.
 */
#include "output/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "profile/groups.h"
#include "profile/totals.h"

/* Written in place of a missing name or file. */
#define UNKNOWN "???"
/* The name of the event whose costs are CPU time. */
#define CPU_EVENT "cpu_us"

/* A call from one function to another. Functions are numbered: first the groups of frames, then the processes. */
struct call {
	uint32_t caller;
	int32_t line; /* of the caller */
	uint32_t callee;
	uint32_t unused;
	uint64_t count, cost;
};

struct own {
	uint32_t function;
	int32_t line;
	uint64_t cost;
};

struct writer {
	const struct profile *profile;
	FILE *out;
	struct profile_totals totals;
	struct profile_groups functions;
	uint32_t nr_functions; /* processes not counted */
	struct intern calls;   /* struct call, by caller, line and callee */
	struct intern owns;    /* struct own, by function and line */
	/* Numbers in the output, indexed by function and by string (for files); 0: its name was not written yet. */
	uint32_t *function_number, *file_number;
	uint32_t last_function, last_file;
	uint64_t period_ns;
};

static uint32_t function_of(const struct writer *w, uint32_t stack)
{
	return w->functions.of_frame[profile_stack_at(w->profile, stack)->frame];
}

/* Returns the line, or 0, which is Callgrind's unknown line: lines begin at 1. */
static int32_t known_line(int32_t line)
{
	return line > 0 ? line : 0;
}

/* Returns the line of the stack's leaf frame. */
static int32_t line_of(const struct writer *w, uint32_t stack)
{
	return known_line(profile_frame_at(w->profile, profile_stack_at(w->profile, stack)->frame)->line);
}

/* Returns the number of the call, or PROFILE_NONE without memory. */
static uint32_t add_call(struct writer *w, uint32_t caller, int32_t line, uint32_t callee)
{
	struct call call = {.caller = caller, .line = line, .callee = callee};
	bool fresh;

	return intern_add(&w->calls, &call, &fresh);
}

static int add_own(struct writer *w, uint32_t stack)
{
	struct own own = {.function = function_of(w, stack), .line = line_of(w, stack)};
	bool fresh;
	uint32_t i = intern_add(&w->owns, &own, &fresh);

	if (i == INTERN_NONE)
		return -ENOMEM;
	((struct own *)intern_item(&w->owns, i))->cost += w->totals.self[stack];
	return 0;
}

/* Adds up the self costs, and the calls from one frame to the next. Returns 0 or -ENOMEM. */
static int add_stacks(struct writer *w)
{
	uint32_t count = w->totals.count;
	uint32_t *function = calloc(count, sizeof(*function)), *call = calloc(count, sizeof(*call));
	bool *first = calloc(count, sizeof(*first)), *first_call = calloc(count, sizeof(*first_call));
	int err = function && call && first && first_call ? 0 : -ENOMEM;

	for (uint32_t s = 1; s < count && !err; s++) {
		uint32_t below = profile_stack_at(w->profile, s)->parent;

		function[s] = function_of(w, s);
		call[s] = PROFILE_NONE; /* frames without a caller are handled by add_roots() */
		if (below != PROFILE_ROOT)
			call[s] = add_call(w, function_of(w, below), line_of(w, below), function[s]);
		if ((below != PROFILE_ROOT && call[s] == PROFILE_NONE) || (w->totals.self[s] && add_own(w, s)))
			err = -ENOMEM;
	}
	for (uint32_t s = 1; s < count && !err; s++) {
		if (call[s] == PROFILE_NONE)
			call[s] = w->calls.count;
	}
	err = err ?: profile_totals_outermost(&w->totals, function, w->nr_functions, first);
	err = err ?: profile_totals_outermost(&w->totals, call, w->calls.count + 1, first_call);
	for (uint32_t s = 1; s < count && !err; s++) {
		struct call *to = intern_item(&w->calls, call[s]);

		if (call[s] == w->calls.count)
			continue;
		if (first[s])
			to->cost += w->totals.total[s];
		if (first_call[s])
			to->count += w->totals.total[s];
	}
	free(function);
	free(call);
	free(first);
	free(first_call);
	return err;
}

/* Adds up the calls from the processes to the outermost functions of their stacks. Returns 0 or -ENOMEM. */
static int add_roots(struct writer *w)
{
	uint32_t *root = calloc(w->totals.count, sizeof(*root)); /* of each stack */
	size_t count;
	const struct profile_sample *samples = profile_samples(w->profile, &count);
	int err = root ? 0 : -ENOMEM;

	for (uint32_t s = 1; s < w->totals.count && !err; s++) {
		uint32_t below = profile_stack_at(w->profile, s)->parent;

		root[s] = below == PROFILE_ROOT ? s : root[below];
	}
	for (size_t i = 0; i < count && !err; i++) {
		uint32_t at;
		struct call *call;

		if (samples[i].stack == PROFILE_ROOT)
			continue;
		at = add_call(w, w->nr_functions + samples[i].process, 0, function_of(w, root[samples[i].stack]));
		if (at == PROFILE_NONE) {
			err = -ENOMEM;
			break;
		}
		call = intern_item(&w->calls, at);
		call->cost += samples[i].value;
		call->count += samples[i].value;
	}
	free(root);
	return err;
}

static int by_caller(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->callee < y->callee ? -1 : x->callee > y->callee;
}

static int by_function(const void *a, const void *b)
{
	const struct own *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/*
 * Writes "(NUMBER) NAME". The name is written only the first time, when *number is 0; it is then set to the number
 * after *last. Readers would take a name of only white space for a missing one: UNKNOWN is written in its place.
 */
static void write_name(uint32_t *number, uint32_t *last, const char *name, FILE *out)
{
	bool known = *number;

	if (!known)
		*number = ++*last;
	fprintf(out, "(%u)", *number);
	if (!known) {
		fputc(' ', out);
		output_escaped(name[strspn(name, " ")] ? name : UNKNOWN, out);
	}
	fputc('\n', out);
}

/* Writes the lines for file and name. prefix: "" for the function that has the costs, "c" for a called one. */
static int write_function(struct writer *w, const char *prefix, uint32_t number)
{
	bool process = number >= w->nr_functions;
	uint32_t file = process ? 0 : profile_group_at(&w->functions, number)->file;
	char *label = process ? output_process_label(w->profile, number - w->nr_functions) : NULL;

	if (process && !label)
		return -ENOMEM;
	fprintf(w->out, "%sf%s=", prefix, *prefix ? "i" : "l");
	write_name(&w->file_number[file], &w->last_file, profile_string(w->profile, file), w->out);
	fprintf(w->out, "%sfn=", prefix);
	write_name(&w->function_number[number], &w->last_function,
		   label ? label : profile_string(w->profile, profile_group_at(&w->functions, number)->name), w->out);
	free(label);
	return 0;
}

/* Writes the costs by event: CPU time, to the nearest microsecond, if it is known, and the value. */
static void write_cost(const struct writer *w, uint64_t cost)
{
	if (w->period_ns)
		fprintf(w->out, "%.0f ", (double)cost * (double)w->period_ns / 1e3);
	fprintf(w->out, "%" PRIu64 "\n", cost);
}

static int write_call(struct writer *w, const struct call *call)
{
	int32_t first = 0;
	int err = write_function(w, "c", call->callee);

	if (call->callee < w->nr_functions)
		first = known_line(
			profile_frame_at(w->profile, profile_group_at(&w->functions, call->callee)->frame)->first_line);
	fprintf(w->out, "calls=%" PRIu64 " %d\n%d ", call->count, first, call->line);
	write_cost(w, call->cost);
	return err;
}

static int write_body(struct writer *w)
{
	struct own *own = w->owns.items, *owns_end = own + w->owns.count;
	struct call *call = w->calls.items, *calls_end = call + w->calls.count;
	int err = 0;

	if (w->owns.count)
		qsort(own, w->owns.count, sizeof(*own), by_function);
	if (w->calls.count)
		qsort(call, w->calls.count, sizeof(*call), by_caller);
	while ((own < owns_end || call < calls_end) && !err) {
		uint32_t number = own < owns_end && (call == calls_end || own->function <= call->caller) ? own->function
													 : call->caller;

		fputc('\n', w->out);
		err = write_function(w, "", number);
		/* callgrind_annotate expects that every function has self costs. */
		if (number < w->nr_functions && (own == owns_end || own->function != number)) {
			fprintf(w->out, "%d ", call->line);
			write_cost(w, 0);
		}
		for (; own < owns_end && own->function == number; own++) {
			fprintf(w->out, "%d ", own->line);
			write_cost(w, own->cost);
		}
		for (; call < calls_end && call->caller == number && !err; call++) {
			if (call->count)
				err = write_call(w, call);
		}
	}
	return err;
}

/* Writes an event's name, which must be one word: other characters become underscores. */
static void write_event_name(const char *name, FILE *out)
{
	for (; *name; name++)
		fputc(strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *name) ? *name : '_',
		      out);
}

static int write_head(const struct writer *w)
{
	struct profile_measure measure = profile_get_measure(w->profile);
	size_t count;
	const struct profile_account *account = profile_account_entries(w->profile, &count);

	fputs("# callgrind format\nversion: 1\ncreator: pybpf " PYBPF_VERSION "\n", w->out);
	if (profile_process_count(w->profile) == 1) {
		char *label = output_process_label(w->profile, 0);

		if (!label)
			return -ENOMEM;
		fputs("cmd: ", w->out);
		output_escaped(label, w->out);
		fputc('\n', w->out);
		free(label);
	}
	for (size_t i = 0; i < count; i++) {
		if (!account[i].value)
			continue;
		fputs("desc: ", w->out);
		output_account_entry(w->profile, &account[i], w->out);
		fputc('\n', w->out);
	}
	if (!w->totals.total[PROFILE_ROOT])
		fputs("desc: No sample has Python frames.\n", w->out);
	fputs("positions: line\nevent: ", w->out);
	/* Readers show the first event unless they are asked for another. */
	if (w->period_ns)
		fputs(CPU_EVENT " : CPU time in microseconds\nevent: ", w->out);
	write_event_name(measure.name, w->out);
	fputs(" : ", w->out);
	output_escaped(measure.name, w->out);
	fputs(" in ", w->out);
	output_escaped(measure.unit, w->out);
	fputs(w->period_ns ? "\nevents: " CPU_EVENT " " : "\nevents: ", w->out);
	write_event_name(measure.name, w->out);
	fputs("\nsummary: ", w->out);
	write_cost(w, w->totals.total[PROFILE_ROOT]);
	return 0;
}

int output_callgrind(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct writer w = {.profile = p, .out = out, .period_ns = profile_get_measure(p).period_ns};
	int err = profile_totals_make(&w.totals, p),
	    grouped = profile_groups_make(&w.functions, p, PROFILE_BY_FUNCTION);

	(void)options;
	intern_init(&w.calls, sizeof(struct call), offsetof(struct call, unused));
	intern_init(&w.owns, sizeof(struct own), offsetof(struct own, cost));
	err = err ?: grouped;
	if (!err) {
		w.nr_functions = w.functions.table.count;
		w.function_number =
			calloc((size_t)w.nr_functions + profile_process_count(p) + 1, sizeof(*w.function_number));
		w.file_number = calloc(profile_string_count(p), sizeof(*w.file_number));
		err = w.function_number && w.file_number ? 0 : -ENOMEM;
	}
	err = err ?: add_stacks(&w);
	err = err ?: add_roots(&w);
	err = err ?: write_head(&w);
	err = err ?: write_body(&w);
	if (!err) {
		fputs("\ntotals: ", out);
		write_cost(&w, w.totals.total[PROFILE_ROOT]);
	}
	profile_totals_free(&w.totals);
	profile_groups_free(&w.functions);
	intern_free(&w.calls);
	intern_free(&w.owns);
	free(w.function_number);
	free(w.file_number);
	return err;
}
