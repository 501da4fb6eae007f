// SPDX-License-Identifier: Apache-2.0
/*
 * Writes objects of the standard library's C modules, whose structs no header tells: they are taken from the modules'
 * sources. Offsets are from the end of the object's header on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_value_internal.h"

/* A mpd_t's words have 19 decimal digits each (libmpdec, 64 bits). */
#define WORD_DIGITS 19
#define MAX_WORDS   64
/* MPD_MAX_EMAX and MPD_MIN_ETINY: no number has another exponent. */
#define MPD_MAX_EXP 999999999999999999
#define MPD_MIN_EXP (-1999999999999999997)
#define MPD_NEG     1
#define MPD_INF     2
#define MPD_NAN     4
#define MPD_SNAN    8

static bool is_exponent(int64_t exponent)
{
	return exponent >= MPD_MIN_EXP && exponent <= MPD_MAX_EXP;
}

/* Adds the digits with a point or an exponent, as Decimal's to-scientific-string says (General Decimal Arithmetic). */
static void write_scientific(struct py_out *out, const char *digits, int64_t exponent)
{
	int64_t count = (int64_t)strlen(digits), adjusted = exponent + count - 1;

	if (exponent > 0 || adjusted < -6) {
		py_out_add(out, digits, 1);
		if (count > 1)
			py_out_text(out, ".");
		py_out_text(out, digits + 1);
		py_out_print(out, "E%+lld", (long long)adjusted);
	} else if (exponent == 0) {
		py_out_text(out, digits);
	} else if (count + exponent > 0) {
		py_out_add(out, digits, (size_t)(count + exponent));
		py_out_text(out, ".");
		py_out_text(out, digits + count + exponent);
	} else {
		py_out_print(out, "0.%.*s", (int)-(count + exponent), "000000");
		py_out_text(out, digits);
	}
}

/* Reads the coefficient's words, the lowest first, as decimals. */
static bool read_coefficient(struct py_values *v, uint64_t at, uint64_t count, char *digits)
{
	uint64_t words[MAX_WORDS];
	size_t size = 0;

	if (!count || count > MAX_WORDS || !py_get(v, at, words, count * sizeof(words[0])))
		return false;
	for (uint64_t i = count; i-- > 0;) {
		if (words[i] >= 10000000000000000000u)
			return false;
		size += (size_t)sprintf(digits + size, i + 1 == count ? "%llu" : "%019llu",
					(unsigned long long)words[i]);
	}
	return true;
}

/* hash, then a mpd_t: flags, exp, digits, len, alloc, data (Modules/_decimal). */
static bool write_decimal(struct py_values *v, const struct py_object *o)
{
	char digits[MAX_WORDS * (WORD_DIGITS + 1) + 1] = "";
	uint64_t f[7];
	uint8_t flags;
	bool special, has_digits;

	if (!py_get(v, o->fields, f, sizeof(f)))
		return false;
	flags = (uint8_t)f[1];
	special = flags & (MPD_INF | MPD_NAN | MPD_SNAN);
	/* What is not a number can have some as its diagnostic information. */
	has_digits = !special || (!(flags & MPD_INF) && f[4]);
	if ((has_digits && !read_coefficient(v, f[6], f[4], digits)) || (!special && !is_exponent((int64_t)f[2])))
		return false;
	py_out_text(&v->out, o->type.derived ? o->type.name : "Decimal");
	py_out_text(&v->out, flags & MPD_NEG ? "('-" : "('");
	if (special)
		py_out_text(&v->out, flags & MPD_INF ? "Infinity" : flags & MPD_NAN ? "NaN" : "sNaN");
	if (special)
		py_out_text(&v->out, digits);
	else
		write_scientific(&v->out, digits, (int64_t)f[2]);
	py_out_text(&v->out, "')");
	return true;
}

/* 2.7 has it in Python: _sign, _int, the digits as a string, and _exp; _is_special where that is no number. */
static bool write_python_decimal(struct py_values *v, const struct py_object *o)
{
	uint64_t sign, digits, exponent, is_special, at;
	char *kind = NULL, *text = NULL;
	bool done;

	if (!py_facts(v)->objects->has_python_decimal || !py_attribute(v, o, "_is_special", &at) ||
	    !py_read_int(&v->r, at, &is_special) || !py_attribute(v, o, "_sign", &at) ||
	    !py_read_int(&v->r, at, &sign) || !py_attribute(v, o, "_exp", &exponent) ||
	    !py_attribute(v, o, "_int", &digits))
		return py_write_instance(v, o);
	text = py_values_name(v, digits);
	if (is_special)
		kind = py_values_name(v, exponent);
	done = text &&
	       (is_special ? kind != NULL : py_read_int(&v->r, exponent, &exponent) && is_exponent((int64_t)exponent));
	if (done) {
		py_out_print(&v->out, "%s('%s", o->type.name, sign ? "-" : "");
		if (!is_special)
			write_scientific(&v->out, text, (int64_t)exponent);
		else
			py_out_text(&v->out, *kind == 'F' ? "Infinity" : *kind == 'n' ? "NaN" : "sNaN");
		if (is_special && *kind != 'F')
			py_out_text(&v->out, text);
		py_out_text(&v->out, "')");
	}
	free(kind);
	free(text);
	return done;
}

/* hashcode, hastzinfo (a char), then bytes: the year in two, month, day, hour, minute, second, microsecond in three. */
#define DATE_DATA 9

static bool is_date(const uint8_t *data)
{
	return (data[0] || data[1]) && data[2] >= 1 && data[2] <= 12 && data[3] >= 1 && data[3] <= 31;
}

