// SPDX-License-Identifier: Apache-2.0
/*
 * What is told to be a secret. tests/data/secrets.jsonl has names with values, and of each secret the part that must
 * not be shown: here those that are texts, and those that the name tells; dump --locals is shown all of them by
 * tests/e2e/test_dump_secrets.py.
 */
#include "symbols/secrets/py_secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#define CORPUS "tests/data/secrets.jsonl"
/* Harmless names and texts that may be hidden, in all. */
#define HIDDEN_MAX 3

/* Replaces what is hidden by one sign. Returns the rest, which the caller frees. */
static char *show(const char *text, size_t size, bool cut)
{
	uint8_t *mask = calloc(size + 1, 1);
	/* Without a NUL behind it, so that the sanitizer sees a read there. */
	char *exact = malloc(size), *shown = malloc(size + 1);
	size_t count = 0;

	assert_true(mask && (exact || !size) && shown);
	memcpy(exact, text, size);
	py_secret_mark(exact, size, cut, mask);
	assert_int_equal(mask[size], 0);
	for (size_t i = 0; i < size; i++) {
		if (!mask[i] || !i || !mask[i - 1])
			shown[count++] = mask[i] ? '#' : text[i];
	}
	shown[count] = '\0';
	free(mask);
	free(exact);
	return shown;
}

static void assert_shown(const char *text, const char *expected)
{
	char *shown = show(text, strlen(text), false);

	assert_string_equal(shown, expected);
	free(shown);
}

struct counts {
	unsigned secrets, harmless, hidden, missed;
};

/* Returns whether the rule hides the value, or what must not be shown of it. */
static bool is_hidden(const char *name, const char *text, const char *needle)
{
	char *shown = text ? show(text, strlen(text), false) : NULL;
	bool hidden = py_is_secret(name) || (shown && (needle ? !strstr(shown, needle) : strcmp(shown, text) != 0));

	free(shown);
	return hidden;
}

static void check_row(const json_t *row, struct counts *counts)
{
	const char *kind = json_string_value(json_array_get(row, 0)), *name = json_string_value(json_array_get(row, 1));
	const json_t *value = json_array_get(row, 2), *needle = json_array_get(row, 3);
	bool secret, hidden;

	assert_true(kind && name && value);
	secret = !strcmp(kind, "secret");
	if (secret && !json_is_string(value) && !py_is_secret(name))
		return;
	hidden = is_hidden(name, json_string_value(value), secret ? json_string_value(needle) : NULL);
	counts->secrets += secret;
	counts->harmless += !secret;
	if (secret == hidden)
		return;
	print_message("%s: %s = %s\n", secret ? "shown" : "hidden for nothing", name, json_string_value(value) ?: "");
	counts->missed += secret;
	counts->hidden += !secret;
}

static void test_corpus(void **state)
{
	FILE *file = fopen(CORPUS, "re");
	struct counts counts = {0};
	json_t *row;

	(void)state;
	assert_non_null(file);
	while ((row = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL))) {
		check_row(row, &counts);
		json_decref(row);
	}
	fclose(file);
	assert_int_equal(counts.missed, 0);
	assert_true(counts.hidden <= HIDDEN_MAX);
	assert_true(counts.secrets >= 300 && counts.harmless >= 300);
}

static void test_names(void **state)
{
	static const char *const hidden[] = {"SSHKey", "JWTAuth", "dbAPIKeys", "DBPass1", "KEYs", "--password"};
	static const char *const shown[] = {"", "x", "K", "SSHKeyboard", "numTokensTotal", "____", "2"};
	static const char with_nul[] = "\0\0password";
	char *long_name = malloc(100000);

	(void)state;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		assert_true(py_is_secret(hidden[i]));
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		assert_false(py_is_secret(shown[i]));
	assert_true(py_secret_is_name(with_nul, sizeof(with_nul) - 1));
	/* A name of any length, wherever the word is: run together, and as the last of many words. */
	assert_non_null(long_name);
	memset(long_name, 'x', 100000);
	assert_false(py_secret_is_name(long_name, 100000));
	memcpy(long_name + 70000, "password", 8);
	assert_true(py_secret_is_name(long_name, 100000));
	for (size_t i = 0; i < 100000; i++)
		long_name[i] = i % 3 ? 'x' : ' ';
	assert_false(py_secret_is_name(long_name, 100000));
	memcpy(long_name + 99996, " key", 4);
	assert_true(py_secret_is_name(long_name, 100000));
	free(long_name);
}

