// SPDX-License-Identifier: Apache-2.0
/* The text that Prometheus reads. */
#include "serve/metrics.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int write_rows(const struct serve_metric *rows, size_t count, char **text)
{
	size_t size;
	FILE *out = open_memstream(text, &size);
	int err;

	assert_non_null(out);
	err = serve_metrics_write(rows, count, out);
	assert_int_equal(fclose(out), 0);
	return err;
}

static void assert_written(const struct serve_metric *rows, size_t count, const char *want)
{
	char *text;

	assert_int_equal(write_rows(rows, count, &text), 0);
	assert_string_equal(text, want);
	free(text);
}

static void test_format(void **unused)
{
	const struct serve_metric rows[] = {
		{"pybpf_samples_total", "Samples.", SERVE_COUNTER, {{NULL, NULL}}, 7},
		{"pybpf_lost_total", "Losses.", SERVE_COUNTER, {{"cause", "full"}, {"cpu", "0"}}, 1},
		{"pybpf_lost_total", "", SERVE_COUNTER, {{"cause", "full"}, {"cpu", "1"}}, 2},
		{"pybpf_lost_total", "", SERVE_COUNTER, {{"cause", ""}}, 0},
		{"pybpf_up", "Is it on?", SERVE_GAUGE, {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}}, 1},
	};

	(void)unused;
	assert_written(rows, 5,
		       "# HELP pybpf_samples_total Samples.\n"
		       "# TYPE pybpf_samples_total counter\n"
		       "pybpf_samples_total 7\n"
		       "# HELP pybpf_lost_total Losses.\n"
		       "# TYPE pybpf_lost_total counter\n"
		       "pybpf_lost_total{cause=\"full\",cpu=\"0\"} 1\n"
		       "pybpf_lost_total{cause=\"full\",cpu=\"1\"} 2\n"
		       "pybpf_lost_total{cause=\"\"} 0\n"
		       "# HELP pybpf_up Is it on?\n"
		       "# TYPE pybpf_up gauge\n"
		       "pybpf_up{a=\"1\",b=\"2\",c=\"3\",d=\"4\"} 1\n");
	assert_written(rows, 0, "");
}

static void test_escapes(void **unused)
{
	const struct serve_metric rows[] = {
		{"m", "a \\ \"b\"\nc", SERVE_GAUGE, {{"l", "a \\ \"b\"\nc\t\x01"}}, 0},
		{"m", "", SERVE_GAUGE, {{"l", "\xc3\xa4 \xff \xf0\x9f\x90\x8d \xed\xa0\x80 \xc3"}}, 0},
	};

	(void)unused;
	assert_written(rows, 2,
		       "# HELP m a \\\\ \"b\"\\nc\n"
		       "# TYPE m gauge\n"
		       "m{l=\"a \\\\ \\\"b\\\"\\nc\t\x01\"} 0\n"
		       "m{l=\"\xc3\xa4 \xef\xbf\xbd \xf0\x9f\x90\x8d \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "
		       "\xef\xbf\xbd\"} 0\n");
}

static void test_values(void **unused)
{
	static const struct {
		double value;
		const char *text;
	} values[] = {
		{0, "0"},
		{-3, "-3"},
		{0.1, "0.1"},
		{1.0 / 3, "0.33333333333333331"},
		{1e15, "1e+15"},
		{9007199254740992, "9007199254740992"},
		{123456789012345, "123456789012345"},
		{1e300, "1e+300"},
		{INFINITY, "+Inf"},
		{-INFINITY, "-Inf"},
		{NAN, "NaN"},
	};
	char want[128];

	(void)unused;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		const struct serve_metric row = {"m", "h", SERVE_GAUGE, {{NULL, NULL}}, values[i].value};

		snprintf(want, sizeof(want), "# HELP m h\n# TYPE m gauge\nm %s\n", values[i].text);
		assert_written(&row, 1, want);
		if (!isnan(values[i].value))
			assert_true(strtod(values[i].text, NULL) == values[i].value);
	}
}

static void assert_refused(const struct serve_metric *rows, size_t count)
{
	char *text;

	assert_int_equal(write_rows(rows, count, &text), -EINVAL);
	free(text);
}

static void test_rows_that_prometheus_refuses(void **unused)
{
	static const char *const names[] = {"", "1m", "m-m", "m m", "m{", "\xc3\xa4"};
	const struct serve_metric apart[] = {
		{"m", "h", SERVE_GAUGE, {{"l", "1"}}, 0},
		{"n", "h", SERVE_GAUGE, {{NULL, NULL}}, 0},
		{"m", "h", SERVE_GAUGE, {{"l", "2"}}, 0},
	};
	const struct serve_metric same[] = {
		{"m", "h", SERVE_GAUGE, {{"l", "1"}}, 0},
		{"m", "h", SERVE_GAUGE, {{"l", "2"}}, 0},
		{"m", "h", SERVE_GAUGE, {{"l", "1"}}, 0},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_refused(&(struct serve_metric){names[i], "h", SERVE_GAUGE, {{NULL, NULL}}, 0}, 1);
		assert_refused(&(struct serve_metric){"m", "h", SERVE_GAUGE, {{names[i], "v"}}, 0}, 1);
	}
	assert_refused(apart, 3);
	assert_refused(same, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_rows_that_prometheus_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
