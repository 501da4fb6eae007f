// SPDX-License-Identifier: Apache-2.0
/* Writes intervals as JSON Lines. */
#include "top/jsonl.h"

#include <stdlib.h>

#include "base/json.h"

#define NS_PER_S 1e9

static void write_states(const char *key, const struct top_states *states, struct json *j)
{
	if (!top_states_sum(states)) {
		json_null(j, key);
		return;
	}
	json_begin_object(j, key);
	json_double(j, "running_s", (double)states->ns[PYBPF_STATE_RUNNING] / NS_PER_S);
	json_double(j, "waiting_for_cpu_s", (double)states->ns[PYBPF_STATE_QUEUED] / NS_PER_S);
	json_double(j, "throttled_s", (double)states->ns[PYBPF_STATE_THROTTLED] / NS_PER_S);
	json_double(j, "asleep_s", (double)top_states_asleep(states) / NS_PER_S);
	json_begin_object(j, "causes");
	for (int i = PYBPF_STATE_THROTTLED + 1; i < TOP_NR_STATES; i++) {
		if (states->ns[i] && i != TOP_ASLEEP)
			json_double(j, top_state_name(i), (double)states->ns[i] / NS_PER_S);
	}
	json_end_object(j);
	json_end_object(j);
}

static void write_sums(const char *key, const struct top_sums *sums, struct json *j)
{
	json_begin_object(j, key);
	json_double(j, "duration_s", sums->duration_s);
	json_uint(j, "samples", sums->samples);
	json_uint(j, "asked", sums->asked);
	json_uint(j, "lost", sums->lost);
	json_uint(j, "threads", sums->threads);
	write_states("states", &sums->states, j);
	json_end_object(j);
}

static void write_text(const struct top_model *m, const char *key, uint32_t text, struct json *j)
{
	if (text)
		json_string(j, key, top_model_string(m, text));
	else
		json_null(j, key);
}

static void write_line(const char *key, int32_t line, struct json *j)
{
	if (line == PROFILE_NO_LINE)
		json_null(j, key);
	else
		json_int(j, key, line);
}

/* The columns are there only where they were recorded, as in the other formats of JSON. */
static void write_place(enum top_table table, const struct profile_place *place, struct json *j)
{
	write_line("first_line", place->first_line, j);
	if (table != TOP_FUNCTIONS)
		write_line("line", place->line, j);
	if (place->end_line) {
		json_int(j, "end_line", place->end_line);
		json_int(j, "column", place->column);
		json_int(j, "end_column", place->end_column);
	}
}

static const char *name_change(int change)
{
	return change > 0 ? "grew" : change < 0 ? "shrank" : "none";
}

static void write_caller(const struct top_model *m, const struct top_row *row, struct json *j)
{
	const struct top_caller *caller = top_model_caller(row);

	if (!caller) {
		json_null(j, "from");
		return;
	}
	json_begin_object(j, "from");
	json_string(j, "name", top_model_string(m, caller->name));
	json_string(j, "file", top_model_string(m, caller->file));
	json_end_object(j);
}

static void write_row(const struct top_model *m, enum top_table table, const struct top_row *row, struct json *j)
{
	json_begin_object(j, NULL);
	if (table == TOP_THREADS || table == TOP_PROCESSES)
		json_int(j, "pid", row->key.pid);
	if (table == TOP_THREADS)
		json_int(j, "tid", row->key.tid);
	json_string(j, "name", top_model_string(m, row->title));
	if (table == TOP_THREADS && *top_model_process_of(m, row))
		json_string(j, "process", top_model_process_of(m, row));
	else if (table == TOP_THREADS)
		json_null(j, "process");
	if (top_table_is_code(table)) {
		json_string(j, "kind",
			    row->key.kind == PROFILE_PYTHON   ? "python"
			    : row->key.kind == PROFILE_NATIVE ? "native"
							      : "other");
		write_text(m, "file", row->key.file, j);
		write_place(table, &row->key.place, j);
		write_caller(m, row, j);
		json_uint(j, "self", row->self);
	} else if (table != TOP_CONTAINERS) {
		write_text(m, "container", row->container, j);
	}
	json_uint(j, "total", row->total);
	if (top_table_is_code(table))
		json_uint(j, "all_self", row->all_self);
	json_uint(j, "all_total", row->all_total);
	json_string(j, "change", name_change(top_model_change(m, row)));
	if (table == TOP_THREADS)
		write_states("states", &row->states, j);
	json_end_object(j);
}

static void write_table(const struct top_model *m, enum top_table table, uint32_t most, struct json *j)
{
	static const char *const keys[TOP_TABLES] = {"functions", "lines",      "threads",
						     "processes", "containers", "expressions"};
	size_t count = 0;
	const struct top_row **rows = top_model_rows(m, table, TOP_BY_SELF, NULL, &count);

	json_begin_array(j, keys[table]);
	for (size_t i = 0; rows && i < count && i < most; i++)
		write_row(m, table, rows[i], j);
	json_end_array(j);
	free(rows);
}

void top_jsonl_write(const struct top_model *m, const struct top_jsonl *facts, FILE *out)
{
	struct json json = {.out = out}, *j = &json;

	json_begin_object(j, NULL);
	json_uint(j, "interval", top_model_intervals(m));
	json_decimal(j, "time", facts->time_ns / 1000000, 3);
	json_double(j, "uptime_s", facts->uptime_s);
	json_uint(j, "freq_hz", facts->freq);
	write_sums("last", top_model_last(m), j);
	write_sums("all", top_model_all(m), j);
	for (int table = 0; table < (top_model_has_expressions(m) ? TOP_TABLES : TOP_EXPRESSIONS); table++)
		write_table(m, (enum top_table)table, facts->rows, j);
	json_end_object(j);
	json_line(j);
	fflush(out);
}
