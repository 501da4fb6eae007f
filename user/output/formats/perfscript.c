// SPDX-License-Identifier: Apache-2.0
/*
 * Text in the format of perf script, for stackcollapse-perf.pl, inferno, speedscope, Firefox Profiler and other readers
 * of it:
 *
 *     comm  PID/TID   seconds.nanoseconds: PERIOD EVENT:
 *     <TAB>            LINE leaf (file)
 *     <TAB>            LINE root (file)
 *     <empty line>
 *
 * Each sample is a record, in the order of their times. The period is as in perf: the CPU time in nanoseconds that the
 * sample represents if that is known, else its value: microseconds where time was measured (EVENT is then wall, offcpu
 * or gil). Samples without times are added up to one record per stack, at
 * time 0: readers that count records and ignore the period count these wrong, as the remarks in the file say.
 *
 * The CPU field is left out, as perf allows. The module is the file, and the address, which readers take for a place in
 * a function, is the line that was executed, 0 where it is unknown. stackcollapse-perf.pl and inferno look at the name
 * only, gprof2dot, speedscope and Firefox Profiler at the module, too: a name that functions of several files have is
 * written as "name [file]", one that several functions of a file have as "name [file:FIRST]", with the function's first
 * line.
 *
 * Characters that would end a field are replaced: blanks and parentheses in comm by _, its
 * semicolons by a colon, blanks and parentheses in files by \xNN, and in
 * all texts control characters and bytes that are not UTF-8 by \xNN.
 */
#include "output/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/tracks.h"
#include "profile/groups.h"
#include "base/text.h"
#include "base/text_stream.h"

/*
 * Writes a text as one field. Replaces each blank or parenthesis by `blank`, or by \xNN if that is NULL, and with
 * `blank` also semicolons, which separate frames in collapsed stacks.
 */
static int write_field(const char *text, const char *blank, FILE *out)
{
	char *printable = text_printable(text);

	if (!printable)
		return -ENOMEM;
	for (const char *c = printable; *c; c++) {
		if (blank && *c == ';')
			fputc(':', out);
		else if (!strchr(" ()", *c))
			fputc(*c, out);
		else if (blank)
			fputs(blank, out);
		else
			fprintf(out, "\\x%02x", *c);
	}
	free(printable);
	return 0;
}

/* Tells which functions have a name that others have. */
struct namesakes {
	struct profile_groups functions, definitions;
	uint32_t *of_name;     /* number of functions, by name and file, that have a name; by string */
	uint32_t *of_function; /* number of definitions of a function, by group */
};

static int find_namesakes(const struct profile *p, struct namesakes *n)
{
	int err = profile_groups_make(&n->functions, p, PROFILE_BY_FUNCTION),
	    more = profile_groups_make(&n->definitions, p, PROFILE_BY_DEFINITION);

	n->of_name = calloc((size_t)profile_string_count(p) + 1, sizeof(*n->of_name));
	n->of_function = calloc((size_t)n->functions.table.count + 1, sizeof(*n->of_function));
	if (err || more || !n->of_name || !n->of_function)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->functions.table.count; i++)
		n->of_name[profile_group_at(&n->functions, i)->name]++;
	for (uint32_t i = 0; i < n->definitions.table.count; i++)
		n->of_function[n->functions.of_frame[profile_group_at(&n->definitions, i)->frame]]++;
	return 0;
}

static void free_namesakes(struct namesakes *n)
{
	profile_groups_free(&n->functions);
	profile_groups_free(&n->definitions);
	free(n->of_name);
	free(n->of_function);
}

static int write_name(const struct profile *p, const struct namesakes *namesakes, uint32_t index, FILE *out)
{
	const struct profile_frame *frame = profile_frame_at(p, index);
	const char *name = profile_string(p, frame->name);
	bool in_file = namesakes->of_function[namesakes->functions.of_frame[index]] > 1;
	int err;

	/* Readers need a name that is not empty. */
	text_print(*name ? name : "?", out);
	if (!frame->file || (!in_file && namesakes->of_name[frame->name] < 2))
		return 0;
	fputs(" [", out);
	err = write_field(profile_string(p, frame->file), NULL, out);
	if (in_file && frame->first_line != PROFILE_NO_LINE)
		fprintf(out, ":%d", frame->first_line);
	fputc(']', out);
	return err;
}

/* Returns the line of text for a frame, which the caller frees. NULL: no memory. */
static char *line_of(const struct profile *p, const struct namesakes *namesakes, uint32_t index)
{
	const struct profile_frame *frame = profile_frame_at(p, index);
	char *line = NULL;
	size_t size = 0;
	FILE *out = text_stream_open(&line, &size);
	int err;

	if (!out)
		return NULL;
	fprintf(out, "\t%16d ", frame->line == PROFILE_NO_LINE ? 0 : frame->line);
	err = write_name(p, namesakes, index, out);
	fputs(" (", out);
	err = err ?: write_field(frame->file ? profile_string(p, frame->file) : "[python]", NULL, out);
	fputs(")\n", out);
	if (fclose(out) || err) {
		free(line);
		return NULL;
	}
	return line;
}

