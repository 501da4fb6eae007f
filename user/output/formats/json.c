// SPDX-License-Identifier: Apache-2.0
/*
 * The profile as JSON: one document, or one sample per line. Readers should ignore members that they do not know;
 * "version" grows when the meaning of a member changes. In names that are not UTF-8, U+FFFD replaces the invalid bytes.
 *
 * json is one object:
 *
 *	format      "pybpf"
 *	version     1
 *	measure     what values count: {"name": "samples", "unit": "count", "period_ns": nanoseconds of CPU time that a
 *	            value of 1 represents, or null}
 *	facts       facts about the run: {"host": "...", ...}, all texts
 *	account     counts of samples and processes by what happened to them: [{"group", "key", "text", "value"}]
 *	processes   [{"pid": or null for several shown as one, "inner_pid": in its PID namespace, or null for the same,
 *	            "name",
 *	            "container", "service", "container_id", "image", "namespace" and "pod_uid" of Kubernetes, "version"
 *	            of the service: each or null,
 *	            "parents": only where known, who started it, the outermost first: [{"pid", "inner_pid", "name",
 *	            "ended": whether it had ended when the run did}]}]
 *	threads     [{"process": index, "tid", "name"}]
 *	frames      [{"kind": "python", "kernel", "native", or "note" for a remark in place of missing frames,
 *	            "name", "file": or null,
 *	            "line": that was executed, or null,
 *	            "first_line": of the function, or null,
 *	            "end_line", "column", "end_column": only where they were recorded: where the expression that was
 *	            executed ends and begins, in bytes of its lines from 0, end_column being behind its last byte,
 *	            "state": only of the leaf of a stack that waits: the thread's state, such as "network",
 *	            "library", "build_id", "address", "inlined": only of compiled code whose place is known: the file
 *	            that has it, hexadecimal digits or null, as linked, whether it is inlined into the one below}]
 *	stacks      [{"parent": index of the stack below, or null, "frame": index of its leaf}]; a parent comes first
 *	samples     [{"stack": index, "process": index, "thread": index or null, "value", "count": only where values are
 *	            time: how many waits, or CPU samples, took it}], each different
 *	events      [[nanoseconds since the run began, index of a sample, value]], by time; only where times were kept;
 *	            the value of a wait is its length in microseconds
 *
 * The first line of jsonl is {"type": "profile", "begin_utc", "end_utc", "format", "version", "measure", "facts",
 * "account"}. Each other line is a sample, complete without the other lines, as a row of a table:
 *
 *	{"type": "sample",
 *	"begin_utc", "end_utc": of the profile, such as "2026-11-27T05:02:00.123Z", or null; with "host", its machine or
 *	null, they tell the samples of several profiles apart, which follow each other, each with its first line,
 *	"process": {...}, "thread": {"tid", "name"} or null,
 *	"state": of the thread, such as "network", or null: it runs,
 *	"stack": [frame, ...] root first,
 *	"measured": what values count, "value", "count": as above,
 *	"time_ns": nanoseconds that the value stands for, or null where it stands for none,
 *	"events": [[nanoseconds, value]], only where times were kept}
 *
 * with processes and frames as above. Samples without frames are in neither format.
 */
#include "base/json.h"
#include "output/output.h"
#include "profile/attributes.h"
#include "profile/mappings.h"
#include "output/formats/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define JSON_VERSION 1
#define NS_PER_US    1000
#define NS_PER_MS    1000000

/* Bytes of a time as text, whatever numbers its parts could be. */
#define TIME_MAX 80

struct writer {
	const struct profile *profile;
	struct json json;
	bool counted; /* samples have counts */
	/* What each line of jsonl says of its profile. */
	char begin[TIME_MAX], end[TIME_MAX]; /* "": not known */
	const char *host;                    /* "": not known */
	struct profile_measure measure;
	bool is_time; /* values are time of threads */
};

static void write_string_or_null(struct json *j, const char *key, const char *text)
{
	if (*text)
		json_string(j, key, text);
	else
		json_null(j, key);
}

