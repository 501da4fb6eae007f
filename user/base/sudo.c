// SPDX-License-Identifier: Apache-2.0
/* The program's path and arguments, quoted for a shell. */
#include "base/sudo.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Longer arguments would hide what the message is about. */
#define ARGUMENTS_MOST 120

static char program[PATH_MAX + 16] = "sudo pybpf";
static char command[sizeof(program) + ARGUMENTS_MOST + 8] = "sudo pybpf";

/* Appends a word. Returns false if there is no room, or a shell would need more than single quotes for it. */
static bool add_word(char *text, size_t size, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
	const char *quote = *word && !word[strspn(word, plain)] ? "" : "'";
	size_t length = strlen(text);

	if (strchr(word, '\'') || strlen(word) + strlen(" ''") >= size - length)
		return false;
	snprintf(text + length, size - length, " %s%s%s", quote, word, quote);
	return true;
}

/*
 * Returns whether the file is one that sudo runs by the name: in a folder that every Linux distribution has in
 * secure_path. Those below /usr/local are not in that of RHEL and Amazon Linux.
 */
static bool is_found_by_sudo(const char *path)
{
	static const char *const folders[] = {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		size_t length = strlen(folders[i]);

		if (!strncmp(path, folders[i], length) && !strcmp(path + length, "pybpf"))
			return true;
	}
	return false;
}

void sudo_remember(int argc, char *const *argv)
{
	char path[PATH_MAX], arguments[ARGUMENTS_MOST] = "";
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	bool fits = true;

	if (length > 0) {
		path[length] = '\0';
		strcpy(program, "sudo");
		if (!add_word(program, sizeof(program), is_found_by_sudo(path) ? "pybpf" : path))
			strcpy(program, "sudo pybpf");
	}
	for (int i = 1; i < argc && fits; i++)
		fits = add_word(arguments, sizeof(arguments), argv[i]);
	snprintf(command, sizeof(command), "%s%s", program, fits ? arguments : " ...");
}

const char *sudo_program(void)
{
	return program;
}

const char *sudo_command(void)
{
	return command;
}
