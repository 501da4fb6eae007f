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
#include "top/view_internal.h"

/* Lines above and below the table: three of the head, the table's heading; the last line. */
#define LINES_ABOVE 4
#define LINES_BELOW 1
/* Narrower terminals show the numbers of the order only, so that some columns are left for names. */
#define WIDE_COLUMNS 64
/* Columns of a thread's row without the strip: numbers, and the name with its TID. */
#define THREAD_COLUMNS 50
/* Likewise of its process's name and PID. */
#define PROCESS_COLUMNS 20
#define STRIP_LEAST     10

static const char *const table_names[TOP_TABLES] = {"functions", "lines",      "threads",
						    "processes", "containers", "expressions"};
static const char *const order_names[TOP_ORDERS] = {"self", "total", "self since the start", "total since the start"};

static const char *const help[] = {
	"1 2 3 4 5, Tab   functions, lines, threads, processes, containers",
	"6                expressions, with --by=expression, of Python 3.11 and later",
	"s                sort by self, total, self and total since the start",
	"/                show only rows with a text in them; an empty text shows all",
	"Up Down PgUp PgDn Home End   move",
	"Enter            the row's stacks; again: its source, with each line's time",
	"f                flame graph: arrows move, Enter zooms in, Esc out",
	"w                write a profile of all samples to a file",
	"space            freeze what is shown; sampling goes on",
	"Esc, Backspace   back",
	"q, Ctrl-C        end; Ctrl-Z: stop until `fg`; Ctrl-L: draw all again",
	"",
	"%CPU: 100 is one CPU. Threads' time: 100 is all threads, all the time.",
	"self: in the function itself; total: with what it called.",
	"Marks " TOP_UP " and " TOP_DOWN " before a name: its time on CPUs grew or shrank since the",
	"interval before, by more than chance (once in 1,000 rows that do not change).",
	"Threads, most of an interval: # ran, ! waited for a CPU, G the GIL, L a lock,",
	"D disk, N network, P a pipe, E events (poll), C a child; z slept, T stopped,",
	"o other, . asleep; + slept, but ran for a tenth and more.",
};

/* Returns the samples of a time as percent of one CPU's. */
static double cpu_percent(const struct top_drawing *d, uint64_t samples, double duration_s)
{
	return duration_s > 0 ? 100.0 * (double)samples / (d->facts->freq * duration_s) : 0;
}

struct share {
	int state;
	uint64_t ns;
};

/* Those that are always told come first, then those with the most time. */
static int compare_shares(const void *a, const void *b)
{
	const struct share *one = a, *other = b;
	bool first = one->state <= PYBPF_STATE_QUEUED, second = other->state <= PYBPF_STATE_QUEUED;

	if (first || second)
		return first && second ? one->state - other->state : second - first;
	return (one->ns < other->ns) - (one->ns > other->ns);
}

/* What a state is called where there is little room; it stands behind "on CPU". */
static const char *brief_name(int state)
{
	return state == PYBPF_STATE_QUEUED ? "for a CPU" : top_state_name(state);
}

/*
 * Writes in which states the threads spent their time: the first count of the shares, and how much the others are.
 * brief: in whole percent and fewer letters.
 */
static void write_states(const struct top_sums *last, const struct share *shares, int count, bool brief, char *out,
			 size_t size)
{
	const uint64_t time = top_states_sum(&last->states), least = brief ? 200 : 2000; /* what would not be 0 */
	uint64_t rest = time;
	size_t used = (size_t)snprintf(out, size, "%" PRIu64 " thread%s time", last->threads,
				       last->threads == 1 ? "'s" : "s'");
	const char *separator = ": ";

	for (int i = 0; i < count && time && used < size; i++) {
		const double percent = top_percent(shares[i].ns, time);

		if (shares[i].state > PYBPF_STATE_QUEUED && shares[i].ns * least < time)
			break;
		used += (size_t)(brief ? snprintf(out + used, size - used, "%s%.0f%% %s", separator, percent,
						  brief_name(shares[i].state))
				       : snprintf(out + used, size - used, "%s%.1f %% %s", separator, percent,
						  top_state_name(shares[i].state)));
		separator = ", ";
		rest -= shares[i].ns;
	}
	if (brief && rest * least >= time && time && used < size)
		snprintf(out + used, size - used, "%s%.0f%% more", separator, top_percent(rest, time));
}

