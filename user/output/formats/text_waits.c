// SPDX-License-Identifier: Apache-2.0
/* A table of waits by their time: how often, how long, and in which function. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/formats/equal_texts.h"
#include "output/amount.h"
#include "output/truncate.h"
#include "output/formats/text_table.h"
#include "output/formats/waits.h"
#include "profile/children.h"
#include "base/text.h"

enum {
	TIME,
	SHARE,
	WAITS,
	MEAN,
	LONGEST,
	COLUMNS
};

static const struct {
	const char *title;
	int width;   /* in a file: of times that of "1,234.567 s" without its comma */
	int between; /* columns behind it */
} columns[COLUMNS] = {
	[TIME] = {"time", 10, 1}, [SHARE] = {"share", 7, 2},      [WAITS] = {"waits", 8, 2},
	[MEAN] = {"mean", 10, 2}, [LONGEST] = {"longest", 10, 2},
};

/* The columns that a terminal keeps for what is waited for, and where. */
#define WAIT_ROOM 54
/* The least columns of what a wait is for, of which the end is kept: a port, the last part of a name. */
#define DETAIL_LEAST 9
/* The least columns of a wait's name, beside the function. */
#define NAME_LEAST 8
/* The width of a time below 100 s. */
#define TIME_WIDTH 8

/* How the table is written. */
struct layout {
	const struct waits *waits;
	int widths[COLUMNS]; /* 0: the column is left out */
	bool missing[COLUMNS];
	size_t room; /* columns for the wait; 0: any number */
};

static size_t wait_in_room(size_t width, size_t used)
{
	return width > used + OUTPUT_COLUMN_LEAST ? width - used : OUTPUT_COLUMN_LEAST;
}

/* Returns what the row's waits are for, which the caller frees. NULL: no memory. */
static char *name_of(const struct text_table *t, const struct wait_row *row)
{
	if (row->processes > 1)
		return profile_children_name(row->key.kind, row->processes);
	return strdup(profile_string(t->profile, profile_group_at(&t->groups, row->first)->name));
}

/* Returns a wait's name in at most width columns, which the caller frees: the state stays whole, if it can. */
static char *shortened(const char *name, size_t width)
{
	const char *colon = strstr(name, ": ");
	size_t state = colon ? (size_t)(colon - name) + strlen(": ") : 0;
	char *detail, *text;

	if (!colon || text_width(name) <= width || state + strlen(TEXT_ELLIPSIS) >= width)
		return text_shorten(name, width);
	detail = text_keep_end(name + state, width - state);
	if (!detail || asprintf(&text, "%.*s%s", (int)state, name, detail) < 0)
		text = NULL;
	free(detail);
	return text;
}

/* Returns the columns that the row's own function needs: for its name, or for its line with that. 0: no memory. */
static size_t function_width(const struct text_table *t, const struct wait_row *row)
{
	const struct output_pair alone = {.first = row->key.own, .second = PROFILE_NONE};
	const struct profile_group *own = profile_group_at(&t->groups, row->key.own);
	char *name = t->options.by_line ? output_pair_text(t->profile, &t->groups, true, &alone, 0)
					: output_escaped_copy(profile_string(t->profile, own->name));
	size_t width = name ? text_width(name) : 0;

	free(name);
	return width;
}

static const char in[] = " in ";

/* Returns the name of a row's wait: what it is for gives way to the name of the function. NULL: no memory. */
static char *fitted_name(const struct layout *l, const struct wait_row *row)
{
	const struct text_table *t = l->waits->table;
	char *name = name_of(t, row), *whole = name ? output_text_printed(name, 0) : NULL, *text;
	const char *colon = whole ? strstr(whole, ": ") : NULL;
	size_t least, room = l->room;

	free(name);
	if (!whole || !room)
		return whole;
	least = text_width(whole);
	/* A number of processes says nothing without its beginning. */
	if (colon && row->processes <= 1 && (size_t)(colon - whole) + strlen(": ") + DETAIL_LEAST < least)
		least = (size_t)(colon - whole) + strlen(": ") + DETAIL_LEAST;
	if (row->key.own != PROFILE_NONE) {
		size_t needed = strlen(in) + function_width(t, row), both = strlen(in) + OUTPUT_COLUMN_LEAST;

		if (room > needed + least)
			room -= needed;
		else if (room >= least + both)
			room = least;
		else
			room = room > both + NAME_LEAST ? room - both : NAME_LEAST;
	}
	text = shortened(whole, room);
	free(whole);
	return text;
}

