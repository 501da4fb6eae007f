// SPDX-License-Identifier: Apache-2.0
/*
 * Trace events as chrome://tracing and Perfetto read them ("Trace Event Format", the JSON object form). The frames of a
 * thread's samples become nested slices (X events, outer slices before inner ones). Consecutive samples share the
 * slices of the frames that they have in common, whatever their lines. Where a sample is missing the thread was not on
 * a CPU, and its slices end; see output_tick_end(). A flow (s and f events) leads to a wait from who ended it. Flows
 * are between slices, and a thread that wakes another need not have been sampled then: so it has a slice of a
 * microsecond, the last one of the wait. Slices begin and end with microseconds; this one is in others or beside them.
 *
 * Strings are bare JSON: Perfetto before v53 (its commit 763f0056d4) shows \u003c as it stands where a string holds no
 * escaped quote, and refuses a file in which a string ends with an escaped backslash.
 */
#include "output/output.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/json.h"
#include "output/formats/path.h"
#include "output/formats/tracks.h"
#include "base/text_stream.h"

/* The highest PID of Linux (PID_MAX_LIMIT). Tracks whose PID another track already has get numbers above it. */
#define CHROMETRACE_PIDS 4194304

struct writer {
	const struct profile *p;
	struct json j;
	int64_t pid, tid;
	uint64_t flows;   /* so far */
	char **arguments; /* JSON text by frame; NULL until the frame is first written */
};

static void begin_event(struct writer *w, const char *phase, uint64_t time_ns)
{
	json_begin_object(&w->j, NULL);
	json_string(&w->j, "ph", phase);
	json_int(&w->j, "pid", w->pid);
	json_int(&w->j, "tid", w->tid);
	json_uint(&w->j, "ts", time_ns / 1000);
}

static bool same_function(const struct profile *p, uint32_t a, uint32_t b)
{
	const struct profile_frame *x = profile_frame_at(p, a), *y = profile_frame_at(p, b);

	return x->kind == y->kind && x->name == y->name && x->file == y->file;
}

/* An interval during which a function was on a thread's stack. */
struct slice {
	uint64_t begin_ns, end_ns;
	uint32_t frame;
};

/* A thread's slices in the order of their start times, and indices of those that have not ended, outermost first. */
struct slices {
	struct slice *items;
	size_t count, room;
	size_t *open;
	size_t nr_open, open_room;
};

static int begin_slice(struct slices *s, uint32_t frame, uint64_t time_ns)
{
	if (array_reserve(&s->items, &s->room, s->count + 1, sizeof(*s->items)) ||
	    array_reserve(&s->open, &s->open_room, s->nr_open + 1, sizeof(*s->open)))
		return -ENOMEM;
	s->open[s->nr_open++] = s->count;
	s->items[s->count++] = (struct slice){.begin_ns = time_ns, .frame = frame};
	return 0;
}

/* Ends the innermost slices at time_ns, until only `open` of them are left open. */
static void end_slices(struct slices *s, size_t open, uint64_t time_ns)
{
	while (s->nr_open > open)
		s->items[s->open[--s->nr_open]].end_ns = time_ns;
}

/* Returns the arguments that all slices of a frame share, as a JSON object, which the caller frees; NULL: no memory. */
static char *arguments_of(const struct profile *p, uint32_t index)
{
	const struct profile_frame *frame = profile_frame_at(p, index);
	char *text = NULL;
	size_t size = 0;
	struct json j = {.out = text_stream_open(&text, &size), .bare = true};

	if (!j.out)
		return NULL;
	json_begin_object(&j, NULL);
	if (frame->file)
		json_string(&j, "file", profile_string(p, frame->file));
	if (frame->first_line != PROFILE_NO_LINE)
		json_int(&j, "first_line", frame->first_line);
	json_end_object(&j);
	if (fclose(j.out)) {
		free(text);
		return NULL;
	}
	return text;
}

