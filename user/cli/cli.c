// SPDX-License-Identifier: Apache-2.0
/* Functions that all commands share: number parsing, verbosity, the helper process, and closing stdout. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discovery/ask.h"
#include "foreign/foreign.h"
#include "base/log.h"

uint64_t cli_start_ns;

int cli_usage(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_vprintf(LOG_ERROR, fmt, args);
	va_end(args);
	return CLI_USAGE;
}

int cli_number(const char *text, double min, double max, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	return errno || end == text || *end || !isfinite(*out) || *out < min || *out > max ? -EINVAL : 0;
}

void cli_set_verbosity(int verbose)
{
	log_set_level(verbose > 1 ? LOG_DEBUG : verbose ? LOG_INFO : LOG_WARN);
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
	int err = foreign_start();

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
