// SPDX-License-Identifier: Apache-2.0
/* Writes sentences into struct error. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void error_write(struct error *error, int code, const char *fmt, ...)
{
	va_list args;

	error->code = code;
	va_start(args, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
}

void error_append(struct error *error, const char *fmt, ...)
{
	size_t length = strlen(error->text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(error->text + length, sizeof(error->text) - length, fmt, args);
	va_end(args);
}

void error_clear(struct error *error)
{
	error->code = 0;
	error->text[0] = '\0';
}
