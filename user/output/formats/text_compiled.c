// SPDX-License-Identifier: Apache-2.0
/* The table of compiled code in the format "text": what each library took itself, and what called it most. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/text.h"
#include "base/text_stream.h"
#include "output/amount.h"
#include "output/formats/text_table.h"
#include "output/truncate.h"

/* The most files that have a row each; all others are one. */
#define COMPILED_ROWS 8

struct compiled {
	uint32_t file; /* string; 0 (the empty string): code that is in no file */
	uint64_t self;
	uint32_t from, more; /* the group with the function that called it most (PROFILE_NONE: none), how many others */
	uint64_t most;       /* of self, what that function called */
	int32_t line;        /* as in struct call */
};

/* What a function of Python called of a file, and the line of it that called most. */
struct call {
	struct call_key {
		uint32_t file, from; /* an index of files, a group */
	} key;
	uint64_t value, most;
	int32_t line; /* the function's first one where lines are not known */
};

/* What one of its lines called. */
struct call_line {
	struct call_line_key {
		uint32_t call; /* index */
		int32_t line;
	} key;
	uint64_t value;
};

struct compiled_files {
	const struct text_table *table;
	struct intern files; /* struct compiled */
	struct intern calls; /* struct call */
	struct intern lines; /* struct call_line */
	uint64_t self;       /* of all of them */
};

static const struct profile_frame *leaf_of(const struct profile *p, uint32_t stack)
{
	return profile_frame_at(p, profile_stack_at(p, stack)->frame);
}

/* Adds what a function of Python, the leaf of a stack, called of a file. Returns 0 or -ENOMEM. */
static int add_call(struct compiled_files *c, uint32_t file, uint32_t own, uint64_t value)
{
	const uint32_t frame = profile_stack_at(c->table->profile, own)->frame;
	const struct profile_frame *caller = profile_frame_at(c->table->profile, frame);
	const struct call fresh = {.key = {file, c->table->groups.of_frame[frame]}};
	struct call_line fresh_line = {.key.line = caller->line};
	struct call *call;
	struct call_line *line;
	bool added;
	uint32_t i = intern_add(&c->calls, &fresh, &added);

	if (i == INTERN_NONE)
		return -ENOMEM;
	call = intern_item(&c->calls, i);
	call->value += value;
	if (caller->line == PROFILE_NO_LINE)
		fresh_line.key.line = caller->first_line;
	fresh_line.key.call = i;
	i = intern_add(&c->lines, &fresh_line, &added);
	if (i == INTERN_NONE)
		return -ENOMEM;
	line = intern_item(&c->lines, i);
	line->value += value;
	if (line->value > call->most) {
		call->most = line->value;
		call->line = line->key.line;
	}
	return 0;
}

/* Adds a stack whose leaf is compiled code. Returns 0 or -ENOMEM. */
static int add_stack(struct compiled_files *c, uint32_t stack)
{
	const struct text_table *t = c->table;
	const struct compiled one = {.file = profile_library_of(t->profile, leaf_of(t->profile, stack)),
				     .from = PROFILE_NONE};
	const uint64_t value = t->totals.self[stack];
	const uint32_t own = t->own[stack];
	bool fresh;
	uint32_t file = intern_add(&c->files, &one, &fresh);

	if (file == INTERN_NONE)
		return -ENOMEM;
	((struct compiled *)intern_item(&c->files, file))->self += value;
	c->self += value;
	if (leaf_of(t->profile, own)->kind != PROFILE_PYTHON)
		return 0;
	return add_call(c, file, own, value);
}

static int collect(struct compiled_files *c)
{
	const struct text_table *t = c->table;
	int err = 0;

	for (uint32_t s = 1; s < t->totals.count && !err; s++) {
		if (t->totals.self[s] && leaf_of(t->profile, s)->kind == PROFILE_NATIVE &&
		    !profile_state_of(t->profile, s))
			err = add_stack(c, s);
	}
	for (uint32_t i = 0; i < c->calls.count && !err; i++) {
		const struct call *call = intern_item(&c->calls, i);
		struct compiled *file = intern_item(&c->files, call->key.file);

		file->more += file->from != PROFILE_NONE;
		if (call->value <= file->most)
			continue;
		file->most = call->value;
		file->from = call->key.from;
		file->line = call->line;
	}
	return err;
}