/* Returns the text with which all records of a track begin; the caller frees it. NULL: no memory. */
static char *head_of(const struct profile *p, const struct output_track *track)
{
	const struct profile_process *process = profile_process_at(p, track->process);
	const struct profile_thread *thread =
		track->thread == PROFILE_NONE ? NULL : profile_thread_at(p, track->thread);
	const char *comm = profile_string(p, thread ? thread->name : process->name);
	char *head = NULL;
	size_t size = 0;
	FILE *out = text_stream_open(&head, &size);
	int err;

	if (!out)
		return NULL;
	err = write_field(*comm ? comm : "?", "_", out);
	fprintf(out, " %5d/%-5d", process->pid, thread ? thread->tid : process->pid);
	if (fclose(out) || err) {
		free(head);
		return NULL;
	}
	return head;
}

/* Texts that are made once and written in many records. */
struct texts {
	char **heads; /* by track */
	char **lines; /* by frame */
	size_t nr_heads, nr_lines;
};

static void free_texts(struct texts *t)
{
	for (size_t i = 0; i < t->nr_heads; i++)
		free(t->heads[i]);
	for (size_t i = 0; i < t->nr_lines; i++)
		free(t->lines[i]);
	free(t->heads);
	free(t->lines);
}

static int make_texts(const struct profile *p, const struct output_tracks *tracks, struct texts *t)
{
	uint32_t frames = profile_frame_count(p);
	struct namesakes namesakes = {0};
	int err;

	t->heads = calloc(tracks->count + 1, sizeof(*t->heads));
	t->lines = calloc((size_t)frames + 1, sizeof(*t->lines));
	if (!t->heads || !t->lines)
		return -ENOMEM;
	while (t->nr_heads < tracks->count) {
		t->heads[t->nr_heads] = head_of(p, &tracks->tracks[t->nr_heads]);
		if (!t->heads[t->nr_heads++])
			return -ENOMEM;
	}
	err = find_namesakes(p, &namesakes);
	while (!err && t->nr_lines < frames) {
		t->lines[t->nr_lines] = line_of(p, &namesakes, (uint32_t)t->nr_lines);
		if (!t->lines[t->nr_lines++])
			err = -ENOMEM;
	}
	free_namesakes(&namesakes);
	return err;
}

static int write_record(const struct profile *p, const struct output_tick *tick, const struct texts *texts, FILE *out)
{
	struct profile_measure measure = profile_get_measure(p);
	uint64_t period = measure.period_ns ?: 1;
	/* Time that was measured does not come from the timer. */
	const char *timer = strcmp(measure.unit, PROFILE_UNIT_TIME) ? profile_find_fact(p, PROFILE_FACT_EVENT) : NULL;
	int err;

	fprintf(out, "%s %5" PRIu64 ".%09" PRIu64 ": %10" PRIu64 " ", texts->heads[tick->track],
		tick->time_ns / 1000000000, tick->time_ns % 1000000000, tick->value * period);
	err = write_field(timer ?: measure.name, "_", out);
	fputs(": \n", out);
	for (uint32_t s = tick->stack; s != PROFILE_ROOT; s = profile_stack_at(p, s)->parent)
		fputs(texts->lines[profile_stack_at(p, s)->frame], out);
	fputc('\n', out);
	return err;
}

/* Records are written in the order of their ticks' times. */
static int by_time(const void *a, const void *b)
{
	const struct output_tick *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static int write_records(const struct profile *p, struct output_tracks *tracks, FILE *out)
{
	struct texts texts = {0};
	size_t count = 0;
	int err = make_texts(p, tracks, &texts);

	for (size_t i = 0; i < tracks->count; i++)
		count += tracks->tracks[i].count;
	qsort(tracks->ticks, count, sizeof(*tracks->ticks), by_time);
	for (size_t i = 0; i < count && !err; i++)
		err = write_record(p, &tracks->ticks[i], &texts, out);
	free_texts(&texts);
	return err;
}

/* Writes remarks as comments, after the records: not every reader accepts comments at the beginning. */
static void write_remarks(const struct output_tracks *tracks, FILE *out)
{
	size_t untimed = 0;

	for (size_t i = 0; i < tracks->count; i++)
		untimed += !tracks->tracks[i].timed;
	if (untimed)
		fputs("# samples whose times are not known are added up to one record for each stack, at 0\n", out);
	/* Without a record, readers recognize the format by the first line. */
	if (!tracks->count)
		fputs("# ========\n# written by pybpf " PYBPF_VERSION ": there are no samples with Python frames\n"
		      "# ========\n#\n",
		      out);
}

int output_perfscript(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct output_tracks tracks;
	int err = output_tracks_make(p, &tracks);

	(void)options;
	if (err)
		return err;
	err = write_records(p, &tracks, out);
	if (!err)
		write_remarks(&tracks, out);
	output_tracks_free(&tracks);
	return err;
}
