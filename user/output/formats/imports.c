// SPDX-License-Identifier: Apache-2.0
/* The table of imported modules: who imported whom, and what it cost. */
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/text_stream.h"
#include "output/amount.h"
#include "output/truncate.h"
#include "output/output.h"
#include "output/formats/text_table.h"
#include "profile/imports.h"
#include "profile/totals.h"

/* Columns that a level is indented by, and the deepest level that is. */
#define INDENT     2
#define DEEPEST    12
#define AMOUNT     10
#define ITS_SYSTEM "[import system: finding and reading]"

struct table {
	const struct profile *profile;
	const struct profile_imports *imports;
	struct profile_measure measure;
	uint64_t all;      /* what shares are of: all that the threads that import have, or the whole profile */
	uint64_t least;    /* total of a row that is shown */
	uint32_t at_least; /* how many of exactly that total are shown */
	uint32_t rows, hidden;
	size_t width;
};

static int by_total(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/*
 * Finds the least total of the rows: those with the largest totals are shown, and so is who imported them, which has no
 * smaller total and comes before them. Returns 0 or -ENOMEM.
 */
static int choose_rows(struct table *t)
{
	const struct profile_imports *imports = t->imports;
	uint64_t *totals = calloc(imports->count, sizeof(*totals));

	if (!totals)
		return -ENOMEM;
	for (uint32_t i = 1; i < imports->count; i++)
		totals[i - 1] = imports->nodes[i].total;
	qsort(totals, imports->count - 1, sizeof(*totals), by_total);
	if (imports->count - 1 > t->rows) {
		t->hidden = imports->count - 1 - t->rows;
		t->least = totals[t->rows - 1];
	}
	for (uint32_t i = 0; i < t->rows && i < imports->count - 1; i++)
		t->at_least += totals[i] == t->least;
	free(totals);
	return 0;
}

static int write_row(const struct table *t, const struct profile_import *node, FILE *out)
{
	char total[OUTPUT_AMOUNT_MAX], self[OUTPUT_AMOUNT_MAX];
	size_t indent = INDENT * ((node->depth < DEEPEST ? node->depth : DEEPEST) - 1);
	size_t used = 2 * AMOUNT + 14 + indent;
	size_t room = !t->width ? 0 : t->width > used + OUTPUT_COLUMN_LEAST ? t->width - used : OUTPUT_COLUMN_LEAST;
	char *name = output_text_printed(node->file ? profile_string(t->profile, node->file) : ITS_SYSTEM, room);

	if (!name)
		return -ENOMEM;
	fprintf(out, "%*s  %6.1f%%  %*s  %*s%s\n", AMOUNT, output_amount(&t->measure, node->total, total),
		output_text_percent(node->total, t->all), AMOUNT, output_amount(&t->measure, node->self, self),
		(int)indent, "", name);
	free(name);
	return 0;
}

/* Writes what is shown below a node, depth first. */
static int write_below(struct table *t, FILE *out)
{
	const struct profile_import *nodes = t->imports->nodes;
	uint32_t i = nodes[0].first_child;
	int err = 0;

	while (i && i != PROFILE_NONE && !err) {
		bool shown = nodes[i].total > t->least || (nodes[i].total == t->least && t->at_least);

		if (shown) {
			t->at_least -= nodes[i].total == t->least;
			err = write_row(t, &nodes[i], out);
		}
		if (shown && nodes[i].first_child != PROFILE_NONE) {
			i = nodes[i].first_child;
			continue;
		}
		while (i && nodes[i].next_sibling == PROFILE_NONE)
			i = nodes[i].parent;
		if (i)
			i = nodes[i].next_sibling;
	}
	return err;
}

/* Writes what imports took, and what that is a share of. Returns 0 or -ENOMEM. */
static int write_sum(const struct table *t, FILE *out)
{
	char part[OUTPUT_AMOUNT_MAX], all[OUTPUT_AMOUNT_MAX], whole[OUTPUT_AMOUNT_MAX], *text = NULL;
	const uint64_t sum = t->imports->nodes[0].total, of_all = profile_total(t->profile);
	size_t size;
	FILE *words = text_stream_open(&text, &size);

	if (!words)
		return -ENOMEM;
	fprintf(words, "imports: %s of %s%s ", output_amount(&t->measure, sum, part), t->all < of_all ? "the " : "",
		output_amount(&t->measure, t->all, all));
	output_escaped(t->measure.name, words);
	fprintf(words, "%s, %.1f %%", t->all < of_all ? " of threads that import" : "",
		output_text_percent(sum, t->all));
	if (t->all < of_all)
		fprintf(words, " (all threads: %s)", output_amount(&t->measure, of_all, whole));
	if (fclose(words)) {
		free(text);
		return -ENOMEM;
	}
	text_wrap(text, 0, INDENT, t->width, out);
	free(text);
	return 0;
}

int output_text_imports(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct profile_imports imports;
	struct table t = {
		.profile = p,
		.imports = &imports,
		.measure = profile_get_measure(p),
		.rows = options->rows ?: OUTPUT_ROWS_DEFAULT,
		.width = options->width,
	};
	int err = profile_imports_build(p, &imports);

	err = err ?: choose_rows(&t);
	if (err || !imports.nodes[0].total) {
		if (!err)
			fputs("No sample is in an import.\n", out);
		goto done;
	}
	t.all = imports.of_threads ?: profile_total(p);
	err = write_sum(&t, out);
	fprintf(out, "\n%*s  %7s  %*s  module, below the one that imported it\n", AMOUNT, "total", "share", AMOUNT,
		"self");
	err = err ?: write_below(&t, out);
	if (t.hidden)
		fprintf(out, "and %u more (--limit)\n", t.hidden);
done:
	profile_imports_free(&imports);
	return err;
}
