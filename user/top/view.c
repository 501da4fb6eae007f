// SPDX-License-Identifier: Apache-2.0
/* Draws the head, the tables, the stacks of a row, and the help. */
#include "top/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Lines above and below the table: three of the head, the table's heading; the last line. */
#define LINES_ABOVE 4
#define LINES_BELOW 1
/* Columns of numbers before a row's name. */
#define STRIP_COLUMNS 30

static const char *const table_names[TOP_TABLES] = {"functions", "lines", "threads", "processes", "containers"};
static const char *const order_names[TOP_ORDERS] = {"self", "total", "self since the start", "total since the start"};

static const char *const help[] = {
	"pybpf top: samples of Python processes, interval by interval",
	"",
	"1 2 3 4 5, Tab   functions, lines, threads, processes, containers",
	"s                sort by: self, total, self and total since the start",
	"/                show only rows with a text in them; an empty text shows all",
	"Up Down PgUp PgDn Home End   move",
	"Enter            the stacks with the row's function; of a line, those of its function",
	"space            freeze what is shown; sampling goes on",
	"Esc, Backspace   back",
	"q, Ctrl-C        end",
	"",
	"%CPU of 100 is one CPU. self: in the function itself; total: with what it called.",
	"+ and - before a name: its time on CPUs grew or shrank since the interval before by",
	"more than chance (once in 1,000 rows that do not change).",
	"Threads: # ran most of an interval, + some of it, ! waited for a CPU, . slept.",
};

struct drawing {
	const struct top_model *m;
	const struct top_facts *facts;
	struct top_choice *choice;
	size_t columns, lines;
	struct top_view *out;
	int err;
};

