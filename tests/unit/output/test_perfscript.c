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

/* "<TAB> LINE NAME (MODULE)" */
static void parse_frame(char *line, struct record *record)
{
	char *open = strrchr(line, '('), *name;

	assert_int_equal(line[0], '\t');
	assert_int_equal(line[strlen(line) - 1], ')');
	assert_non_null(open);
	assert_null(strpbrk(open + 1, " ("));
	name = line + strspn(line, "\t ");
	name += strspn(name, "0123456789");
	assert_int_equal(*name, ' ');
	assert_true(open - name > 2);
	snprintf(record->frames + strlen(record->frames), sizeof(record->frames) - strlen(record->frames), "%s%s",
		 *record->frames ? ";" : "", line + strspn(line, "\t "));
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
	assert_string_equal(records[1].frames, "30 w (app.py);5 run (threading.py)");
	assert_string_equal(records[4].frames, "7 g (lib.py);3 f (app.py);10 main (app.py)");
	assert_true(records[4].time_s > 0.0199 && records[4].time_s < 0.0201);
	free(text);
	profile_free(p);
}

/* The timer takes the stacks of a run in wall mode, too, and its samples are not what is written. */
static void test_measured_time(void **unused)
{
	const struct profile_measure wall = {.name = "wall", .unit = PROFILE_UNIT_TIME};
	struct profile *p = new_profile();
	struct record records[4];
	char *text;

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "f", "", PROFILE_NO_LINE), process(p, 42, "python3"), 17);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_EVENT, "cpu-clock"), 0);
	assert_int_equal(profile_set_measure(p, &wall), 0);
	text = written(p, output_perfscript);
	assert_int_equal(records_of(text, records, 4), 1);
	assert_string_equal(records[0].event, "wall");
	assert_int_equal(records[0].period, 17);
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
	assert_string_equal(records[0].frames, "0 f ([python])");
	free(text);
	profile_free(p);
}

static uint32_t defined(struct profile *p, const char *name, const char *file, int line, int first_line)
{
	uint32_t frame = profile_add_frame(p, PROFILE_PYTHON, name, file, line, first_line);

	return profile_add_stack(p, PROFILE_ROOT, frame);
}

/* Functions of one name are told apart by the symbol, and a function is one, whatever its lines. */
static void test_namesakes(void **unused)
{
	static const char *const wanted[] = {"9 run [a.py:8] (a.py)", "4 run [a.py:3] (a.py)", "5 run [a.py:3] (a.py)",
					     "4 run [b.py] (b.py)",   "2 only (a.py)",         "7 only (a.py)"};
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	struct record records[8];
	char *text;

	(void)unused;
	take_in(p, defined(p, "run", "a.py", 9, 8), owner, 1);
	take_in(p, defined(p, "run", "a.py", 4, 3), owner, 2);
	take_in(p, defined(p, "run", "a.py", 5, 3), owner, 3);
	take_in(p, defined(p, "run", "b.py", 4, 3), owner, 4);
	take_in(p, defined(p, "only", "a.py", 2, 1), owner, 5);
	take_in(p, defined(p, "only", "a.py", 7, 1), owner, 6);
	text = written(p, output_perfscript);
	assert_int_equal(records_of(text, records, 8), 6);
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(records[i].frames, wanted[records[i].period - 1]);
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
		cmocka_unit_test(test_timeline),      cmocka_unit_test(test_measured_time),
		cmocka_unit_test(test_without_times), cmocka_unit_test(test_namesakes),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
