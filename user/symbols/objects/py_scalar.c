// SPDX-License-Identifier: Apache-2.0
/* Writes numbers, texts and bytes. Offsets are from the end of the object's header on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_value_internal.h"
#include "symbols/objects/string.h"

/* Most digits of 30 bits of an int that is written as decimals. */
#define MAX_DIGITS 1024
/* Longer than any text of a program: a header with more is not a text's. */
#define MAX_LENGTH (1ull << 40)
/* Units behind those that are shown, which tell what these are: the @ of a URL, the sign behind a name. */
#define LOOK_AHEAD 1024

static bool write_none(struct py_values *v, const struct py_object *o)
{
	py_out_text(&v->out, !strcmp(o->type.name, "NoneType") ? "None"
			     : strchr("eE", o->type.name[0])   ? "Ellipsis"
							       : "NotImplemented");
	return true;
}

/* The sign and number of digits. */
static bool open_int(struct py_values *v, const struct py_object *o, bool *negative, uint64_t *count)
{
	uint64_t size;

	if (!py_get(v, o->fields, &size, sizeof(size)))
		return false;
	if (py_facts(v)->objects->has_long_tag) {
		*negative = (size & PYBPF_LONG_SIGN) == 2;
		*count = (size & PYBPF_LONG_SIGN) == 1 ? 0 : size >> PYBPF_LONG_COUNT_SHIFT;
	} else {
		*negative = (int64_t)size < 0;
		*count = *negative ? 0 - size : size;
	}
	return *count < 1ull << 32;
}

/* 2.7: a C long. */
static bool write_old_int(struct py_values *v, const struct py_object *o)
{
	int64_t number;

	if (!py_get(v, o->fields, &number, sizeof(number)))
		return false;
	py_begin_derived(v, o);
	py_out_print(&v->out, "%lld", (long long)number);
	py_end_derived(v, o);
	return true;
}

static bool write_int(struct py_values *v, const struct py_object *o)
{
	uint32_t digits[MAX_DIGITS];
	bool negative;
	uint64_t count;

	if (py_facts(v)->objects->has_c_int && (o->type.flags & PY_KIND_INT))
		return write_old_int(v, o);
	if (!open_int(v, o, &negative, &count))
		return false;
	py_begin_derived(v, o);
	if (count > MAX_DIGITS) {
		py_out_print(&v->out, "<int of about %llu bits>", (unsigned long long)count * PYBPF_DIGIT_BITS);
	} else {
		if (count && !py_get(v, o->fields + PYBPF_LONG_DIGITS, digits, count * sizeof(digits[0])))
			return false;
		for (uint64_t i = 0; i < count; i++) {
			if (digits[i] >> PYBPF_DIGIT_BITS)
				return false;
		}
		py_out_integer(&v->out, negative, digits, count);
		if (py_facts(v)->repr->has_old_literals && !o->type.derived)
			py_out_text(&v->out, "L");
	}
	py_end_derived(v, o);
	return true;
}

static bool write_bool(struct py_values *v, const struct py_object *o)
{
	bool negative;
	uint64_t count;

	if (py_facts(v)->objects->has_c_int) {
		if (!py_get(v, o->fields, &count, sizeof(count)))
			return false;
	} else if (!open_int(v, o, &negative, &count)) {
		return false;
	}
	if (count > 1)
		return false;
	py_out_text(&v->out, count ? "True" : "False");
	return true;
}

static bool write_float(struct py_values *v, const struct py_object *o)
{
	double number;

	if (!py_get(v, o->fields, &number, sizeof(number)))
		return false;
	py_begin_derived(v, o);
	py_out_double(&v->out, number, true);
	py_end_derived(v, o);
	return true;
}

bool py_write_complex_parts(struct py_values *v, const struct py_object *o)
{
	double parts[2];
	bool both;

	if (!py_get(v, o->fields, parts, sizeof(parts)))
		return false;
	both = parts[0] != 0 || signbit(parts[0]);
	if (both) {
		py_out_text(&v->out, "(");
		py_out_double(&v->out, parts[0], false);
		if (!signbit(parts[1]) || isnan(parts[1]))
			py_out_text(&v->out, "+");
	}
	py_out_double(&v->out, parts[1], false);
	py_out_text(&v->out, both ? "j)" : "j");
	return true;
}

static bool write_complex(struct py_values *v, const struct py_object *o)
{
	bool done;

	py_begin_derived(v, o);
	done = py_write_complex_parts(v, o);
	py_end_derived(v, o);
	return done;
}

void py_write_text(struct py_values *v, const uint8_t *units, size_t kept, size_t count, bool cut, unsigned unit,
		   enum py_quote quote)
{
	uint8_t *hidden = calloc(count + 1, 1);
	char *text = malloc(count + 1);

