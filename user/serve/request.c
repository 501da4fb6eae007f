// SPDX-License-Identifier: Apache-2.0
/* Decides how a request is answered: at once, or by the process that samples. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "serve/internal.h"

#define METHOD_HEAD "HEAD"

static const struct row {
	const char *path;
	enum kind {
		PROFILE, /* it takes seconds */
		METRICS,
		/* No token is asked for: the answer is only whether pybpf is well. The process that serves knows. */
		HEALTH,
		READINESS,
	} kind;
	enum serve_what what; /* of a profile, and of metrics */
} rows[] = {
	{"/debug/pprof/profile", PROFILE, SERVE_PROFILE},
	{"/debug/pprof/wall", PROFILE, SERVE_WALL},
	{"/debug/pprof/gil", PROFILE, SERVE_GIL},
	{"/metrics", METRICS, SERVE_METRICS},
	{"/healthz", HEALTH, 0},
	{"/readyz", READINESS, 0},
};

bool serve_method_is_known(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, METHOD_HEAD) == 0;
}

static void __attribute__((format(printf, 3, 4)))
answer(struct serve_verdict *verdict, unsigned status, const char *fmt, ...)
{
	va_list args;

	verdict->status = status;
	va_start(args, fmt);
	vsnprintf(verdict->text, sizeof(verdict->text), fmt, args);
	va_end(args);
}

static const struct row *find_row(const char *path)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (strcmp(rows[i].path, path) == 0)
			return &rows[i];
	}
	return NULL;
}

/*
 * Returns whether the header Host has an address or localhost. A page that a browser on this machine has loaded may
 * have a name that its owner now lets lead to this machine: to the browser, what is served here is then a part of it.
 */
static bool is_local(const char *host)
{
	char name[INET6_ADDRSTRLEN + 2];
	bool in_brackets = host && *host == '[';
	size_t length = host ? in_brackets ? strcspn(host, "]") : strcspn(host, ":") : 0;
	struct in6_addr address;

	/* The request is of HTTP/1.0, which no browser speaks. */
	if (!host)
		return true;
	if (length >= sizeof(name) || (in_brackets && host[length] != ']'))
		return false;
	memcpy(name, host + in_brackets, length - in_brackets);
	name[length - in_brackets] = '\0';
	return strcasecmp(name, "localhost") == 0 || inet_pton(in_brackets ? AF_INET6 : AF_INET, name, &address) == 1;
}

/* Reads the argument "seconds" into the verdict. Returns whether it is right. */
static bool take_seconds(const char *text, unsigned most, struct serve_verdict *verdict)
{
	unsigned value = 0;

	if (!text) {
		verdict->seconds = most < SERVE_SECONDS_DEFAULT ? most : SERVE_SECONDS_DEFAULT;
		return true;
	}
	/* It stops at the first digit that exceeds the limit, long before the number could overflow. */
	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '9')
			return false;
		value = value * 10 + (unsigned)(*c - '0');
		if (value > most)
			return false;
	}
	verdict->seconds = value;
	return value > 0;
}

static void answer_probe(bool of_readiness, const struct serve_question *question, struct serve_verdict *verdict)
{
	if (question->silent_s > SERVE_QUICK_S)
		answer(verdict, MHD_HTTP_SERVICE_UNAVAILABLE, "Sampling has not gone on for %d s, or pybpf ends.",
		       SERVE_QUICK_S);
	else if (of_readiness && !question->is_ready)
		answer(verdict, MHD_HTTP_SERVICE_UNAVAILABLE, "The first epoch has not ended yet.");
	else
		answer(verdict, MHD_HTTP_OK, "%s", of_readiness ? "ready" : "ok");
}

void serve_judge(const struct serve_rules *rules, const struct serve_question *question, struct serve_verdict *verdict)
{
	const struct row *row = find_row(question->path);

	*verdict = (struct serve_verdict){.status = 0};
	if (rules->only_local_hosts && !is_local(question->host)) {
		answer(verdict, MHD_HTTP_FORBIDDEN,
		       "The header Host has a name, which a page in a browser could have chosen: use the address of "
		       "this "
		       "machine or localhost, or start pybpf with a token.");
	} else if (row && row->kind >= HEALTH) {
		answer_probe(row->kind == READINESS, question, verdict);
	} else if (rules->token && !serve_token_matches(rules->token, question->authorization)) {
		answer(verdict, MHD_HTTP_UNAUTHORIZED,
		       "The request needs pybpf's token: send the header Authorization: Bearer TOKEN.");
	} else if (!row) {
		answer(verdict, MHD_HTTP_NOT_FOUND,
		       "There are /debug/pprof/profile, /debug/pprof/wall, /debug/pprof/gil, /metrics, /healthz and "
		       "/readyz here.");
	} else if (row->kind == PROFILE && !take_seconds(question->seconds, rules->seconds_most, verdict)) {
		answer(verdict, MHD_HTTP_BAD_REQUEST, "The argument seconds has to be a whole number from 1 to %u.",
		       rules->seconds_most);
	} else if (row->kind == PROFILE && strcmp(question->method, METHOD_HEAD) == 0) {
		/* The answer has no body: nothing is sampled for it. */
		answer(verdict, MHD_HTTP_OK, "%s", "");
	} else {
		verdict->what = row->what;
	}
}