static void write_number_or_null(struct json *j, const char *key, int64_t number, bool known)
{
	if (known)
		json_int(j, key, number);
	else
		json_null(j, key);
}

static void write_measure(struct writer *w)
{
	struct profile_measure measure = profile_get_measure(w->profile);

	json_begin_object(&w->json, "measure");
	json_string(&w->json, "name", measure.name);
	json_string(&w->json, "unit", measure.unit);
	if (measure.period_ns)
		json_uint(&w->json, "period_ns", measure.period_ns);
	else
		json_null(&w->json, "period_ns");
	json_end_object(&w->json);
}

static void write_facts(struct writer *w)
{
	size_t count;
	const struct profile_fact *facts = profile_facts(w->profile, &count);

	json_begin_object(&w->json, "facts");
	for (size_t i = 0; i < count; i++)
		json_string(&w->json, profile_string(w->profile, facts[i].key),
			    profile_string(w->profile, facts[i].value));
	json_end_object(&w->json);
}

static void write_account(struct writer *w)
{
	size_t count;
	const struct profile_account *account = profile_account_entries(w->profile, &count);

	json_begin_array(&w->json, "account");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&w->json, NULL);
		json_string(&w->json, "group", profile_string(w->profile, account[i].group));
		json_string(&w->json, "key", profile_string(w->profile, account[i].key));
		json_string(&w->json, "text", profile_string(w->profile, account[i].text));
		json_uint(&w->json, "value", account[i].value);
		json_end_object(&w->json);
	}
	json_end_array(&w->json);
}

/* Writes the members with which both formats begin. */
static void write_head(struct writer *w)
{
	json_string(&w->json, "format", "pybpf");
	json_uint(&w->json, "version", JSON_VERSION);
	write_measure(w);
	write_facts(w);
	write_account(w);
}

/* Writes who started a process, the outermost first. */
static void write_parents(struct writer *w, uint32_t process)
{
	const struct profile_parents *parents = profile_get_parents(w->profile);
	uint32_t chain[PROFILE_PARENTS_MAX];
	size_t count = profile_parents_chain(parents, process, chain);

	if (!count)
		return;
	json_begin_array(&w->json, "parents");
	for (size_t i = 0; i < count; i++) {
		const struct profile_parent *parent = profile_parents_at(parents, chain[i]);

		json_begin_object(&w->json, NULL);
		json_int(&w->json, "pid", parent->process.pid);
		write_number_or_null(&w->json, "inner_pid", parent->process.inner_pid, parent->process.inner_pid != 0);
		json_string(&w->json, "name", profile_string(w->profile, parent->process.name));
		json_bool(&w->json, "ended", parent->ended);
		json_end_object(&w->json);
	}
	json_end_array(&w->json);
}

static void write_process(struct writer *w, const char *key, uint32_t index)
{
	const struct profile_process *process = profile_process_at(w->profile, index);
	char value[PROFILE_ATTRIBUTE_MAX];

	json_begin_object(&w->json, key);
	write_number_or_null(&w->json, "pid", process->pid, process->pid != 0);
	write_number_or_null(&w->json, "inner_pid", process->inner_pid, process->inner_pid != 0);
	json_string(&w->json, "name", profile_string(w->profile, process->name));
	write_string_or_null(&w->json, "container", profile_string(w->profile, process->container));
	write_string_or_null(&w->json, "service", profile_string(w->profile, process->service));
	for (int i = 0; i < PROFILE_ATTRIBUTES; i++)
		write_string_or_null(&w->json, profile_attribute_column(i),
				     profile_attribute_find(profile_string(w->profile, process->attributes), i, value));
	write_parents(w, index);
	json_end_object(&w->json);
}

/* Begins a thread's object; the caller may add members, and ends it. */
static void begin_thread(struct writer *w, const char *key, uint32_t index)
{
	const struct profile_thread *thread = profile_thread_at(w->profile, index);

	json_begin_object(&w->json, key);
	json_int(&w->json, "tid", thread->tid);
	json_string(&w->json, "name", profile_string(w->profile, thread->name));
}

