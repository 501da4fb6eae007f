// SPDX-License-Identifier: Apache-2.0
/* What a request is answered with, or whom it is handed to; and the token. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "serve/internal.h"

#define TOKEN "0123456789abcdef"

static const struct serve_rules open_rules = {.only_local_hosts = true, .seconds_most = 120};
static const struct serve_rules closed_rules = {.token = TOKEN, .seconds_most = 120};

static struct serve_verdict judge(const struct serve_rules *rules, struct serve_question question)
{
	struct serve_verdict verdict;

	question.method = question.method ?: "GET";
	serve_judge(rules, &question, &verdict);
	/* Either it is handed on, or it has a whole sentence. */
	if (verdict.status && verdict.status != 200) {
		assert_true(*verdict.text >= 'A' && *verdict.text <= 'Z');
		assert_int_equal(verdict.text[strlen(verdict.text) - 1], '.');
	}
	return verdict;
}

static void test_paths(void **unused)
{
	static const struct {
		const char *path;
		enum serve_what what;
		unsigned seconds;
	} rows[] = {
		{"/debug/pprof/profile", SERVE_PROFILE, 30},
		{"/debug/pprof/wall", SERVE_WALL, 30},
		{"/debug/pprof/gil", SERVE_GIL, 30},
		{"/metrics", SERVE_METRICS, 0},
	};
	static const char *const others[] = {"", "/", "metrics", "/metrics/", "/Metrics", "/metricsx", "//metrics"};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct serve_verdict verdict = judge(&open_rules, (struct serve_question){.path = rows[i].path});

		assert_int_equal(verdict.status, 0);
		assert_int_equal(verdict.what, rows[i].what);
		assert_int_equal(verdict.seconds, rows[i].seconds);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_int_equal(judge(&open_rules, (struct serve_question){.path = others[i]}).status, 404);
}

static void test_seconds(void **unused)
{
	static const struct {
		const char *text;
		unsigned seconds; /* 0: wrong */
	} rows[] = {
		{"1", 1},   {"120", 120}, {"0060", 60},      {"121", 0},          {"0", 0},
		{"", 0},    {"-1", 0},    {"+1", 0},         {" 1", 0},           {"1 ", 0},
		{"1.0", 0}, {"0x1", 0},   {"4294967297", 0}, {"999999999999", 0}, {"1e1", 0},
	};
	const struct serve_rules short_rules = {.seconds_most = 5};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct serve_verdict verdict = judge(
			&open_rules, (struct serve_question){.path = "/debug/pprof/wall", .seconds = rows[i].text});

		assert_int_equal(verdict.status, rows[i].seconds ? 0 : 400);
		if (rows[i].seconds)
			assert_int_equal(verdict.seconds, rows[i].seconds);
	}
	/* What a client does not say is allowed, too. */
	assert_int_equal(judge(&short_rules, (struct serve_question){.path = "/debug/pprof/gil"}).seconds, 5);
	/* Others take none. */
	assert_int_equal(judge(&open_rules, (struct serve_question){.path = "/metrics", .seconds = "x"}).status, 0);
}

static void test_methods(void **unused)
{
	static const char *const others[] = {"", "get", "POST", "HEADS", "GE", "CONNECT"};
	const struct serve_question profile = {.path = "/debug/pprof/profile", .method = "HEAD"};
	struct serve_question metrics = {.path = "/metrics", .method = "HEAD"};

	(void)unused;
	assert_true(serve_method_is_known("GET"));
	assert_true(serve_method_is_known("HEAD"));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(serve_method_is_known(others[i]));
	assert_int_equal(judge(&open_rules, profile).status, 200);
	assert_int_equal(judge(&open_rules, metrics).status, 0);
}

static void test_hosts(void **unused)
{
	static const char *const local[] = {NULL,    "localhost", "LOCALHOST:80", "127.0.0.1", "192.0.2.7:6060",
					    "[::1]", "[::1]:6060"};
	static const char *const names[] = {"",
					    "page.example",
					    "localhost.page.example",
					    "127.0.0.1.page.example",
					    "[::1",
					    "::1",
					    "1",
					    "[]",
					    "[page.example]:1",
					    "a-name-that-is-longer-than-every-address-of-a-machine.example"};

	(void)unused;
	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		assert_int_equal(
			judge(&open_rules, (struct serve_question){.path = "/metrics", .host = local[i]}).status, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(
			judge(&open_rules, (struct serve_question){.path = "/metrics", .host = names[i]}).status, 403);
	/* Who has the token is no page. */
	assert_int_equal(judge(&closed_rules, (struct serve_question){.path = "/metrics",
								      .host = "page.example",
								      .authorization = "Bearer " TOKEN})
				 .status,
			 0);
}

static void test_tokens(void **unused)
{
	static const char *const right[] = {"Bearer " TOKEN, "bearer " TOKEN, "BEARER   " TOKEN};
	static const char *const wrong[] = {NULL,
					    "",
					    "Bearer",
					    "Bearer ",
					    TOKEN,
					    "Basic " TOKEN,
					    "Bearer 0123456789abcdeF",
					    "Bearer 0123456789abcde",
					    "Bearer " TOKEN "0",
					    "Bearer " TOKEN TOKEN,
					    "Bearer  " TOKEN " "};

	(void)unused;
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
		assert_true(serve_token_matches(TOKEN, right[i]));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_false(serve_token_matches(TOKEN, wrong[i]));
		assert_int_equal(
			judge(&closed_rules, (struct serve_question){.path = "/metrics", .authorization = wrong[i]})
				.status,
			401);
	}
	/* What is there is told to those only who have it; that pybpf is well, to everybody. */
	assert_int_equal(judge(&closed_rules, (struct serve_question){.path = "/nowhere"}).status, 401);
	assert_int_equal(judge(&closed_rules, (struct serve_question){.path = "/healthz"}).status, 200);
	assert_int_equal(judge(&closed_rules, (struct serve_question){.path = "/readyz"}).status, 503);
}

/* They are answered here, by what the process that samples has said last. */
static void test_probes(void **unused)
{
	static const struct {
		double silent_s;
		bool is_ready;
		unsigned health, readiness;
	} rows[] = {
		{0, false, 200, 503},  {9.9, false, 200, 503}, {10.1, false, 503, 503},    {0, true, 200, 200},
		{9.9, true, 200, 200}, {10.1, true, 503, 503}, {INFINITY, true, 503, 503},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct serve_question question = {
			.path = "/healthz", .silent_s = rows[i].silent_s, .is_ready = rows[i].is_ready};

		assert_int_equal(judge(&open_rules, question).status, rows[i].health);
		question.path = "/readyz";
		assert_int_equal(judge(&open_rules, question).status, rows[i].readiness);
	}
	/* They stay closed for pages in browsers. */
	assert_int_equal(judge(&open_rules, (struct serve_question){.path = "/healthz", .host = "page.example"}).status,
			 403);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths), cmocka_unit_test(test_seconds), cmocka_unit_test(test_methods),
		cmocka_unit_test(test_hosts), cmocka_unit_test(test_tokens),  cmocka_unit_test(test_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
