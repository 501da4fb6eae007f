// SPDX-License-Identifier: Apache-2.0
/* -e uprobe:PATH:SYMBOL: finds the function in its file. */
#include "cli/uprobe.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/host.h"
#include "base/log.h"
#include "base/path_below.h"
#include "cli/cli.h"
#include "cli/suggestions.h"

#define NAME_SIZE 256

/* One name more than a search keeps, so that one is always free. */
struct names {
	struct cli_suggestions suggestions;
	char name[CLI_SUGGESTIONS_MAX + 1][NAME_SIZE];
};

static bool is_kept(const struct cli_suggestions *suggestions, const char *name)
{
	for (size_t i = 0; i < suggestions->count; i++) {
		if (suggestions->found[i].word == name)
			return true;
	}
	return false;
}

static void try_name(const char *name, const struct elf_symbol *symbol, void *arg)
{
	struct names *names = arg;
	size_t free_slot = 0;

	if (symbol->type != STT_FUNC || strlen(name) >= NAME_SIZE)
		return;
	while (is_kept(&names->suggestions, names->name[free_slot]))
		free_slot++;
	snprintf(names->name[free_slot], NAME_SIZE, "%s", name);
	cli_suggestions_try(&names->suggestions, names->name[free_slot]);
}

static int open_file(const char *path, uint32_t pid)
{
	char root[64];
	int root_fd, fd;

	snprintf(root, sizeof(root), "/proc/%u/root", pid);
	root_fd = pid && path[0] == '/' ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	/* A missing process is reported later. */
	if (root_fd < 0) {
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		return fd;
	}
	fd = path_below_open(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	close(root_fd);
	return fd;
}

static int refuse_symbol(struct elf_file *elf, const struct kernel_event *event)
{
	struct names names;
	char asked[3 * NAME_SIZE + 64];

	cli_suggestions_begin(&names.suggestions, event->symbol);
	elf_file_functions(elf, try_name, &names);
	log_error("-e %s: the file has no function %s%s", event->title, event->symbol,
		  cli_suggestions_text(&names.suggestions, "", asked, sizeof(asked)));
	return CLI_FAILED;
}

static int find_symbol(struct elf_file *elf, struct kernel_event *event)
{
	struct elf_symbol symbol;

	if (elf_file_symbol(elf, event->symbol, &symbol))
		return refuse_symbol(elf, event);
	if (symbol.type == STT_GNU_IFUNC) {
		log_error("-e %s: %s is an indirect function (IFUNC): each process chooses one of several functions "
			  "for it; name one of these instead",
			  event->title, event->symbol);
		return CLI_FAILED;
	}
	if (symbol.type != STT_FUNC && symbol.type != STT_NOTYPE)
		return refuse_symbol(elf, event);
	return elf_file_code_offset(elf, symbol.value, &event->offset) ? refuse_symbol(elf, event) : 0;
}

int cli_find_uprobe(struct kernel_event *event, struct kernel_event_text *text, uint32_t pid)
{
	int fd = open_file(text->path, pid), err, code;
	struct elf_file *elf;

	if (fd < 0) {
		log_error("-e %s: cannot open %s: %s", event->title, text->path, strerror(-fd));
		return CLI_FAILED;
	}
	err = elf_file_open(fd, &elf);
	if (err) {
		log_error("-e %s: %s", event->title,
			  err == -ENOEXEC   ? "the file is neither a program nor a library (ELF)"
			  : err == -ENOTSUP ? "the file is a program or library for another machine"
					    : strerror(-err));
		close(fd);
		return CLI_FAILED;
	}
	code = find_symbol(elf, event);
	elf_file_free(elf);
	snprintf(text->path, sizeof(text->path), "/proc/self/fd/%d", fd);
	return code;
}