/* The line of the states: where not all has room, in brief, then without those with the least time. */
static void draw_states(struct top_drawing *d, const struct top_sums *last)
{
	struct share shares[TOP_NR_STATES];
	char text[512];
	int count = TOP_NR_STATES;

	for (int i = 0; i < TOP_NR_STATES; i++)
		shares[i] = (struct share){i, last->states.ns[i]};
	qsort(shares, TOP_NR_STATES, sizeof(*shares), compare_shares);
	write_states(last, shares, count, false, text, sizeof(text));
	for (; text_width(text) > d->columns && count > 0; count--)
		write_states(last, shares, count, true, text, sizeof(text));
	top_add(d, TOP_PLAIN, "%s", text);
}

/* The line of the sums: where not all has room, in brief, then without those since the start and the duration. */
static void draw_sums(struct top_drawing *d)
{
	const struct top_sums *last = top_model_last(d->m), *all = top_model_all(d->m);
	const double percent = cpu_percent(d, last->samples, last->duration_s);
	char text[4][256];
	int brief = 0;

	snprintf(text[0], sizeof(*text),
		 "last %.1f s: %.1f %% of one CPU, %" PRIu64 " samples, %" PRIu64 " lost; all: %" PRIu64
		 " samples, %" PRIu64 " lost",
		 last->duration_s, percent, last->samples, last->lost, all->samples, all->lost);
	snprintf(text[1], sizeof(*text),
		 "%.1f s: %.0f%% of one CPU, %" PRIu64 " samples, %" PRIu64 " lost; all: %" PRIu64 ", %" PRIu64 " lost",
		 last->duration_s, percent, last->samples, last->lost, all->samples, all->lost);
	snprintf(text[2], sizeof(*text), "%.1f s: %.0f%% of one CPU, %" PRIu64 " samples, %" PRIu64 " lost",
		 last->duration_s, percent, last->samples, last->lost);
	snprintf(text[3], sizeof(*text), "%.0f%% of one CPU, %" PRIu64 " samples, %" PRIu64 " lost", percent,
		 last->samples, last->lost);
	while (brief < 3 && text_width(text[brief]) > d->columns)
		brief++;
	top_add(d, TOP_PLAIN, "%s", text[brief]);
}

static void draw_head(struct top_drawing *d)
{
	const struct top_sums *last = top_model_last(d->m);

	top_add(d, TOP_BOLD, "pybpf top: %s  %.0f s  %u Hz%s%s", d->facts->target, d->facts->uptime_s, d->facts->freq,
		d->choice->frozen ? "  [frozen]" : "", top_model_intervals(d->m) ? "" : "  [first interval]");
	draw_sums(d);
	draw_states(d, last);
}

static bool is_wide(const struct top_drawing *d)
{
	return d->columns >= WIDE_COLUMNS;
}

/* Returns how many intervals a strip shows. */
static int strip_columns(const struct top_drawing *d)
{
	size_t others = THREAD_COLUMNS + (d->facts->one_process ? 0 : PROCESS_COLUMNS);
	size_t room = d->columns < others + STRIP_LEAST ? STRIP_LEAST : d->columns - others;

	return (int)(room < TOP_STRIP ? room : TOP_STRIP);
}

static bool is_since_the_start(const struct top_drawing *d)
{
	return d->choice->order == TOP_BY_ALL_SELF || d->choice->order == TOP_BY_ALL_TOTAL;
}

/* Writes the texts of a row's columns that are shown: of the last interval, and since the start. */
static void write_columns(const struct top_drawing *d, const char *last, const char *all, char *out, size_t size)
{
	if (is_wide(d))
		snprintf(out, size, "%s %s", last, all);
	else
		snprintf(out, size, "%s", is_since_the_start(d) ? all : last);
}

