// SPDX-License-Identifier: Apache-2.0
/*
 * The HTML report: one page that contains its program (output/formats/html.asset, built from tools/html by `make
 * html-app`), and the profile as data that the program unpacks. The data replaces a placeholder in the page. It is the
 * text of a <script> element whose type is not a script's: JSON, compressed by gzip, in Base64, so that no name can be
 * parsed as markup.
 *
 * The JSON, version 1. Lists within one object are columns: element i of each belongs to the same row. Texts are
 * indices into "strings", where 0 is the empty string; -1 means no line, thread or parent.
 *
 *	format     "pybpf-html", version 1
 *	measure    {name, unit, period_ns}: what values count; period_ns: the CPU time that a value of 1
 *	           represents, or 0
 *	facts      {key: value}: PROFILE_FACT_... of profile.h
 *	titles     {key: title}: of these facts
 *	account    [{group, key, text, value}]
 *	roots      those of "container", "parents", "process", "thread" that are shown below the frames, in this order
 *	strings    [text]
 *	frames     {name[], file[], line[], first_line[], kind[], code[]}: kind: of enum profile_frame_kind, code: of
 *	           enum output_code; also,
 *	           if lines of compiled code are known, library[]: the file that has it, while file[] is its
 *	           source;
 *	           if expressions were recorded, end_line[], column[], end_column[]: as in profile.h; 0: not of
 *	           this frame;
 *	           if stacks wait, state[]: the thread's state, of their leaf;
 *	           if wakers are told, waker[]: the TID of the thread that ended the wait, 0 for other frames
 *	origins    {file[], origin[]}: of files whose functions are not the program's own: of enum profile_origin
 *	stacks     {down[], frame[]}: the parent's index is the stack's own minus down; stack 0 has no frame: -1;
 *	           also,
 *	           if stacks wait, idle[]: the indices of those that wait for work
 *	processes  {pid[], inner_pid[], name[], container[], parent[]}: parent: the index of the process that
 *	           started it;
 *	           -1: not known
 *	parents    {above[], pid[], inner_pid[], name[], ended[], same[]}: above: the index of the parent that
 *	           started it;
 *	           same: of the process that it is; -1: none
 *	threads    {process[], tid[], name[]}
 *	samples    {stack[], process[], thread[], value[]}; also,
 *	           of a comparison, before[];
 *	           where values are time, count[]: how many waits, or CPU samples, took it
 *	events     {later_us[], sample[], value[]}: microseconds since the previous event (the first: since the run
 *	           began), below 0 where events are not in order; the value of the sample that was taken then.
 *	           Where values are time, an event of a stack that waits is a wait: it began then, and the value is
 *	           its length
 *	sources    {file[], text[]}
 *	diff       null, or what output/diff/html.c describes; samples' values are then those after
 */
#include "output/formats/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/gzip.h"
#include "base/json.h"
#include "output/code.h"
#include "output/output.h"
#include "profile/facts.h"
#include "profile/idle.h"

/* The bytes of the page in .rodata. The assembler finds the file through the compiler's -Iuser. */
extern const char page_begin[], page_end[];
__asm__(".pushsection .rodata\n"
	"page_begin:\n"
	".incbin \"output/formats/html.asset\"\n"
	"page_end:\n"
	".popsection\n");

/* The placeholder, which the page contains once, and which the data replaces. */
static const char place[] = "@PYBPF_DATA@";

/* Writes a column of count numbers; the expression gives the number of row i. */
#define COLUMN(j, key, count, expression)                                                                              \
	do {                                                                                                           \
		json_begin_array(j, key);                                                                              \
		for (uint32_t i = 0; i < (count); i++)                                                                 \
			json_int(j, NULL, (int64_t)(expression));                                                      \
		json_end_array(j);                                                                                     \
	} while (0)

static void write_run(const struct profile *p, struct json *j)
{
	struct profile_measure measure = profile_get_measure(p);
	const struct profile_account *account;
	const struct profile_fact *facts;
	unsigned roots = profile_roots(p);
	size_t count;

	json_begin_object(j, "measure");
	json_string(j, "name", measure.name);
	json_string(j, "unit", measure.unit);
	json_uint(j, "period_ns", measure.period_ns);
	json_end_object(j);

	facts = profile_facts(p, &count);
	json_begin_object(j, "facts");
	for (size_t i = 0; i < count; i++)
		json_string(j, profile_string(p, facts[i].key), profile_string(p, facts[i].value));
	json_end_object(j);
	json_begin_object(j, "titles");
	for (size_t i = 0; i < count; i++)
		json_string(j, profile_string(p, facts[i].key),
			    profile_fact_rule(profile_string(p, facts[i].key)).title);
	json_end_object(j);

	account = profile_account_entries(p, &count);
	json_begin_array(j, "account");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(j, NULL);
		json_string(j, "group", profile_string(p, account[i].group));
		json_string(j, "key", profile_string(p, account[i].key));
		json_string(j, "text", profile_string(p, account[i].text));
		json_uint(j, "value", account[i].value);
		json_end_object(j);
	}
	json_end_array(j);

	json_begin_array(j, "roots");
	if (roots & PROFILE_ROOT_CONTAINER)
		json_string(j, NULL, "container");
	if (roots & PROFILE_ROOT_PARENTS)
		json_string(j, NULL, "parents");
	if (roots & PROFILE_ROOT_PROCESS)
		json_string(j, NULL, "process");
	if (roots & PROFILE_ROOT_THREAD)
		json_string(j, NULL, "thread");
	json_end_array(j);
}

