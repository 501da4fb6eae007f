// SPDX-License-Identifier: Apache-2.0
/* Replaces names by keyed hashes, from which the names cannot be guessed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/edit_internal.h"
#include "base/text_stream.h"

/* Hexadecimal digits of a hash. Among 10,000 names, the probability that two get the same hash is 2e-7. */
#define DIGITS 12

/* Parts of names and paths that Python itself gives, and that disclose nothing of a program. */
static const char *const of_python[] = {
	"<module>",   "<locals>",  "<lambda>", "<listcomp>", "<setcomp>",
	"<dictcomp>", "<genexpr>", "<string>", "<stdin>",    NULL,
};

static bool is_of_python(const char *part, size_t size)
{
	for (const char *const *known = of_python; *known; known++) {
		if (strlen(*known) == size && memcmp(*known, part, size) == 0)
			return true;
	}
	return false;
}

static void hide(const struct profile_edit *edit, char kind, const char *part, size_t size, FILE *out)
{
	const uint64_t hash = siphash(edit->salt, part, size);

	if (size)
		fprintf(out, "%c%0*" PRIx64, kind, DIGITS, hash >> (64 - 4 * DIGITS));
}

/* Returns the size of the first part. A separator in angle brackets belongs to it: <frozen importlib._bootstrap>. */
static size_t part_size(const char *text, char separator)
{
	size_t size = 0;

	if (*text == '<')
		size = strcspn(text, ">");
	return size + strcspn(text + size, (const char[]){separator, '\0'});
}

/* Hides the parts of a qualname, which dots separate. */
static void hide_name(const struct profile_edit *edit, const char *name, size_t size, FILE *out)
{
	for (const char *part = name, *end = name + size; part < end;) {
		size_t length = part_size(part, '.');

		if (length > (size_t)(end - part))
			length = (size_t)(end - part);
		if (is_of_python(part, length))
			fwrite(part, 1, length, out);
		else
			hide(edit, 'f', part, length, out);
		part += length;
		if (part < end)
			fputc(*part++, out);
	}
}

static char *closed(FILE *out, char **text)
{
	bool failed = ferror(out) != 0;

	if (!fclose(out) && !failed)
		return *text;
	free(*text);
	return NULL;
}

char *edit_hidden(const struct profile_edit *edit, char kind, const char *text)
{
	char *hidden = NULL;
	size_t size;
	FILE *out = text_stream_open(&hidden, &size);

	if (!out)
		return NULL;
	hide(edit, kind, text, strlen(text), out);
	return closed(out, &hidden);
}

char *edit_hidden_note(const struct profile_edit *edit, const char *note)
{
	static const char holder[] = "held in ";
	const char *detail = strstr(note, ": "), *end = strrchr(note, ']');
	char *hidden = NULL;
	size_t size;
	FILE *out = text_stream_open(&hidden, &size);

	if (!out)
		return NULL;
	if (detail && end && end > detail + 2) {
		detail += 2;
		if (strncmp(detail, holder, strlen(holder)) == 0 && detail + strlen(holder) < end) {
			detail += strlen(holder);
			fwrite(note, 1, (size_t)(detail - note), out);
			hide_name(edit, detail, (size_t)(end - detail), out);
		} else {
			fwrite(note, 1, (size_t)(detail - note), out);
			hide(edit, 'w', detail, (size_t)(end - detail), out);
		}
		fputs(end, out);
	} else {
		fputs(note, out);
	}
	return closed(out, &hidden);
}

char *edit_hidden_name(const struct profile_edit *edit, const char *name)
{
	char *hidden = NULL;
	size_t size;
	FILE *out = text_stream_open(&hidden, &size);

	if (!out)
		return NULL;
	hide_name(edit, name, strlen(name), out);
	return closed(out, &hidden);
}

char *edit_hidden_path(const struct profile_edit *edit, const char *path)
{
	static const char suffix[] = ".py";
	char *hidden = NULL;
	size_t size;
	FILE *out = text_stream_open(&hidden, &size);

	if (!out)
		return NULL;
	for (const char *part = path; *part;) {
		size_t length = part_size(part, '/'), stem = length;

		if (!part[length] && length > strlen(suffix) && strcmp(part + length - strlen(suffix), suffix) == 0)
			stem = length - strlen(suffix);
		if (is_of_python(part, length))
			fwrite(part, 1, length, out);
		else
			hide(edit, 'm', part, stem, out);
		fputs(stem < length ? suffix : "", out);
		part += length;
		if (*part)
			fputc(*part++, out);
	}
	return closed(out, &hidden);
}