static void test_what_stands_before(void **state)
{
	static const char *const before[] = {
		"password", "--db-pass", "Authorization", "X-Api-Key:", "token =", "api key", "my api key:"};
	static const char *const not [] = {
		"", "author", "Enter your password now", "password=x", "--password=x", "'key'", "=", "the monkey"};

	(void)state;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		assert_true(py_secret_stands_before(before[i], strlen(before[i])));
	for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++)
		assert_false(py_secret_stands_before(not [i], strlen(not [i])));
}

/* What is not secret stays: the rest of the text is what it is read for. */
static void test_what_stays(void **state)
{
	(void)state;
	assert_shown("postgres://bob:x@db:5432/app?a=1", "postgres://#@db:5432/app?a=1");
	assert_shown("postgres://bob:p@ss@w@db:5432/app", "postgres://#@db:5432/app");
	assert_shown("Cookie:theme=dark; session=b1946ac9", "Cookie:#");
	assert_shown("Bearer abc", "Bearer #");
	assert_shown("GET / HTTP/1.1\r\nAuthorization: Bearer x\r\nHost: y",
		     "GET / HTTP/1.1\r\nAuthorization: #\r\nHost: y");
	assert_shown("mysql --password=x -h db", "mysql --password=# -h db");
	assert_shown("mysql --password 'x y' -h db", "mysql --password '#' -h db");
	assert_shown("{\"a\": 1, \"password\": \"x\\\"y\", \"b\": 2}", "{\"a\": 1, \"password\": \"#\", \"b\": 2}");
	assert_shown("Server=x;Password=y z;Database=w", "Server=x;Password=#;Database=w");
	assert_shown("?token=x&page=2", "?token=#&page=2");
	assert_shown("password: |\n  x\n  y\nuser: bob", "password: |#\nuser: bob");
	assert_shown("-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----\nz", "#\nz");
	/* As json.dumps() and repr() have it, and behind a certificate. */
	assert_shown("see:\\n-----BEGIN PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY-----\\nz", "see:\\n#\\nz");
	assert_shown("x-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\\n-----BEGIN PRIVATE KEY-----\nB\n",
		     "x#\\n#");
	assert_shown("password='''a b''' c", "password='''#''' c");
	assert_shown("password:\n  - a\n  - b\nuser: bob", "password:\n#\nuser: bob");
	assert_shown("token:\nabc\nuser", "token:\n#\nuser");
	assert_shown("token:\nuser: bob", "token:\nuser: bob");
	assert_shown("{\"password\": null, \"token\": true}", "{\"password\": null, \"token\": true}");
	assert_shown("", "");
}

/* /proc/PID/cmdline and environ. */
static void test_words_that_end_with_nul(void **state)
{
	static const char line[] = "curl\0--password\0hunter2\0x-api-key\0hunter2\0-v\0TOKEN=hunter2\0HOME=/root\0";
	static const char expected[] = "curl\0--password\0#\0x-api-key\0#\0-v\0TOKEN=#\0HOME=/root";
	char *shown = show(line, sizeof(line) - 1, false);

	(void)state;
	assert_memory_equal(shown, expected, sizeof(expected));
	free(shown);
}

/* What would be hidden with the rest of the text is hidden without it. */
static void test_cut(void **state)
{
	static const char *const texts[] = {"postgres://bob:hunter2", "{\"password\": \"hunter2",
					    "-----BEGIN X-----\nhunter2", "PASSWORD=hunter2",
					    "Authorization: Basic hunter2"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *shown = show(texts[i], strlen(texts[i]), true);

		assert_null(strstr(shown, "hunter2"));
		free(shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_what_stands_before),
		cmocka_unit_test(test_what_stays),
		cmocka_unit_test(test_words_that_end_with_nul),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
