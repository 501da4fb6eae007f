// SPDX-License-Identifier: Apache-2.0
/* The page of a source file: each line with the time in it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "top/view_internal.h"

/* Columns of the bar of the line with the most time. */
#define BAR 8
/* Columns of a tab, as Python's tokenizer has them. */
#define TAB 8
/* Before the text: both times, the bar, the number of the line. */
#define NUMBERS_COLUMNS (9 + 1 + 9 + 1 + BAR + 1 + 5 + 2)
/* Longest part of a line that is shown. */
#define LINE_MAX_SHOWN 512

/* The samples of a line since the start. */
struct heat {
	uint64_t self, total;
};

struct source_page {
	struct heat *heat; /* by line number */
	size_t lines;      /* line numbers are smaller */
	uint64_t most;     /* of a line */
	size_t sought;     /* the line with the most of the chosen row's function; 0: none */
};

static bool is_of_file(const struct top_drawing *d, const struct top_row *row)
{
	const struct top_row_key *of = &d->choice->of;

	return row->key.file == of->file && row->key.kind == of->kind && row->key.place.line > 0;
}

static bool is_of_function(const struct top_drawing *d, const struct top_row *row)
{
	const struct top_row_key *of = &d->choice->of;

	return row->key.name == of->name && row->key.place.first_line == of->place.first_line;
}

/* Adds up the rows of the file's lines. Returns 0 or -ENOMEM. */
static int gather(const struct top_drawing *d, struct source_page *page)
{
	const struct top_row_key *of = &d->choice->of;
	size_t count;
	uint64_t most_sought = 0;
	const struct top_row **rows = top_model_rows(d->m, TOP_LINES, TOP_BY_ALL_TOTAL, NULL, &count);

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (is_of_file(d, rows[i]) && (size_t)rows[i]->key.place.line >= page->lines)
			page->lines = (size_t)rows[i]->key.place.line + 1;
	}
	page->heat = calloc(page->lines + 1, sizeof(*page->heat));
	for (size_t i = 0; page->heat && i < count; i++) {
		struct heat *heat = &page->heat[is_of_file(d, rows[i]) ? rows[i]->key.place.line : 0];

		if (heat == page->heat)
			continue;
		heat->self += rows[i]->all_self;
		heat->total += rows[i]->all_total;
		if (heat->total > page->most)
			page->most = heat->total;
		if (is_of_function(d, rows[i]) && rows[i]->all_total > most_sought && !of->place.line) {
			most_sought = rows[i]->all_total;
			page->sought = (size_t)rows[i]->key.place.line;
		}
	}
	if (of->place.line > 0)
		page->sought = (size_t)of->place.line;
	free(rows);
	return page->heat ? 0 : -ENOMEM;
}

/* Copies a line with blanks in place of tabs. */
static void expand(const char *line, size_t size, char out[LINE_MAX_SHOWN])
{
	size_t to = 0;

	for (size_t i = 0; i < size && to < LINE_MAX_SHOWN - 1; i++) {
		if (line[i] == '\r' && i + 1 == size)
			break;
		if (line[i] != '\t') {
			out[to++] = line[i];
			continue;
		}
		do
			out[to++] = ' ';
		while (to % TAB && to < LINE_MAX_SHOWN - 1);
	}
	out[to] = '\0';
}

/* Returns the columns that the beginning of a line takes. */
static size_t columns_before(const char *line, size_t size)
{
	char expanded[LINE_MAX_SHOWN], *printable;
	size_t columns;

	expand(line, size, expanded);
	printable = text_printable(expanded);
	columns = printable ? text_width(printable) : 0;
	free(printable);
	return columns;
}

/* Marks the chosen row's expression in its first line, which was drawn last. size: bytes of the line. */
static void mark_expression(struct top_drawing *d, const char *line, size_t size)
{
	const struct profile_place *place = &d->choice->of.place;
	struct top_line *drawn = &d->out->lines[d->out->count - 1];
	size_t end = place->end_line == place->line ? (size_t)place->end_column : size, from, to;

	if ((size_t)place->column >= size || end > size)
		return;
	from = NUMBERS_COLUMNS + columns_before(line, (size_t)place->column);
	to = NUMBERS_COLUMNS + columns_before(line, end);
	if (to > d->columns)
		to = d->columns;
	drawn->spans = from < to ? calloc(1, sizeof(*drawn->spans)) : NULL;
	if (!drawn->spans)
		return;
	drawn->spans[0] = (struct top_span){from, to - from, TOP_CHOSEN};
	drawn->nr_spans = 1;
}

static void draw_line(struct top_drawing *d, const struct source_page *page, size_t number, const char *text)
{
	struct heat heat = number < page->lines ? page->heat[number] : (struct heat){0};
	double freq = d->facts->freq;
	int bar = page->most ? (int)((heat.total * BAR + page->most - 1) / page->most) : 0;

	if (heat.total)
		top_add(d, heat.total * 2 >= page->most ? TOP_GREW : TOP_PLAIN, "%9.2f %9.2f %-*.*s %5zu  %s",
			(double)heat.self / freq, (double)heat.total / freq, BAR, bar, "########", number, text);
	else
		top_add(d, TOP_PLAIN, "%9s %9s %*s %5zu  %s", "", "", BAR, "", number, text);
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text; text += *text != '\0') {
		text += strcspn(text, "\n");
		lines++;
	}
	return lines;
}

/* Scrolls so that the line is in the middle. */
static void seek(struct top_drawing *d, size_t line)
{
	size_t half = d->lines / 2;

	d->choice->seek = false;
	d->choice->scroll = line > half ? line - half : 0;
}

static void draw_text(struct top_drawing *d, const struct source_page *page)
{
	const char *text = d->facts->source;
	char line[LINE_MAX_SHOWN];
	size_t before;

	d->out->rows = count_lines(text);
	if (d->choice->seek)
		seek(d, page->sought);
	for (size_t number = 1; *text; number++) {
		size_t size = strcspn(text, "\n");

		if (number > d->choice->scroll) {
			expand(text, size, line);
			before = d->out->count;
			draw_line(d, page, number, line);
			if (d->choice->of.place.end_line && number == (size_t)d->choice->of.place.line &&
			    d->out->count > before)
				mark_expression(d, text, size);
		}
		text += size + (text[size] != '\0');
	}
}

/* Lists the lines that have samples. */
static void draw_numbers(struct top_drawing *d, const struct source_page *page)
{
	size_t skipped = 0;

	top_add(d, TOP_PLAIN, "its text is not shown: it cannot be read, or may not be as it ran");
	for (size_t number = 1; number < page->lines; number++) {
		if (!page->heat[number].total)
			continue;
		d->out->rows++;
		if (skipped++ >= d->choice->scroll)
			draw_line(d, page, number, "");
	}
}

void top_draw_source(struct top_drawing *d)
{
	struct source_page page = {0};

	d->err = gather(d, &page);
	top_add(d, TOP_HEAD, "%9s %9s  since the start, %s", "self s", "total s",
		top_model_string(d->m, d->choice->of.file));
	if (d->facts->source)
		draw_text(d, &page);
	else
		draw_numbers(d, &page);
	free(page.heat);
}
