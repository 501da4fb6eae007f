// SPDX-License-Identifier: Apache-2.0
/* Writes metrics as Prometheus reads them. */
#include "serve/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define DIGITS  "0123456789"

static bool is_name(const char *name)
{
	return *name && strchr(LETTERS, *name) && !name[strspn(name, LETTERS DIGITS)];
}

static bool same_labels(const struct serve_metric *a, const struct serve_metric *b)
{
	for (size_t i = 0; i < SERVE_LABELS_MAX; i++) {
		const struct serve_label *x = &a->labels[i], *y = &b->labels[i];

		if (!x->name || !y->name)
			return x->name == y->name;
		if (strcmp(x->name, y->name) != 0 || strcmp(x->value, y->value) != 0)
			return false;
	}
	return true;
}

static bool begins_family(const struct serve_metric *rows, size_t i)
{
	return i == 0 || strcmp(rows[i - 1].name, rows[i].name) != 0;
}

/* Returns whether the row may follow those before it. */
static bool is_valid(const struct serve_metric *rows, size_t i)
{
	const struct serve_metric *row = &rows[i];
	bool begins = begins_family(rows, i);

	if (!is_name(row->name))
		return false;
	for (size_t l = 0; l < SERVE_LABELS_MAX && row->labels[l].name; l++) {
		if (!is_name(row->labels[l].name))
			return false;
	}
	for (size_t before = 0; before < i; before++) {
		if (strcmp(rows[before].name, row->name) == 0 && (begins || same_labels(&rows[before], row)))
			return false;
	}
	return true;
}

/* Writes a text in which backslashes and line feeds are escaped; within a label's quotes, these are, too. */
static void write_escaped(const char *text, bool in_quotes, FILE *out)
{
	while (*text) {
		bool plain;
		size_t length = text_character(text, &plain);

		if (*text == '\\')
			fputs("\\\\", out);
		else if (*text == '\n')
			fputs("\\n", out);
		else if (in_quotes && *text == '"')
			fputs("\\\"", out);
		else if (length == 1 && (unsigned char)*text >= 0x80)
			fputs("\xef\xbf\xbd", out);
		else
			fwrite(text, 1, length, out);
		text += length;
	}
}

static void write_labels(const struct serve_label *labels, FILE *out)
{
	for (size_t i = 0; i < SERVE_LABELS_MAX && labels[i].name; i++) {
		fprintf(out, "%c%s=\"", i ? ',' : '{', labels[i].name);
		write_escaped(labels[i].value, true, out);
		fputc('"', out);
	}
	if (labels[0].name)
		fputc('}', out);
}

/* Writes the number with as few digits as tell it from all others. */
static void write_value(double value, FILE *out)
{
	char text[32];

	snprintf(text, sizeof(text), "%.15g", value);
	if (isnan(value))
		fputs(" NaN\n", out);
	else if (isinf(value))
		fprintf(out, " %cInf\n", value > 0 ? '+' : '-');
	else if (strtod(text, NULL) == value)
		fprintf(out, " %s\n", text);
	else
		fprintf(out, " %.17g\n", value);
}

int serve_metrics_write(const struct serve_metric *rows, size_t count, FILE *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct serve_metric *row = &rows[i];

		if (!is_valid(rows, i))
			return -EINVAL;
		if (begins_family(rows, i)) {
			fprintf(out, "# HELP %s ", row->name);
			write_escaped(row->help, false, out);
			fprintf(out, "\n# TYPE %s %s\n", row->name, row->type == SERVE_COUNTER ? "counter" : "gauge");
		}
		fputs(row->name, out);
		write_labels(row->labels, out);
		write_value(row->value, out);
	}
	return ferror(out) ? -EIO : 0;
}
