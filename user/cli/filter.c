// SPDX-License-Identifier: Apache-2.0
/* The filter options of report and diff, and the loading of saved profiles through these filters. */
#include "cli/filter.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/suggestions.h"
#include "base/host.h"
#include "base/log.h"
#include "profile/saved.h"

static int no_memory(void)
{
	log_error("out of memory");
	return CLI_FAILED;
}

static int take_pids(const struct cli_option *option, const char *text, void *target)
{
	struct profile_edit *edit = target;

	for (const char *p = text;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(p, &end, 10);
		if (*p < '0' || *p > '9' || errno || pid < 1 || pid > INT32_MAX || (*end && *end != ','))
			return cli_usage("--%s %s: not a process ID; it takes a number such as 1234, or several with "
					 "commas",
					 option->name, text);
		if (profile_edit_add_pid(&edit->pids, (int32_t)pid))
			return no_memory();
		if (!*end)
			return 0;
		p = end + 1;
	}
}

static int take_text(const struct cli_option *option, const char *text, void *edit)
{
	if (!*text)
		return cli_usage("--%s needs a value (%s); the one given is empty", option->name, option->value);
	return profile_edit_add_text((void *)((char *)edit + option->offset), text) ? no_memory() : 0;
}

static int take_under(const struct cli_option *option, const char *text, void *target)
{
	struct profile_edit *edit = target;

	if (edit->under)
		return cli_usage("--%s %s: a report has one root, and --under %s was given already; give one of them",
				 option->name, text, edit->under);
	edit->under = text;
	return *text ? 0 : cli_usage("--%s needs a function's name; the one given is empty", option->name);
}

const struct cli_option cli_filter_options[] = {
	{"pid", 'p', "PID[,PID...]", "only these processes; may be repeated, and so may the options below",
	 .take = take_pids},
	{"thread", 0, "TID|GLOB", "only these threads, by number or name", .take = take_text,
	 .offset = offsetof(struct profile_edit, threads)},
	{"container", 0, "GLOB|ID", "only the processes in this container", .take = take_text,
	 .offset = offsetof(struct profile_edit, containers)},
	{"service", 0, "GLOB", "only the processes of this service, in profiles of `pybpf agent`; may be repeated",
	 .take = take_text, .offset = offsetof(struct profile_edit, services)},
	{"service-version", 0, "GLOB",
	 "only the processes of this version of a service: service.version of OTEL_RESOURCE_ATTRIBUTES, or the tag of "
	 "the container's image",
	 .take = take_text, .offset = offsetof(struct profile_edit, versions)},
	{"under", 0, "FUNC",
	 "only stacks that have this function, which becomes their root: a qualname such as Server.run, its last part, "
	 "run, or a glob",
	 .take = take_under},
	{"hide", 0, "REGEX",
	 "leave out frames in which this regular expression is found, and add their samples to their callers",
	 .take = take_text, .offset = offsetof(struct profile_edit, hide)},
	{"merge", 0, NULL, "put processes of the same name and container together, without PID", .take = cli_take_flag,
	 .offset = offsetof(struct profile_edit, merge_processes)},
	{"no-native", 0, NULL, "leave out the functions of compiled code that --native has recorded",
	 .take = cli_take_flag, .offset = offsetof(struct profile_edit, no_native)},
	{"no-source", 0, NULL, "leave out the text of source files", .take = cli_take_flag,
	 .offset = offsetof(struct profile_edit, no_sources)},
	{"anonymize", 0, NULL,
	 "replace names, paths and the host's name by hashes, which differ in each run; no source files",
	 .take = cli_take_flag, .offset = offsetof(struct profile_edit, anonymize)},
	{0},
};

const struct cli_option cli_focus_options[] = {
	{"focus", 0, "REGEX",
	 "only stacks with a frame, `qualname (file.py:LINE)`, in which this POSIX extended regular expression is "
	 "found; with --async=all also those of tasks that such a stack's task awaits",
	 .take = take_text, .offset = offsetof(struct profile_edit, focus)},
	{"ignore", 0, "REGEX", "only stacks without such a frame, and not of such tasks", .take = take_text,
	 .offset = offsetof(struct profile_edit, ignore)},
	{0},
};

const struct cli_option cli_own_options[] = {
	{"own", 0, NULL,
	 "leave out functions of the standard library, of installed packages and of the kernel, and add their samples "
	 "to the program's own that called them",
	 .take = cli_take_flag, .offset = offsetof(struct profile_edit, own_only)},
	{"own-path", 0, "PATH",
	 "functions of this folder or file are the program's own, too; a saved profile has files as they are shown; "
	 "may be repeated",
	 .take = take_text, .offset = offsetof(struct profile_edit, own_paths)},
	{0},
};

const struct cli_option *const cli_own_path_options = &cli_own_options[1];

int cli_filter_check(struct profile_edit *edit)
{
	struct error error;
	int err = profile_edit_check(edit, &error);

	if (!err)
		return 0;
	log_error("%s", error.text);
	return err == -EINVAL ? CLI_USAGE : CLI_FAILED;
}

