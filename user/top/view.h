// SPDX-License-Identifier: Apache-2.0
/* What the screen of `pybpf top` shows, as lines of text: from the model and what the user has chosen. */
#ifndef TOP_VIEW_H
#define TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "top/model.h"

/* The least columns and lines of a terminal in which anything is shown. */
#define TOP_LEAST_COLUMNS 40
#define TOP_LEAST_LINES   8
#define TOP_FILTER_MAX    64

enum top_page {
	TOP_PAGE_TABLE,
	TOP_PAGE_STACKS, /* of the row at the cursor */
	TOP_PAGE_SOURCE, /* the file of that row */
	TOP_PAGE_FLAME,
	TOP_PAGE_HELP,
};

/* The deepest frame of the flame graph that the cursor reaches. */
#define TOP_FLAME_DEPTH 1024

/* Where the cursor is in the flame graph: the nodes from the root's child on, which stay the same as samples come. */
struct top_flame {
	struct top_flame_node {
		uint32_t kind, what; /* of struct profile_tree_node */
	} path[TOP_FLAME_DEPTH];
	size_t depth;  /* of the cursor; 0: at the root */
	size_t zoomed; /* number of nodes of the path that fill the width */
};

/* What the user has chosen. */
struct top_choice {
	enum top_page page;
	enum top_table table;
	enum top_order order;
	bool frozen;
	bool typing; /* the filter */
	char filter[TOP_FILTER_MAX];
	size_t cursor;         /* row of the table */
	size_t scroll;         /* first row, or line of a page, that is shown */
	struct top_row_key of; /* of TOP_PAGE_STACKS and _SOURCE */
	uint32_t of_title;     /* string: its title */
	enum top_table of_table;
	uint32_t begun_anew; /* top_model_begun_anew() when it was chosen: its strings are of that time */
	bool seek;           /* of TOP_PAGE_SOURCE: to scroll to the row's function */
	struct top_flame flame;
	char message[512]; /* in place of the last line; empty: none */
};

struct top_facts {
	const char *target; /* what is watched, as the user named it */
	bool one_process;   /* no other can be shown */
	unsigned freq;
	double uptime_s;
	const struct profile *all; /* for stacks */
	double all_s;              /* of what time that is */
	const char *source;        /* the text of the file of TOP_PAGE_SOURCE; NULL: it is not known */
};

/* Arrows, U+2191 and U+2193: it grew, or shrank. */
#define TOP_UP   "\xe2\x86\x91"
#define TOP_DOWN "\xe2\x86\x93"

enum top_style {
	TOP_PLAIN,
	TOP_BOLD,
	TOP_CHOSEN, /* the cursor's row */
	TOP_HEAD,   /* of a table */
	TOP_GREW,
	TOP_SHRANK,
	TOP_CELL, /* of the flame graph; the next ones differ from it in colour only */
	TOP_CELLS_END = TOP_CELL + 4,
};

/* A part of a line that has a style of its own. */
struct top_span {
	size_t from, columns;
	enum top_style style;
};

struct top_line {
	char *text; /* printable UTF-8 of at most that many columns, with TOP_UP and TOP_DOWN */
	enum top_style style;
	struct top_span *spans;
	size_t nr_spans;
};

struct top_view {
	struct top_line *lines;
	size_t count;
	size_t rows; /* of the table or page that could be shown */
};

/*
 * Draws as many lines as the terminal has, and keeps the choice's cursor and scroll within what there is. Returns 0 or
 * -ENOMEM; top_view_free() in both cases.
 */
int top_view_draw(const struct top_model *m, const struct top_facts *facts, struct top_choice *choice, size_t columns,
		  size_t lines, struct top_view *out);
void top_view_free(struct top_view *view);

enum top_flame_step {
	TOP_FLAME_CALLER,
	TOP_FLAME_CALLED, /* the function that was called most */
	TOP_FLAME_LEFT,
	TOP_FLAME_RIGHT,
};

/* Moves the cursor of the flame graph, where there is something. Returns 0 or -ENOMEM. */
int top_flame_move(struct top_flame *flame, const struct profile *profile, enum top_flame_step step);

/* Keeps the row at the cursor for the pages about one row. Returns false if the table is empty there. */
bool top_view_choose(const struct top_model *m, struct top_choice *choice);
/* Returns whether the page is of a row that the model has forgotten with all else. */
bool top_view_is_stale(const struct top_model *m, const struct top_choice *choice);

#endif