static void write_strings(const struct profile *p, struct json *j)
{
	uint32_t count = profile_string_count(p);

	json_begin_array(j, "strings");
	for (uint32_t i = 0; i < count; i++)
		json_string(j, NULL, profile_string(p, i));
	json_end_array(j);
}

/* For each text with an origin, writes its index or, with `origin`, the origin. */
static void write_origin(const struct profile *p, const char *key, bool origin, struct json *j)
{
	json_begin_array(j, key);
	for (uint32_t i = 0; i < profile_string_count(p); i++) {
		if (profile_origin_of(p, i) != PROFILE_OWN)
			json_int(j, NULL, origin ? (int64_t)profile_origin_of(p, i) : (int64_t)i);
	}
	json_end_array(j);
}

static void write_origins(const struct profile *p, struct json *j)
{
	json_begin_object(j, "origins");
	write_origin(p, "file", false, j);
	write_origin(p, "origin", true, j);
	json_end_object(j);
}

static enum profile_frame_kind kind_of(const struct profile_frame *frame)
{
	return frame->kind == PROFILE_THREAD ? PROFILE_NOTE : frame->kind;
}

/* Returns whether the file of compiled code is its source in a frame. */
static bool has_libraries(const struct profile *p)
{
	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		if (profile_library_of(p, profile_frame_at(p, i)) != profile_frame_at(p, i)->file)
			return true;
	}
	return false;
}

/* idle: by stack; NULL: none waits. */
static void write_stacks(const struct profile *p, const bool *idle, struct json *j)
{
	uint32_t frames = profile_frame_count(p), stacks = profile_stack_count(p);

	json_begin_object(j, "frames");
	COLUMN(j, "name", frames, profile_frame_at(p, i)->name);
	COLUMN(j, "file", frames, profile_frame_at(p, i)->file);
	COLUMN(j, "line", frames, profile_frame_at(p, i)->line);
	COLUMN(j, "first_line", frames, profile_frame_at(p, i)->first_line);
	COLUMN(j, "kind", frames, kind_of(profile_frame_at(p, i)));
	COLUMN(j, "code", frames, output_code_of(p, profile_frame_at(p, i)));
	if (has_libraries(p))
		COLUMN(j, "library", frames, profile_library_of(p, profile_frame_at(p, i)));
	if (profile_has_columns(p)) {
		COLUMN(j, "end_line", frames, profile_frame_at(p, i)->end_line);
		COLUMN(j, "column", frames, profile_frame_at(p, i)->column);
		COLUMN(j, "end_column", frames, profile_frame_at(p, i)->end_column);
	}
	if (profile_has_states(p))
		COLUMN(j, "state", frames, profile_frame_at(p, i)->state);
	if (profile_has_wakers(p))
		COLUMN(j, "waker", frames, profile_frame_at(p, i)->waker);
	json_end_object(j);

	json_begin_object(j, "stacks");
	COLUMN(j, "down", stacks, i == PROFILE_ROOT ? 0 : i - profile_stack_at(p, i)->parent);
	COLUMN(j, "frame", stacks, i == PROFILE_ROOT ? -1 : (int64_t)profile_stack_at(p, i)->frame);
	if (idle) {
		json_begin_array(j, "idle");
		for (uint32_t i = 0; i < stacks; i++) {
			if (idle[i])
				json_int(j, NULL, i);
		}
		json_end_array(j);
	}
	json_end_object(j);
}

static int64_t thread_of(const struct profile_sample *sample)
{
	return sample->thread == PROFILE_NONE ? -1 : (int64_t)sample->thread;
}

