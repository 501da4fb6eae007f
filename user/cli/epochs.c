// SPDX-License-Identifier: Apache-2.0
/* Finds the epochs of a folder that are in a span of time. */
#include "cli/epochs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/list.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "agent/agent.h"
#include "cli/agent_modes.h"
#include "cli/cli.h"
#include "cli/moment.h"

const struct cli_option cli_span_options[] = {
	{"from", 0, "TIME",
	 "of a folder of epochs: those that end after this time: 10:00 (the last one), 2026-11-27 10:00, -5m (ago); "
	 "local time, or UTC with a Z at its end",
	 .take = cli_take_text, .offset = offsetof(struct cli_span, from)},
	{"to", 0, "TIME", "likewise, those that begin before this time", .take = cli_take_text,
	 .offset = offsetof(struct cli_span, to)},
	{0},
};

static int take_mode(const struct cli_option *option, const char *value, void *target)
{
	struct cli_span *span = target;
	int mode = SESSION_CPU, code = cli_option_word(option, value, &mode);

	span->mode = code ? NULL : agent_mode_name((enum session_mode)mode);
	return code;
}

const struct cli_option cli_mode_options[] = {
	{"mode", 0, "MODE",
	 "of a folder of an agent that measures several modes, such as `pybpf agent --mode cpu --mode wall=shop`: the "
	 "epochs of this one",
	 .take = take_mode, .words = cli_agent_modes},
	{0},
};

/* Files that were left out are named up to this number. */
#define NAMED_MAX 3

/* A span as numbers, ms since 1970, and the mode. */
struct limits {
	uint64_t from_ms, to_ms;
	const char *mode; /* NULL: not given */
};

static int refuse(const char *option, const char *text)
{
	return cli_usage("--%s %s: not a time; it takes one such as 10:00, 10:00:30, '2026-11-27 10:00', or -5m for "
			 "five minutes ago",
			 option, text);
}

static int read_span(const struct cli_span *span, struct limits *limits)
{
	uint64_t now_ms = clock_ns(CLOCK_REALTIME) / 1000000;

	limits->from_ms = 0;
	limits->to_ms = UINT64_MAX;
	if (span->from && cli_moment_read(span->from, now_ms, 0, &limits->from_ms))
		return refuse("from", span->from);
	if (span->to && cli_moment_read(span->to, now_ms, limits->from_ms, &limits->to_ms))
		return refuse("to", span->to);
	if (limits->from_ms >= limits->to_ms)
		return cli_usage("--from %s and --to %s: the span ends before it begins", span->from ?: "(not given)",
				 span->to);
	return 0;
}

static int no_memory(void)
{
	log_error("out of memory");
	return CLI_FAILED;
}

/* Adds a path: "folder/name", or the folder alone. */
static int add_path(struct cli_paths *paths, const char *folder, const char *name, const struct cli_path *as)
{
	struct cli_path path = *as;

	if (array_reserve(&paths->items, &paths->room, paths->count + 1, sizeof(*paths->items)) ||
	    asprintf(&path.name, "%s%s%s", folder, name ? "/" : "", name ?: "") < 0)
		return no_memory();
	paths->items[paths->count++] = path;
	return 0;
}

static int add_epoch(struct cli_paths *paths, const char *folder, size_t operand, const struct archive_span *span)
{
	uint64_t end_ms = span->begin_ms + span->length_ms;
	const struct cli_path path = {.operand = operand, .epochs = span->last - span->first + 1};
	char name[ARCHIVE_NAME_MAX];

	if (!paths->epochs++ || span->begin_ms < paths->begin_ms)
		paths->begin_ms = span->begin_ms;
	if (end_ms > paths->end_ms)
		paths->end_ms = end_ms;
	archive_name_write(span, name);
	return add_path(paths, folder, name, &path);
}

static void refuse_span(const char *folder, const struct archive_list *list)
{
	char first[CLI_MOMENT_MAX], last[CLI_MOMENT_MAX];
	uint64_t begin_ms = UINT64_MAX, end_ms = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct archive_span *span = &list->epochs[i].span;

		if (span->begin_ms < begin_ms)
			begin_ms = span->begin_ms;
		if (span->begin_ms + span->length_ms > end_ms)
			end_ms = span->begin_ms + span->length_ms;
	}
	if (list->count)
		log_error("%s has no epoch in that span; it has some from %s to %s", folder,
			  cli_moment_text(begin_ms, first), cli_moment_text(end_ms, last));
	else
		log_error("%s has no epochs: `pybpf agent --dir %s` writes them", folder, folder);
}

