// SPDX-License-Identifier: Apache-2.0
/* A table of functions, or of lines, by self samples (it was the leaf) and total samples (it was on the stack). */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/equal_texts.h"
#include "output/amount.h"
#include "output/truncate.h"
#include "output/formats/text_table.h"
#include "profile/groups.h"
#include "profile/application_frames.h"
#include "profile/totals.h"
#include "base/text.h"
#include "base/text_stream.h"

/* The least width of a column of numbers. */
#define TEXT_NUMBER_WIDTH 8
/* The columns that a terminal keeps for functions, before it has none for numbers beside the percents. */
#define TEXT_FUNCTION_ROOM 34

static int by_self(const void *a, const void *b)
{
	const struct text_row *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

static int by_total(const void *a, const void *b)
{
	const struct text_row *x = a, *y = b;

	return x->total != y->total ? (x->total > y->total ? -1 : 1) : by_self(a, b);
}

static int by_own(const void *a, const void *b)
{
	const struct text_row *x = a, *y = b;

	return x->own != y->own ? (x->own > y->own ? -1 : 1) : by_self(a, b);
}

/* Finds the row of each stack, in row_of, and makes the rows; that of waits, which have no row here, is the last one.
 */
static int make_rows(struct text_table *t, uint32_t *row_of)
{
	uint32_t *row_of_group = malloc((t->groups.table.count + 1) * sizeof(*row_of_group));

	t->rows = calloc(t->groups.table.count + 1, sizeof(*t->rows));
	if (!t->rows || !row_of_group) {
		free(row_of_group);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < t->groups.table.count; i++)
		row_of_group[i] = PROFILE_NONE;
	for (uint32_t s = 1; s < t->totals.count; s++) {
		uint32_t group = t->groups.of_frame[profile_stack_at(t->profile, s)->frame];

		row_of[s] = PROFILE_NONE;
		if (profile_state_of(t->profile, s))
			continue;
		if (row_of_group[group] == PROFILE_NONE) {
			row_of_group[group] = t->count;
			t->rows[t->count].group = group;
			t->rows[t->count++].from = PROFILE_NONE;
		}
		row_of[s] = row_of_group[group];
	}
	for (uint32_t s = 1; s < t->totals.count; s++)
		row_of[s] = row_of[s] == PROFILE_NONE ? t->count : row_of[s];
	free(row_of_group);
	return 0;
}

/* Adds up the values of stacks in rows. Returns 0 or negative errno. */
static int add_up(struct text_table *t)
{
	uint32_t *row_of = calloc(t->totals.count, sizeof(*row_of));
	bool *outermost = calloc(t->totals.count, sizeof(*outermost));
	int err = row_of && outermost ? make_rows(t, row_of) : -ENOMEM;

	err = err ?: profile_totals_outermost(&t->totals, row_of, t->count + 1, outermost);
	for (uint32_t s = 1; s < t->totals.count && !err; s++) {
		t->rows[row_of[s]].self += t->totals.self[s];
		if (outermost[s])
			t->rows[row_of[s]].total += t->totals.total[s];
	}
	err = err ?: output_text_add_own(t, row_of);
	free(row_of);
	free(outermost);
	return err;
}

/* Returns the columns of the largest number; smaller ones with a unit may need one more. */
static int measured_width(const struct text_table *t)
{
	const struct profile_measure measure = profile_get_measure(t->profile);
	char amount[OUTPUT_AMOUNT_MAX];
	int width = (int)strlen(output_amount(&measure, t->all, amount)) + output_amount_has_unit(&measure);

	return width < TEXT_NUMBER_WIDTH ? TEXT_NUMBER_WIDTH : width;
}

static int make_table(struct text_table *t, const struct profile *p, const struct output_options *options)
{
	static int (*const orders[])(const void *a, const void *b) = {
		[OUTPUT_SORT_SELF] = by_self,
		[OUTPUT_SORT_TOTAL] = by_total,
		[OUTPUT_SORT_OWN] = by_own,
		[OUTPUT_SORT_COUNT] = by_self,
	};
	int err = profile_totals_make(&t->totals, p);

	t->profile = p;
	t->options = *options;
	if (!t->options.rows)
		t->options.rows = OUTPUT_ROWS_DEFAULT;
	err = err ?: profile_groups_make(&t->groups, p, options->by_line ? PROFILE_BY_LINE : PROFILE_BY_FUNCTION);
	if (err)
		return err;
	t->own = profile_nearest_own(p);
	err = t->own ? add_up(t) : -ENOMEM;
	if (err)
		return err;
	t->all = t->totals.total[PROFILE_ROOT];
	t->width = measured_width(t);
	qsort(t->rows, t->count, sizeof(*t->rows), orders[options->sort]);
	return 0;
}

static void free_table(struct text_table *t)
{
	profile_totals_free(&t->totals);
	profile_groups_free(&t->groups);
	free(t->own);
	free(t->rows);
}

/* Columns of numbers. */
struct column {
	const char *title, *percent;
	size_t value; /* offset in struct text_row */
};

/* Returns what a row is of, which the caller frees. alone: without its caller. NULL: no memory. */
static char *row_text(const struct text_table *t, const struct text_row *row, bool alone, size_t room)
{
	const struct output_pair pair = {.first = row->group,
					 .second = alone ? PROFILE_NONE : row->from,
					 .between = ", from ",
					 .more = row->more,
					 .yields = true};

	return output_pair_text(t->profile, &t->groups, t->options.by_line, &pair, room);
}

/* Returns as row_text(), with a number that tells the row from the earlier ones that look alike. */
static char *numbered_text(const struct text_table *t, const struct text_row *row, uint32_t number, size_t room)
{
	char *shorter, *text, suffix[16];
	size_t width;

	snprintf(suffix, sizeof(suffix), " #%" PRIu32, number);
	width = strlen(suffix);
	shorter = row_text(t, row, true, room > width ? room - width : 1);
	if (!shorter || asprintf(&text, "%s%s", shorter, suffix) < 0)
		text = NULL;
	free(shorter);
	return text;
}

/*
 * Tells rows apart that look alike, by the place of the function or by numbers: totals cannot be added up. Returns 0 or
 * -ENOMEM.
 */
static int tell_apart(const struct text_table *t, char **texts, uint32_t count, size_t room)
{
	uint32_t *first = calloc((size_t)count + 1, sizeof(*first)), *seen = calloc((size_t)count + 1, sizeof(*seen));
	int err = first && seen ? output_first_alike(texts, count, first) : -ENOMEM;

	for (uint32_t i = 0; i < count && !err; i++)
		seen[first[i]]++;
	for (uint32_t i = 0; i < count && !err; i++) {
		if (seen[first[i]] == 1)
			continue;
		free(texts[i]);
		texts[i] = row_text(t, &t->rows[i], true, room);
		err = texts[i] ? 0 : -ENOMEM;
	}
	err = err ?: output_first_alike(texts, count, first);
	for (uint32_t i = 0; i < count && !err; i++)
		seen[i] = 0;
	for (uint32_t i = 0; i < count && !err; i++) {
		if (++seen[first[i]] == 1)
			continue;
		free(texts[i]);
		texts[i] = numbered_text(t, &t->rows[i], seen[first[i]], room);
		err = texts[i] ? 0 : -ENOMEM;
	}
	free(first);
	free(seen);
	return err;
}

/* Makes the texts of the first rows. Returns 0 or -ENOMEM. */
static int make_texts(const struct text_table *t, char **texts, uint32_t count, size_t room)
{
	for (uint32_t i = 0; i < count; i++) {
		texts[i] = row_text(t, &t->rows[i], false, room);
		if (!texts[i])
			return -ENOMEM;
	}
	return room ? tell_apart(t, texts, count, room) : 0;
}

static void write_row(const struct text_table *t, const struct column *columns, const struct text_row *row, bool narrow,
		      const char *text, FILE *out)
{
	const struct profile_measure measure = profile_get_measure(t->profile);
	char amount[OUTPUT_AMOUNT_MAX];

	for (const struct column *c = columns; c->title; c++) {
		uint64_t value = *(const uint64_t *)((const char *)row + c->value);

		if (narrow)
			fprintf(out, "%5.1f%%  ", output_text_percent(value, t->all));
		else
			fprintf(out, "%*s %6.1f%%  ", t->width, output_amount(&measure, value, amount),
				output_text_percent(value, t->all));
	}
	fprintf(out, "%s\n", text);
}

static int write_rows(const struct text_table *t, FILE *out)
{
	static const struct column columns[] = {
		{"own", "own%", offsetof(struct text_row, own)},
		{"self", "self%", offsetof(struct text_row, self)},
		{"total", "total%", offsetof(struct text_row, total)},
		{0},
	};
	const struct column *shown = columns + (t->options.sort != OUTPUT_SORT_OWN);
	const char *what = output_row_noun(&t->options);
	const size_t count = sizeof(columns) / sizeof(*columns) - 1 - (size_t)(shown - columns);
	const size_t percents = count * strlen("100.0%  "), wide = percents + count * ((size_t)t->width + strlen("  "));
	/* A narrow terminal has no room for the numbers, which the percents tell as well. */
	bool narrow = t->options.width && t->options.width < wide + TEXT_FUNCTION_ROOM;
	size_t room = output_text_room(t, narrow ? percents : wide);
	uint32_t rows = t->count < t->options.rows ? t->count : t->options.rows;
	char **texts = calloc((size_t)rows + 1, sizeof(*texts));
	int err = texts ? make_texts(t, texts, rows, room) : -ENOMEM;

	for (const struct column *c = shown; c->title; c++) {
		if (narrow)
			fprintf(out, "%6s  ", c->percent);
		else
			fprintf(out, "%*s %7s  ", t->width, c->title, c->percent);
	}
	fprintf(out, "%s\n", what);
	for (uint32_t i = 0; i < rows && !err; i++)
		write_row(t, shown, &t->rows[i], narrow, texts[i], out);
	if (t->count > rows)
		fprintf(out, "and %u %s%s more (--limit)\n", t->count - rows, what, t->count - rows == 1 ? "" : "s");
	output_free_texts(texts, rows);
	return err;
}

/* A sentence, which is written in lines of the terminal's width. */
struct sentence {
	FILE *out; /* takes its text; NULL: no memory */
	char *text;
	size_t size;
};

static void begin_sentence(struct sentence *sentence)
{
	*sentence = (struct sentence){0};
	sentence->out = text_stream_open(&sentence->text, &sentence->size);
}

/* Writes the sentence and a line feed, unless it is empty, and frees it. Returns 0 or -ENOMEM. */
static int end_sentence(const struct text_table *t, struct sentence *sentence, FILE *out)
{
	int err = fclose(sentence->out) ? -ENOMEM : 0;

	if (!err && sentence->size)
		text_wrap(sentence->text, 0, 2, t->options.width, out);
	free(sentence->text);
	return err;
}

static bool is_memory(const struct profile_measure *measure)
{
	return strcmp(measure->name, "memory-bytes") == 0 || strcmp(measure->name, "touched-bytes") == 0;
}

/* Writes the sum of all values; time of threads and of suspended tasks apart. */
static void write_sum(const struct text_table *t, const struct profile_measure *measure, FILE *out)
{
	uint64_t suspended = profile_suspended(t->profile);
	char amount[OUTPUT_AMOUNT_MAX];

	if (!suspended) {
		fprintf(out, ": %s", output_amount(measure, t->all, amount));
		return;
	}
	fputs(": ", out);
	if (t->all > suspended)
		fprintf(out, "%s of threads, and ", output_amount(measure, t->all - suspended, amount));
	fprintf(out, "%s of suspended tasks, which overlap: a task counts while those that it awaits do",
		output_amount(measure, suspended, amount));
}

/* Writes what the numbers measure, unless they are counts of samples. */
static int write_measure(const struct text_table *t, FILE *out)
{
	struct profile_measure measure = profile_get_measure(t->profile);
	struct sentence s;
	int err;

	if (!measure.period_ns && strcmp(measure.unit, "count") == 0 && strcmp(measure.name, "samples") == 0)
		return 0;
	begin_sentence(&s);
	if (!s.out)
		return -ENOMEM;
	if (measure.period_ns) {
		fprintf(s.out, "%" PRIu64 " ", t->all);
		output_escaped(measure.name, s.out);
		fprintf(s.out, " of %.3g ms of CPU time each: %.4g s", (double)measure.period_ns / 1e6,
			(double)t->all * (double)measure.period_ns / 1e9);
	} else {
		output_escaped(measure.name, s.out);
		write_sum(t, &measure, s.out);
		if (!output_amount_has_unit(&measure)) {
			fputc(' ', s.out);
			output_escaped(measure.unit, s.out);
		}
		if (is_memory(&measure))
			fputs(", by the function that was the first to touch it: also of memory that was freed and is "
			      "used again; who keeps memory is not told",
			      s.out);
	}
	err = end_sentence(t, &s, out);
	fputc('\n', out);
	return err;
}

static int write_nothing(const struct text_table *t, FILE *out)
{
	struct sentence s;

	begin_sentence(&s);
	if (!s.out)
		return -ENOMEM;
	fprintf(s.out, "%s: there is no %s to show.", output_nothing(t->profile), output_row_noun(&t->options));
	return end_sentence(t, &s, out);
}

static int write_note(const struct text_table *t, const struct profile_account *entry, FILE *out)
{
	struct sentence s;

	begin_sentence(&s);
	if (!s.out)
		return -ENOMEM;
	output_account_entry(t->profile, entry, s.out);
	return end_sentence(t, &s, out);
}

/* Writes remarks on what the table does not show. */
static int write_notes(const struct text_table *t, FILE *out)
{
	const struct profile *p = t->profile;
	const char *separator = "\n";
	size_t count;
	const struct profile_account *account = profile_account_entries(p, &count);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const char *group = profile_string(p, account[i].group);

		if (!account[i].value || (strcmp(group, "lost") != 0 && strcmp(group, "incomplete") != 0))
			continue;
		fputs(separator, out);
		err = write_note(t, &account[i], out);
		separator = "";
	}
	return err;
}

int output_text(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct text_table t = {0};
	int err;

	if (options->by_state)
		return output_text_states(p, options, out);
	if (options->by_import)
		return output_text_imports(p, options, out);
	err = make_table(&t, p, options);
	if (err)
		goto done;
	if (!t.all) {
		err = write_nothing(&t, out);
		err = err ?: write_notes(&t, out);
		goto done;
	}
	err = write_measure(&t, out);
	if (!err && profile_process_count(p) > 1)
		err = output_text_processes(&t, out);
	if (!err && profile_roots(p) & PROFILE_ROOT_THREAD)
		err = output_text_threads(&t, out);
	err = err ?: output_text_waits(&t, out);
	err = err ?: output_text_compiled(&t, out);
	err = err ?: write_rows(&t, out);
	err = err ?: write_notes(&t, out);
done:
	free_table(&t);
	return err;
}