static void write_place(struct writer *w, const struct profile_frame *frame)
{
	const struct profile_mapping *mapping = profile_mapping_at(w->profile, frame->mapping - 1);

	json_string(&w->json, "library", profile_string(w->profile, mapping->file));
	write_string_or_null(&w->json, "build_id", profile_string(w->profile, mapping->build_id));
	if (frame->address)
		json_uint(&w->json, "address", frame->address);
	json_bool(&w->json, "inlined", frame->marks & PROFILE_CODE_INLINED);
}

static void write_frame(struct writer *w, uint32_t index)
{
	const struct profile_frame *frame = profile_frame_at(w->profile, index);

	json_begin_object(&w->json, NULL);
	json_string(&w->json, "kind", output_kind_name(frame));
	json_string(&w->json, "name", profile_string(w->profile, frame->name));
	write_string_or_null(&w->json, "file", profile_string(w->profile, frame->file));
	write_number_or_null(&w->json, "line", frame->line, frame->line != PROFILE_NO_LINE);
	write_number_or_null(&w->json, "first_line", frame->first_line, frame->first_line != PROFILE_NO_LINE);
	if (frame->end_line) {
		json_int(&w->json, "end_line", frame->end_line);
		json_int(&w->json, "column", frame->column);
		json_int(&w->json, "end_column", frame->end_column);
	}
	if (frame->state)
		json_string(&w->json, "state", profile_string(w->profile, frame->state));
	if (frame->mapping)
		write_place(w, frame);
	json_end_object(&w->json);
}

static void write_tables(struct writer *w)
{
	uint32_t processes = profile_process_count(w->profile), threads = profile_thread_count(w->profile);
	uint32_t frames = profile_frame_count(w->profile), stacks = profile_stack_count(w->profile);

	json_begin_array(&w->json, "processes");
	for (uint32_t i = 0; i < processes; i++)
		write_process(w, NULL, i);
	json_end_array(&w->json);
	json_begin_array(&w->json, "threads");
	for (uint32_t i = 0; i < threads; i++) {
		begin_thread(w, NULL, i);
		json_uint(&w->json, "process", profile_thread_at(w->profile, i)->process);
		json_end_object(&w->json);
	}
	json_end_array(&w->json);
	json_begin_array(&w->json, "frames");
	for (uint32_t i = 0; i < frames; i++)
		write_frame(w, i);
	json_end_array(&w->json);
	/* PROFILE_ROOT, which is 0 and has no frame, is left out. */
	json_begin_array(&w->json, "stacks");
	for (uint32_t i = 1; i < stacks; i++) {
		const struct profile_stack *stack = profile_stack_at(w->profile, i);

		json_begin_object(&w->json, NULL);
		write_number_or_null(&w->json, "parent", (int64_t)stack->parent - 1, stack->parent != PROFILE_ROOT);
		json_uint(&w->json, "frame", stack->frame);
		json_end_object(&w->json);
	}
	json_end_array(&w->json);
}

static void write_value(struct writer *w, const struct profile_sample *sample)
{
	json_uint(&w->json, "value", sample->value);
	if (w->counted)
		json_uint(&w->json, "count", sample->count);
}

static void write_samples(struct writer *w, const struct profile_sample *samples, size_t count)
{
	json_begin_array(&w->json, "samples");
	for (size_t i = 0; i < count; i++) {
		const struct profile_sample *sample = &samples[i];

		if (sample->stack == PROFILE_ROOT)
			continue;
		json_begin_object(&w->json, NULL);
		json_uint(&w->json, "stack", sample->stack - 1);
		json_uint(&w->json, "process", sample->process);
		write_number_or_null(&w->json, "thread", sample->thread, sample->thread != PROFILE_NONE);
		write_value(w, sample);
		json_end_object(&w->json);
	}
	json_end_array(&w->json);
}

