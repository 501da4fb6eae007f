// SPDX-License-Identifier: Apache-2.0
/* Messages on stderr: one sentence per line, errors always, the rest by -v and --log. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>

enum log_level {
	LOG_ERROR = 0,
	LOG_WARN,
	LOG_INFO,  /* -v */
	LOG_DEBUG, /* -vv */
};

/* Sets the level up to which messages are printed; LOG_WARN at start. */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/*
 * Prints "pybpf: MESSAGE\n" on stderr (level name before the message for LOG_DEBUG). The message is always one line:
 * characters that are not plain (text.h), also newlines, are printed as \xNN. Never fails, also without memory.
 */
void log_printf(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_vprintf(enum log_level level, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));
/*
 * As log_printf() for a library's text of several lines, such as the verifier's log: each line is printed as a message.
 */
void log_vprintf_lines(enum log_level level, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

#define log_error(...) log_printf(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_printf(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_printf(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_printf(LOG_DEBUG, __VA_ARGS__)

/* Sends messages to this function from now on, unchanged, instead of to stderr. */
void log_set_sink(void (*to)(enum log_level level, const char *text));

/*
 * Never waits for who reads stderr, a pipe or a socket, from now on, nor in processes that are forked: a message that
 * finds no room is dropped, which is said before the next one, and a message of more than a page is cut. For runs
 * without end, whose reader may hang.
 */
void log_never_wait(void);

/* Erases a progress line before a message is printed; NULL for none. */
void log_set_before_message(void (*hook)(void));

#endif
