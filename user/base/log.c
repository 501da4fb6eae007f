// SPDX-License-Identifier: Apache-2.0
/* Prints messages on stderr, or hands them to a sink. */
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"

/* Bytes of a message that is printed whole without memory: a sentence with a path (PATH_MAX) in it. */
#define FITS 5120

static enum log_level current_level = LOG_WARN;
static void (*before_message)(void);
static void (*sink)(enum log_level level, const char *text);
static bool never_waits;
static unsigned long dropped; /* messages that found no room, and were not counted on stderr yet */

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

void log_never_wait(void)
{
	never_waits = true;
}

/*
 * Writes a line to stderr unless it would have to wait. A pipe that poll() finds writable has room for PIPE_BUF bytes.
 * O_NONBLOCK is no choice: whoever else has the open file would get it, too.
 */
static bool write_now(const char *line, size_t size)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
	ssize_t n = send(STDERR_FILENO, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno == ENOTSOCK)
		n = poll(&room, 1, 0) == 1 ? write(STDERR_FILENO, line, size) : -1;
	return n >= 0;
}

/* Writes what was dropped before, if any, and a line, or drops it. */
static void write_line_now(const char *prefix, const char *text)
{
	char line[PIPE_BUF];
	size_t at, size;

	if (dropped) {
		at = (size_t)snprintf(line, sizeof(line), "pybpf: messages were dropped, as nobody read stderr: %lu\n",
				      dropped);
		if (write_now(line, at))
			dropped = 0;
	}
	at = (size_t)snprintf(line, sizeof(line), "%s", prefix);
	text_put(text, line + at, sizeof(line) - at - 1, &size);
	at += size;
	line[at++] = '\n';
	if (dropped || !write_now(line, at))
		dropped++;
}

static void print_line(enum log_level level, const char *text)
{
	const char *prefix = level == LOG_DEBUG ? "pybpf: debug: " : "pybpf: ";

	if (never_waits) {
		write_line_now(prefix, text);
		return;
	}
	fputs(prefix, stderr);
	text_print(text, stderr);
	fputc('\n', stderr);
}

/*
 * Text up to FITS needs no memory from the heap, so that "out of memory" is printed, too. Without memory a longer text
 * is cut.
 */
__attribute__((format(printf, 3, 0))) static void print(enum log_level level, bool lines, const char *fmt, va_list args)
{
	char fits[FITS], *longer = NULL, *text = fits, *next;
	int saved = errno;
	va_list again;

	if (!log_enabled(level))
		return;
	va_copy(again, args);
	/* The verifier's log has megabytes. NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
	if (vsnprintf(fits, sizeof(fits), fmt, args) >= (int)sizeof(fits) && vasprintf(&longer, fmt, again) >= 0)
		text = longer;
	va_end(again);
	for (size_t len = strlen(text); len && text[len - 1] == '\n'; len--)
		text[len - 1] = '\0';
	if (sink) {
		sink(level, text);
		free(longer);
		errno = saved;
		return;
	}
	if (before_message)
		before_message();
	flockfile(stderr);
	while (lines && (next = strchr(text, '\n'))) {
		*next = '\0';
		print_line(level, text);
		text = next + 1;
	}
	print_line(level, text);
	funlockfile(stderr);
	free(longer);
	errno = saved;
}

void log_vprintf(enum log_level level, const char *fmt, va_list args)
{
	print(level, false, fmt, args);
}

void log_vprintf_lines(enum log_level level, const char *fmt, va_list args)
{
	print(level, true, fmt, args);
}

void log_printf(enum log_level level, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_vprintf(level, fmt, args);
	va_end(args);
}
