// SPDX-License-Identifier: Apache-2.0
/* Shares, texts and widths in the tables of the format "text". */
#include "output/formats/text_table.h"

#include <stdlib.h>

#include "output/truncate.h"
#include "base/text.h"

double output_text_percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0.0;
}

size_t output_text_room(const struct text_table *t, size_t used)
{
	if (!t->options.width)
		return 0;
	return t->options.width > used + OUTPUT_COLUMN_LEAST ? t->options.width - used : OUTPUT_COLUMN_LEAST;
}

char *output_text_printed(const char *text, size_t width)
{
	char *escaped = output_escaped_copy(text), *shortened;

	if (!escaped || !width)
		return escaped;
	shortened = text_shorten(escaped, width);
	free(escaped);
	return shortened;
}

void output_text_measure(const struct text_table *t, FILE *out)
{
	const char *name = profile_get_measure(t->profile).name;
	size_t width = text_width(name);

	fprintf(out, "%*s", width < (size_t)t->width ? t->width - (int)width : 0, "");
	output_escaped(name, out);
}
