// SPDX-License-Identifier: Apache-2.0
/*
 * The file format of Python's cProfile, for pstats, snakeviz and others: one dict in the format of the module marshal,
 *
 *	{(file, first line, name): (cc, nc, tottime, cumtime, {caller's key: (cc, nc, tottime, cumtime)})}
 *
 * A sampler does not see calls: cc and nc, the numbers of calls, are the samples in which the function (called by that
 * caller) was on the stack, counted once per sample. Times are seconds if the CPU time per sample is known, or else
 * values of the profile's measure.
 *
 * Only those of marshal's types (CPython, Python/marshal.c) are used that mean the same from Python 2.7 to 3.15. That
 * excludes references, so every key is written in full. 't' is a str in both 2 and 3.
 */
#include "output/output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "profile/groups.h"
#include "profile/totals.h"
#include "base/text_stream.h"

/* The file name that pstats uses, with line 0, for functions without a file. */
#define NO_FILE "~"

struct counts {
	uint64_t samples, own;
};

/* A function that was called by another. */
struct call {
	uint32_t callee, caller;
	struct counts counts;
};

struct writer {
	const struct profile *profile;
	FILE *out;
	struct profile_totals totals;
	struct profile_groups functions;
	struct counts *counts; /* by function */
	struct intern calls;   /* struct call, by callee and caller */
	double unit;           /* seconds that a value of 1 represents */
	int err;
};

static void write_int32(struct writer *w, int32_t number)
{
	for (int shift = 0; shift < 32; shift += 8)
		fputc((int)((uint32_t)number >> shift & 0xff), w->out);
}

/* Writes an integer. A long has digits of base 2^15; small numbers are written as int, another type in Python 2. */
static void write_integer(struct writer *w, uint64_t number)
{
	int digits = 0;

	if (number <= INT32_MAX) {
		fputc('i', w->out);
		write_int32(w, (int32_t)number);
		return;
	}
	for (uint64_t rest = number; rest; rest >>= 15)
		digits++;
	fputc('l', w->out);
	write_int32(w, digits);
	for (; number; number >>= 15) {
		fputc((int)(number & 0xff), w->out);
		fputc((int)(number >> 8 & 0x7f), w->out);
	}
}

/* Writes a double as IEEE 754, least significant byte first. */
static void write_double(struct writer *w, double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	fputc('g', w->out);
	for (int shift = 0; shift < 64; shift += 8)
		fputc((int)(bits >> shift & 0xff), w->out);
}

/* Writes a string, escaped as in folded stacks, so that it is UTF-8 and different names stay different. */
static void write_string(struct writer *w, const char *text)
{
	char *escaped = NULL;
	size_t size = 0;
	FILE *stream = text_stream_open(&escaped, &size);

	if (!stream) {
		w->err = -ENOMEM;
		return;
	}
	output_escaped(text, stream);
	if (fclose(stream) || size > INT32_MAX) {
		w->err = -ENOMEM;
	} else {
		fputc('t', w->out);
		write_int32(w, (int32_t)size);
		fwrite(escaped, 1, size, w->out);
	}
	free(escaped);
}

static void write_tuple(struct writer *w, int32_t size)
{
	fputc('(', w->out);
	write_int32(w, size);
}

static void write_key(struct writer *w, const char *file, int32_t line, const char *name)
{
	write_tuple(w, 3);
	write_string(w, *file ? file : NO_FILE);
	write_integer(w, line > 0 ? (uint64_t)line : 0);
	write_string(w, name);
}

static void write_function(struct writer *w, uint32_t function)
{
	const struct profile_group *group = profile_group_at(&w->functions, function);

	write_key(w, profile_string(w->profile, group->file), group->line, profile_string(w->profile, group->name));
}

static void write_counts(struct writer *w, const struct counts *counts)
{
	write_integer(w, counts->samples);
	write_integer(w, counts->samples);
	write_double(w, (double)counts->own * w->unit);
	write_double(w, (double)counts->samples * w->unit);
}

static uint32_t function_of(const struct writer *w, uint32_t stack)
{
	return w->functions.of_frame[profile_stack_at(w->profile, stack)->frame];
}

