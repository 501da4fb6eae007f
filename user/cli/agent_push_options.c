// SPDX-License-Identifier: Apache-2.0
/* The options of agent that say where profiles are sent, and their checks. */
#include "cli/agent_push_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/agent_options.h"
#include "cli/cli.h"
#include "cli/rules.h"

#define SPOOL_LEAST ((uint64_t)1 << 20)
#define SPOOL_MOST  ((uint64_t)1 << 40)

static const struct {
	const char *option, *path; /* path: of a URL that has none */
} receivers[AGENT_RECEIVERS] = {
	[PUSH_OTLP] = {"--otlp", OTLP_PATH},
	[PUSH_PYROSCOPE] = {"--pyroscope", "/ingest"},
	[PUSH_PPROF] = {"--pprof", ""},
};

/* Returns the end of "scheme://host:port". */
static const char *end_of_host(const char *url)
{
	const char *host = strstr(url, "://");

	host = host ? host + 3 : url;
	return host + strcspn(host, "/?");
}

static int take_url(const struct cli_option *option, const char *value, void *target)
{
	struct agent_push_options *o = target;
	const char **url = (const char **)((char *)target + option->offset);
	const char *path = end_of_host(value);
	const size_t kind = (size_t)(url - o->urls);
	struct error error;
	char *whole;

	if (push_check(&(struct push_options){.url = value}, &error))
		return cli_usage("%s: %s", cli_option_spelling(option), error.text);
	if (kind == PUSH_PYROSCOPE && strchr(value, '?'))
		return cli_usage("%s %s: pybpf adds its own query; write the URL without one",
				 cli_option_spelling(option), value);
	if (asprintf(&whole, "%.*s%s%s", (int)(path - value), value,
		     !*path || *path == '?' || !strcmp(path, "/") ? receivers[kind].path : "",
		     strcmp(path, "/") != 0 ? path : "") < 0) {
		log_error("cannot keep the options: out of memory");
		return CLI_FAILED;
	}
	free((char *)*url);
	*url = whole;
	return 0;
}

static int take_label(const struct cli_option *option, const char *value, void *target)
{
	struct agent_push_options *o = target;
	const char *equals = strchr(value, '=');
	struct output_label *label;

	if (!equals || equals == value || !equals[1])
		return cli_usage("%s %s: not a label; it takes NAME=VALUE, such as team=web",
				 cli_option_spelling(option), value);
	if (o->nr_labels == AGENT_LABELS_MAX)
		return cli_usage("%s %s: there are %d labels already, and no more", cli_option_spelling(option), value,
				 AGENT_LABELS_MAX);
	label = &o->labels[o->nr_labels];
	label->key = strndup(value, (size_t)(equals - value));
	if (!label->key) {
		log_error("cannot keep the options: out of memory");
		return CLI_FAILED;
	}
	label->value = equals + 1;
	o->nr_labels++;
	return 0;
}

static int take_spool_size(const struct cli_option *option, const char *value, void *target)
{
	struct agent_push_options *o = target;

	return cli_option_size(option, value, SPOOL_LEAST, SPOOL_MOST, &o->common.spool_max);
}

static int take_share(const struct cli_option *option, const char *value, void *target)
{
	struct agent_push_options *o = target;

	if (!cli_number(value, 0, 1, &o->hosts_share) && o->hosts_share > 0)
		return 0;
	return cli_usage("%s %s: not a share of hosts; it takes a number up to 1, such as 0.1 for every tenth",
			 cli_option_spelling(option), value);
}

static int take_top_stacks(const struct cli_option *option, const char *value, void *target)
{
	struct agent_push_options *o = target;
	uint64_t most = 0;
	int code = cli_option_whole(option, value, 1, UINT32_MAX, &most);

	o->top_stacks = (uint32_t)most;
	return code;
}

const struct cli_option cli_agent_push_options[] = {
	{"otlp", 0, "URL",
	 "send each epoch to an OpenTelemetry Collector, such as http://localhost:4318; a URL without a path "
	 "gets " OTLP_PATH,
	 .take = take_url, .offset = offsetof(struct agent_push_options, urls[PUSH_OTLP])},
	{"pyroscope", 0, "URL",
	 "send each epoch to Pyroscope, such as http://localhost:4040, a profile for each service and container; a URL "
	 "without a path gets /ingest; /push.v1.PusherService/Push is accepted, too",
	 .take = take_url, .offset = offsetof(struct agent_push_options, urls[PUSH_PYROSCOPE])},
	{"pprof", 0, "URL", "send each epoch to a URL as one body in pprof's format", .take = take_url,
	 .offset = offsetof(struct agent_push_options, urls[PUSH_PPROF])},
	{"label", 0, "NAME=VALUE",
	 "with --otlp, an attribute of each resource; with --pyroscope, a label of each profile; with --pprof, a label "
	 "of each sample; may be repeated",
	 .take = take_label},
	{"hosts-share", 0, "SHARE",
	 "send on some days only: each day (UTC), this share of the hosts, such as 0.1, sends; a hash of the day and "
	 "their names chooses them; files and answers by HTTP are not affected",
	 .take = take_share},
	{"top-stacks", 0, "N",
	 "send the N largest stacks of each service, and the sum of its others as one row, [other stacks]",
	 .take = take_top_stacks},
	{"http-headers", 0, "FILE",
	 "send the headers in FILE, one NAME: VALUE per line; only its owner may have access to FILE",
	 .take = cli_take_text, .offset = offsetof(struct agent_push_options, common.headers)},
	{"http-token", 0, "FILE",
	 "send the bearer token in FILE (Authorization); only its owner may have access to FILE", .take = cli_take_text,
	 .offset = offsetof(struct agent_push_options, common.token)},
	{"http-ca", 0, "FILE", "trust the certificates (PEM) in FILE instead of the system's", .take = cli_take_text,
	 .offset = offsetof(struct agent_push_options, common.ca)},
	{"http-certificate", 0, "FILE", "the certificate (PEM) that a receiver asks for", .take = cli_take_text,
	 .offset = offsetof(struct agent_push_options, common.certificate)},
	{"http-key", 0, "FILE", "its key (PEM); only its owner may have access to FILE", .take = cli_take_text,
	 .offset = offsetof(struct agent_push_options, common.key)},
	{"spool", 0, "DIR",
	 "keep on disk what cannot be sent and does not fit in memory, in a folder below DIR for each receiver; it is "
	 "sent after the outage, or after the next start",
	 .take = cli_take_text, .offset = offsetof(struct agent_push_options, common.spool)},
	{"spool-size", 0, "SIZE",
	 "the most bytes of one receiver's spool (default 256MiB); above that, the oldest requests are dropped, and "
	 "counted",
	 .take = take_spool_size},
	{0},
};

