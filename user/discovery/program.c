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

/* "python3 -m http.server" and "python3 app.py" are programs of their own; their arguments are not part of the name. */
void discovery_program_name(const char *comm, const char *cmdline, char *out, size_t size)
{
	const char *at = cmdline, *word;
	size_t len;

	snprintf(out, size, "%s", comm);
	if (strncmp(comm, "python", 6) != 0 || !next_word(&at, &len))
		return;
	while ((word = next_word(&at, &len))) {
		bool module = len == 2 && !strncmp(word, "-m", 2);

		if (len == 2 && !strncmp(word, "-c", 2)) {
			snprintf(out, size, "%s -c", comm);
			return;
		}
		/* -W and -X take the next word as their argument. */
		if (len == 2 && (!strncmp(word, "-W", 2) || !strncmp(word, "-X", 2))) {
			next_word(&at, &len);
			continue;
		}
		if (module)
			word = next_word(&at, &len);
		else if (*word == '-')
			continue;
		else
			word = base_name(word, len);
		if (word)
			snprintf(out, size, "%s %s%.*s", comm, module ? "-m " : "", (int)strcspn(word, " "), word);
		return;
	}
}

/*
 * Recognizes what multiprocessing starts (multiprocessing/spawn.py and forkserver.py, get_command_line): workers of the
 * program that started them.
 */
bool discovery_program_is_worker(const char *cmdline)
{
	return strstr(cmdline, "from multiprocessing.") != NULL;
}
