// SPDX-License-Identifier: Apache-2.0
/*
 * The processed profile format of Firefox Profiler (profiler.firefox.com), see docs-developer/CHANGELOG-formats.md and
 * src/types/profile.ts of github.com/firefox-devtools/profiler. In the version written here all threads share the
 * tables; later versions of Firefox Profiler upgrade it.
 *
 * Times are in milliseconds since the run began. Firefox Profiler shows a sample as lasting until the next one of its
 * thread; if a thread was not on a CPU for longer than a period, a sample without a stack, of weight 0, marks the gap.
 * Samples whose times are not known are written at time 0, with their value as their weight.
 */
#include "output/output.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/json.h"
#include "output/formats/gecko_files.h"
#include "output/formats/gecko_waits.h"
#include "output/formats/tracks.h"

/* Versions of the processed format, and of the Gecko format that the file states as its origin. */
#define GECKO_PROCESSED_VERSION 60
#define GECKO_VERSION           31

/* Indices of the categories that write_categories writes. */
enum category {
	CATEGORY_OTHER,
	CATEGORY_PYTHON,
	CATEGORY_KERNEL,
	CATEGORY_WAIT,
	CATEGORY_NATIVE,
};

struct function {
	uint32_t kind, name, file;
	int32_t first_line;
	uint32_t library; /* string; 0: none */
};

struct writer {
	const struct profile *p;
	struct json j;
	struct gecko_files files;
	struct intern functions; /* struct function */
	uint32_t *function;      /* index in functions, by frame */
};

static enum category category_of(const struct profile_frame *frame)
{
	if (frame->state)
		return CATEGORY_WAIT;
	return frame->kind == PROFILE_PYTHON   ? CATEGORY_PYTHON
	       : frame->kind == PROFILE_KERNEL ? CATEGORY_KERNEL
	       : frame->kind == PROFILE_NATIVE ? CATEGORY_NATIVE
					       : CATEGORY_OTHER;
}

static int find_functions(struct writer *w)
{
	uint32_t count = profile_frame_count(w->p);
	bool fresh;

	w->function = calloc((size_t)count + 1, sizeof(*w->function));
	if (!w->function)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_frame *frame = profile_frame_at(w->p, i);
		struct function function = {frame->kind, frame->name, frame->file, frame->first_line,
					    frame->kind == PROFILE_NATIVE ? profile_library_of(w->p, frame) : 0};

		w->function[i] = intern_add(&w->functions, &function, &fresh);
		if (w->function[i] == INTERN_NONE)
			return -ENOMEM;
		/* The file of compiled code without lines is the library itself. */
		if (gecko_files_add(&w->files, function.library, function.library == frame->file ? 0 : frame->file))
			return -ENOMEM;
	}
	return 0;
}

/* Writes a column with the same value in all rows; a negative value is written as null. */
static void write_column(struct json *j, const char *key, size_t rows, int value)
{
	json_begin_array(j, key);
	while (rows--) {
		if (value < 0)
			json_null(j, NULL);
		else
			json_int(j, NULL, value);
	}
	json_end_array(j);
}

static void write_number(struct json *j, int32_t number, bool known)
{
	if (known)
		json_int(j, NULL, number);
	else
		json_null(j, NULL);
}

static void write_frames(struct writer *w)
{
	uint32_t count = profile_frame_count(w->p);
	struct json *j = &w->j;

	json_begin_object(j, "frameTable");
	json_uint(j, "length", count);
	json_begin_array(j, "address");
	for (uint32_t i = 0; i < count; i++)
		json_int(j, NULL, gecko_files_address(&w->files, profile_frame_at(w->p, i)));
	json_end_array(j);
	write_column(j, "inlineDepth", count, 0);
	json_begin_array(j, "category");
	for (uint32_t i = 0; i < count; i++)
		json_int(j, NULL, category_of(profile_frame_at(w->p, i)));
	json_end_array(j);
	write_column(j, "subcategory", count, 0);
	json_begin_array(j, "func");
	for (uint32_t i = 0; i < count; i++)
		json_uint(j, NULL, w->function[i]);
	json_end_array(j);
	write_column(j, "nativeSymbol", count, -1);
	write_column(j, "innerWindowID", count, -1);
	json_begin_array(j, "line");
	for (uint32_t i = 0; i < count; i++)
		write_number(j, profile_frame_at(w->p, i)->line, profile_frame_at(w->p, i)->line != PROFILE_NO_LINE);
	json_end_array(j);
	json_begin_array(j, "column");
	for (uint32_t i = 0; i < count; i++)
		write_number(j, profile_frame_at(w->p, i)->column + 1, profile_frame_at(w->p, i)->end_line != 0);
	json_end_array(j);
	json_end_object(j);
}

