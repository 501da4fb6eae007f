// SPDX-License-Identifier: Apache-2.0
/* Reads PATH from the files that set it at a login. */
#include "rights/login_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS       " \t"
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static char *skip(char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) ? NULL : text + strlen(word);
}

/* Returns the value that a line sets, terminated in place, or NULL. */
static char *value_of(char *line, const char *setting)
{
	char *text = line + strspn(line, BLANKS);

	if (setting) {
		text = skip(text, setting);
		/* login.defs(5) has "PATH=" in the value, and accepts a value without it. */
		if (!text || !strspn(text, BLANKS))
			return NULL;
		text += strspn(text, BLANKS);
		text = skip(text, "PATH=") ?: text;
	} else {
		char *assigned = skip(text, "export ");

		text = skip(assigned ?: text, "PATH=");
		if (!text)
			return NULL;
	}
	if (*text == '"' || *text == '\'') {
		char quote[] = {*text++, '\0'};

		text[strcspn(text, quote)] = '\0';
	} else {
		text[strcspn(text, BLANKS "\r\n#")] = '\0';
	}
	return *text ? text : NULL;
}

int login_path_read(FILE *in, const char *setting, char *out, size_t size)
{
	char *line = NULL, *value;
	size_t room = 0;
	int err = -ENOENT;

	while (err == -ENOENT && getline(&line, &room, in) > 0) {
		value = value_of(line, setting);
		if (value)
			err = snprintf(out, size, "%s", value) < (int)size ? 0 : -ENAMETOOLONG;
	}
	free(line);
	return err;
}

static int read_file(const char *path, const char *setting, char *out, size_t size)
{
	FILE *in = fopen(path, "re");
	int err = in ? login_path_read(in, setting, out, size) : -errno;

	if (in)
		fclose(in);
	return err;
}

void login_path(char *out, size_t size)
{
	if (read_file("/etc/environment", NULL, out, size) && read_file("/etc/login.defs", "ENV_PATH", out, size))
		snprintf(out, size, "%s", DEFAULT_PATH);
}