/* Returns "WAIT in FUNCTION, via FUNCTION", which the caller frees: as much of it as there is room for. NULL: no
 * memory.
 */
static char *wait_text(const struct layout *l, const struct wait_row *row)
{
	static const char *const threads[] = {" in idle pools and loops (--idle shows each)", " (--idle shows each)",
					      ""};
	static const char *const tasks[] = {" of suspended tasks (--idle shows each)", " of suspended tasks", ""};
	const char *const *unfolds = row->key.task ? tasks : threads;
	const struct text_table *t = l->waits->table;
	const struct output_pair pair = {.first = row->key.own,
					 .second = row->key.waiter == row->key.own ? PROFILE_NONE : row->key.waiter,
					 .between = OUTPUT_VIA};
	char *wait = fitted_name(l, row), *place, *text = NULL;

	if (!wait || (!row->idle && row->key.own == PROFILE_NONE))
		return wait;
	if (row->idle) {
		int i = 0;

		while (*unfolds[i] && l->room && text_width(wait) + strlen(unfolds[i]) > l->room)
			i++;
		if (asprintf(&text, "%s%s", wait, unfolds[i]) < 0)
			text = NULL;
	} else {
		place = output_pair_text(t->profile, &t->groups, t->options.by_line, &pair,
					 l->room ? wait_in_room(l->room, text_width(wait) + strlen(in)) : 0);
		if (!place || asprintf(&text, "%s%s%s", wait, in, place) < 0)
			text = NULL;
		free(place);
	}
	free(wait);
	return text;
}

/* Returns the columns of the largest amount, and of all smaller ones. */
static int amount_width(const struct waits *w, uint64_t largest)
{
	const struct profile_measure measure = profile_get_measure(w->table->profile);
	char amount[OUTPUT_AMOUNT_MAX];
	int width = (int)strlen(output_amount(&measure, largest, amount));

	return width < TIME_WIDTH ? TIME_WIDTH : width;
}

/* Finds the width of each column on a terminal, as narrow as the numbers allow. */
static void measure(struct layout *l)
{
	const struct waits *w = l->waits;
	uint64_t count = 0, mean = 0, longest = 0;
	char digits[24];

	for (uint32_t i = 0; i < w->count; i++) {
		const struct wait_row *row = &w->sorted[i];
		uint64_t each = row->count ? row->value / row->count : 0;

		count += row->count;
		mean = each > mean ? each : mean;
		longest = row->longest > longest ? row->longest : longest;
	}
	l->widths[TIME] = amount_width(w, w->table->all);
	l->widths[WAITS] = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	l->widths[MEAN] = amount_width(w, mean);
	l->widths[LONGEST] = amount_width(w, longest);
	if (l->widths[WAITS] < (int)strlen(columns[WAITS].title))
		l->widths[WAITS] = (int)strlen(columns[WAITS].title);
}

/* Chooses the columns of numbers that leave enough room on a terminal. The share and two others tell the rest. */
static void choose_columns(struct layout *l)
{
	static const int wanted[] = {SHARE, WAITS, MEAN, TIME, LONGEST};
	const struct waits *w = l->waits;
	size_t width = w->table->options.width, used = 0;

	for (int i = 0; i < COLUMNS; i++)
		l->widths[i] = columns[i].width;
	if (width)
		measure(l);
	for (size_t i = 0; i < COLUMNS; i++) {
		int column = wanted[i];
		size_t needed = (size_t)l->widths[column] + (size_t)columns[column].between;
		bool known = column == LONGEST ? w->timed : column == MEAN || column == WAITS ? w->counted : true;

		l->missing[column] = known && width && i && used + needed + WAIT_ROOM > width;
		if (known && !l->missing[column])
			used += needed;
		else
			l->widths[column] = 0;
	}
	l->room = output_text_room(w->table, used);
}