static void write_flags(struct json *j, const char *key, size_t rows)
{
	json_begin_array(j, key);
	while (rows--)
		json_bool(j, NULL, false);
	json_end_array(j);
}

static void write_functions(struct writer *w)
{
	const struct function *functions = w->functions.items;
	uint32_t count = w->functions.count;
	struct json *j = &w->j;

	json_begin_object(j, "funcTable");
	json_uint(j, "length", count);
	json_begin_array(j, "name");
	for (uint32_t i = 0; i < count; i++)
		json_uint(j, NULL, functions[i].name);
	json_end_array(j);
	write_flags(j, "isJS", count);
	write_flags(j, "relevantForJS", count);
	json_begin_array(j, "resource");
	for (uint32_t i = 0; i < count; i++)
		gecko_files_write_resource(&w->files, functions[i].library, j);
	json_end_array(j);
	json_begin_array(j, "source");
	for (uint32_t i = 0; i < count; i++)
		gecko_files_write_source(&w->files, functions[i].library, functions[i].file, j);
	json_end_array(j);
	json_begin_array(j, "lineNumber");
	for (uint32_t i = 0; i < count; i++)
		write_number(j, functions[i].first_line, functions[i].first_line != PROFILE_NO_LINE);
	json_end_array(j);
	write_column(j, "columnNumber", count, -1);
	json_end_object(j);
}

/* Writes the profile's stacks without PROFILE_ROOT: index i is the profile's i + 1. */
static void write_stacks(struct writer *w)
{
	uint32_t count = profile_stack_count(w->p);
	struct json *j = &w->j;

	json_begin_object(j, "stackTable");
	json_uint(j, "length", count - 1);
	json_begin_array(j, "frame");
	for (uint32_t i = 1; i < count; i++)
		json_uint(j, NULL, profile_stack_at(w->p, i)->frame);
	json_end_array(j);
	json_begin_array(j, "prefix");
	for (uint32_t i = 1; i < count; i++) {
		uint32_t parent = profile_stack_at(w->p, i)->parent;

		if (parent == PROFILE_ROOT)
			json_null(j, NULL);
		else
			json_uint(j, NULL, parent - 1);
	}
	json_end_array(j);
	json_end_object(j);
}

static void write_empty_table(struct json *j, const char *key, const char *const *columns)
{
	json_begin_object(j, key);
	json_uint(j, "length", 0);
	for (; *columns; columns++) {
		json_begin_array(j, *columns);
		json_end_array(j);
	}
	json_end_object(j);
}

static void write_shared(struct writer *w)
{
	static const char *const symbol[] = {"libIndex", "address", "name", "functionSize", NULL};
	struct json *j = &w->j;

	json_begin_object(j, "shared");
	write_frames(w);
	write_functions(w);
	write_stacks(w);
	gecko_files_write_tables(&w->files, j);
	write_empty_table(j, "nativeSymbols", symbol);
	/* Indices of strings are the profile's. */
	json_begin_array(j, "stringArray");
	for (uint32_t i = 0; i < profile_string_count(w->p); i++)
		json_string(j, NULL, profile_string(w->p, i));
	json_end_array(j);
	json_end_object(j);
}

/* A row of the samples table; away: the thread left the CPU at time_ns, and the row has no stack. */
struct row {
	uint64_t time_ns, value;
	uint32_t stack;
	bool away;
};

struct rows {
	const struct output_tracks *tracks;
	const struct output_track *track;
	size_t tick;
	bool away_is_next;
};

static bool next_row(struct rows *rows, struct row *row)
{
	const struct output_track *track = rows->track;

	if (rows->away_is_next) {
		rows->away_is_next = false;
		*row = (struct row){.time_ns = output_tick_end(rows->tracks, track, rows->tick - 1), .away = true};
		return true;
	}
	if (rows->tick == track->count)
		return false;
	*row = (struct row){
		.time_ns = track->ticks[rows->tick].time_ns,
		.value = track->ticks[rows->tick].value,
		.stack = track->ticks[rows->tick].stack,
	};
	rows->tick++;
	/* The last sample needs a row that marks its end. */
	rows->away_is_next = track->timed &&
			     (rows->tick == track->count ||
			      output_tick_end(rows->tracks, track, rows->tick - 1) < track->ticks[rows->tick].time_ns);
	return true;
}

#define FOR_EACH_ROW(rows, row, tracks_, track_)                                                                       \
	for (struct rows rows = {.tracks = (tracks_), .track = (track_)}; next_row(&(rows), &(row));)