static bool write_date(struct py_values *v, const struct py_object *o)
{
	uint8_t data[4];

	if (!py_get(v, o->fields + DATE_DATA, data, sizeof(data)) || !is_date(data))
		return false;
	py_out_print(&v->out, "%s(%d, %d, %d)", o->type.name, data[0] << 8 | data[1], data[2], data[3]);
	return true;
}

/* Adds minutes and, if they are not 0, seconds and microseconds: hour is there. */
static void write_clock(struct py_values *v, const uint8_t *data)
{
	int micro = data[3] << 16 | data[4] << 8 | data[5];

	py_out_print(&v->out, "%d, %d", data[0], data[1]);
	if (data[2] || micro)
		py_out_print(&v->out, ", %d", data[2]);
	if (micro)
		py_out_print(&v->out, ", %d", micro);
}

static void write_fold(struct py_values *v, uint8_t fold)
{
	if (fold == 1)
		py_out_text(&v->out, ", fold=1");
}

/*
 * The bytes end at `end`; they are followed by fold, where there is one, and, where hastzinfo is not 0, by the time
 * zone. repr() has fold first of a datetime, and last of a time.
 */
static bool write_zone(struct py_values *v, const struct py_object *o, uint64_t end, bool fold_last)
{
	uint8_t has_zone, fold = 0;
	uint64_t zone;

	if (!py_get(v, o->fields + DATE_DATA - 1, &has_zone, 1) ||
	    (py_facts(v)->objects->has_fold && !py_get(v, o->fields + end, &fold, 1)))
		return false;
	if (!fold_last)
		write_fold(v, fold);
	if (has_zone) {
		/* Behind fold, aligned as a pointer is. */
		if (!py_get(v, o->fields + ((end + 1 + 7) & ~7ull), &zone, sizeof(zone)))
			return false;
		py_out_text(&v->out, ", tzinfo=");
		py_write(v, zone);
	}
	if (fold_last)
		write_fold(v, fold);
	return true;
}

static bool write_datetime(struct py_values *v, const struct py_object *o)
{
	uint8_t data[10];

	if (!py_get(v, o->fields + DATE_DATA, data, sizeof(data)) || !is_date(data) || data[4] > 23 || data[5] > 59)
		return false;
	py_out_print(&v->out, "%s(%d, %d, %d, ", o->type.name, data[0] << 8 | data[1], data[2], data[3]);
	write_clock(v, data + 4);
	if (!write_zone(v, o, DATE_DATA + sizeof(data), false))
		return false;
	py_out_text(&v->out, ")");
	return true;
}

static bool write_time(struct py_values *v, const struct py_object *o)
{
	uint8_t data[6];

	if (!py_get(v, o->fields + DATE_DATA, data, sizeof(data)) || data[0] > 23 || data[1] > 59)
		return false;
	py_out_print(&v->out, "%s(", o->type.name);
	write_clock(v, data);
	if (!write_zone(v, o, DATE_DATA + sizeof(data), true))
		return false;
	py_out_text(&v->out, ")");
	return true;
}

/* offset, name. */
static bool write_timezone(struct py_values *v, const struct py_object *o)
{
	uint64_t parts[2];
	int32_t offset[3];

	if (!py_get(v, o->fields, parts, sizeof(parts)) ||
	    !py_get(v, parts[0] + py_header_size(&v->r) + 8, offset, sizeof(offset)))
		return false;
	if (!parts[1] && !offset[0] && !offset[1] && !offset[2]) {
		py_out_text(&v->out, "datetime.timezone.utc");
		return true;
	}
	py_out_print(&v->out, "%s(", o->type.name);
	py_write(v, parts[0]);
	if (parts[1]) {
		py_out_text(&v->out, ", ");
		py_write(v, parts[1]);
	}
	py_out_text(&v->out, ")");
	return true;
}

static bool write_timedelta(struct py_values *v, const struct py_object *o)
{
	static const char *const names[] = {"days", "seconds", "microseconds"};
	bool named = py_facts(v)->repr->names_timedelta, any = false;
	int32_t parts[3];

	if (!py_get(v, o->fields + 8, parts, sizeof(parts)))
		return false;
	py_out_print(&v->out, "%s(", o->type.name);
	/* Without names: as many as there are to the last one that is not 0. */
	for (int i = 0; i < 3 && !named; i++) {
		if (i && !parts[i] && (i == 2 || !parts[2]))
			continue;
		py_out_print(&v->out, "%s%d", i ? ", " : "", parts[i]);
	}
	for (int i = 0; i < 3 && named; i++) {
		if (!parts[i])
			continue;
		py_out_print(&v->out, "%s%s=%d", any ? ", " : "", names[i], parts[i]);
		any = true;
	}
	py_out_text(&v->out, any || !named ? ")" : "0)");
	return true;
}

const struct py_known py_known_library[] = {
	{"decimal.Decimal", write_decimal},
	{"datetime.date", write_date},
	{"datetime.datetime", write_datetime},
	{"datetime.time", write_time},
	{"datetime.timedelta", write_timedelta},
	{"datetime.timezone", write_timezone},
	{NULL, NULL},
};

/* Classes that are written in Python. */
const struct py_known_class py_known_classes[] = {
	{{"Decimal", write_python_decimal}, "decimal"},
	{{"PosixPath", py_write_path}, "pathlib"},
	{{"PurePosixPath", py_write_path}, "pathlib"},
	{{"WindowsPath", py_write_path}, "pathlib"},
	{{"PureWindowsPath", py_write_path}, "pathlib"},
	{{"DataFrame", py_write_frame}, "pandas"},
	{{"Series", py_write_series}, "pandas"},
	{{"Index", py_write_index}, "pandas"},
	{{"NaTType", py_write_nat}, "pandas"},
	{{"Tensor", py_write_tensor}, "torch"},
	{{NULL, NULL}, NULL},
};
