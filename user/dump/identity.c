// SPDX-License-Identifier: Apache-2.0
/* Tells values that are one object from those that only look the same. */
#include "dump/identity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "dump/dump.h"

/* Longest text, in bytes, that is printed again. */
#define SHORT_TEXT 40

/* What objects are called that are described alike: "Point" of "<Point object>" and "<Point x=1>". */
struct alike {
	struct intern_bytes name; /* within the packed variables */
	uint32_t count;
};

/* A value that was printed. */
struct printed {
	uint64_t object; /* the key */
	const char *text, *name;
};

/* The last value that was printed under a name. */
struct last {
	const char *name; /* the key */
	uint64_t object;
};

static struct intern_bytes name_of(const struct dump_local *local, const struct py_mark *mark)
{
	static const char object[] = " object";
	const size_t end = sizeof(object) - 1;
	struct intern_bytes name = {.bytes = local->text + mark->begin, .size = mark->at - mark->begin};

	if (name.size > end && !memcmp(local->text + mark->at - end, object, end))
		name.size -= end;
	return name;
}

static int count_local(struct intern *table, const struct dump_local *local)
{
	for (uint32_t i = 0; i < local->nr_marks; i++) {
		const struct py_mark mark = dump_local_mark(local, i);
		const struct alike key = {.name = name_of(local, &mark)};
		bool fresh;
		uint32_t at = intern_add(table, &key, &fresh);

		if (at == INTERN_NONE)
			return -ENOMEM;
		((struct alike *)intern_item(table, at))->count++;
	}
	return 0;
}

int dump_count_alike(struct dump_process *process)
{
	intern_init(&process->alike, sizeof(struct alike), INTERN_BYTES);
	for (size_t i = 0; i < process->count; i++) {
		struct dump_local local;

		for (size_t at = 0; dump_locals_next(&process->threads[i].locals, &at, &local);) {
			if (count_local(&process->alike, &local))
				return -ENOMEM;
		}
	}
	return 0;
}

void dump_above_init(struct dump_above *above)
{
	intern_init(&above->values, sizeof(struct printed), sizeof(uint64_t));
	intern_init(&above->names, sizeof(struct last), INTERN_TEXT);
}

void dump_above_free(struct dump_above *above)
{
	intern_free(&above->values);
	intern_free(&above->names);
}

/* Prints the first bytes of a text. */
static void print_part(const char *text, size_t size, FILE *out)
{
	char *part = strndup(text, size);

	text_print(part ?: "", out);
	free(part);
}

static void print_address(const struct dump_process *process, const struct dump_local *local,
			  const struct py_mark *mark, FILE *out)
{
	const struct alike key = {.name = name_of(local, mark)};
	uint32_t at = intern_find(&process->alike, &key);

	if (at != INTERN_NONE && ((const struct alike *)intern_item(&process->alike, at))->count > 1)
		fprintf(out, " at %#" PRIx64, mark->object);
}

static void print_whole(const struct dump_process *process, const struct dump_local *local, FILE *out)
{
	size_t printed = 0;

	for (uint32_t i = 0; i < local->nr_marks; i++) {
		const struct py_mark mark = dump_local_mark(local, i);

		print_part(local->text + printed, mark.at - printed, out);
		print_address(process, local, &mark, out);
		printed = mark.at;
	}
	text_print(local->text + printed, out);
}

/* Returns whether the value is an object that has a place for its address. */
static bool is_marked(const struct dump_local *local)
{
	return local->text[0] == '<' && local->nr_marks && dump_local_mark(local, 0).begin == 1;
}

/* Returns whether the value has parts; a number or a text has none. */
static bool has_parts(const struct dump_local *local)
{
	size_t word = strspn(local->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");

	return is_marked(local) || strchr("{[(", local->text[0]) || local->text[word] == '(';
}

/* Prints what kind of value it is: "<Point at 0x7f...>", "{...}", "Point(...)". */
static void print_briefly(const struct dump_process *process, const struct dump_local *local, FILE *out)
{
	size_t bracket = strcspn(local->text, "{[(");
	struct py_mark mark;

	if (is_marked(local)) {
		mark = dump_local_mark(local, 0);
		print_part(local->text, mark.at, out);
		print_address(process, local, &mark, out);
		fputc('>', out);
		return;
	}
	print_part(local->text, bracket, out);
	fputs(local->text[bracket] == '{' ? "{...}" : local->text[bracket] == '[' ? "[...]" : "(...)", out);
}

/* Returns the object that was printed last under the name; 0: none. */
static uint64_t last_of(const struct dump_above *above, const char *name)
{
	const struct last key = {.name = name};
	uint32_t at = intern_find(&above->names, &key);

	return at == INTERN_NONE ? 0 : ((const struct last *)intern_item(&above->names, at))->object;
}

static void note_name(struct dump_above *above, const struct dump_local *local)
{
	const struct last entry = {.name = local->name, .object = local->object};
	bool fresh;
	uint32_t at = intern_add(&above->names, &entry, &fresh);

	if (at != INTERN_NONE)
		((struct last *)intern_item(&above->names, at))->object = local->object;
}

/*
 * Returns the value of the same object that was printed, with the same text, if it is what was printed last under its
 * name. If not, this value is the one from now on.
 */
static const struct printed *find_above(struct dump_above *above, const struct dump_local *local)
{
	const struct printed key = {.object = local->object, .text = local->text, .name = local->name};
	struct printed *found;
	bool fresh;
	uint32_t at;

	if (!local->object || !has_parts(local))
		return NULL;
	at = intern_add(&above->values, &key, &fresh);
	if (at == INTERN_NONE || fresh)
		return NULL;
	found = intern_item(&above->values, at);
	if (strlen(local->text) > SHORT_TEXT && !strcmp(found->text, local->text) &&
	    last_of(above, found->name) == local->object)
		return found;
	*found = key;
	return NULL;
}

void dump_print_value(const struct dump_process *process, const struct dump_local *local, struct dump_above *above,
		      FILE *out)
{
	const struct printed *found = find_above(above, local);

	note_name(above, local);
	if (!found) {
		print_whole(process, local, out);
		return;
	}
	print_briefly(process, local, out);
	fputs(", as ", out);
	if (strcmp(found->name, local->name)) {
		text_print(found->name, out);
		fputc(' ', out);
	}
	fputs("above", out);
}