static int add_folder(struct cli_paths *paths, const char *folder, size_t operand, int fd, const struct limits *limits)
{
	size_t before = paths->count;
	struct archive_list list;
	int err = archive_list_read(&list, fd), code = 0;

	if (err) {
		log_error("the folder %s cannot be read: %s", folder, strerror(-err));
		code = CLI_FAILED;
	}
	for (size_t i = 0; i < list.count && !code; i++) {
		const struct archive_span *span = &list.epochs[i].span;

		if (!list.epochs[i].is_part && span->begin_ms < limits->to_ms &&
		    span->begin_ms + span->length_ms > limits->from_ms)
			code = add_epoch(paths, folder, operand, span);
	}
	if (!code && paths->count == before) {
		refuse_span(folder, &list);
		code = CLI_FAILED;
	}
	archive_list_free(&list);
	return code;
}

static bool has_epochs(int fd)
{
	struct archive_list list;
	const bool has = !archive_list_read(&list, fd) && list.count;

	archive_list_free(&list);
	return has;
}

/* The modes whose epochs a folder has, each in a folder below it. */
struct modes {
	const char *names[CLI_AGENT_MODES];
	size_t count;
	char text[64]; /* all of them, for messages */
};

static int open_mode(int fd, const char *mode)
{
	return openat(fd, mode, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void find_modes(int fd, struct modes *modes)
{
	size_t size = 0;

	*modes = (struct modes){.count = 0};
	for (const struct cli_word *w = cli_agent_modes; w->word; w++) {
		int below = open_mode(fd, w->word);

		if (below >= 0 && has_epochs(below)) {
			modes->names[modes->count++] = w->word;
			size += (size_t)snprintf(modes->text + size, sizeof(modes->text) - size, "%s%s",
						 size ? ", " : "", w->word);
		}
		if (below >= 0)
			close(below);
	}
}

static bool has_mode(const struct modes *modes, const char *mode)
{
	for (size_t i = 0; i < modes->count; i++) {
		if (!strcmp(modes->names[i], mode))
			return true;
	}
	return false;
}

static int add_mode(struct cli_paths *paths, const char *folder, size_t operand, int fd, const char *mode,
		    const struct limits *limits)
{
	int below = open_mode(fd, mode), code;
	char *path = NULL;

	if (below < 0 || asprintf(&path, "%s/%s", folder, mode) < 0) {
		log_error("the folder %s/%s cannot be read", folder, mode);
		code = CLI_FAILED;
	} else {
		code = add_folder(paths, path, operand, below, limits);
	}
	if (below >= 0)
		close(below);
	free(path);
	return code;
}

/* Adds the epochs of an agent's folder, of one mode. Returns an exit code. */
static int add_agent_folder(struct cli_paths *paths, const char *folder, size_t operand, int fd,
			    const struct limits *limits)
{
	const bool own = has_epochs(fd);
	struct modes modes;

	find_modes(fd, &modes);
	if (limits->mode && has_mode(&modes, limits->mode))
		return add_mode(paths, folder, operand, fd, limits->mode, limits);
	if (limits->mode && modes.count)
		log_error("%s has no epochs of --mode=%s: it has those of %s", folder, limits->mode, modes.text);
	else if (limits->mode)
		log_error("%s has no folder for --mode=%s, which only an agent that measures several modes makes; "
			  "leave out --mode",
			  folder, limits->mode);
	else if (modes.count + own > 1)
		log_error("%s has epochs of several modes, which cannot be added up: choose one of %s with --mode%s",
			  folder, modes.text, own ? "; those of an earlier agent are its files *.pybpf" : "");
	else
		return modes.count ? add_mode(paths, folder, operand, fd, modes.names[0], limits)
				   : add_folder(paths, folder, operand, fd, limits);
	return CLI_FAILED;
}

static int open_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/*
 * Opens the folder of FOLDER@FROM..TO. Returns its descriptor, or -1 if the operand is not such a text; *text: a copy
 * of it, cut into its parts, which the caller frees.
 */
static int open_span(const char *operand, char **text, struct cli_span *span)
{
	char *at, *dots;

	*text = strdup(operand);
	at = *text ? strrchr(*text, '@') : NULL;
	dots = at ? strstr(at, "..") : NULL;
	if (!dots)
		return -1;
	*at = *dots = '\0';
	*span = (struct cli_span){.from = at[1] ? at + 1 : NULL, .to = dots[2] ? dots + 2 : NULL};
	return open_folder(*text);
}

/* Adds what an operand stands for. limits: of folders without a span of their own. */
static int add_operand(struct cli_paths *paths, const char *operand, size_t index, const struct limits *limits)
{
	const struct cli_path path = {.operand = index};
	struct limits own = *limits;
	struct cli_span span = {0};
	int fd = open_folder(operand), code = 0;
	char *text = NULL;

	if (fd < 0) {
		fd = open_span(operand, &text, &span);
		code = fd < 0 ? 0 : read_span(&span, &own);
	}
	if (!code)
		code = fd < 0 ? add_path(paths, operand, NULL, &path)
			      : add_agent_folder(paths, text ?: operand, index, fd, &own);
	if (fd >= 0)
		close(fd);
	free(text);
	return code;
}

int cli_epochs_find(struct cli_paths *paths, char *const operands[], size_t count, const struct cli_span *span)
{
	struct limits limits = {.mode = span->mode};
	int code = read_span(span, &limits);

	*paths = (struct cli_paths){0};
	for (size_t i = 0; i < count && !code; i++)
		code = add_operand(paths, operands[i], i, &limits);
	if (!code && !paths->epochs && (span->from || span->to || span->mode))
		return cli_usage("--%s is about a folder of epochs, which `pybpf agent` writes, but none is given",
				 span->from ? "from"
				 : span->to ? "to"
					    : "mode");
	return code;
}

void cli_epochs_refuse_sum(const struct cli_path *path, const struct error *error)
{
	const char *name = strrchr(path->name, '/');
	char begin[CLI_MOMENT_MAX], after[CLI_MOMENT_MAX];
	struct archive_span span = {0};

	archive_name_read(name + 1, &span);
	cli_moment_text(span.begin_ms, begin);
	/* The epoch before may have ended within the second. */
	cli_moment_text(span.begin_ms + 999, after);
	log_error("%.*s: what was sampled from %s on cannot be added to what was before: %s; "
		  "choose by --to '%s' or --from '%s'",
		  (int)(name - path->name), path->name, begin, error->text, begin, after);
}

int cli_paths_leave_out(struct cli_paths *paths, size_t index, const struct error *error)
{
	struct cli_path *path = &paths->items[index];

	if (!path->epochs || error->code == -ENOMEM) {
		log_error("%s", error->text);
		return error->code;
	}
	path->is_left_out = true;
	paths->left_out++;
	paths->epochs_left_out += path->epochs;
	if (paths->left_out > NAMED_MAX)
		return 0;
	if (path->epochs == 1)
		log_error("%s (its epoch is left out)", error->text);
	else
		log_error("%s (its %" PRIu64 " epochs are left out)", error->text, path->epochs);
	return 0;
}

/* Returns whether the path is one of a folder of which all are left out. */
static bool is_of_nothing(const struct cli_paths *paths, const struct cli_path *path)
{
	if (!path->is_left_out)
		return false;
	for (size_t i = 0; i < paths->count; i++) {
		if (paths->items[i].operand == path->operand && !paths->items[i].is_left_out)
			return false;
	}
	return true;
}

int cli_paths_check_left_out(const struct cli_paths *paths)
{
	if (paths->left_out > NAMED_MAX)
		log_error("further files that cannot be read, and are left out: %zu", paths->left_out - NAMED_MAX);
	for (size_t i = 0; i < paths->count; i++) {
		const struct cli_path *path = &paths->items[i];

		if (!is_of_nothing(paths, path))
			continue;
		log_error("of the folder %.*s no epoch can be read", (int)(strrchr(path->name, '/') - path->name),
			  path->name);
		return CLI_FAILED;
	}
	return 0;
}

void cli_epochs_tell(const struct cli_paths *paths)
{
	char begin[CLI_MOMENT_MAX], end[CLI_MOMENT_MAX], missing[64] = "";
	size_t epochs = paths->epochs - paths->left_out;

	if (paths->left_out)
		snprintf(missing, sizeof(missing), ", without %" PRIu64 " that cannot be read", paths->epochs_left_out);
	if (paths->epochs)
		log_warn("%zu epoch%s, from %s to %s%s", epochs, epochs == 1 ? "" : "s",
			 cli_moment_text(paths->begin_ms, begin), cli_moment_text(paths->end_ms, end), missing);
}

void cli_paths_free(struct cli_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (paths->items[i].file)
			fclose(paths->items[i].file);
		free(paths->items[i].name);
	}
	free(paths->items);
	*paths = (struct cli_paths){0};
}
