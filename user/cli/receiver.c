// SPDX-License-Identifier: Apache-2.0
/* Sends a profile to the receiver that -o URL names. */
#include "cli/receiver.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/rules.h"
#include "output/amount.h"

/* How long a receiver that is away is waited for: somebody waits for the command. */
#define RETRY_S    30.0
#define DEADLINE_S 35.0

const struct cli_option cli_receiver_options[] = {
	{"http-headers", 0, "FILE",
	 "with -o URL: send the headers in FILE, one NAME: VALUE per line; only its owner may have access to FILE",
	 .take = cli_take_text, .offset = offsetof(struct cli_receiver, options.headers)},
	{"http-token", 0, "FILE",
	 "with -o URL: send the bearer token in FILE (Authorization); only its owner may have access to FILE",
	 .take = cli_take_text, .offset = offsetof(struct cli_receiver, options.token)},
	{"http-ca", 0, "FILE", "with -o URL: trust the certificates (PEM) in FILE instead of the system's",
	 .take = cli_take_text, .offset = offsetof(struct cli_receiver, options.ca)},
	{0},
};

bool cli_receiver_is_url(const char *path)
{
	return path && (strncasecmp(path, "http://", 7) == 0 || strncasecmp(path, "https://", 8) == 0);
}

/* Returns the path of a URL, with its slash and query; "" if it has none. */
static const char *path_of(const char *url)
{
	const char *host = strstr(url, "://") + 3;

	return host + strcspn(host, "/?");
}

static bool ends_in(const char *path, const char *end)
{
	size_t size = strcspn(path, "?"), length = strlen(end);

	return size >= length && strncmp(path + size - length, end, length) == 0;
}

int cli_receiver_choose(struct cli_receiver *receiver, const char *url, const struct output_format **format)
{
	const char *path = path_of(url);
	size_t length = strlen(url);
	bool otlp, bare = !*path || strcmp(path, "/") == 0;

	if (!*format)
		*format = output_by_name("otlp");
	otlp = (*format)->write == output_otlp;
	if (!otlp && (*format)->write != output_pprof)
		return cli_usage(
			"-o URL -f %s: otlp (the default) and pprof can be sent; write other formats to a file",
			(*format)->name);
	if (length + sizeof(OTLP_PATH) > sizeof(receiver->url))
		return cli_usage("-o URL: it has more than %zu characters", sizeof(receiver->url) - sizeof(OTLP_PATH));
	memcpy(receiver->url, url, length + 1);
	if (otlp && bare)
		memcpy(receiver->url + (path - url), OTLP_PATH, sizeof(OTLP_PATH));
	receiver->how.v1 = push_is_v1(url);
	if (otlp)
		receiver->how.protocol = PUSH_OTLP;
	else if (receiver->how.v1 || ends_in(path, "/ingest"))
		receiver->how.protocol = PUSH_PYROSCOPE;
	else
		receiver->how.protocol = PUSH_PPROF;
	receiver->options.url = receiver->url;
	receiver->options.retry_s = RETRY_S;
	return 0;
}

#define CHOSEN(field) CLI_CHOSEN(struct cli_receiver, field)

static const struct cli_choice choices[] = {
	{"-o URL", CHOSEN(options.url)},
	{"--http-headers", CHOSEN(options.headers)},
	{"--http-token", CHOSEN(options.token)},
	{"--http-ca", CHOSEN(options.ca)},
	{0},
};

static const struct cli_rule rules[] = {
	{"--http-headers, --http-token, --http-ca", .needs = "-o URL",
	 .sentence = "--http-headers, --http-token and --http-ca are for -o URL, which is missing"},
	{0},
};

const struct cli_rules cli_receiver_rules = {"record", sizeof(struct cli_receiver), choices, rules};

int cli_receiver_check_unused(const struct cli_receiver *receiver)
{
	return cli_rules_check(&cli_receiver_rules, receiver);
}

int cli_receiver_start(struct cli_receiver *receiver)
{
	struct error error;

	if (!receiver->options.url || !push_start(&receiver->options, &receiver->push, &error))
		return CLI_OK;
	log_error("%s", error.text);
	return CLI_FAILED;
}

bool cli_receiver_send(struct cli_receiver *receiver, const struct profile *profile)
{
	int err = push_profile(receiver->push, profile, &receiver->how);

	push_end(&receiver->push, DEADLINE_S, &receiver->counts);
	if (err)
		log_error("cannot prepare the profile to be sent: %s", strerror(-err));
	return !err && !push_dropped(&receiver->counts) && !receiver->counts.rejected_profiles;
}

void cli_receiver_tell(const struct cli_receiver *receiver)
{
	char size[OUTPUT_AMOUNT_MAX];

	if (receiver->counts.sent)
		log_warn("sent %s to %.*s", output_bytes(receiver->counts.sent_bytes, size),
			 (int)strcspn(receiver->url, "?"), receiver->url);
}

void cli_receiver_end(struct cli_receiver *receiver)
{
	push_end(&receiver->push, 0, NULL);
}
