// SPDX-License-Identifier: Apache-2.0
/* Writes JSON to a stream. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>

#include "base/text.h"

static void write_text(const struct json *j, const char *text)
{
	if (j->bare)
		text_json_bare(text, j->out);
	else
		text_json(text, j->out);
}

static void begin(struct json *j, const char *key)
{
	if (j->follows)
		fputc(',', j->out);
	j->follows = true;
	if (!key)
		return;
	write_text(j, key);
	fputc(':', j->out);
}

static void open_with(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	j->follows = false;
}

static void close_with(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->follows = true;
}

void json_begin_object(struct json *j, const char *key)
{
	open_with(j, key, '{');
}

void json_end_object(struct json *j)
{
	close_with(j, '}');
}

void json_begin_array(struct json *j, const char *key)
{
	open_with(j, key, '[');
}

void json_end_array(struct json *j)
{
	close_with(j, ']');
}

void json_string(struct json *j, const char *key, const char *text)
{
	begin(j, key);
	write_text(j, text);
}

void json_uint(struct json *j, const char *key, uint64_t number)
{
	begin(j, key);
	fprintf(j->out, "%" PRIu64, number);
}

void json_int(struct json *j, const char *key, int64_t number)
{
	begin(j, key);
	fprintf(j->out, "%" PRId64, number);
}

void json_decimal(struct json *j, const char *key, uint64_t number, unsigned places)
{
	uint64_t unit = 1, rest;

	begin(j, key);
	for (unsigned i = 0; i < places; i++)
		unit *= 10;
	fprintf(j->out, "%" PRIu64, number / unit);
	rest = number % unit;
	if (rest)
		fputc('.', j->out);
	for (; rest; rest %= unit) {
		unit /= 10;
		fputc((char)('0' + rest / unit), j->out);
	}
}

void json_double(struct json *j, const char *key, double number)
{
	begin(j, key);
	if (isfinite(number))
		fprintf(j->out, "%.17g", number);
	else
		fputs("null", j->out);
}

void json_raw(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	fputs(value, j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	fputs("null", j->out);
}

void json_line(struct json *j)
{
	fputc('\n', j->out);
	j->follows = false;
}