static const char *category_of(const struct profile *p, const struct profile_frame *frame)
{
	if (frame->state)
		return profile_string(p, frame->state);
	return output_kind_name(frame);
}

static int write_slice(struct writer *w, const struct slice *slice)
{
	const struct profile_frame *frame = profile_frame_at(w->p, slice->frame);
	char **arguments = &w->arguments[slice->frame];

	if (!*arguments)
		*arguments = arguments_of(w->p, slice->frame);
	if (!*arguments)
		return -ENOMEM;
	begin_event(w, "X", slice->begin_ns);
	json_uint(&w->j, "dur", slice->end_ns / 1000 - slice->begin_ns / 1000);
	json_string(&w->j, "cat", category_of(w->p, frame));
	json_string(&w->j, "name", profile_string(w->p, frame->name));
	json_raw(&w->j, "args", *arguments);
	json_end_object(&w->j);
	return 0;
}

static void write_metadata(struct writer *w, const char *name, const char *key, const char *value)
{
	begin_event(w, "M", 0);
	json_string(&w->j, "name", name);
	json_begin_object(&w->j, "args");
	json_string(&w->j, key, value);
	json_end_object(&w->j);
	json_end_object(&w->j);
}

/* Writes a global instant event at the beginning of the trace. */
static void write_remark(struct writer *w, const char *text, uint64_t samples)
{
	begin_event(w, "i", 0);
	json_string(&w->j, "s", "g");
	json_string(&w->j, "cat", "note");
	json_string(&w->j, "name", text);
	json_begin_object(&w->j, "args");
	json_uint(&w->j, "samples", samples);
	json_end_object(&w->j);
	json_end_object(&w->j);
}

static int write_names(struct writer *w, const struct output_tracks *tracks, const struct output_track *track)
{
	const struct profile_process *process = profile_process_at(w->p, track->process);
	struct output_track owner = {.process = track->process, .thread = PROFILE_NONE, .timed = true};
	char *label = output_track_label(w->p, tracks, &owner);

	if (!label)
		return -ENOMEM;
	write_metadata(w, "process_name", "name", label);
	free(label);
	if (process->container)
		write_metadata(w, "process_labels", "labels", profile_string(w->p, process->container));
	if (track->thread != PROFILE_NONE)
		write_metadata(w, "thread_name", "name",
			       profile_string(w->p, profile_thread_at(w->p, track->thread)->name));
	return 0;
}

/* Returns how many of the open slices, from the outermost on, are of the same functions as the stack's frames. */
static size_t common(const struct profile *p, const struct slices *s, const struct output_path *stack)
{
	size_t n = 0;

	while (n < s->nr_open && n < stack->count && same_function(p, s->items[s->open[n]].frame, stack->frames[n]))
		n++;
	return n;
}

static int write_slices(struct writer *w, const struct output_tracks *tracks, const struct output_track *track)
{
	struct output_path stack = {0};
	struct slices slices = {0};
	uint64_t end = 0;
	int err = 0;

	for (size_t i = 0; i < track->count && !err; i++) {
		uint64_t time_ns = track->ticks[i].time_ns;

		err = output_path_read(w->p, track->ticks[i].stack, &stack);
		if (err)
			break;
		if (end < time_ns)
			end_slices(&slices, 0, end);
		end_slices(&slices, common(w->p, &slices, &stack), time_ns);
		for (size_t f = slices.nr_open; f < stack.count && !err; f++)
			err = begin_slice(&slices, stack.frames[f], time_ns);
		end = output_tick_end(tracks, track, i);
	}
	end_slices(&slices, 0, end);
	for (size_t i = 0; i < slices.count && !err; i++)
		err = write_slice(w, &slices.items[i]);
	output_path_free(&stack);
	free(slices.items);
	free(slices.open);
	return err;
}

/* The events that follow are of that track. */
static void turn_to(struct writer *w, const struct output_track *track)
{
	w->pid =
		track->again ? CHROMETRACE_PIDS + (int64_t)track->again : profile_process_at(w->p, track->process)->pid;
	w->tid = track->thread == PROFILE_NONE ? w->pid : profile_thread_at(w->p, track->thread)->tid;
}

