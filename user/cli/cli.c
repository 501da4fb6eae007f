// SPDX-License-Identifier: Apache-2.0
/* Functions that all commands share: number parsing, verbosity, the terminal's width, the helper process, and closing
 * stdout. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/services.h"
#include "discovery/ask.h"
#include "helper/helper.h"
#include "base/error.h"
#include "base/log.h"

/* The columns of a terminal that does not tell them, such as a serial line's. */
#define USUAL_WIDTH 80

uint64_t cli_start_ns;

static char usage_place[CLI_PLACE_MAX];

void cli_set_place(const char *place)
{
	snprintf(usage_place, sizeof(usage_place), "%s", place);
}

int cli_usage(const char *fmt, ...)
{
	struct error message;
	va_list args;

	va_start(args, fmt);
	vsnprintf(message.text, sizeof(message.text), fmt, args);
	va_end(args);
	log_error("%s%s", usage_place, message.text);
	return CLI_USAGE;
}

static struct {
	void (*set)(const void *of, const char *names);
	const void *of;
} places;

void cli_set_places(void (*set_place)(const void *of, const char *names), const void *of)
{
	places.set = set_place;
	places.of = of;
}

static void tell_of(const char *names, const char *sentence)
{
	if (places.set)
		places.set(places.of, names);
	log_error("%s%s", usage_place, sentence);
	cli_set_place("");
}

int cli_usage_of(const char *names, const char *sentence)
{
	tell_of(names, sentence);
	return CLI_USAGE;
}

int cli_fail_of(const char *names, const char *sentence)
{
	tell_of(names, sentence);
	return CLI_FAILED;
}

int cli_number(const char *text, double min, double max, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	return errno || end == text || *end || !isfinite(*out) || *out < min || *out > max ? -EINVAL : 0;
}

int cli_duration(const char *text, double *seconds)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1},    {"sec", 1},
		     {"m", 60},    {"min", 60},  {"h", 3600}, {"d", 86400}};
	size_t number, letters, i;
	char part[32];
	double value;

	*seconds = 0;
	do {
		number = strspn(text, "0123456789.");
		letters = strspn(text + number, "abcdefghijklmnopqrstuvwxyz");
		snprintf(part, sizeof(part), "%.*s", (int)number, text);
		/* A bare number is of seconds, and stands alone. */
		if (number >= sizeof(part) || cli_number(part, 0, 1e12, &value) ||
		    (!letters && (*seconds || text[number])))
			return -EINVAL;
		for (i = 0; i < sizeof(units) / sizeof(*units); i++) {
			if (strlen(units[i].name) == letters && !strncmp(text + number, units[i].name, letters))
				break;
		}
		if (letters && i == sizeof(units) / sizeof(*units))
			return -EINVAL;
		*seconds += value * (letters ? units[i].seconds : 1);
		text += number + letters;
	} while (*text);
	return 0;
}

void cli_set_verbosity(int verbose)
{
	log_set_level(verbose > 1 ? LOG_DEBUG : verbose ? LOG_INFO : LOG_WARN);
}

size_t cli_terminal_width(void)
{
	struct winsize size = {0};

	if (!isatty(STDOUT_FILENO))
		return 0;
	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : USUAL_WIDTH;
}

int cli_drop_rights(const struct rights_wanted *wanted)
{
	struct error error;

	if (!rights_drop(wanted, &error))
		return 0;
	log_error("%s", error.text);
	return CLI_FAILED;
}

int cli_start_helpers(void)
{
	struct discovery *known = discovery_new();
	int err = known ? helper_start(&cli_services, known) : -ENOMEM;

	/* Each helper has its own copy. */
	discovery_free(known);
	if (err) {
		log_error("cannot start the helper that looks at other programs' files: %s", strerror(-err));
		return CLI_FAILED;
	}
	discovery_ask_memory();
	return CLI_OK;
}

int cli_finish_stdout(void)
{
	static bool failed;
	int err = 0, copy;

	if (failed)
		return 0;
	errno = 0;
	if (fflush(stdout) || ferror(stdout))
		err = errno ? -errno : -EIO;
	copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0 && close(copy) && errno != EINTR)
		err = err ?: -errno;
	failed = err;
	return err;
}