static void write_samples(const struct profile *p, const struct html_sides *sides, struct json *j)
{
	uint32_t processes = profile_process_count(p), threads = profile_thread_count(p);
	const struct profile_parents *parents = profile_get_parents(p);
	uint32_t nr_parents = parents->list.count;
	const struct profile_sample *samples;
	size_t count;

	json_begin_object(j, "processes");
	COLUMN(j, "pid", processes, profile_process_at(p, i)->pid);
	COLUMN(j, "inner_pid", processes, profile_process_at(p, i)->inner_pid);
	COLUMN(j, "name", processes, profile_process_at(p, i)->name);
	COLUMN(j, "container", processes, profile_process_at(p, i)->container);
	COLUMN(j, "parent", processes, (int64_t)(int32_t)profile_parents_of(parents, i));
	json_end_object(j);

	json_begin_object(j, "parents");
	COLUMN(j, "above", nr_parents, (int64_t)(int32_t)profile_parents_at(parents, i)->above);
	COLUMN(j, "pid", nr_parents, profile_parents_at(parents, i)->process.pid);
	COLUMN(j, "inner_pid", nr_parents, profile_parents_at(parents, i)->process.inner_pid);
	COLUMN(j, "name", nr_parents, profile_parents_at(parents, i)->process.name);
	COLUMN(j, "ended", nr_parents, profile_parents_at(parents, i)->ended);
	COLUMN(j, "same", nr_parents,
	       (int64_t)(int32_t)profile_find_process(p, &profile_parents_at(parents, i)->process));
	json_end_object(j);

	json_begin_object(j, "threads");
	COLUMN(j, "process", threads, profile_thread_at(p, i)->process);
	COLUMN(j, "tid", threads, profile_thread_at(p, i)->tid);
	COLUMN(j, "name", threads, profile_thread_at(p, i)->name);
	json_end_object(j);

	samples = profile_samples(p, &count);
	json_begin_object(j, "samples");
	COLUMN(j, "stack", count, samples[i].stack);
	COLUMN(j, "process", count, samples[i].process);
	COLUMN(j, "thread", count, thread_of(&samples[i]));
	COLUMN(j, "value", count, samples[i].value);
	if (profile_has_counts(p))
		COLUMN(j, "count", count, samples[i].count);
	if (sides)
		COLUMN(j, "before", count, sides->before[i]);
	json_end_object(j);
}

static void write_events(const struct profile *p, struct json *j)
{
	const struct profile_event *events;
	size_t count;

	events = profile_events(p, &count);
	json_begin_object(j, "events");
	COLUMN(j, "later_us", count, events[i].time_ns / 1000 - (i ? events[i - 1].time_ns / 1000 : 0));
	COLUMN(j, "sample", count, events[i].sample);
	COLUMN(j, "value", count, events[i].value);
	json_end_object(j);
}

static void write_sources(const struct profile *p, struct json *j)
{
	const struct profile_source *sources;
	size_t count;

	sources = profile_sources(p, &count);
	json_begin_object(j, "sources");
	json_begin_array(j, "file");
	for (size_t i = 0; i < count; i++) {
		if (*profile_string(p, sources[i].text))
			json_int(j, NULL, sources[i].file);
	}
	json_end_array(j);
	json_begin_array(j, "text");
	for (size_t i = 0; i < count; i++) {
		if (*profile_string(p, sources[i].text))
			json_int(j, NULL, sources[i].text);
	}
	json_end_array(j);
	json_end_object(j);
}

static void write_data(const struct profile *p, const struct html_sides *sides, const bool *idle, FILE *out)
{
	struct json j = {.out = out};

	json_begin_object(&j, NULL);
	json_string(&j, "format", "pybpf-html");
	json_uint(&j, "version", 1);
	write_run(p, &j);
	write_strings(p, &j);
	write_origins(p, &j);
	write_stacks(p, idle, &j);
	write_samples(p, sides, &j);
	write_events(p, &j);
	write_sources(p, &j);
	if (sides)
		sides->write(&j, sides->arg);
	else
		json_null(&j, "diff");
	json_end_object(&j);
}

static size_t between(const char *begin, const char *end)
{
	return (uintptr_t)end - (uintptr_t)begin; /* two objects in C: subtracting the pointers would be undefined */
}

/* Writes a part of the page. Returns 0 or negative errno at once: a later write may fail for another reason. */
static int write_page(const char *begin, const char *end, FILE *out)
{
	errno = 0;
	if (fwrite(begin, 1, between(begin, end), out) == between(begin, end))
		return 0;
	return errno ? -errno : -EIO;
}

/* Writes the data of the page: JSON, compressed, in Base64. Returns 0 or negative errno. */
static int write_packed(const struct profile *p, const struct html_sides *sides, FILE *out)
{
	FILE *base64 = base64_open(out), *gzip = base64 ? gzip_open(base64) : NULL;
	const bool waits = profile_has_states(p);
	bool *idle = waits ? profile_idle_stacks(p) : NULL;
	int err = 0;

	if (gzip && (idle || !waits))
		write_data(p, sides, idle, gzip);
	else
		err = -ENOMEM;
	free(idle);
	if (gzip && fclose(gzip))
		err = errno ? -errno : -EIO;
	if (base64 && fclose(base64))
		err = err ?: errno ? -errno : -EIO;
	return err;
}

int html_report(const struct profile *p, const struct html_sides *sides, FILE *out)
{
	const char *data = memmem(page_begin, between(page_begin, page_end), place, strlen(place));
	int err;

	if (!data)
		return -EINVAL;
	err = write_page(page_begin, data, out);
	if (err)
		return err;
	err = write_packed(p, sides, out);
	if (err)
		return err;
	return write_page(data + strlen(place), page_end, out);
}

int output_html(const struct profile *p, const struct output_options *options, FILE *out)
{
	(void)options;
	return html_report(p, NULL, out);
}