static void begin_flow_event(struct writer *w, const char *phase, uint64_t time_ns)
{
	begin_event(w, phase, time_ns);
	json_string(&w->j, "cat", "waker");
	json_string(&w->j, "name", "wakes");
}

static void write_flow(struct writer *w, const struct output_track *waker, const struct output_track *waits,
		       uint64_t time_ns)
{
	w->flows++;
	turn_to(w, waker);
	begin_flow_event(w, "X", time_ns);
	json_uint(&w->j, "dur", 1);
	json_begin_object(&w->j, "args");
	json_string(&w->j, "thread", profile_string(w->p, profile_thread_at(w->p, waits->thread)->name));
	json_int(&w->j, "tid", profile_thread_at(w->p, waits->thread)->tid);
	json_end_object(&w->j);
	json_end_object(&w->j);
	begin_flow_event(w, "s", time_ns);
	json_uint(&w->j, "id", w->flows);
	json_end_object(&w->j);
	turn_to(w, waits);
	begin_flow_event(w, "f", time_ns);
	json_string(&w->j, "bp", "e"); /* to the slice that is there, not to the next one */
	json_uint(&w->j, "id", w->flows);
	json_end_object(&w->j);
}

/* Writes a flow to each wait of a thread's track from who ended it, if that has a track. */
static void write_flows(struct writer *w, const struct output_tracks *tracks, const struct output_track *track)
{
	for (size_t i = 0; i < track->count && track->thread != PROFILE_NONE; i++) {
		int32_t tid = track->ticks[i].length_ns ? profile_waker_of(w->p, track->ticks[i].stack) : 0;
		uint64_t time_ns = tid ? output_tick_end(tracks, track, i) - 1000 : 0;
		const struct output_track *waker = tid ? output_track_at(w->p, tracks, tid, time_ns) : NULL;

		if (waker && waker != track && time_ns >= track->ticks[i].time_ns)
			write_flow(w, waker, track, time_ns);
	}
}

static int write_track(struct writer *w, const struct output_tracks *tracks, const struct output_track *track)
{
	int err;

	turn_to(w, track);
	err = write_names(w, tracks, track);
	if (err)
		return err;
	if (track->timed) {
		err = write_slices(w, tracks, track);
		write_flows(w, tracks, track);
		return err;
	}
	write_remark(w, "samples that are not shown, for it is not known when they were taken", track->total);
	return 0;
}

int output_chrometrace(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct writer w = {.p = p, .j = {.out = out, .bare = true}};
	struct output_tracks tracks;
	const char *start = profile_find_fact(p, PROFILE_FACT_START);
	int err = output_tracks_make(p, &tracks);

	(void)options;
	if (err)
		return err;
	w.arguments = calloc((size_t)profile_frame_count(p) + 1, sizeof(*w.arguments));
	if (!w.arguments) {
		output_tracks_free(&tracks);
		return -ENOMEM;
	}
	json_begin_object(&w.j, NULL);
	json_begin_array(&w.j, "traceEvents");
	if (!tracks.count)
		write_remark(&w, "no samples with Python frames", 0);
	for (size_t i = 0; i < tracks.count && !err; i++)
		err = write_track(&w, &tracks, &tracks.tracks[i]);
	json_end_array(&w.j);
	json_string(&w.j, "displayTimeUnit", "ms");
	json_begin_object(&w.j, "otherData");
	json_string(&w.j, "version", "pybpf " PYBPF_VERSION);
	if (start)
		json_string(&w.j, PROFILE_FACT_START, start);
	json_end_object(&w.j);
	json_end_object(&w.j);
	json_line(&w.j);
	for (uint32_t i = 0; i < profile_frame_count(p); i++)
		free(w.arguments[i]);
	free(w.arguments);
	output_tracks_free(&tracks);
	return err;
}