static void write_cell(const struct layout *l, int column, const char *text, FILE *out)
{
	if (l->widths[column])
		fprintf(out, "%*s%*s", l->widths[column], text, columns[column].between, "");
}

static void write_head(const struct layout *l, FILE *out)
{
	static const char title[] = "wait", wider[] = " (a wider terminal shows: ";
	size_t used = strlen(title) + strlen(wider) + strlen(")");
	const char *between = wider;

	for (int i = 0; i < COLUMNS; i++) {
		write_cell(l, i, columns[i].title, out);
		used += l->missing[i] ? strlen(columns[i].title) + strlen(", ") : 0;
	}
	fputs(title, out);
	for (int i = 0; i < COLUMNS && used <= l->room; i++) {
		if (!l->missing[i])
			continue;
		fprintf(out, "%s%s", between, columns[i].title);
		between = ", ";
	}
	fputs(between == wider ? "\n" : ")\n", out);
}

/* Returns 0 or -ENOMEM. */
static int write_row(const struct layout *l, const struct wait_row *row, FILE *out)
{
	const struct text_table *t = l->waits->table;
	const struct profile_measure measure = profile_get_measure(t->profile);
	char amount[OUTPUT_AMOUNT_MAX], *text = wait_text(l, row);

	if (!text)
		return -ENOMEM;
	write_cell(l, TIME, output_amount(&measure, row->value, amount), out);
	snprintf(amount, sizeof(amount), "%.1f%%", output_text_percent(row->value, t->all));
	write_cell(l, SHARE, amount, out);
	snprintf(amount, sizeof(amount), "%" PRIu64, row->count);
	write_cell(l, WAITS, row->count ? amount : "-", out);
	write_cell(l, MEAN, row->count ? output_amount(&measure, row->value / row->count, amount) : "-", out);
	write_cell(l, LONGEST, row->longest ? output_amount(&measure, row->longest, amount) : "", out);
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}

static int write_rows(const struct layout *l, FILE *out)
{
	const struct waits *w = l->waits;
	const struct wait_row *last = &w->sorted[w->count - 1];
	uint32_t rows = w->table->options.rows, shown = w->count < rows ? w->count : rows;
	int err = 0;

	write_head(l, out);
	for (uint32_t i = 0; i < shown && !err; i++)
		err = write_row(l, last->idle && i + 1 == shown ? last : &w->sorted[i], out);
	if (w->count > shown)
		fprintf(out, "and %u wait%s more (--limit)\n", w->count - shown, w->count - shown == 1 ? "" : "s");
	fputc('\n', out);
	return err;
}

/* Adds up the rows that look alike where there is no room for what tells them apart. Returns 0 or -ENOMEM. */
static int add_up_alike(const struct layout *l, struct waits *w)
{
	uint32_t count = w->count, *first = calloc((size_t)count + 1, sizeof(*first));
	char **texts = calloc((size_t)count + 1, sizeof(*texts));
	int err = first && texts ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < count && !err; i++) {
		texts[i] = wait_text(l, &w->sorted[i]);
		if (!texts[i])
			err = -ENOMEM;
	}
	err = err ?: output_first_alike(texts, count, first) ?: output_waits_add_up(w, first);
	output_free_texts(texts, count);
	free(first);
	return err;
}

int output_text_waits(const struct text_table *t, FILE *out)
{
	struct waits w;
	struct layout l = {.waits = &w};
	int err;

	if (!profile_has_states(t->profile))
		return 0;
	err = output_waits_collect(&w, t);
	if (!err && w.count) {
		choose_columns(&l);
		err = l.room ? add_up_alike(&l, &w) : 0;
		err = err ?: write_rows(&l, out);
	}
	output_waits_free(&w);
	return err;
}