	if (!hidden || !text)
		py_out_text(&v->out, PY_VALUE_HIDDEN);
	else if (!v->of.show_secrets)
		py_hide_in_text(v, units, count, cut, unit, text, hidden);
	if (hidden && text)
		py_out_quoted(&v->out, &(struct py_text){units, hidden, kept, unit, count > kept || cut}, quote);
	free(hidden);
	free(text);
}

/* Writes that many units at addr, in quotes, as many as the limits allow. */
static bool write_units(struct py_values *v, uint64_t addr, uint64_t count, unsigned unit, enum py_quote quote)
{
	size_t kept = count < v->limits->string ? (size_t)count : v->limits->string;
	size_t have = count - kept < LOOK_AHEAD ? (size_t)count : kept + LOOK_AHEAD;
	uint8_t *units = malloc(have * unit + 1);
	bool done = units && count < MAX_LENGTH && (!have || py_get(v, addr, units, have * unit));

	if (done)
		py_write_text(v, units, kept, have, count > have, unit, quote);
	free(units);
	return done;
}

static bool write_bytes(struct py_values *v, const struct py_object *o)
{
	const struct pybpf_layout *l = v->of.layout;
	uint64_t size;
	bool done;

	if (!py_get(v, o->at + l->bytes_size, &size, sizeof(size)))
		return false;
	py_begin_derived(v, o);
	py_out_text(&v->out, py_facts(v)->repr->has_old_literals ? "" : "b");
	done = write_units(v, o->at + l->bytes_data, size, 1, PY_QUOTE_BYTES);
	py_end_derived(v, o);
	return done;
}

static bool write_str(struct py_values *v, const struct py_object *o)
{
	struct py_units units;
	bool done;

	if (v->of.layout->string_kind == PYBPF_STR_BYTES)
		return write_bytes(v, o);
	if (!py_find_units(v, o->at, &units))
		return false;
	py_begin_derived(v, o);
	done = write_units(v, units.at, units.count, units.unit, PY_QUOTE_TEXT);
	py_end_derived(v, o);
	return done;
}

/* Bytes of a character of 2.7's unicode, which a build chooses: sys.maxunicode tells. */
static unsigned find_unit(struct py_values *v)
{
	const struct pybpf_layout *l = v->of.layout;
	uint64_t interp, modules, module, names, object, most;
	struct py_dict dict;

	if (!py_get(v, v->of.runtime->interp_head, &interp, sizeof(interp)) || !l->interp_modules ||
	    !py_get(v, interp + l->interp_modules, &modules, sizeof(modules)) || !py_open_dict(&v->r, modules, &dict) ||
	    !py_find_text(&v->r, &dict, "sys", &module) ||
	    !py_get(v, module + py_header_size(&v->r), &names, sizeof(names)) || !py_open_dict(&v->r, names, &dict) ||
	    !py_find_text(&v->r, &dict, "maxunicode", &object) || !py_read_int(&v->r, object, &most))
		return 0;
	return most == 0xffff ? 2 : 4;
}

/* 2.7: length, str. */
static bool write_unicode(struct py_values *v, const struct py_object *o)
{
	uint64_t words[2];
	bool done;

	if (!v->unit)
		v->unit = find_unit(v);
	if (!v->unit || !py_get(v, o->fields, words, sizeof(words)))
		return false;
	py_begin_derived(v, o);
	py_out_text(&v->out, "u");
	done = write_units(v, words[1], words[0], v->unit, PY_QUOTE_ASCII);
	py_end_derived(v, o);
	return done;
}

/* ob_size, ob_alloc, ob_bytes, ob_start; 2.7: ob_size, ob_exports, ob_alloc, ob_bytes. */
static bool write_bytearray(struct py_values *v, const struct py_object *o)
{
	struct py_part head;
	bool done = py_part_read(v, &head, o->fields, 4);
	enum py_quote quote;

	py_out_text(&v->out, o->type.name);
	py_out_text(&v->out, "(b");
	quote = py_facts(v)->repr->bytearray_like_bytes ? PY_QUOTE_BYTES : PY_QUOTE_ARRAY;
	done = done && write_units(v, head.words[3], head.words[0], 1, quote) && py_part_same(v, &head);
	py_out_text(&v->out, ")");
	py_part_free(&head);
	return done;
}

const struct py_known py_known_scalars[] = {
	{"NoneType", write_none},
	{"ellipsis", write_none},
	{"EllipsisType", write_none},
	{"NotImplementedType", write_none},
	{"bool", write_bool},
	{"int", write_int},
	{"long", write_int},
	{"float", write_float},
	{"complex", write_complex},
	{"str", write_str},
	{"unicode", write_unicode},
	{"bytes", write_bytes},
	{"bytearray", write_bytearray},
	{NULL, NULL},
};