/* Writes the rows' values and their unit. Firefox Profiler knows no microseconds: time is in milliseconds. */
static void write_weights(struct writer *w, const struct output_tracks *tracks, const struct output_track *track)
{
	const char *unit = profile_get_measure(w->p).unit;
	struct json *j = &w->j;
	struct row row;

	json_begin_array(j, "weight");
	FOR_EACH_ROW(rows, row, tracks, track)
	json_decimal(j, NULL, row.value, strcmp(unit, PROFILE_UNIT_TIME) == 0 ? 3 : 0);
	json_end_array(j);
	json_string(j, "weightType",
		    strcmp(unit, PROFILE_UNIT_TIME) == 0 ? "tracing-ms"
		    : strcmp(unit, "bytes") == 0         ? "bytes"
							 : "samples");
}

static void write_samples(struct writer *w, const struct output_tracks *tracks, const struct output_track *track)
{
	struct json *j = &w->j;
	struct row row;
	size_t count = 0;

	json_begin_object(j, "samples");
	json_begin_array(j, "stack");
	FOR_EACH_ROW(rows, row, tracks, track)
	{
		if (row.away)
			json_null(j, NULL);
		else
			json_uint(j, NULL, row.stack - 1);
		count++;
	}
	json_end_array(j);
	json_begin_array(j, "time");
	FOR_EACH_ROW(rows, row, tracks, track)
	json_decimal(j, NULL, row.time_ns, 6);
	json_end_array(j);
	write_weights(w, tracks, track);
	/* CPU time in ns since the previous row, which its samples represent. Readers ignore the first row's. */
	if (track->timed && tracks->period_ns && !tracks->has_waits) {
		uint64_t before = 0;

		json_begin_array(j, "threadCPUDelta");
		FOR_EACH_ROW(rows, row, tracks, track)
		{
			json_uint(j, NULL, before * tracks->period_ns);
			before = row.value;
		}
		json_end_array(j);
	}
	json_uint(j, "length", count);
	json_end_object(j);
}

/* A thread's names and numbers, in the types that the format requires. */
struct identity {
	const char *name, *process_name, *pid;
	int32_t tid;
	bool is_main;
};

static void write_thread(struct writer *w, const struct identity *id, const struct output_tracks *tracks,
			 const struct output_track *track)
{
	struct json *j = &w->j;

	json_begin_object(j, NULL);
	json_string(j, "processType", "default");
	json_uint(j, "processStartupTime", 0);
	json_null(j, "processShutdownTime");
	json_uint(j, "registerTime", 0);
	json_null(j, "unregisterTime");
	json_begin_array(j, "pausedRanges");
	json_end_array(j);
	json_string(j, "name", id->name);
	json_bool(j, "isMainThread", id->is_main);
	json_string(j, "processName", id->process_name);
	json_string(j, "pid", id->pid);
	json_int(j, "tid", id->tid);
	write_samples(w, tracks, track);
	json_bool(j, "showMarkersInTimeline", tracks->has_waits);
	gecko_write_waits(j, w->p, track, CATEGORY_WAIT);
	json_end_object(j);
}

static int write_track(struct writer *w, const struct output_tracks *tracks, const struct output_track *track)
{
	const struct profile_process *process = profile_process_at(w->p, track->process);
	const struct profile_thread *thread =
		track->thread == PROFILE_NONE ? NULL : profile_thread_at(w->p, track->thread);
	char *label = output_process_label(w->p, track->process), pid[32];
	struct identity id = {
		.name = profile_string(w->p, thread ? thread->name : process->name),
		.process_name = label,
		.pid = pid,
		.tid = thread ? thread->tid : process->pid,
	};

	if (!label)
		return -ENOMEM;
	snprintf(pid, sizeof(pid), track->again ? "%d.%u" : "%d", process->pid, track->again);
	id.is_main = id.tid == process->pid;
	if (tracks->timed && !track->timed)
		id.name = "samples whose times are not known";
	write_thread(w, &id, tracks, track);
	free(label);
	return 0;
}

static int write_threads(struct writer *w, const struct output_tracks *tracks)
{
	/* Firefox Profiler refuses a file without threads. */
	static const struct identity nobody = {"no samples with Python frames", "Python", "0", 0, true};
	static const struct output_track nothing;
	int err = 0;

	json_begin_array(&w->j, "threads");
	if (!tracks->count)
		write_thread(w, &nobody, tracks, &nothing);
	for (size_t i = 0; i < tracks->count && !err; i++)
		err = write_track(w, tracks, &tracks->tracks[i]);
	json_end_array(&w->j);
	return err;
}

static void write_category(struct json *j, const char *name, const char *color)
{
	json_begin_object(j, NULL);
	json_string(j, "name", name);
	json_string(j, "color", color);
	json_begin_array(j, "subcategories");
	json_string(j, NULL, "Other");
	json_end_array(j);
	json_end_object(j);
}

static void write_categories(struct json *j)
{
	json_begin_array(j, "categories");
	write_category(j, "Other", "grey");
	write_category(j, "Python", "yellow");
	write_category(j, "Kernel", "orange");
	write_category(j, "Waiting", "lightblue");
	write_category(j, "Native", "green");
	json_end_array(j);
}