static void draw_heading(struct top_drawing *d)
{
	const struct top_choice *c = d->choice;
	char columns[64];

	if (top_table_is_code(c->table)) {
		write_columns(d, " %self %total", "   self s   total s", columns, sizeof(columns));
		top_add(d, TOP_HEAD, "%s   %s, by %s", columns, table_names[c->table], order_names[c->order]);
		return;
	}
	write_columns(d, "  %CPU", "    CPU s", columns, sizeof(columns));
	if (c->table == TOP_THREADS)
		top_add(d, TOP_HEAD, "%s  %-*s   %s", columns, strip_columns(d), "intervals", table_names[c->table]);
	else
		top_add(d, TOP_HEAD, "%s   %s", columns, table_names[c->table]);
}

static const char *mark_of_change(int change)
{
	return change > 0 ? TOP_UP : change < 0 ? TOP_DOWN : " ";
}

static void draw_strip(const struct top_row *row, int intervals, char out[TOP_STRIP + 1])
{
	for (int i = 0; i < intervals; i++)
		out[i] = row->strip[TOP_STRIP - intervals + i] ?: ' ';
	out[intervals] = '\0';
}

/* Writes the numbers of a row. */
static void write_numbers(const struct top_drawing *d, const struct top_row *row, char *out, size_t size)
{
	double duration = top_model_last(d->m)->duration_s, freq = d->facts->freq;
	double self = cpu_percent(d, row->self, duration), total = cpu_percent(d, row->total, duration);
	char last[32], all[64];

	if (top_table_is_code(d->choice->table)) {
		snprintf(last, sizeof(last), "%6.1f %6.1f", self, total);
		snprintf(all, sizeof(all), "%9.2f %9.2f", (double)row->all_self / freq, (double)row->all_total / freq);
	} else {
		snprintf(last, sizeof(last), "%6.1f", total);
		snprintf(all, sizeof(all), "%9.2f", (double)row->all_total / freq);
	}
	write_columns(d, last, all, out, size);
}

static void draw_row(struct top_drawing *d, const struct top_row *row, bool chosen)
{
	int change = top_model_change(d->m, row);
	enum top_style style = chosen ? TOP_CHOSEN : change > 0 ? TOP_GREW : change < 0 ? TOP_SHRANK : TOP_PLAIN;
	char name[4096], numbers[128], strip[TOP_STRIP + 1] = "";
	bool has_strip = d->choice->table == TOP_THREADS;
	size_t used;

	write_numbers(d, row, numbers, sizeof(numbers));
	if (has_strip)
		draw_strip(row, strip_columns(d), strip);
	used = text_width(numbers) + 3; /* blanks, and the change */
	if (has_strip)
		used += strlen("  ") + strlen(strip);
	top_name_row(d, row, d->columns > used ? d->columns - used : 0, name, sizeof(name));
	top_add(d, style, "%s%s%s %s %s", numbers, has_strip ? "  " : "", strip, mark_of_change(change), name);
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

/* Returns why a table has no row. */
static const char *tell_empty(const struct top_drawing *d)
{
	if (d->choice->filter[0])
		return "no row has that text";
	if (d->choice->table == TOP_EXPRESSIONS && !top_model_has_expressions(d->m))
		return "expressions are not known: `pybpf top --by=expression` has them";
	if (d->choice->table == TOP_CONTAINERS && top_model_all(d->m)->samples)
		return "no sample was in a container";
	return "no samples yet";
}

static void draw_table(struct top_drawing *d)
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
		top_add(d, TOP_PLAIN, "%s", tell_empty(d));
	free(rows);
}

bool top_view_choose(const struct top_model *m, struct top_choice *choice)
{
	size_t count;
	const struct top_row **rows = top_model_rows(m, choice->table, choice->order, choice->filter, &count);
	bool found = rows && choice->cursor < count;

	if (found) {
		choice->of = rows[choice->cursor]->key;
		choice->of_title = rows[choice->cursor]->title;
		choice->of_table = choice->table;
	}
	choice->begun_anew = top_model_begun_anew(m);
	free(rows);
	return found;
}