static void refuse_number(size_t wanted, size_t possible)
{
	log_error("%zu profiles cannot be open at once: the limit here is %zu; choose a span of time by --from and "
		  "--to, or raise the limit (`ulimit -Hn`)",
		  wanted, possible);
}

int cli_filter_open(struct cli_paths *paths)
{
	struct error error;
	int err = 0;

	host_raise_descriptors();
	for (size_t i = 0; i < paths->count && !err; i++) {
		struct cli_path *path = &paths->items[i];

		err = profile_open(path->name, &path->file, &error);
		if (err == -EMFILE)
			refuse_number(paths->count, i);
		else if (err)
			err = cli_paths_leave_out(paths, i, &error);
	}
	return err ? CLI_FAILED : 0;
}

/* Whether a function of --under was met, and else the names near to it. */
struct under {
	bool met;
	char asked[256];
};

static void look_for_under(struct under *under, const struct profile_edit *edit, const struct profile *p)
{
	struct cli_suggestions suggestions;

	cli_suggestions_begin(&suggestions, edit->under);
	for (uint32_t i = 0; i < profile_frame_count(p) && !under->met; i++) {
		const struct profile_frame *frame = profile_frame_at(p, i);

		under->met = profile_edit_is_under(edit, p, i);
		if (frame->kind == PROFILE_PYTHON)
			cli_suggestions_try(&suggestions, profile_string(p, frame->name));
	}
	if (!*under->asked)
		cli_suggestions_text(&suggestions, "", under->asked, sizeof(under->asked));
}

/*
 * Adds what the edit's filters leave of a saved profile to `to`, and closes its file. Nothing is added of a file that
 * is left out. Returns 0, or negative errno after one sentence on stderr; first: the name of the profile that `to` has
 * already, or NULL.
 */
static int add_one(struct profile *to, const struct profile_edit *edit, struct cli_paths *paths, size_t index,
		   const char *first, struct under *under)
{
	struct cli_path *path = &paths->items[index];
	struct profile *one;
	struct error error;
	int err;

	if (path->is_left_out)
		return 0;
	err = profile_load_stream(path->file, path->name, &one, &error);
	fclose(path->file);
	path->file = NULL;
	if (err)
		return cli_paths_leave_out(paths, index, &error);
	if (edit->under && under)
		look_for_under(under, edit, one);
	err = profile_edit_add(to, one, edit, &error);
	profile_free(one);
	if (err == -EINVAL && first && path->epochs)
		cli_epochs_refuse_sum(path, &error);
	else if (err && first)
		log_error("cannot add up %s and %s: %s", first, path->name, error.text);
	else if (err)
		log_error("cannot take over %s: %s", path->name, error.text);
	return err;
}

/* Adds all of them. Returns 0, or negative errno after one sentence on stderr. */
static int add_all(struct profile *to, const struct profile_edit *edit, struct cli_paths *paths, struct under *under)
{
	const char *first = NULL;
	int err = 0;

	for (size_t i = 0; i < paths->count && !err; i++) {
		err = add_one(to, edit, paths, i, first, under);
		if (!first && !paths->items[i].is_left_out)
			first = paths->items[i].name;
	}
	return err ?: cli_paths_check_left_out(paths) ? -ECANCELED : 0;
}

static void refuse_under(const struct profile_edit *edit, const struct under *under)
{
	log_error("--under %s: no stack has a function of that name%s", edit->under, under->asked);
}

struct profile *cli_filter_load(const struct profile_edit *edit, struct cli_paths *paths)
{
	struct under under = {.met = !edit->under};
	struct profile *all = profile_new();

	if (!all)
		no_memory();
	if (all && !add_all(all, edit, paths, &under)) {
		if (under.met)
			return all;
		refuse_under(edit, &under);
	}
	profile_free(all);
	return NULL;
}

int cli_filter_load_one(const struct profile_edit *edit, struct cli_paths *paths, size_t index,
			struct profile **profile)
{
	struct profile *one = profile_new();
	int err = one ? add_one(one, edit, paths, index, NULL, NULL) : no_memory();

	if (err || paths->items[index].is_left_out) {
		profile_free(one);
		one = NULL;
	}
	*profile = one;
	return err ? CLI_FAILED : 0;
}

/* Hands over one profile. Returns as cli_filter_each(). */
static int take_one(const struct profile_edit *edit, struct cli_paths *paths, size_t index, struct under *under,
		    int (*take)(void *arg, const struct profile *p), void *arg)
{
	struct profile *one = profile_new();
	int err = one ? 0 : -ENOMEM;

	if (!err && add_one(one, edit, paths, index, NULL, under))
		err = -ECANCELED;
	if (!err && !paths->items[index].is_left_out)
		err = take(arg, one);
	profile_free(one);
	return err;
}

int cli_filter_each(const struct profile_edit *edit, struct cli_paths *paths,
		    int (*take)(void *arg, const struct profile *p), void *arg)
{
	struct under under = {.met = !edit->under};
	int err = 0;

	for (size_t i = 0; i < paths->count && !err; i++)
		err = take_one(edit, paths, i, &under, take, arg);
	if (!err && cli_paths_check_left_out(paths))
		err = -ECANCELED;
	if (err || under.met)
		return err;
	refuse_under(edit, &under);
	return -ECANCELED;
}