/* Adds a line, cut to the terminal's columns. */
static void add(struct drawing *d, enum top_style style, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void add(struct drawing *d, enum top_style style, const char *fmt, ...)
{
	char *text = NULL, *printable;
	va_list args;
	int size;

	if (d->err || d->out->count >= d->lines)
		return;
	va_start(args, fmt);
	size = vasprintf(&text, fmt, args);
	va_end(args);
	printable = size < 0 ? NULL : text_printable(text);
	if (size >= 0)
		free(text);
	if (!printable) {
		d->err = -ENOMEM;
		return;
	}
	printable[text_fit(printable, d->columns)] = '\0';
	d->out->lines[d->out->count++] = (struct top_line){.text = printable, .style = style};
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* Returns the samples of a time as percent of one CPU's. */
static double cpu_percent(const struct drawing *d, uint64_t samples, double duration_s)
{
	return duration_s > 0 ? 100.0 * (double)samples / (d->facts->freq * duration_s) : 0;
}

static void draw_head(struct drawing *d)
{
	const struct top_sums *last = top_model_last(d->m), *all = top_model_all(d->m);
	const struct top_states *s = &last->states;
	uint64_t time = s->running + s->queued + s->asleep;

	add(d, TOP_BOLD, "pybpf top: %s  %.0f s  %u Hz%s%s", d->facts->target, d->facts->uptime_s, d->facts->freq,
	    d->choice->frozen ? "  [frozen]" : "", top_model_intervals(d->m) ? "" : "  [first interval]");
	add(d, TOP_PLAIN,
	    "last %.1f s: %.1f %%CPU, %" PRIu64 " samples, %" PRIu64 " lost; all: %" PRIu64 " samples, %" PRIu64
	    " lost",
	    last->duration_s, cpu_percent(d, last->samples, last->duration_s), last->samples, last->lost, all->samples,
	    all->lost);
	if (time)
		add(d, TOP_PLAIN, "%" PRIu64 " threads: %.1f %% on CPU, %.1f %% waiting for a CPU, %.1f %% asleep",
		    last->threads, percent(s->running, time), percent(s->queued, time), percent(s->asleep, time));
	else
		add(d, TOP_PLAIN, "%" PRIu64 " threads", last->threads);
}

static bool has_self(enum top_table table)
{
	return table == TOP_FUNCTIONS || table == TOP_LINES;
}

static void draw_heading(struct drawing *d)
{
	const struct top_choice *c = d->choice;

	if (has_self(c->table))
		add(d, TOP_HEAD, "%6s %6s %9s %9s   %s, by %s", "%self", "%total", "self s", "total s",
		    table_names[c->table], order_names[c->order]);
	else if (c->table == TOP_THREADS)
		add(d, TOP_HEAD, "%6s %9s  %-*s %s", "%CPU", "CPU s", STRIP_COLUMNS, "last intervals",
		    table_names[c->table]);
	else
		add(d, TOP_HEAD, "%6s %9s   %s", "%CPU", "CPU s", table_names[c->table]);
}

static char mark_of_change(int change)
{
	return change > 0 ? '+' : change < 0 ? '-' : ' ';
}

static void name_row(const struct drawing *d, const struct top_row *row, char *out, size_t size)
{
	const char *title = top_model_string(d->m, row->title), *file = top_model_string(d->m, row->key.file);

	if (d->choice->table == TOP_LINES)
		snprintf(out, size, "%s (%s:%d)", title, file, row->key.line);
	else if (d->choice->table == TOP_FUNCTIONS && row->key.first_line != PROFILE_NO_LINE && *file)
		snprintf(out, size, "%s (%s:%d)", title, file, row->key.first_line);
	else if (d->choice->table == TOP_FUNCTIONS && *file)
		snprintf(out, size, "%s (%s)", title, file);
	else if (d->choice->table == TOP_THREADS)
		snprintf(out, size, "%s %d", title, row->key.tid);
	else if (d->choice->table == TOP_PROCESSES)
		snprintf(out, size, "%s %d%s%s", title, row->key.pid, row->container ? " in " : "",
			 top_model_string(d->m, row->container));
	else
		snprintf(out, size, "%s", title);
}

static void draw_strip(const struct top_row *row, char out[STRIP_COLUMNS + 1])
{
	for (int i = 0; i < STRIP_COLUMNS; i++)
		out[i] = row->strip[TOP_STRIP - STRIP_COLUMNS + i] ?: ' ';
	out[STRIP_COLUMNS] = '\0';
}

static void draw_row(struct drawing *d, const struct top_row *row, bool chosen)
{
	double duration = top_model_last(d->m)->duration_s, freq = d->facts->freq;
	int change = top_model_change(d->m, row);
	enum top_style style = chosen ? TOP_CHOSEN : change > 0 ? TOP_GREW : change < 0 ? TOP_SHRANK : TOP_PLAIN;
	char name[4096], strip[STRIP_COLUMNS + 1];

	name_row(d, row, name, sizeof(name));
	if (has_self(d->choice->table)) {
		add(d, style, "%6.1f %6.1f %9.2f %9.2f %c %s", cpu_percent(d, row->self, duration),
		    cpu_percent(d, row->total, duration), (double)row->all_self / freq, (double)row->all_total / freq,
		    mark_of_change(change), name);
	} else if (d->choice->table == TOP_THREADS) {
		draw_strip(row, strip);
		add(d, style, "%6.1f %9.2f  %s %c %s", cpu_percent(d, row->total, duration),
		    (double)row->all_total / freq, strip, mark_of_change(change), name);
	} else {
		add(d, style, "%6.1f %9.2f %c %s", cpu_percent(d, row->total, duration), (double)row->all_total / freq,
		    mark_of_change(change), name);
	}
}

/* Keeps the cursor in the rows, and the cursor's row on the screen. */
static void keep_in_sight(struct top_choice *c, size_t rows, size_t room)
{
	if (c->cursor >= rows)
		c->cursor = rows ? rows - 1 : 0;
	if (c->scroll > c->cursor)
		c->scroll = c->cursor;
	if (c->cursor >= c->scroll + room)
		c->scroll = c->cursor - room + 1;
}

static void draw_table(struct drawing *d)
{
	struct top_choice *c = d->choice;
	size_t room = d->lines - LINES_ABOVE - LINES_BELOW, count;
	const struct top_row **rows = top_model_rows(d->m, c->table, c->order, c->filter, &count);

	if (!rows) {
		d->err = -ENOMEM;
		return;
	}
	d->out->rows = count;
	keep_in_sight(c, count, room);
	draw_heading(d);
	for (size_t i = c->scroll; i < count && i < c->scroll + room; i++)
		draw_row(d, rows[i], i == c->cursor);
	if (!count)
		add(d, TOP_PLAIN, "%s", c->filter[0] ? "no row has that text" : "no samples yet");
	free(rows);
}

bool top_view_row(const struct top_model *m, const struct top_choice *choice, struct top_row_key *key)
{
	size_t count;
	const struct top_row **rows = top_model_rows(m, choice->table, choice->order, choice->filter, &count);
	bool found = rows && choice->cursor < count;

	if (found)
		*key = rows[choice->cursor]->key;
	free(rows);
	return found;
}

static bool is_of(const struct drawing *d, uint32_t stack)
{
	const struct top_row_key *of = &d->choice->of;
	const struct profile *p = d->facts->all;
	const char *name = top_model_string(d->m, of->name), *file = top_model_string(d->m, of->file);

	for (; stack != PROFILE_ROOT; stack = profile_stack_at(p, stack)->parent) {
		const struct profile_frame *frame = profile_frame_at(p, profile_stack_at(p, stack)->frame);

		if (frame->first_line == of->first_line && !strcmp(profile_string(p, frame->name), name) &&
		    !strcmp(profile_string(p, frame->file), file))
			return true;
	}
	return false;
}

static int compare_samples(const void *a, const void *b)
{
	const struct profile_sample *one = a, *other = b;

	return (one->value < other->value) - (one->value > other->value);
}

/* Draws a stack, the outermost function first, each further in; skips what is scrolled over. */
static void draw_stack(struct drawing *d, uint32_t stack, uint64_t value, uint64_t all, size_t *line)
{
	const struct profile *p = d->facts->all;
	size_t depth = 0, at;
	uint32_t *frames;

	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack_at(p, s)->parent)
		depth++;
	frames = calloc(depth + 1, sizeof(*frames));
	if (!frames) {
		d->err = -ENOMEM;
		return;
	}
	at = depth;
	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack_at(p, s)->parent)
		frames[--at] = profile_stack_at(p, s)->frame;
	if ((*line)++ >= d->choice->scroll)
		add(d, TOP_BOLD, "%.2f s, %.1f %%", (double)value / d->facts->freq, percent(value, all));
	for (size_t i = 0; i < depth; i++) {
		const struct profile_frame *frame = profile_frame_at(p, frames[i]);
		bool known = frame->line != PROFILE_NO_LINE;
		char number[16] = "";

		if (known)
			snprintf(number, sizeof(number), ":%d", frame->line);
		if ((*line)++ >= d->choice->scroll)
			add(d, TOP_PLAIN, "  %s%s%s%s%s", profile_string(p, frame->name), frame->file ? " (" : "",
			    profile_string(p, frame->file), frame->file ? number : "", frame->file ? ")" : "");
	}
	free(frames);
}

