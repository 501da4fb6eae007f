// SPDX-License-Identifier: Apache-2.0
#include "cli/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "cli/cli.h"
#include "base/log.h"
#include "profile/saved.h"

const char cli_filter_help[] =
	"What of it:\n"
	"  -p, --pid PID[,PID...]  only these processes; may be repeated, as all of these\n"
	"      --thread TID|GLOB   only these threads, by number or name\n"
	"      --container GLOB|ID only the processes in this container\n"
	"      --under FUNC        only stacks that have this function (a qualname, or a glob), which becomes their "
	"root\n"
	"      --focus REGEX       only stacks with a frame, `qualname (file.py:LINE)`, in which this is found\n"
	"      --ignore REGEX      only stacks without such a frame; both are POSIX extended regular expressions\n"
	"      --merge             processes of the same name and container together, without PID\n"
	"      --no-source         without the text of source files\n"
	"      --anonymize         names, paths and the host's name as hashes, other ones in each run; no sources\n";

static int no_memory(void)
{
	log_error("out of memory");
	return CLI_FAILED;
}

static int add_pids(struct profile_edit_pids *pids, const char *text)
{
	for (const char *p = text;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(p, &end, 10);
		if (*p < '0' || *p > '9' || errno || pid < 1 || pid > INT32_MAX || (*end && *end != ','))
			return cli_usage("--pid %s: not a process ID; it takes a number such as 1234, or several with "
					 "commas",
					 text);
		if (profile_edit_add_pid(pids, (int32_t)pid))
			return no_memory();
		if (!*end)
			return 0;
		p = end + 1;
	}
}

static int add_text(struct profile_edit_texts *texts, const char *option, const char *text)
{
	if (!*text)
		return cli_usage("%s: it takes a text, and found nothing", option);
	return profile_edit_add_text(texts, text) ? no_memory() : 0;
}

int cli_filter_option(struct profile_edit *edit, int option, const char *arg, bool *taken)
{
	*taken = true;
	switch (option) {
	case 'p':
		return add_pids(&edit->pids, arg);
	case CLI_FILTER_THREAD:
		return add_text(&edit->threads, "--thread", arg);
	case CLI_FILTER_CONTAINER:
		return add_text(&edit->containers, "--container", arg);
	case CLI_FILTER_UNDER:
		if (edit->under)
			return cli_usage("--under %s: there is one root, and it is %s already", arg, edit->under);
		edit->under = arg;
		return *arg ? 0 : cli_usage("--under: it takes a function's name, and found nothing");
	case CLI_FILTER_FOCUS:
		return add_text(&edit->focus, "--focus", arg);
	case CLI_FILTER_IGNORE:
		return add_text(&edit->ignore, "--ignore", arg);
	case CLI_FILTER_MERGE:
		edit->merge_processes = true;
		return 0;
	case CLI_FILTER_ANONYMIZE:
		edit->anonymize = true;
		return 0;
	case CLI_FILTER_NO_SOURCE:
		edit->no_sources = true;
		return 0;
	default:
		*taken = false;
		return 0;
	}
}

int cli_filter_check(struct profile_edit *edit)
{
	struct error error;
	int err = profile_edit_check(edit, &error);

	if (!err)
		return 0;
	log_error("%s", error.text);
	return err == -EINVAL ? CLI_USAGE : CLI_FAILED;
}

/* Some hundred profiles are opened at once; the limit of 1,024 descriptors is for programs that use select(2). */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

FILE **cli_filter_open(char *const paths[], size_t count)
{
	FILE **files = calloc(count, sizeof(*files));
	struct error error;

	if (!files)
		no_memory();
	raise_limit();
	for (size_t i = 0; files && i < count; i++) {
		if (!profile_open(paths[i], &files[i], &error))
			continue;
		log_error("%s", error.text);
		cli_filter_close(files, count);
		return NULL;
	}
	return files;
}

void cli_filter_close(FILE **files, size_t count)
{
	for (size_t i = 0; files && i < count; i++) {
		if (files[i])
			fclose(files[i]);
	}
	free(files);
}

struct profile *cli_filter_load(const struct profile_edit *edit, char *const paths[], FILE *files[], size_t count)
{
	struct profile *all = profile_new();
	struct error error;
	int err = all ? 0 : -ENOMEM;

	if (err)
		no_memory();
	for (size_t i = 0; i < count && !err; i++) {
		struct profile *one;

		err = profile_load_stream(files[i], paths[i], &one, &error);
		fclose(files[i]);
		files[i] = NULL;
		if (err) {
			log_error("%s", error.text);
			break;
		}
		err = profile_edit_add(all, one, edit, &error);
		profile_free(one);
		if (err && i)
			log_error("cannot add up %s and %s: %s", paths[0], paths[i], error.text);
		else if (err)
			log_error("cannot take over %s: %s", paths[i], error.text);
	}
	if (!err)
		return all;
	profile_free(all);
	return NULL;
}