/* Writes the events. Samples without frames are not written, so the indices of those behind them are lower. */
static int write_events(struct writer *w, const struct profile_sample *samples, size_t count)
{
	size_t nr_events;
	const struct profile_event *events = profile_events(w->profile, &nr_events);
	uint32_t *place, next = 0;

	if (!nr_events)
		return 0;
	place = calloc(count ? count : 1, sizeof(*place));
	if (!place)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		place[i] = samples[i].stack == PROFILE_ROOT ? PROFILE_NONE : next++;
	json_begin_array(&w->json, "events");
	for (size_t i = 0; i < nr_events; i++) {
		if (place[events[i].sample] == PROFILE_NONE)
			continue;
		json_begin_array(&w->json, NULL);
		json_uint(&w->json, NULL, events[i].time_ns);
		json_uint(&w->json, NULL, place[events[i].sample]);
		json_uint(&w->json, NULL, events[i].value);
		json_end_array(&w->json);
	}
	json_end_array(&w->json);
	free(place);
	return 0;
}

int output_json(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct writer w = {.profile = p, .json = {.out = out}, .counted = profile_has_counts(p)};
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	int err;

	(void)options;
	json_begin_object(&w.json, NULL);
	write_head(&w);
	write_tables(&w);
	write_samples(&w, samples, count);
	err = write_events(&w, samples, count);
	json_end_object(&w.json);
	json_line(&w.json);
	return err;
}

/* Indices of events by sample: those of sample i are order[first[i]] to order[first[i + 1] - 1], by time. */
struct by_sample {
	size_t *first;
	uint32_t *order;
};

static int order_events(const struct profile *p, size_t nr_samples, struct by_sample *by)
{
	size_t count;
	const struct profile_event *events = profile_events(p, &count);

	by->first = calloc(nr_samples + 2, sizeof(*by->first));
	by->order = calloc(count ? count : 1, sizeof(*by->order));
	if (!by->first || !by->order)
		return -ENOMEM;
	/* first[i + 1] is the place for the next event of sample i, and at the end the first place of sample i + 1. */
	for (size_t i = 0; i < count; i++)
		by->first[events[i].sample + 2]++;
	for (size_t i = 2; i < nr_samples + 2; i++)
		by->first[i] += by->first[i - 1];
	for (size_t i = 0; i < count; i++)
		by->order[by->first[events[i].sample + 1]++] = (uint32_t)i;
	return 0;
}

static void write_own_events(struct writer *w, const struct by_sample *by, size_t sample)
{
	size_t count;
	const struct profile_event *events = profile_events(w->profile, &count);

	if (!count)
		return;
	json_begin_array(&w->json, "events");
	for (size_t i = by->first[sample]; i < by->first[sample + 1]; i++) {
		json_begin_array(&w->json, NULL);
		json_uint(&w->json, NULL, events[by->order[i]].time_ns);
		json_uint(&w->json, NULL, events[by->order[i]].value);
		json_end_array(&w->json);
	}
	json_end_array(&w->json);
}

static int write_stack(struct writer *w, uint32_t stack, struct output_path *path)
{
	int err = output_path_read(w->profile, stack, path);

	json_begin_array(&w->json, "stack");
	for (size_t i = 0; i < path->count && !err; i++)
		write_frame(w, path->frames[i]);
	json_end_array(&w->json);
	return err;
}

/*
 * Writes ms since 1970 in UTC. gmtime_r(3) would read the local time zone's file, which pybpf has no right to when it
 * writes. Years are counted from March on, so that a leap day is their last one; 400 of them have 146,097 days.
 */