static void draw_stacks(struct drawing *d)
{
	const struct profile *p = d->facts->all;
	struct profile_sample *found;
	size_t count, kept = 0, line = 0;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint64_t all = 0;

	found = calloc(count + 1, sizeof(*found));
	if (!found) {
		d->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (is_of(d, samples[i].stack)) {
			found[kept++] = samples[i];
			all += samples[i].value;
		}
	}
	qsort(found, kept, sizeof(*found), compare_samples);
	add(d, TOP_HEAD, "stacks of the last %.0f s with %s, the most frequent first", d->facts->all_s,
	    top_model_string(d->m, d->choice->of.name));
	for (size_t i = 0; i < kept && !d->err; i++)
		draw_stack(d, found[i].stack, found[i].value, all, &line);
	d->out->rows = line;
	free(found);
}

static void draw_help(struct drawing *d)
{
	const size_t count = sizeof(help) / sizeof(*help);

	d->out->rows = count;
	for (size_t i = d->choice->scroll; i < count; i++)
		add(d, TOP_PLAIN, "%s", help[i]);
}

static void draw_foot(struct drawing *d)
{
	while (!d->err && d->out->count < d->lines - 1)
		add(d, TOP_PLAIN, "%s", "");
	if (d->choice->typing)
		add(d, TOP_BOLD, "show only rows with: %s_", d->choice->filter);
	else if (d->choice->page != TOP_PAGE_TABLE)
		add(d, TOP_HEAD, "%s", "Esc back  q quit");
	else
		add(d, TOP_HEAD, "? help  Tab view  s sort  / filter%s%s%s  space freeze  Enter stacks  q quit",
		    d->choice->filter[0] ? " (" : "", d->choice->filter, d->choice->filter[0] ? ")" : "");
}

int top_view_draw(const struct top_model *m, const struct top_facts *facts, struct top_choice *choice, size_t columns,
		  size_t lines, struct top_view *out)
{
	struct drawing d = {.m = m, .facts = facts, .choice = choice, .columns = columns, .lines = lines, .out = out};

	*out = (struct top_view){.lines = calloc(lines + 1, sizeof(*out->lines))};
	if (!out->lines)
		return -ENOMEM;
	if (columns < TOP_LEAST_COLUMNS || lines < TOP_LEAST_LINES) {
		add(&d, TOP_PLAIN, "too small: %d x %d are needed", TOP_LEAST_COLUMNS, TOP_LEAST_LINES);
		return d.err;
	}
	draw_head(&d);
	if (choice->page == TOP_PAGE_HELP)
		draw_help(&d);
	else if (choice->page == TOP_PAGE_STACKS)
		draw_stacks(&d);
	else
		draw_table(&d);
	draw_foot(&d);
	return d.err;
}

void top_view_free(struct top_view *view)
{
	for (size_t i = 0; view->lines && i < view->count; i++)
		free(view->lines[i].text);
	free(view->lines);
	*view = (struct top_view){0};
}
