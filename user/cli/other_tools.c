// SPDX-License-Identifier: Apache-2.0
/* Tables of other profilers' words, and the sentences about words that are no command. */
#include "cli/other_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/suggestions.h"

const struct cli_other_tool cli_other_tools[] = {
	{"", 'i',
	 "--mode=wall shows the time of all threads and what they wait for; with it, --idle keeps threads that slept "
	 "throughout"},
	{"", 'g',
	 "each sample has its whole call stack, and it is taken whether the thread holds the GIL or not; leave it out"},
	{"call-graph", 0, "each sample has its whole call stack; leave it out"},
	{"memory", 0, "--mode=memory shows which functions touched new memory first, in bytes"},
	{"", 'm', "to start a module: `pybpf -- python3 -m MODULE`"},
	{"exposure", 'x', "-d SECONDS limits the time"},
	{"", 'C', "--children also samples the processes below -p PID"},
	{"all-cpus", 0, "all CPUs are sampled; -a samples every Python process"},
	{"nonblocking", 0, "sampling stops no process; leave it out"},
	{"blocking", 0, "sampling stops no process; leave it out"},
	{"sleepless", 0, "without --mode, pybpf samples threads only while they run on a CPU; leave it out"},
	{"interval", 0, "-F HZ sets the samples per second: an interval of 10 ms is -F 100"},
	{"function", 0, "--lines first shows a function's first line in place of the line that ran"},
	{"nolineno", 0, "--lines none leaves out the lines"},
	{"cpu", 0, "all CPUs are sampled; leave it out"},
	{0},
};

/* A word in the place of a command. */
struct word {
	const char *word, *advice;
};

static const struct word words[] = {
	{"live", "`pybpf top -p PID` shows in the terminal what uses the CPUs now"},
	{"run", "`pybpf -o FILE -- python3 app.py` starts a program and samples it to its end"},
	{"stat", "`pybpf -p PID -d 5 -f text` prints the CPU time by function"},
	{"list", "`pybpf ps` lists the Python processes"},
	{"flamegraph", "`pybpf report FILE.pybpf -o FILE.html` makes a flame graph of a saved profile"},
	{"table", "`pybpf report FILE.pybpf` prints a table of a saved profile"},
	{"tree", "`pybpf report FILE.pybpf -o FILE.html` shows the callers and callees of a saved profile"},
	{"summary", "`pybpf report FILE.pybpf` prints a table of a saved profile"},
	{"stats", "`pybpf report FILE.pybpf` prints a table of a saved profile"},
	{"annotate", "`pybpf report FILE.pybpf --by line` prints a saved profile by line"},
	{"script", "`pybpf report FILE.pybpf -f perf-script` prints a saved profile as perf script does"},
	{"check", "`pybpf doctor` says what this host offers"},
	{0},
};

/* Formats by the names that other programs have for them. */
static const struct word formats[] = {
	{"collapsed", "folded"},
	{"flamegraph", "svg"},
	{"perfetto", "chrometrace"},
	{"chrome", "chrometrace"},
	{"table", "text"},
	{"txt", "text"},
	{"cachegrind", "callgrind"},
	{"kcachegrind", "callgrind"},
	{0},
};

static const char *find_word(const struct word *table, const char *word)
{
	for (const struct word *w = table; w->word; w++) {
		if (!strcasecmp(w->word, word))
			return w->advice;
	}
	return NULL;
}

const char *cli_find_format_word(const char *word)
{
	return find_word(formats, word);
}

static bool is_pid(const char *text)
{
	return *text && strspn(text, "0123456789,") == strlen(text);
}

int cli_refuse_argument(const char *command, const char *word)
{
	if (is_pid(word))
		return cli_usage("%s: a process ID comes after -p: `pybpf %s -p %s`", word, command, word);
	return cli_usage("%s takes no argument, but was given %s; see `pybpf %s --help`", command, word, command);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len > end_len && !strcmp(text + len - end_len, end);
}

/* Returns whether the word is a program that could be started: a path, or a name on PATH. */
static bool is_program(const char *word)
{
	const char *path = strchr(word, '/') ? NULL : getenv("PATH");
	char file[4096];

	if (!access(word, F_OK))
		return true;
	while (*word && path && *path) {
		size_t len = strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s/%s", (int)len, path, word);
		if (!access(file, X_OK))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

/* Writes the command line with `insert` before argv[at]: what should have been typed. Long ones are cut. */
static const char *correct(int argc, char **argv, int at, const char *insert, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "pybpf");

	for (int i = at ? 1 : 0; i < argc && used < size; i++) {
		bool plain = *argv[i] && !strpbrk(argv[i], " \t\n\"'\\$`*?;&|<>()");

		if (i == at)
			used += (size_t)snprintf(out + used, size - used, " %s", insert);
		if (used < size)
			used += (size_t)snprintf(out + used, size - used, plain ? " %s" : " '%s'", argv[i]);
	}
	if (used >= size)
		memcpy(out + size - 4, "...", 4);
	return out;
}

static int refuse(const struct cli_command *commands, int argc, char **argv, int at)
{
	const char *word = argv[at], *advice = find_word(words, word), *next = at + 1 < argc ? argv[at + 1] : "";
	struct cli_suggestions suggestions;
	char text[256];

	if (advice)
		return cli_usage("%s: no such command; %s", word, advice);
	if (is_pid(word))
		return cli_usage("%s: a process ID comes after -p: `%s`", word,
				 correct(argc, argv, at, "-p", text, sizeof(text)));
	if (!strcmp(word, "attach") && is_pid(next))
		return cli_usage("attach: no such command; `pybpf -p %s` samples that process", next);
	if (ends_with(word, ".pybpf"))
		return cli_usage("%s: a saved profile; `pybpf report %s` shows it", word, word);
	cli_suggestions_begin(&suggestions, word);
	for (const struct cli_command *c = commands; c && c->name; c++)
		cli_suggestions_try(&suggestions, c->name);
	if (suggestions.count)
		return cli_usage("%s: no such command%s See `pybpf --help`", word,
				 cli_suggestions_text(&suggestions, "", text, sizeof(text)));
	if (ends_with(word, ".py"))
		return cli_usage("%s: a program to start comes after `--`: `%s`", word,
				 correct(argc, argv, at, "-- python3", text, sizeof(text)));
	if (is_program(word))
		return cli_usage("%s: a program to start comes after `--`: `%s`", word,
				 correct(argc, argv, at, "--", text, sizeof(text)));
	return cli_usage("%s: no such command or option; a program to start comes after `--`, see `pybpf --help`",
			 word);
}

int cli_refuse_operand(int argc, char **argv, int at)
{
	return refuse(NULL, argc, argv, at);
}

int cli_refuse_command(const struct cli_command *commands, int argc, char **argv)
{
	return refuse(commands, argc, argv, 0);
}
