// SPDX-License-Identifier: Apache-2.0
/*
 * Decides what is hidden: what stands beside the name of a secret (the value of an attribute or of a key, the item
 * after it), and parts of a text. Names are taken from what was written of them, so that they may be of any type.
 * Without a whole name the value is hidden, too.
 */
#include <string.h>

#include "symbols/secrets/py_secret.h"
#include "symbols/objects/py_value_internal.h"

/* A part of the text that was written. */
struct part {
	const char *text;
	size_t size;
};

static struct part written_since(const struct py_values *v, size_t begin)
{
	return (struct part){v->out.bytes + begin, v->out.size > begin ? v->out.size - begin : 0};
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/*
 * Finds the characters of a text as repr() has it, perhaps of a class of its own ("MyStr('x')"), or the name of a
 * member of an enum ("<Color.RED: 1>"). Returns false if the part is neither.
 */
static bool open_text(struct part part, struct part *out)
{
	size_t i = 0, end = part.size;
	const char *point;

	if (end && part.text[0] == '<') {
		for (i = 1; i < end && (is_letter(part.text[i]) || strchr("0123456789.", part.text[i])); i++)
			;
		end = i < end && part.text[i] == ':' ? i : 0;
		point = memrchr(part.text, '.', end);
		i = point ? (size_t)(point - part.text) + 1 : end;
	} else {
		while (i < end && (is_letter(part.text[i]) || (part.text[i] == '(' && i)))
			i++;
		while (end > i && (part.text[end - 1] == ')' || part.text[end - 1] == '.'))
			end--;
		if (i + 2 > end || (part.text[i] != '\'' && part.text[i] != '"') || part.text[end - 1] != part.text[i])
			return false;
		i++;
		end--;
	}
	*out = (struct part){part.text + i, end - i};
	return i < end;
}

/* Nothing but signs that come between a name and its value. */
static bool is_sign(struct part part)
{
	for (size_t i = 0; i < part.size; i++) {
		if (!memchr("=:>-", part.text[i], 4))
			return false;
	}
	return part.size > 0;
}

static bool is_unreadable(struct part part)
{
	return memmem(part.text, part.size, PY_VALUE_UNREADABLE, strlen(PY_VALUE_UNREADABLE));
}

/* Returns what the text that was written says of what comes next, or may say, as it could not be read. */
static enum py_next say_next(struct part part)
{
	const size_t unreadable = strlen(PY_VALUE_UNREADABLE);
	struct part text;

	if (part.size == unreadable && is_unreadable(part))
		return PY_NEXT_SECRET;
	if (!open_text(part, &text))
		return PY_NEXT_ANY;
	if (py_secret_is_user_option(text.text, text.size))
		return PY_NEXT_USER;
	return py_secret_stands_before(text.text, text.size) ? PY_NEXT_SECRET : PY_NEXT_ANY;
}

bool py_hides_name(const struct py_values *v, const char *name)
{
	return !v->of.show_secrets && py_is_secret(name);
}

bool py_hides_member(struct py_values *v, bool named, uint64_t name, const char *text)
{
	struct py_object none;

	if (text)
		return py_hides_name(v, text);
	if (v->of.show_secrets)
		return false;
	/* A combination of flags may have no name. */
	return !named || !py_look_at(v, name, &none) || strcmp(none.type.name, "NoneType") != 0;
}

void py_hide_in_text(struct py_values *v, const uint8_t *units, size_t count, bool cut, unsigned unit, char *text,
		     uint8_t *hidden)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t sign = 0;

		memcpy(&sign, units + i * unit, unit);
		text[i] = (char)(sign < 0x80 ? sign : 0x80);
	}
	v->has_secret_name = v->has_secret_name || cut || py_secret_is_name(text, count);
	py_secret_mark(text, count, cut, hidden);
}

/* Where something is written next. */
struct place {
	size_t at;
	bool full; /* nothing is written there any more */
};

static struct place here(const struct py_values *v)
{
	return (struct place){v->out.size, v->out.full};
}

static void hide_since(struct py_values *v, struct place begin)
{
	if (begin.full)
		return;
	py_out_return(&v->out, begin.at);
	py_out_text(&v->out, PY_VALUE_HIDDEN);
}

void py_write_item(struct py_values *v, uint64_t item, enum py_next *next)
{
	const struct place begin = here(v);
	bool hides = *next == PY_NEXT_SECRET, user = *next == PY_NEXT_USER;
	struct part part, text = {.size = 0};

	py_write(v, item);
	if (v->of.show_secrets)
		return;
	part = written_since(v, begin.at);
	/* A sign is shown, and the value is what comes after it. */
	if (open_text(part, &text) && hides && is_sign(text))
		return;
	*next = hides && py_secret_find_scheme(text.text, text.size) ? PY_NEXT_SECRET : say_next(part);
	if (hides || (user && memchr(part.text, ':', part.size)))
		hide_since(v, begin);
}

/* Writes a key. Returns whether it, or anything in it, names a secret, or has not been looked at whole. */
static bool write_key(struct py_values *v, uint64_t key)
{
	size_t begin = v->out.size;
	bool outer = v->has_secret_name, hides;
	struct part part, text;

	v->has_secret_name = false;
	py_write(v, key);
	part = written_since(v, begin);
	hides = v->has_secret_name || py_secret_is_name(part.text, part.size) || is_unreadable(part) ||
		(!open_text(part, &text) && memmem(part.text, part.size, PY_OUT_MORE, strlen(PY_OUT_MORE)));
	v->has_secret_name = outer || hides;
	return hides;
}

/* Adds the value of an entry. field: its name, if that is a text. */
static void write_value(struct py_values *v, struct part field, bool hides, uint64_t value, struct py_entries *entries)
{
	bool is_value = py_secret_is_value_field(field.text, field.size),
	     names_value = py_secret_is_name_field(field.text, field.size);
	const struct place begin = here(v);

	py_write(v, value);
	if (v->of.show_secrets)
		return;
	names_value = names_value && say_next(written_since(v, begin.at)) == PY_NEXT_SECRET;
	entries->is_named = entries->is_named || names_value;
	/* "key" names a secret, too: what says that another one does is shown. */
	if (!names_value && (hides || (is_value && entries->is_named)))
		hide_since(v, begin);
	else if (names_value && entries->value_end)
		py_out_replace(&v->out, entries->value, entries->value_end, PY_VALUE_HIDDEN);
	if (is_value) {
		entries->value = begin.at;
		entries->value_end = v->out.size;
	}
}

void py_write_named(struct py_values *v, const char *name, uint64_t value, struct py_entries *entries)
{
	/* The end of a name that was cut may be what tells. */
	bool hides = !name || strstr(name, PY_OUT_MORE) || py_is_secret(name);

	py_out_text(&v->out, name ?: "?");
	py_out_text(&v->out, "=");
	write_value(v, (struct part){name, name ? strlen(name) : 0}, hides, value, entries);
}

void py_write_entry(struct py_values *v, uint64_t key, uint64_t value, struct py_entries *entries)
{
	const size_t begin = v->out.size;
	bool hides = write_key(v, key);
	struct part field = {.size = 0};

	(void)open_text(written_since(v, begin), &field);
	py_out_text(&v->out, ": ");
	write_value(v, field, hides, value, entries);
}