bool cli_agent_has_receiver(const struct agent_push_options *options)
{
	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		if (options->urls[i])
			return true;
	}
	return false;
}

/* Rejects secrets that would be sent to several hosts. */
static int check_hosts(const struct agent_push_options *options)
{
	const struct push_options *common = &options->common;
	struct error error;
	size_t first = 0;

	if (!common->headers && !common->token && !common->key)
		return 0;
	while (!options->urls[first])
		first++;
	for (size_t i = first + 1; i < AGENT_RECEIVERS; i++) {
		const char *one = options->urls[first], *other = options->urls[i];

		if (!other || (end_of_host(one) - one == end_of_host(other) - other &&
			       !strncmp(one, other, (size_t)(end_of_host(one) - one))))
			continue;
		error_set(&error, -EINVAL,
			  "--http-headers, --http-token and --http-key are secrets of one receiver, but %s and %s are "
			  "on two hosts; run an agent for each, or send to a Collector that sends to both",
			  receivers[first].option, receivers[i].option);
		return cli_usage_of("--http-headers, --http-token, --http-key", error.text);
	}
	return 0;
}

#define CHOSEN(field) CLI_CHOSEN(struct agent_push_options, field)

static const struct cli_choice choices[] = {
	{"--otlp", CHOSEN(urls[PUSH_OTLP])},        {"--pyroscope", CHOSEN(urls[PUSH_PYROSCOPE])},
	{"--pprof", CHOSEN(urls[PUSH_PPROF])},      {"--label", CHOSEN(nr_labels)},
	{"--hosts-share", CHOSEN(hosts_share)},     {"--top-stacks", CHOSEN(top_stacks)},
	{"--spool", CHOSEN(common.spool)},          {"--spool-size", CHOSEN(common.spool_max)},
	{"--http-headers", CHOSEN(common.headers)}, {"--http-token", CHOSEN(common.token)},
	{"--http-ca", CHOSEN(common.ca)},           {"--http-certificate", CHOSEN(common.certificate)},
	{"--http-key", CHOSEN(common.key)},         {0},
};

static const struct cli_rule rules[] = {
	{"--label, --hosts-share, --top-stacks, --spool, --spool-size, --http-headers, --http-token, --http-ca, "
	 "--http-certificate, --http-key",
	 .needs = "--otlp, --pyroscope, --pprof",
	 .sentence = "--label, --hosts-share, --top-stacks, --spool and --http-... are for --otlp, --pyroscope or "
		     "--pprof; give one of these, too"},
	{0},
};

const struct cli_rules cli_agent_push_rules = {"agent", sizeof(struct agent_push_options), choices, rules};

int cli_agent_push_check(const struct agent_push_options *options)
{
	return cli_agent_has_receiver(options) ? check_hosts(options) : cli_rules_check(&cli_agent_push_rules, options);
}

/* Reads each file that the options name by itself. Returns as cli_agent_push_check_files(). */
static int check_each_file(const struct push_options *common, const char *url)
{
	const struct {
		const char *name;
		struct push_options options;
	} files[] = {
		{"--http-headers", {.url = url, .headers = common->headers}},
		{"--http-token", {.url = url, .token = common->token}},
		{"--http-ca", {.url = url, .ca = common->ca}},
		/* A key goes with a certificate; the file is read as one, too, which needs fewer rights. */
		{"--http-key", {.url = url, .key = common->key, .certificate = common->key}},
	};
	struct error error;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (push_check(&files[i].options, &error))
			return cli_fail_of(files[i].name, error.text);
	}
	return 0;
}

int cli_agent_push_check_files(const struct agent_push_options *options)
{
	struct push_options all = options->common;
	struct error error;
	int code = 0;

	for (size_t i = 0; i < AGENT_RECEIVERS && !code; i++) {
		all.url = options->urls[i];
		if (!all.url)
			continue;
		code = check_each_file(&options->common, all.url);
		if (!code && push_check(&all, &error))
			code = cli_fail_of("--http-certificate, --http-key", error.text);
	}
	return code;
}

void cli_agent_push_free(struct agent_push_options *options)
{
	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		free((char *)options->urls[i]);
		options->urls[i] = NULL;
	}
	while (options->nr_labels)
		free((char *)options->labels[--options->nr_labels].key);
}
