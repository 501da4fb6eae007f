// SPDX-License-Identifier: Apache-2.0
/* The option of record and agent that says what the host is called. */
#include "cli/host.h"

#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "session/session.h"

/* Most bytes of a name: as many as DNS allows. */
#define NAME_MOST 255

static bool is_name(const char *text)
{
	const size_t size = strlen(text);
	bool plain = true;

	for (size_t i = 0; i < size && plain;)
		i += text_character(text + i, &plain);
	return size && size <= NAME_MOST && plain;
}

static int take_host(const struct cli_option *option, const char *value, void *target)
{
	struct session_options *session = target;

	if (!is_name(value))
		return cli_usage("%s %s: not the name of a host; it takes 1 to " CLI_NUMBER(
					 NAME_MOST) " bytes of UTF-8 without control characters",
				 cli_option_spelling(option), value);
	session->host = value;
	return 0;
}

const struct cli_option cli_host_options[] = {
	{"host", 0, "NAME",
	 "the host's name in profiles (default: its host name, which in a container is the container's)",
	 .take = take_host},
	{0},
};