static void write_time(uint64_t ms, char to[TIME_MAX])
{
	const uint64_t second = ms / 1000 % 86400, days = ms / 86400000 + 719468;
	const uint64_t era = days / 146097, day_of_era = days % 146097;
	const uint64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	const uint64_t day = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	const uint64_t month = (5 * day + 2) / 153; /* 0: March */
	const uint64_t year = era * 400 + year_of_era + (month >= 10);

	to[0] = '\0';
	if (year <= 9999)
		snprintf(to, TIME_MAX, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)year,
			 (unsigned)(month < 10 ? month + 3 : month - 9), (unsigned)(day - (153 * month + 2) / 5 + 1),
			 (unsigned)(second / 3600), (unsigned)(second / 60 % 60), (unsigned)(second % 60),
			 (unsigned)(ms % 1000));
}

/* Fills in what each line says of its profile. */
static void describe_lines(struct writer *w)
{
	const char *start = profile_find_fact(w->profile, PROFILE_FACT_START);
	const char *duration = profile_find_fact(w->profile, PROFILE_FACT_DURATION);
	const uint64_t begin_ms = start ? strtoull(start, NULL, 10) / NS_PER_MS : 0;
	const double length_ms = duration ? strtod(duration, NULL) * 1000 : 0;

	w->host = profile_find_fact(w->profile, PROFILE_FACT_HOST) ?: "";
	w->measure = profile_get_measure(w->profile);
	w->is_time = !strcmp(w->measure.unit, PROFILE_UNIT_TIME);
	if (start)
		write_time(begin_ms, w->begin);
	if (start && length_ms > 0 && length_ms < (double)INT64_MAX / 2)
		write_time(begin_ms + (uint64_t)(length_ms + 0.5), w->end);
}

static void write_span(struct writer *w)
{
	write_string_or_null(&w->json, "begin_utc", w->begin);
	write_string_or_null(&w->json, "end_utc", w->end);
}

static void write_time_ns(struct writer *w, uint64_t value)
{
	uint64_t unit_ns = w->is_time ? NS_PER_US : w->measure.period_ns, ns = 0;
	bool known = unit_ns && !__builtin_mul_overflow(value, unit_ns, &ns) && ns <= INT64_MAX;

	write_number_or_null(&w->json, "time_ns", (int64_t)ns, known);
}

static int write_sample(struct writer *w, const struct by_sample *by, size_t index, struct output_path *path)
{
	size_t count;
	const struct profile_sample *sample = profile_samples(w->profile, &count) + index;
	int err;

	json_begin_object(&w->json, NULL);
	json_string(&w->json, "type", "sample");
	write_span(w);
	write_string_or_null(&w->json, "host", w->host);
	write_process(w, "process", sample->process);
	if (sample->thread == PROFILE_NONE) {
		json_null(&w->json, "thread");
	} else {
		begin_thread(w, "thread", sample->thread);
		json_end_object(&w->json);
	}
	write_string_or_null(&w->json, "state",
			     profile_string(w->profile, profile_state_of(w->profile, sample->stack)));
	err = write_stack(w, sample->stack, path);
	json_string(&w->json, "measured", w->measure.name);
	write_value(w, sample);
	write_time_ns(w, sample->value);
	write_own_events(w, by, index);
	json_end_object(&w->json);
	json_line(&w->json);
	return err;
}

static int write_lines(struct writer *w, const struct by_sample *by)
{
	struct output_path path = {0};
	size_t count;
	const struct profile_sample *samples = profile_samples(w->profile, &count);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (samples[i].stack != PROFILE_ROOT)
			err = write_sample(w, by, i, &path);
	}
	output_path_free(&path);
	return err;
}

int output_jsonl(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct writer w = {.profile = p, .json = {.out = out}, .counted = profile_has_counts(p)};
	struct by_sample by;
	size_t count;
	int err;

	(void)options;
	describe_lines(&w);
	profile_samples(p, &count);
	err = order_events(p, count, &by);
	if (!err) {
		json_begin_object(&w.json, NULL);
		json_string(&w.json, "type", "profile");
		write_span(&w);
		write_head(&w);
		json_end_object(&w.json);
		json_line(&w.json);
		err = write_lines(&w, &by);
	}
	free(by.first);
	free(by.order);
	return err;
}
