// SPDX-License-Identifier: Apache-2.0
/* Names the program that a process runs, by its command line. */
#include "discovery/program.h"

#include <stdio.h>
#include <string.h>

static const char *base_name(const char *path, size_t len)
{
	for (const char *p = path + len; p > path; p--) {
		if (p[-1] == '/')
			return p;
	}
	return path;
}

/* Returns the next word of a command line, or NULL. A word with blanks in it is taken for several. */
static const char *next_word(const char **at, size_t *len)
{
	const char *word = *at + strspn(*at, " ");

	*len = strcspn(word, " ");
	*at = word + *len;
	return *len ? word : NULL;
}

/*
 * Moves on behind the first option in a word of options, such as "-um", that takes an argument: to the rest of the
 * word, which is empty if the argument is the next word (SHORT_OPTS, Python/getopt.c; -Q is of 2.7). Returns that
 * option, or
 * '\0' if the word has none.
 */
static char find_option(const char **word, size_t *len)
{
	for (size_t i = 1; i < *len; i++) {
		char option = (*word)[i];

		if (strchr("cmQWX", option)) {
			*word += i + 1;
			*len -= i + 1;
			return option;
		}
	}
	return '\0';
}

/*
 * Finds what the interpreter runs. Returns 'c' for code, 'm' for a module, else '\0'. *word: the module or the script,
 * of which "-" is stdin; NULL without one.
 */
static char find_program(const char *at, const char **word, size_t *len)
{
	static const char pycs[] = "--check-hash-based-pycs";

	while ((*word = next_word(&at, len)) && **word == '-' && *len > 1) {
		char option = (*word)[1] == '-' ? '\0' : find_option(word, len);

		if (option == 'c')
			return option;
		if (option ? !*len : *len == sizeof(pycs) - 1 && !strncmp(*word, pycs, *len))
			*word = next_word(&at, len);
		if (option == 'm')
			return option;
	}
	return '\0';
}

/* "python3 -m http.server" and "python3 app.py" are programs of their own; their arguments are not part of the name. */
void discovery_program_name(const char *comm, const char *cmdline, char *out, size_t size)
{
	const char *at = cmdline, *word;
	size_t len;
	char option;

	snprintf(out, size, "%s", comm);
	if (strncmp(comm, "python", 6) != 0 || !next_word(&at, &len))
		return;
	option = find_program(at, &word, &len);
	if (option == 'c')
		snprintf(out, size, "%s -c", comm);
	else if (option == 'm' && word)
		snprintf(out, size, "%s -m %.*s", comm, (int)len, word);
	else if (word)
		snprintf(out, size, "%s %.*s", comm, (int)strcspn(base_name(word, len), " "), base_name(word, len));
}

/*
 * Recognizes what multiprocessing starts (multiprocessing/spawn.py and forkserver.py, get_command_line): workers of the
 * program that started them.
 */
bool discovery_program_is_worker(const char *cmdline)
{
	return strstr(cmdline, "from multiprocessing.") != NULL;
}

bool discovery_program_is_python(const char *cmdline)
{
	const char *at = cmdline, *base;
	size_t len;
	const char *word = next_word(&at, &len);

	if (!word)
		return false;
	base = base_name(word, len);
	return strncmp(base, "python", 6) == 0 && base + 6 <= word + len;
}