bool top_view_is_stale(const struct top_model *m, const struct top_choice *choice)
{
	return (choice->page == TOP_PAGE_STACKS || choice->page == TOP_PAGE_SOURCE) &&
	       choice->begun_anew != top_model_begun_anew(m);
}

static void draw_help(struct top_drawing *d)
{
	const size_t count = sizeof(help) / sizeof(*help);

	d->out->rows = count;
	for (size_t i = d->choice->scroll; i < count; i++)
		top_add(d, TOP_PLAIN, "%s", help[i]);
}

/* Draws keys and what they do, two blanks between them: as many as fit whole. */
static void __attribute__((format(printf, 2, 3))) draw_keys(struct top_drawing *d, const char *fmt, ...)
{
	char keys[256];
	size_t fits, end;
	va_list args;

	va_start(args, fmt);
	vsnprintf(keys, sizeof(keys), fmt, args);
	va_end(args);
	fits = end = text_fit(keys, d->columns);
	while (keys[fits] && end > 2 && strncmp(keys + end - 2, "  ", 2))
		end--;
	if (end > 2)
		keys[end] = '\0';
	top_add(d, TOP_HEAD, "%s", keys);
}

static void draw_foot(struct top_drawing *d)
{
	static const char *const foots[] = {
		[TOP_PAGE_TABLE] = "Esc back  q quit  w write", /* of a row without a source */
		[TOP_PAGE_STACKS] = "Esc back  q quit  Enter source  w write",
		[TOP_PAGE_SOURCE] = "Esc back  q quit  Enter stacks  w write",
		[TOP_PAGE_FLAME] = "Esc zoom out, back  q quit  arrows move  Enter zoom in  w write",
		[TOP_PAGE_HELP] = "Esc back  q quit",
	};
	const struct top_choice *c = d->choice;

	while (!d->err && d->out->count < d->lines - 1)
		top_add(d, TOP_PLAIN, "%s", "");
	if (c->typing)
		top_add(d, TOP_BOLD, "show only rows with: %s_", c->filter);
	else if (c->message[0])
		top_add(d, TOP_BOLD, "%s", c->message);
	else if (c->page == TOP_PAGE_STACKS && !top_table_is_code(c->of_table))
		draw_keys(d, "%s", foots[TOP_PAGE_TABLE]);
	else if (c->page != TOP_PAGE_TABLE)
		draw_keys(d, "%s", foots[c->page]);
	else
		draw_keys(d,
			  "? help  q quit  Tab view  s sort  / filter%s%s%s  Enter stacks  f flames  w write  space "
			  "freeze",
			  c->filter[0] ? " (" : "", c->filter, c->filter[0] ? ")" : "");
}

static void (*const pages[])(struct top_drawing *d) = {
	[TOP_PAGE_TABLE] = draw_table,     [TOP_PAGE_STACKS] = top_draw_stacks, [TOP_PAGE_SOURCE] = top_draw_source,
	[TOP_PAGE_FLAME] = top_draw_flame, [TOP_PAGE_HELP] = draw_help,
};

int top_view_draw(const struct top_model *m, const struct top_facts *facts, struct top_choice *choice, size_t columns,
		  size_t lines, struct top_view *out)
{
	struct top_drawing d = {
		.m = m, .facts = facts, .choice = choice, .columns = columns, .lines = lines, .out = out};

	*out = (struct top_view){.lines = calloc(lines + 1, sizeof(*out->lines))};
	if (!out->lines)
		return -ENOMEM;
	if (columns < TOP_LEAST_COLUMNS || lines < TOP_LEAST_LINES) {
		top_add(&d, TOP_PLAIN, "too small: %d x %d are needed", TOP_LEAST_COLUMNS, TOP_LEAST_LINES);
		return d.err;
	}
	if (top_view_is_stale(m, choice)) {
		choice->page = TOP_PAGE_TABLE;
		choice->scroll = 0;
	}
	draw_head(&d);
	pages[choice->page](&d);
	draw_foot(&d);
	return d.err;
}
