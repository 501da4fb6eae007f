// SPDX-License-Identifier: Apache-2.0
/* A table of functions, or of lines, by self samples (it was the leaf) and total samples (it was on the stack). */
#include "output/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/groups.h"
#include "profile/totals.h"
#include "base/text_stream.h"

/* Rows of the tables; all others are added up in one row. */
#define TEXT_ROWS         40
#define TEXT_PROCESS_ROWS 20
/* The width of the column of process names; a longer name shifts the columns behind it. */
#define TEXT_PROCESS_WIDTH 40
/* The least width of a column of numbers. */
#define TEXT_NUMBER_WIDTH 8

/* A function, or a line. */
struct row {
	uint64_t self, total;
	uint32_t group;
};

struct table {
	const struct profile *profile;
	struct profile_totals totals;
	struct profile_groups groups;
	struct row *rows;
	uint32_t count;
	uint64_t all;
	int width; /* of numbers */
};

static int by_self(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

/* Adds up the values of stacks in rows. Returns 0 or negative errno. */
static int add_up(struct table *t)
{
	uint32_t *groups = calloc(t->totals.count, sizeof(*groups));
	bool *outermost = calloc(t->totals.count, sizeof(*outermost));
	int err = groups && outermost ? 0 : -ENOMEM;

	for (uint32_t s = 1; s < t->totals.count && !err; s++)
		groups[s] = t->groups.of_frame[profile_stack_at(t->profile, s)->frame];
	err = err ?: profile_totals_outermost(&t->totals, groups, t->count, outermost);
	for (uint32_t i = 0; i < t->count && !err; i++)
		t->rows[i].group = i;
	for (uint32_t s = 1; s < t->totals.count && !err; s++) {
		t->rows[groups[s]].self += t->totals.self[s];
		if (outermost[s])
			t->rows[groups[s]].total += t->totals.total[s];
	}
	free(groups);
	free(outermost);
	return err;
}

static int make_table(struct table *t, const struct profile *p, bool by_line)
{
	int err = profile_totals_make(&t->totals, p);

	t->profile = p;
	err = err ?: profile_groups_make(&t->groups, p, by_line ? PROFILE_BY_LINE : PROFILE_BY_FUNCTION);
	if (err)
		return err;
	t->count = t->groups.table.count;
	t->rows = calloc(t->count ? t->count : 1, sizeof(*t->rows));
	err = t->rows ? add_up(t) : -ENOMEM;
	if (err)
		return err;
	t->all = t->totals.total[PROFILE_ROOT];
	t->width = snprintf(NULL, 0, "%" PRIu64, t->all);
	if (t->width < TEXT_NUMBER_WIDTH)
		t->width = TEXT_NUMBER_WIDTH;
	qsort(t->rows, t->count, sizeof(*t->rows), by_self);
	return 0;
}

static void free_table(struct table *t)
{
	profile_totals_free(&t->totals);
	profile_groups_free(&t->groups);
	free(t->rows);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0.0;
}

struct owner {
	uint32_t process;
	uint64_t samples;
};

static int by_samples(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

/* Returns the columns of a UTF-8 text on a terminal, roughly: one for each character. */
static size_t columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* Returns the escaped label of a process, which the caller frees. NULL: no memory. */
static char *printed_label(const struct profile *p, uint32_t process)
{
	char *label = output_process_label(p, process), *escaped = NULL;
	size_t size = 0;
	FILE *out = label ? text_stream_open(&escaped, &size) : NULL;

	if (out) {
		output_escaped(label, out);
		if (fclose(out)) {
			free(escaped);
			escaped = NULL;
		}
	}
	free(label);
	return escaped;
}

static int write_owners(const struct table *t, const struct owner *owners, uint32_t rows, FILE *out)
{
	const struct profile *p = t->profile;
	const char *measure = profile_get_measure(p).name;
	char *labels[TEXT_PROCESS_ROWS] = {NULL};
	bool contained = false;
	size_t width = strlen("process"), pad;
	int err = 0;

	for (uint32_t i = 0; i < rows; i++) {
		size_t n;

		labels[i] = printed_label(p, owners[i].process);
		if (!labels[i]) {
			err = -ENOMEM;
			goto done;
		}
		n = columns(labels[i]);
		if (n > width && n <= TEXT_PROCESS_WIDTH)
			width = n;
		contained |= profile_process_at(p, owners[i].process)->container != 0;
	}
	pad = columns(measure);
	fprintf(out, "%*s", pad < (size_t)t->width ? t->width - (int)pad : 0, "");
	output_escaped(measure, out);
	if (contained)
		fprintf(out, " %7s  %-*s  %s\n", "share", (int)width, "process", "container");
	else
		fprintf(out, " %7s  %s\n", "share", "process");
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t container = profile_process_at(p, owners[i].process)->container;
		size_t n = columns(labels[i]);

		fprintf(out, "%*" PRIu64 " %6.1f%%  %s", t->width, owners[i].samples,
			percent(owners[i].samples, t->all), labels[i]);
		if (container) {
			fprintf(out, "%*s", (int)(n < width ? width - n : 0) + 2, "");
			output_escaped(profile_string(p, container), out);
		}
		fputc('\n', out);
	}
done:
	for (uint32_t i = 0; i < rows; i++)
		free(labels[i]);
	return err;
}

static int write_processes(const struct table *t, FILE *out)
{
	const struct profile *p = t->profile;
	uint32_t count = profile_process_count(p), rows = count < TEXT_PROCESS_ROWS ? count : TEXT_PROCESS_ROWS;
	struct owner *owners = calloc(count, sizeof(*owners));
	const struct profile_sample *samples;
	size_t sample_count;
	int err;

	if (!owners)
		return -ENOMEM;
	samples = profile_samples(p, &sample_count);
	for (uint32_t i = 0; i < count; i++)
		owners[i].process = i;
	for (size_t i = 0; i < sample_count; i++) {
		if (samples[i].stack != PROFILE_ROOT)
			owners[samples[i].process].samples += samples[i].value;
	}
	qsort(owners, count, sizeof(*owners), by_samples);
	err = write_owners(t, owners, rows, out);
	if (!err && count > rows)
		fprintf(out, "and %u process%s more\n", count - rows, count - rows == 1 ? "" : "es");
	fputc('\n', out);
	free(owners);
	return err;
}

/* Writes what the numbers measure, unless they are counts of samples. */
static void write_measure(const struct table *t, FILE *out)
{
	struct profile_measure measure = profile_get_measure(t->profile);

	if (measure.period_ns) {
		fprintf(out, "%" PRIu64 " ", t->all);
		output_escaped(measure.name, out);
		fprintf(out, " of %.3g ms of CPU time each: %.4g s\n\n", (double)measure.period_ns / 1e6,
			(double)t->all * (double)measure.period_ns / 1e9);
	} else if (strcmp(measure.unit, "count") != 0 || strcmp(measure.name, "samples") != 0) {
		output_escaped(measure.name, out);
		fprintf(out, ": %" PRIu64 " ", t->all);
		output_escaped(measure.unit, out);
		fputs("\n\n", out);
	}
}

static void write_group(const struct table *t, const struct profile_group *group, bool by_line, FILE *out)
{
	const char *file = profile_string(t->profile, group->file);

	if (by_line && *file) {
		output_escaped(file, out);
		if (group->line != PROFILE_NO_LINE)
			fprintf(out, ":%d", group->line);
		fputs("  ", out);
	}
	output_escaped(profile_string(t->profile, group->name), out);
	if (!by_line && *file) {
		fputs(" (", out);
		output_escaped(file, out);
		fputc(')', out);
	}
	fputc('\n', out);
}

static void write_rows(const struct table *t, bool by_line, FILE *out)
{
	const char *what = by_line ? "line" : "function";

	fprintf(out, "%*s %7s  %*s %7s  %s\n", t->width, "self", "self%", t->width, "total", "total%", what);
	for (uint32_t i = 0; i < t->count && i < TEXT_ROWS; i++) {
		const struct row *row = &t->rows[i];

		fprintf(out, "%*" PRIu64 " %6.1f%%  %*" PRIu64 " %6.1f%%  ", t->width, row->self,
			percent(row->self, t->all), t->width, row->total, percent(row->total, t->all));
		write_group(t, profile_group_at(&t->groups, row->group), by_line, out);
	}
	if (t->count > TEXT_ROWS)
		fprintf(out, "and %u %s%s more\n", t->count - TEXT_ROWS, what, t->count - TEXT_ROWS == 1 ? "" : "s");
}

/* Writes remarks on what the table does not show. */
static void write_notes(const struct profile *p, FILE *out)
{
	const char *separator = "\n";
	size_t count;
	const struct profile_account *account = profile_account_entries(p, &count);

	for (size_t i = 0; i < count; i++) {
		const char *group = profile_string(p, account[i].group);

		if (!account[i].value || (strcmp(group, "lost") != 0 && strcmp(group, "incomplete") != 0))
			continue;
		fputs(separator, out);
		output_account_entry(p, &account[i], out);
		fputc('\n', out);
		separator = "";
	}
}

int output_text(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct table t = {0};
	int err = make_table(&t, p, options->by_line);

	if (err)
		goto done;
	if (!t.all) {
		fprintf(out, "No sample has Python frames: there is no %s to show.\n",
			options->by_line ? "line" : "function");
		write_notes(p, out);
		goto done;
	}
	write_measure(&t, out);
	if (profile_process_count(p) > 1)
		err = write_processes(&t, out);
	if (err)
		goto done;
	write_rows(&t, options->by_line, out);
	write_notes(p, out);
done:
	free_table(&t);
	return err;
}
