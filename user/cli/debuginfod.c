// SPDX-License-Identifier: Apache-2.0
#include "cli/debuginfod.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "helper/helper.h"
#include "native/fetched.h"

/* As for other programs: debuginfod_find_debuginfo(3). */
#define URLS    "DEBUGINFOD_URLS"
#define SILENCE "DEBUGINFOD_TIMEOUT"

static double silence_of_environment(void)
{
	const char *value = getenv(SILENCE);
	double seconds;

	return value && !cli_duration(value, &seconds) ? seconds : 0;
}

int cli_debuginfod_start(const char *given, struct fetch **started)
{
	struct fetch_options options = {.urls = given ?: getenv(URLS), .silence_s = silence_of_environment()};
	struct error error;
	int err;

	*started = NULL;
	if (given ? !strcmp(given, "no") : !options.urls || !options.urls[strspn(options.urls, " \t\n")])
		return CLI_OK;
	err = fetch_start(&options, started, &error);
	if (!err) {
		helper_keep_open(fetch_file(*started));
		native_fetched_use(fetch_file(*started));
		return CLI_OK;
	}
	if (!given) {
		log_warn("debug files are not fetched from the servers of %s: %s", URLS, error.text);
		return CLI_OK;
	}
	log_error("cannot fetch debug files: %s", error.text);
	return err == -EINVAL ? CLI_USAGE : CLI_FAILED;
}