/* Adds up functions and calls. keys and outermost: scratch arrays with an element for each stack. */
static int add_up(struct writer *w, uint32_t *keys, bool *outermost)
{
	int err;

	for (uint32_t s = 1; s < w->totals.count; s++)
		keys[s] = function_of(w, s);
	err = profile_totals_outermost(&w->totals, keys, w->functions.table.count, outermost);
	for (uint32_t s = 1; s < w->totals.count && !err; s++) {
		w->counts[keys[s]].own += w->totals.self[s];
		if (outermost[s])
			w->counts[keys[s]].samples += w->totals.total[s];
	}
	for (uint32_t s = 1; s < w->totals.count && !err; s++) {
		uint32_t below = profile_stack_at(w->profile, s)->parent;
		struct call call = {.callee = keys[s]};
		bool fresh;

		if (below == PROFILE_ROOT)
			continue;
		call.caller = function_of(w, below);
		keys[s] = intern_add(&w->calls, &call, &fresh);
		if (keys[s] == INTERN_NONE)
			return -ENOMEM;
	}
	/* Frames at the root have no caller: their key is one that no call has. */
	for (uint32_t s = 1; s < w->totals.count; s++) {
		if (profile_stack_at(w->profile, s)->parent == PROFILE_ROOT)
			keys[s] = w->calls.count;
	}
	err = err ?: profile_totals_outermost(&w->totals, keys, w->calls.count + 1, outermost);
	for (uint32_t s = 1; s < w->totals.count && !err; s++) {
		struct call *call = intern_item(&w->calls, keys[s]);

		if (keys[s] == w->calls.count)
			continue;
		call->counts.own += w->totals.self[s];
		if (outermost[s])
			call->counts.samples += w->totals.total[s];
	}
	return err;
}

static int by_callee(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	return x->caller < y->caller ? -1 : x->caller > y->caller;
}

static void write_stats(struct writer *w)
{
	const struct call *call = w->calls.items, *end = call + w->calls.count;

	fputc('{', w->out);
	for (uint32_t i = 0; i < w->functions.table.count && !w->err; i++) {
		if (w->counts[i].samples) {
			write_function(w, i);
			write_tuple(w, 5);
			write_counts(w, &w->counts[i]);
			fputc('{', w->out);
		}
		for (; call < end && call->callee == i; call++) {
			if (!call->counts.samples)
				continue;
			write_function(w, call->caller);
			write_tuple(w, 4);
			write_counts(w, &call->counts);
		}
		if (w->counts[i].samples)
			fputc('0', w->out);
	}
	/* pstats refuses an empty dict. */
	if (!w->totals.total[PROFILE_ROOT]) {
		write_key(w, "", 0, "<no sample has Python frames>");
		write_tuple(w, 5);
		write_counts(w, &(struct counts){0});
		fputs("{0", w->out);
	}
	fputc('0', w->out);
}

static double unit_of(const struct profile *p)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"nanoseconds", 1e-9}, {"microseconds", 1e-6}, {"milliseconds", 1e-3}};
	struct profile_measure measure = profile_get_measure(p);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(measure.unit, units[i].unit) == 0)
			return units[i].seconds;
	}
	return measure.period_ns ? (double)measure.period_ns / 1e9 : 1;
}

int output_pstats(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct writer w = {.profile = p, .out = out, .unit = unit_of(p)};
	int err = profile_totals_make(&w.totals, p),
	    grouped = profile_groups_make(&w.functions, p, PROFILE_BY_DEFINITION);
	uint32_t *keys = calloc(w.totals.count, sizeof(*keys));
	bool *outermost = calloc(w.totals.count, sizeof(*outermost));

	(void)options;
	intern_init(&w.calls, sizeof(struct call), offsetof(struct call, counts));
	w.counts = calloc((size_t)w.functions.table.count + 1, sizeof(*w.counts));
	if (!keys || !outermost || !w.counts)
		err = -ENOMEM;
	err = err ?: grouped;
	err = err ?: add_up(&w, keys, outermost);
	if (!err) {
		if (w.calls.count)
			qsort(w.calls.items, w.calls.count, sizeof(struct call), by_callee);
		write_stats(&w);
		err = w.err;
	}
	profile_totals_free(&w.totals);
	profile_groups_free(&w.functions);
	intern_free(&w.calls);
	free(w.counts);
	free(keys);
	free(outermost);
	return err;
}
