// SPDX-License-Identifier: Apache-2.0
/*
 * Gives a fuzz target the inputs that are named, one after the other: what make test does, with the library that the
 * unit tests have, since building one for libFuzzer takes longer than all the rest. Takes libFuzzer's options
 * -timeout=SECONDS and -rss_limit_mb=MIB. A crash or what takes too much ends it; the last line of the output names the
 * input.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns 0, or 1 with a message. */
static int give(const char *path, long rss_limit_mb)
{
	FILE *file = fopen(path, "rb");
	struct rusage used;
	uint8_t *data;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0) {
		perror(path);
		return 1;
	}
	rewind(file);
	/* Allocated to the byte, so that a read beyond it is found. */
	data = malloc((size_t)size ? (size_t)size : 1);
	if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) {
		perror(path);
		return 1;
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	getrusage(RUSAGE_SELF, &used);
	if (rss_limit_mb && used.ru_maxrss / 1024 > rss_limit_mb) {
		fprintf(stderr, "%s: more than %ld MiB\n", path, rss_limit_mb);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	long timeout_s = 0, rss_limit_mb = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "-timeout=", strlen("-timeout=")))
			timeout_s = strtol(argv[i] + strlen("-timeout="), NULL, 10);
		else if (!strncmp(argv[i], "-rss_limit_mb=", strlen("-rss_limit_mb=")))
			rss_limit_mb = strtol(argv[i] + strlen("-rss_limit_mb="), NULL, 10);
		if (argv[i][0] == '-')
			continue;
		printf("%s\n", argv[i]);
		alarm((unsigned)timeout_s);
		if (give(argv[i], rss_limit_mb))
			return 1;
		alarm(0);
	}
	return 0;
}
