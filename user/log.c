// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum log_level current_level = LOG_WARN;
static void (*before_message)(void);
static void (*sink)(enum log_level level, const char *text);

void log_set_level(enum log_level level)
{
	current_level = level;
}

bool log_enabled(enum log_level level)
{
	return level <= current_level;
}

void log_set_before_message(void (*hook)(void))
{
	before_message = hook;
}

void log_set_sink(void (*to)(enum log_level level, const char *text))
{
	sink = to;
}

void log_vprintf(enum log_level level, const char *fmt, va_list args)
{
	int saved = errno;
	char *text;
	size_t len;

	/* The verifier's log, which comes this way, has megabytes. */
	if (!log_enabled(level) || vasprintf(&text, fmt, args) < 0)
		return;
	len = strlen(text);
	while (len && text[len - 1] == '\n')
		text[--len] = '\0';
	if (sink) {
		sink(level, text);
		free(text);
		errno = saved;
		return;
	}
	if (before_message)
		before_message();
	flockfile(stderr);
	fputs(level == LOG_DEBUG ? "pybpf: debug: " : "pybpf: ", stderr);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n' || (c >= 0x20 && c != 0x7f))
			fputc(c, stderr);
		else
			fprintf(stderr, "\\x%02x", c);
	}
	fputc('\n', stderr);
	funlockfile(stderr);
	free(text);
	errno = saved;
}

void log_printf(enum log_level level, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_vprintf(level, fmt, args);
	va_end(args);
}