static int by_self(const void *a, const void *b)
{
	const struct compiled *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

/* How much of the caller is shown, from the most to nothing. */
enum caller_detail {
	CALLER_PLACE,
	CALLER_OTHERS,
	CALLER_NAME,
	CALLER_NOTHING,
};

/* Returns a row's text, which the caller frees. NULL: no memory. */
static char *row_text(const struct text_table *t, const struct compiled *row, enum caller_detail detail)
{
	const struct profile_group *from = row->from == PROFILE_NONE ? NULL : profile_group_at(&t->groups, row->from);
	char *text = NULL, position[OUTPUT_POSITION_MAX] = "";
	size_t size;
	FILE *out = text_stream_open(&text, &size);

	if (!out)
		return NULL;
	output_escaped(row->file ? profile_string(t->profile, row->file) : "[in no file]", out);
	if (from && detail <= CALLER_NAME) {
		fputs(", called from ", out);
		output_escaped(profile_string(t->profile, from->name), out);
	}
	if (from && detail == CALLER_PLACE) {
		output_position(&(struct profile_place){.line = row->line}, position);
		fputs(" (", out);
		output_escaped(profile_string(t->profile, from->file), out);
		fprintf(out, "%s)", position);
	}
	if (from && row->more && detail <= CALLER_OTHERS)
		fprintf(out, " and %" PRIu32 " more", row->more);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

/* Returns as much of a row's text as has room, which the caller frees. NULL: no memory. */
static char *fitting_text(const struct text_table *t, const struct compiled *row, size_t room)
{
	char *text = row_text(t, row, CALLER_PLACE), *shorter;

	for (int detail = CALLER_OTHERS; detail <= CALLER_NOTHING && text && room && text_width(text) > room;
	     detail++) {
		free(text);
		text = row_text(t, row, detail);
	}
	if (!text || !room || text_width(text) <= room)
		return text;
	shorter = text_shorten(text, room);
	free(text);
	return shorter;
}

static void write_numbers(const struct text_table *t, uint64_t self, FILE *out)
{
	const struct profile_measure measure = profile_get_measure(t->profile);
	char amount[OUTPUT_AMOUNT_MAX];

	fprintf(out, "%*s %6.1f%%  ", t->width, output_amount(&measure, self, amount),
		output_text_percent(self, t->all));
}

/* Writes the head, with the share of all files if that has room. */
static void write_head(const struct compiled_files *c, size_t room, FILE *out)
{
	static const char title[] = "compiled code", all[] = " (100.0% in all)";

	fprintf(out, "%*s %7s  %s", c->table->width, "self", "self%", title);
	if (!room || room >= strlen(title) + strlen(all))
		fprintf(out, " (%.1f%% in all)", output_text_percent(c->self, c->table->all));
	fputc('\n', out);
}

static int write_rows(struct compiled_files *c, FILE *out)
{
	const struct text_table *t = c->table;
	const uint32_t count = c->files.count;
	const size_t room = output_text_room(t, (size_t)t->width + strlen("  100.0%  "));
	uint32_t shown = count < COMPILED_ROWS ? count : COMPILED_ROWS;
	struct compiled *rows = calloc(count, sizeof(*rows));
	uint64_t rest = c->self;

	if (!rows)
		return -ENOMEM;
	shown = shown < t->options.rows ? shown : t->options.rows;
	for (uint32_t i = 0; i < count; i++)
		rows[i] = *(const struct compiled *)intern_item(&c->files, i);
	qsort(rows, count, sizeof(*rows), by_self);
	write_head(c, room, out);
	for (uint32_t i = 0; i < shown; i++) {
		char *text = fitting_text(t, &rows[i], room);

		if (!text) {
			free(rows);
			return -ENOMEM;
		}
		write_numbers(t, rows[i].self, out);
		fprintf(out, "%s\n", text);
		free(text);
		rest -= rows[i].self;
	}
	if (count > shown) {
		write_numbers(t, rest, out);
		fprintf(out, "in %" PRIu32 " %s\n", count - shown, count - shown == 1 ? "other file" : "other files");
	}
	fputc('\n', out);
	free(rows);
	return 0;
}

int output_text_compiled(const struct text_table *t, FILE *out)
{
	struct compiled_files c = {.table = t};
	int err;

	intern_init(&c.files, sizeof(struct compiled), sizeof(uint32_t));
	intern_init(&c.calls, sizeof(struct call), sizeof(struct call_key));
	intern_init(&c.lines, sizeof(struct call_line), sizeof(struct call_line_key));
	err = collect(&c);
	if (!err && c.files.count)
		err = write_rows(&c, out);
	intern_free(&c.files);
	intern_free(&c.calls);
	intern_free(&c.lines);
	return err;
}
