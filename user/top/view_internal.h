// SPDX-License-Identifier: Apache-2.0
/* What the pages of the view share. */
#ifndef TOP_VIEW_INTERNAL_H
#define TOP_VIEW_INTERNAL_H

#include "top/view.h"

struct top_drawing {
	const struct top_model *m;
	const struct top_facts *facts;
	struct top_choice *choice;
	size_t columns, lines;
	struct top_view *out;
	int err;
};

/* Adds a line, cut to the terminal's columns. */
void top_add(struct top_drawing *d, enum top_style style, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/*
 * Writes "name (file:position)" in that many columns: where not all has room, the folders give way first, then the
 * beginning of the name. file, position "": none.
 */
void top_fit_place(const char *name, const char *file, const char *position, size_t room, char *out, size_t size);
/*
 * Names a row of the table. Where not all has room, the folders of its file give way first, then the beginning of its
 * name: its end, the file, the line and numbers stay. room: columns.
 */
void top_name_row(const struct top_drawing *d, const struct top_row *row, size_t room, char *out, size_t size);
/* Returns 0 of 0. */
double top_percent(uint64_t part, uint64_t all);

/* Pages, without the head and the last line; lines above choice.scroll are skipped. */
void top_draw_stacks(struct top_drawing *d);
void top_draw_source(struct top_drawing *d);
void top_draw_flame(struct top_drawing *d);

#endif
