// SPDX-License-Identifier: Apache-2.0
/*
 * fits PID: reads from stdin addresses of code objects of the process, in hexadecimal, each with a file behind a blank.
 * Prints those whose source the file cannot be, as JSON: [address, name, line].
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/discovery.h"
#include "session/sources/source_check.h"
#include "symbols/code_content.h"
#include "symbols/words.h"

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;
	ssize_t n = file ? getdelim(&text, &room, '\0', file) : -1;

	if (file)
		fclose(file);
	if (n >= 0)
		return text;
	free(text);
	return NULL;
}

/* Returns whether it was read. */
static bool try_one(pid_t pid, const struct pybpf_layout *layout, uint64_t code, const char *text, bool *any)
{
	struct pysym_code_content content = {0};
	struct walk_memory memory;
	struct walk_code head;
	size_t size = 0;
	char *words;
	bool read;

	walk_process_memory(&memory, &pid);
	if (walk_read_code(&memory, layout, code, false, &head))
		return false;
	pysym_code_content_read(&content, layout, pid, code, head.sig, 1 << 20);
	words = pysym_words_read(&memory, layout, code, head.sig, &size);
	read = content.name && words && size;
	if (read && !source_fits(text, &(struct source_claim){.name = content.name,
							      .first_line = content.first_line,
							      .line = content.first_line,
							      .words = words,
							      .words_size = size})) {
		printf("%s[%" PRIu64 ", \"%s\", %d]", *any ? ", " : "", code, content.name, content.first_line);
		*any = true;
	}
	free(words);
	pysym_code_content_free(&content);
	return read;
}

int main(int argc, char **argv)
{
	struct discovery *discovery = discovery_new();
	struct discovery_python python;
	struct error error = {0};
	char line[8192], path[8192] = "", *text = NULL;
	unsigned read = 0;
	size_t count;
	bool any = false;
	pid_t pid = argc == 2 ? atoi(argv[1]) : 0;

	if (!discovery || !pid || discovery_runtimes(discovery, pid, &python, 1, &count, &error) ||
	    discovery_validate(&python, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	printf("{\"misfits\": [");
	while (fgets(line, sizeof(line), stdin)) {
		char *file;
		uint64_t code = strtoull(line, &file, 16);

		file += *file == ' ';
		file[strcspn(file, "\n")] = '\0';
		if (strcmp(file, path) != 0) {
			free(text);
			text = read_file(file);
			snprintf(path, sizeof(path), "%s", file);
		}
		read += text && try_one(pid, &python.build.layout, code, text, &any);
	}
	printf("], \"read\": %u}\n", read);
	free(text);
	discovery_free(discovery);
	return 0;
}
