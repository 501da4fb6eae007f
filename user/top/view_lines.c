// SPDX-License-Identifier: Apache-2.0
/* The lines of a view, and what all pages write in them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "top/view_internal.h"

void top_add(struct top_drawing *d, enum top_style style, const char *fmt, ...)
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

double top_percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

void top_view_free(struct top_view *view)
{
	for (size_t i = 0; view->lines && i < view->count; i++) {
		free(view->lines[i].text);
		free(view->lines[i].spans);
	}
	free(view->lines);
	*view = (struct top_view){0};
}
