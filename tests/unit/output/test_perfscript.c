// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <stdbool.h>

#include "timelines.h"

/* What a record's first line says; comm in place. */
struct record {
	char *comm;
	int pid, tid;
	double time_s;
	unsigned long long period;
	char event[64];
	char frames[256]; /* leaf first, joined by `;` */
};

static void parse_head(char *line, struct record *record)
{
	char *space = strchr(line, ' ');

	assert_non_null(space);
	*space = '\0';
	record->comm = line;
	assert_true(*line && !isspace((unsigned char)*line));
	assert_int_equal(sscanf(space + 1, "%d/%d %lf: %llu %63[^:]: ", &record->pid, &record->tid, &record->time_s,
				&record->period, record->event),
			 5);
}

/* "<TAB> 0 NAME (MODULE)" */
static void parse_frame(char *line, struct record *record)
{
	char *open = strrchr(line, '('), *name;

	assert_int_equal(line[0], '\t');
	assert_int_equal(line[strlen(line) - 1], ')');
	assert_non_null(open);
	assert_null(strpbrk(open + 1, " ("));
	name = line + strspn(line, "\t ");
	assert_memory_equal(name, "0 ", 2);
	assert_true(open - name > 3);
	snprintf(record->frames + strlen(record->frames), sizeof(record->frames) - strlen(record->frames), "%s%s",
		 *record->frames ? ";" : "", name + 2);
}

/* Reads all records; text is changed. Returns how many there are, and no more than room. */
static size_t records_of(char *text, struct record *records, size_t room)
{
	size_t n = 0;
	bool inside = false;

	for (char *line = text, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		*end = '\0';
		if (*line == '#') {
			assert_false(inside);
		} else if (!*line) {
			inside = false;
		} else if (!inside) {
			assert_true(n < room);
			records[n].frames[0] = '\0';
			parse_head(line, &records[n++]);
			inside = true;
		} else {
			parse_frame(line, &records[n - 1]);
		}
	}
	assert_false(inside);
	return n;
}

static void test_timeline(void **unused)
{
	struct profile *p = timeline();
	struct record records[16];
	char *text;

	(void)unused;
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_EVENT, "cpu-clock"), 0);
	text = written(p, output_perfscript);
	assert_memory_equal(text, "python3 ", 8);
	assert_int_equal(records_of(text, records, 16), 7);
	for (size_t i = 1; i < 7; i++)
		assert_true(records[i].time_s >= records[i - 1].time_s);
	assert_string_equal(records[1].comm, "worker");
	assert_int_equal(records[1].pid, 42);
	assert_int_equal(records[1].tid, 43);
	assert_string_equal(records[1].event, "cpu-clock");
	assert_int_equal(records[1].period, 10 * MS);
	assert_string_equal(records[1].frames, "w (app.py:30);run (threading.py:5)");
	assert_string_equal(records[4].frames, "g (lib.py:7);f (app.py:3);main (app.py:10)");
	assert_true(records[4].time_s > 0.0199 && records[4].time_s < 0.0201);
	free(text);
	profile_free(p);
}

static void test_without_times(void **unused)
{
	struct profile *p = new_profile();
	struct record records[4];
	char *text = written(p, output_perfscript);

	(void)unused;
	assert_non_null(strstr(text, "no samples"));
	assert_memory_equal(text, "# ========\n", 11);
	assert_int_equal(records_of(text, records, 4), 0);
	free(text);
	take_in(p, on(p, PROFILE_ROOT, "f", "", PROFILE_NO_LINE), process(p, 42, "python3"), 17);
	text = written(p, output_perfscript);
	assert_non_null(strstr(text, "times are not known"));
	assert_int_equal(records_of(text, records, 4), 1);
	assert_int_equal(records[0].period, 17);
	assert_string_equal(records[0].event, "samples");
	assert_string_equal(records[0].frames, "f ([python])");
	free(text);
	profile_free(p);
}

static void test_hostile(void **unused)
{
	struct profile *p = hostile();
	char *text = written(p, output_perfscript);
	struct record records[32] = {0};

	(void)unused;
	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n' || *c == '\t');
	assert_int_equal(records_of(text, records, 32), profile_total(p));
	for (size_t i = 0; i < profile_total(p); i++)
		assert_int_equal(records[i].pid, 7);
	free(text);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_without_times),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
