// SPDX-License-Identifier: Apache-2.0
/* Names of the kernel's functions by address, from /proc/kallsyms. */
#include "symbols/kernel_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"

/* Types of symbols that are code (nm(1)): text and weak, global and local. */
#define CODE_TYPES "tTwW"
/* No function is as long: an address farther from its symbol is in code without one. */
#define FUNCTION_MAX (64 << 10)

struct symbol {
	uint64_t address;
	size_t name; /* offset in texts */
};

struct kernel_names {
	FILE *list; /* NULL when it has been read, or cannot be opened */
	int opened; /* 0 or negative errno */
	bool loaded;
	struct symbol *symbols;
	size_t count, room;
	char *texts;
	size_t texts_size, texts_room;
};

struct kernel_names *kernel_names_open(const char *path)
{
	struct kernel_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->list = fopen(path, "re");
	n->opened = n->list ? 0 : -errno;
	return n;
}

struct kernel_names *kernel_names_new(void)
{
	return kernel_names_open("/proc/kallsyms");
}

void kernel_names_free(struct kernel_names *n)
{
	if (!n)
		return;
	if (n->list)
		fclose(n->list);
	free(n->symbols);
	free(n->texts);
	free(n);
}

static int add_symbol(struct kernel_names *n, uint64_t address, const char *name)
{
	size_t size = strlen(name) + 1;

	if (array_reserve(&n->symbols, &n->room, n->count + 1, sizeof(*n->symbols)) ||
	    array_reserve(&n->texts, &n->texts_room, n->texts_size + size, 1))
		return -ENOMEM;
	memcpy(n->texts + n->texts_size, name, size);
	n->symbols[n->count++] = (struct symbol){address, n->texts_size};
	n->texts_size += size;
	return 0;
}

/* Takes a line "ADDRESS TYPE NAME", with "\t[MODULE]" behind it in a module. */
static int take_line(struct kernel_names *n, char *line)
{
	char *end, *name;
	uint64_t address = strtoull(line, &end, 16);

	if (!address || end == line || end[0] != ' ' || !end[1] || !strchr(CODE_TYPES, end[1]) || end[2] != ' ')
		return 0;
	name = end + 3;
	name[strcspn(name, "\t\n ")] = '\0';
	return *name ? add_symbol(n, address, name) : 0;
}

/* Aliases are in the order of the list, so that the same one is found each time. */
static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static void load(struct kernel_names *n)
{
	char *line = NULL;
	size_t room = 0;
	int err = n->opened;

	n->loaded = true;
	while (!err && getline(&line, &room, n->list) > 0)
		err = take_line(n, line);
	free(line);
	if (n->list)
		fclose(n->list);
	n->list = NULL;
	if (n->count)
		qsort(n->symbols, n->count, sizeof(*n->symbols), by_address);
	if (err)
		log_warn("--kernel: the names of the kernel's functions are not known: /proc/kallsyms: %s",
			 strerror(-err));
	else if (!n->count)
		log_warn("--kernel: the kernel hides the addresses of its functions, which are shown without names; it "
			 "shows "
			 "them to a process with CAP_SYSLOG where kernel.kptr_restrict is 0 or 1, to others where it "
			 "is 0 and "
			 "kernel.perf_event_paranoid is 1 or less");
}

/* Returns the symbol of the function that has the address, or NULL. */
static const struct symbol *find(const struct kernel_names *n, uint64_t address)
{
	size_t low =
		array_count_up_to(n->symbols, n->count, sizeof(*n->symbols), offsetof(struct symbol, address), address);

	if (!low)
		return NULL;
	while (low > 1 && n->symbols[low - 2].address == n->symbols[low - 1].address)
		low--;
	return address - n->symbols[low - 1].address < FUNCTION_MAX ? &n->symbols[low - 1] : NULL;
}

void kernel_names_find(struct kernel_names *n, uint64_t address, char name[KERNEL_NAME_MAX])
{
	const struct symbol *symbol;

	if (!n->loaded)
		load(n);
	symbol = find(n, address);
	snprintf(name, KERNEL_NAME_MAX, "%s_[k]", symbol ? n->texts + symbol->name : "[unknown]");
}
