// SPDX-License-Identifier: Apache-2.0
#include "native/functions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Programs have no higher addresses, and JITs make no larger functions. */
#define ADDRESS_MAX   ((uint64_t)1 << 47)
#define MADE_SIZE_MAX ((uint64_t)1 << 32)

/* From 3.6 on, and 2.7: Python/ceval.c. */
static const char *const loops[] = {"_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx"};

/* Compilers split functions and put what they made behind a dot. */
static bool is_part_of(const char *name, const char *function)
{
	size_t length = strlen(function);

	return !strncmp(name, function, length) && (!name[length] || name[length] == '.');
}

struct search_loops {
	struct native_ranges of[sizeof(loops) / sizeof(*loops)];
	int err;
};

static void try_loop(const char *name, const struct elf_symbol *symbol, void *arg)
{
	struct search_loops *search = arg;

	for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++) {
		struct native_ranges *out = &search->of[i];

		if (!is_part_of(name, loops[i]) || !symbol->size)
			continue;
		if (array_reserve(&out->ranges, &out->room, out->count + 1, sizeof(*out->ranges))) {
			search->err = -ENOMEM;
			return;
		}
		out->ranges[out->count++] =
			(struct native_range){.start = symbol->value, .end = symbol->value + symbol->size};
	}
}

int native_find_loops(struct elf_file *elf, struct native_ranges *out)
{
	struct search_loops search = {.err = 0};
	int err = elf_file_functions(elf, try_loop, &search);
	/* PyEval_EvalFrameEx of 3.6 and later calls the other one. */
	size_t used = search.of[0].count ? 0 : 1;

	*out = search.of[used];
	free(search.of[1 - used].ranges);
	/* Without names there is no function to tell. */
	return search.err ? search.err : err == -ENOMEM ? err : 0;
}

bool native_ranges_have(const struct native_ranges *ranges, uint64_t address)
{
	for (size_t i = 0; i < ranges->count; i++) {
		if (address >= ranges->ranges[i].start && address < ranges->ranges[i].end)
			return true;
	}
	return false;
}

struct search_names {
	struct native_named *named;
	size_t count;
};

size_t native_count_below(const struct native_named *named, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (named[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/*
 * One function has several names, such as read, __read and __GI___read: the one with the fewest underscores is what
 * people call it. A smaller function in a larger one is the function.
 */
static bool is_better(const struct native_named *known, const char *name, uint64_t size)
{
	size_t ours = leading_underscores(name), theirs = leading_underscores(known->symbol);

	if (!known->size || size != known->size)
		return !known->size || size < known->size;
	if (ours != theirs)
		return ours < theirs;
	return strcmp(name, known->symbol) < 0;
}

static void try_names(const char *name, const struct elf_symbol *symbol, void *arg)
{
	const struct search_names *search = arg;
	/* Assembly without a size: only what begins there is certainly it. */
	uint64_t size = symbol->size ? symbol->size : 1;

	for (size_t i = native_count_below(search->named, search->count, symbol->value); i < search->count; i++) {
		struct native_named *named = &search->named[i];

		if (named->address - symbol->value >= size)
			break;
		if (!is_better(named, name, size))
			continue;
		named->size = size;
		named->start = symbol->value;
		snprintf(named->symbol, sizeof(named->symbol), "%.*s", NATIVE_SYMBOL_MAX - 1, name);
	}
}

int native_find_names(struct elf_file *elf, struct native_named *named, size_t count)
{
	struct search_names search = {named, count};

	return elf_file_functions(elf, try_names, &search);
}

void native_give_name(struct native_named *named, size_t count, uint64_t start, uint64_t size, const char *name)
{
	if (!*name || start >= ADDRESS_MAX || size >= MADE_SIZE_MAX)
		return;
	for (size_t i = native_count_below(named, count, start); i < count && named[i].address - start < size; i++) {
		named[i].start = start;
		named[i].size = size;
		snprintf(named[i].symbol, sizeof(named[i].symbol), "%.*s", NATIVE_SYMBOL_MAX - 1, name);
		for (char *at = named[i].symbol; *at; at++) {
			if ((unsigned char)*at < ' ' || *at == 0x7f)
				*at = '?';
		}
	}
}