/* Returns a fact as a number, or fallback if it is missing, not finite, or not above 0. */
static double number_of(const struct profile *p, const char *key, double fallback)
{
	const char *text = profile_find_fact(p, key);
	double number = text ? strtod(text, NULL) : fallback;

	return isfinite(number) && number > 0 ? number : fallback;
}

/* Writes information for which the format has no field. */
static void write_extra(struct writer *w, const struct output_tracks *tracks)
{
	struct profile_measure measure = profile_get_measure(w->p);
	struct json *j = &w->j;

	json_begin_array(j, "extra");
	json_begin_object(j, NULL);
	json_string(j, "label", "Samples");
	json_begin_array(j, "entries");
	json_begin_object(j, NULL);
	json_string(j, "label", "Measure");
	json_string(j, "format", "string");
	json_string(j, "value", measure.name);
	json_end_object(j);
	json_begin_object(j, NULL);
	json_string(j, "label", "Times");
	json_string(j, "format", "string");
	json_string(j, "value",
		    !tracks->count  ? "there are no samples with Python frames"
		    : tracks->timed ? "as they were taken"
				    : "none were kept: samples are added up and lie at 0");
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
	json_end_array(j);
}

/* Returns whether there are functions for whose names the profiler is to ask a symbol server. */
static bool wants_symbols(const struct writer *w)
{
	bool found = false;

	for (uint32_t i = 0; i < profile_frame_count(w->p) && !found; i++)
		found = gecko_files_address(&w->files, profile_frame_at(w->p, i)) >= 0;
	return found;
}

static void write_meta(struct writer *w, const struct output_tracks *tracks)
{
	double start_ms = number_of(w->p, PROFILE_FACT_START, 0) / 1e6;
	uint64_t end_ns = output_tracks_end(w->p, tracks);
	const char *arch = profile_find_fact(w->p, PROFILE_FACT_ARCH),
		   *kernel = profile_find_fact(w->p, PROFILE_FACT_KERNEL);
	struct json *j = &w->j;

	json_begin_object(j, "meta");
	json_uint(j, "version", GECKO_VERSION);
	json_uint(j, "preprocessedProfileVersion", GECKO_PROCESSED_VERSION);
	/* Firefox Profiler divides by the interval: it must not be 0. */
	json_decimal(j, "interval", tracks->period_ns ? tracks->period_ns : 1000000, 6);
	json_double(j, "startTime", start_ms);
	/* Firefox Profiler leaves out what is later than the end. */
	if (end_ns) {
		json_uint(j, "profilingStartTime", 0);
		json_decimal(j, "profilingEndTime", end_ns, 6);
	}
	json_uint(j, "processType", 0);
	write_categories(j);
	json_string(j, "product", "pybpf");
	json_string(j, "importedFrom", "pybpf " PYBPF_VERSION);
	json_uint(j, "stackwalk", 1);
	json_bool(j, "debug", false);
	json_string(j, "platform", "Linux");
	if (kernel)
		json_string(j, "oscpu", kernel);
	if (arch)
		json_string(j, "abi", arch);
	if (profile_find_fact(w->p, PROFILE_FACT_CPUS))
		json_uint(j, "logicalCPUs", (uint64_t)number_of(w->p, PROFILE_FACT_CPUS, 1));
	json_begin_object(j, "sampleUnits");
	json_string(j, "time", "ms");
	json_string(j, "eventDelay", "ms");
	json_string(j, "threadCPUDelta", "ns");
	json_end_object(j);
	json_bool(j, "symbolicated", !wants_symbols(w));
	json_bool(j, "symbolicationNotSupported", !wants_symbols(w));
	json_bool(j, "usesOnlyOneStackType", true);
	json_bool(j, "sourceCodeIsNotOnSearchfox", true);
	gecko_write_schema(j, tracks);
	write_extra(w, tracks);
	json_end_object(j);
}

int output_gecko(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct writer w = {.p = p, .j = {.out = out}};
	struct output_tracks tracks;
	struct json *j = &w.j;
	int err = output_tracks_make(p, &tracks);

	(void)options;
	intern_init(&w.functions, sizeof(struct function), sizeof(struct function));
	gecko_files_init(&w.files, p);
	err = err ?: find_functions(&w);
	if (err)
		goto done;
	json_begin_object(j, NULL);
	write_meta(&w, &tracks);
	gecko_files_write_libs(&w.files, j);
	write_shared(&w);
	err = write_threads(&w, &tracks);
	json_end_object(j);
	json_line(j);
done:
	intern_free(&w.functions);
	gecko_files_free(&w.files);
	free(w.function);
	output_tracks_free(&tracks);
	return err;
}
