// SPDX-License-Identifier: Apache-2.0
/*
 * The questions of native frames: what processes map, tables of files, names and lines. What processes map is read when
 * a process is found to run Python, and again when a stack ends where a mapping is missing. One question is asked at a
 * time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "helper/helper.h"
#include "native/made.h"
#include "native/mapped.h"
#include "processes/processes.h"
#include "session/internal.h"
#include "session/native/internal.h"

/* Seconds from one look at a process's mappings to the next: from the least, twice as long as nothing changes. */
#define PAUSE_LEAST_S 0.05
#define PAUSE_MOST_S  2.0
/* Until it is looked again whether an answer has come that took longer than it was waited for, in nanoseconds. */
#define ANSWER_NS 500000

static void note_process(struct processes_record *process, void *arg)
{
	struct session_native_state *n = arg;
	const struct mapper fresh = {.proc_id = process->proc_id,
				     .pid = process->pid,
				     .is_due = true,
				     .pause = PAUSE_LEAST_S,
				     .heard = process->mapped};
	struct mapper *mapper;
	uint32_t i;

	if (process->state != PROCESSES_PYTHON || process->ended)
		return;
	i = intern_add(&n->mappers, &fresh, &(bool){false});
	mapper = i == INTERN_NONE ? NULL : intern_item(&n->mappers, i);
	if (!mapper || mapper->heard == process->mapped)
		return;
	/* Another file may be where one was. */
	mapper->heard = process->mapped;
	mapper->is_due = true;
	mapper->pause = PAUSE_LEAST_S;
	mapper->next_look = 0;
}

static struct mapper *choose_due(const struct session_native_state *n, double now)
{
	for (uint32_t i = 0; i < n->mappers.count; i++) {
		struct mapper *mapper = intern_item(&n->mappers, i);

		if (mapper->is_due && mapper->next_look <= now)
			return mapper;
	}
	return NULL;
}

/* Has the file opened by a process that maps it now, if there is one, where the last one that did has ended. */
static void choose_source(const struct session_native_state *n, uint32_t file)
{
	struct native_source *source = &native_files_at(&n->files, file)->source;

	for (uint32_t i = 0; i < n->mappers.count && !source->pid; i++) {
		const struct mapper *mapper = intern_item(&n->mappers, i);

		for (uint32_t k = 0; k < mapper->count && !source->pid; k++) {
			if (mapper->mappings[k].file != file)
				continue;
			source->pid = mapper->pid;
			source->life = mapper->proc_id;
			source->mapped.start = mapper->mappings[k].start;
			source->mapped.end = mapper->mappings[k].end;
			source->mapped.offset = mapper->mappings[k].offset;
		}
	}
}

/* Chooses by which process the file of the job is opened. */
static void choose_names_source(const struct session *s)
{
	struct session_native_state *n = s->native;
	uint32_t file = native_files_of(&n->files, n->job_file);

	n->names_source = (struct native_source){.pid = 0};
	if (file == INTERN_NONE)
		return;
	choose_source(n, file);
	if (native_is_restless(native_files_at(&n->files, file)))
		return;
	n->names_source = native_files_at(&n->files, file)->source;
	n->names_base = native_files_at(&n->files, file)->about.base;
	native_fetch_set_source(s, n->job_file, &n->names_source);
}

/* Chooses the next question. Returns whether there is one. */
static bool choose_job(const struct session *s, double now)
{
	struct session_native_state *n = s->native;
	const struct mapper *mapper = n->names_only ? NULL : choose_due(n, now);

	if (mapper) {
		n->job = JOB_MAPPINGS;
		n->job_proc_id = mapper->proc_id;
		return true;
	}
	/* Large files take seconds. */
	n->job_file = n->names_only ? INTERN_NONE : native_files_next_stopped(&n->files, now);
	if (n->job_file != INTERN_NONE) {
		n->job = JOB_STOPS;
		return true;
	}
	n->job_file = n->names_only ? INTERN_NONE : native_files_next(&n->files, now);
	if (n->job_file != INTERN_NONE) {
		n->job = JOB_ROWS;
		choose_source(n, n->job_file);
		return true;
	}
	n->job = JOB_NAMES;
	n->nr_pcs = native_frames_wanted(n->frames, &n->job_file, n->pcs, NATIVE_NAMES_MAX);
	if (!n->nr_pcs) {
		n->job = JOB_LINES;
		n->nr_pcs = native_frames_want_lines(n->frames, &n->job_file, n->pcs, NATIVE_PLACES_MAX);
	}
	if (n->nr_pcs)
		choose_names_source(s);
	else
		n->job = !n->names_only && native_choose_check(n, now) ? JOB_CHECK : JOB_NONE;
	return n->job != JOB_NONE;
}

/* Another file may have been mapped where one was. */
static bool is_same_list(const struct session_native_state *n, const struct mapper *mapper,
			 const struct native_mappings *now)
{
	if (mapper->count != now->count || mapper->left_out != now->left_out)
		return false;
	for (uint32_t i = 0; i < now->count; i++) {
		const struct mapping *old = &mapper->mappings[i];

		if (old->start != now->items[i].start || old->end != now->items[i].end ||
		    old->offset != now->items[i].offset ||
		    memcmp(&native_files_at(&n->files, old->file)->id, &now->items[i].file,
			   sizeof(now->items[i].file)) != 0)
			return false;
	}
	return true;
}

void native_forget_mappings(struct session_native_state *n, struct mapper *mapper)
{
	for (uint32_t i = 0; i < mapper->count; i++)
		native_files_leave(&n->files, mapper->mappings[i].file, mapper->pid);
	free(mapper->mappings);
	mapper->mappings = NULL;
	mapper->count = 0;
}

static uint32_t find_file(struct session_native_state *n, const struct mapper *mapper, const struct native_mapped *item)
{
	const struct native_source source = {.pid = mapper->pid, .life = mapper->proc_id, .mapped = *item};

	return native_files_find(&n->files, &source);
}

/*
 * Has tables made first of what nearly all stacks go through: the program, at the lowest address, and what it mapped
 * first, such as the interpreter's and the C library, at the highest.
 */
static void note_files(struct session_native_state *n, const struct mapper *mapper, const struct native_mappings *now)
{
	if (now->count)
		find_file(n, mapper, &now->items[0]);
	for (uint32_t i = now->count; i-- > 0;)
		find_file(n, mapper, &now->items[i]);
}

/* Takes what a process maps. A file without memory is left out. */
static void take_mappings(struct session_native_state *n, struct mapper *mapper, const struct native_mappings *now)
{
	struct mapping *list = calloc(now->count + 1u, sizeof(*list));
	uint32_t count = 0;

	if (!list)
		return;
	native_forget_mappings(n, mapper);
	note_files(n, mapper, now);
	for (uint32_t i = 0; i < now->count; i++) {
		const struct native_mapped *item = &now->items[i];
		uint32_t file = find_file(n, mapper, item);

		if (file == INTERN_NONE)
			continue;
		native_files_at(&n->files, file)->users++;
		native_files_at(&n->files, file)->idle = 0;
		list[count++] = (struct mapping){item->start, item->end, item->offset, file, 0};
	}
	mapper->mappings = list;
	mapper->count = count;
	mapper->left_out = now->left_out;
	mapper->is_unshown = true;
}

static int look_at_mappings(struct session_native_state *n, double now)
{
	struct mapper *mapper = native_mapper_of(n, n->job_proc_id);
	int err;

	if (!mapper)
		return 0;
	err = native_ask_mappings(mapper->pid, mapper->proc_id, &n->answer->mappings);
	if (err == -EINPROGRESS)
		return err;
	for (uint32_t i = 0; i < n->answer->mappings.count && !err; i++)
		native_own_made(&n->answer->mappings.items[i], mapper->proc_id);
	mapper->is_due = err && helper_has_no_answer(err);
	if (!err && !is_same_list(n, mapper, &n->answer->mappings)) {
		take_mappings(n, mapper, &n->answer->mappings);
		mapper->pause = PAUSE_LEAST_S;
	} else {
		mapper->pause = fmin(2 * mapper->pause, PAUSE_MOST_S);
	}
	/* Code that was made at run time, or a list that is true again, or one that found no room. */
	if (!err && (mapper->code_pages != n->answer->mappings.code_pages || !mapper->shown.count)) {
		mapper->code_pages = n->answer->mappings.code_pages;
		mapper->is_unshown = true;
	}
	mapper->next_look = now + mapper->pause;
	return 0;
}

static int make_table(struct session_native_state *n, double now)
{
	int err = native_files_make(&n->files, n->job_file, now, &n->answer->rows);

	if (!err && native_files_at(&n->files, n->job_file)->state != NATIVE_FILE_WANTED)
		native_note_users(n, n->job_file);
	return err;
}

/* Returns whether what has no name may have one in a file that is fetched later. */
static bool is_put_off(struct session *s, int err)
{
	struct session_native_state *n = s->native;

	if (n->names_source.fetched_size && err)
		n->fetching.refused = err;
	else if (!native_may_fetch(s, n->job_file) || n->names_source.fetched_size ||
		 (!err && !n->answer->names.is_stripped))
		return false;
	return true;
}

static int find_names(struct session *s, double now)
{
	struct session_native_state *n = s->native;
	bool put_off;
	int err = -ENOENT;

	if (n->names_source.mapped.start)
		err = native_ask_names(&n->names_source, n->names_base, n->pcs, n->nr_pcs, &n->answer->names);
	if (err == -EINPROGRESS)
		return err;
	/* The process may have ended: then its path leads to the file, where it leads this process to it. */
	if (err && n->names_source.pid) {
		n->names_source.pid = 0;
		return -EINPROGRESS;
	}
	if (!err)
		native_add_names_cost(n);
	put_off = is_put_off(s, err);
	for (uint32_t i = 0; i < n->nr_pcs; i++) {
		const struct native_name *name = err ? NULL : &n->answer->names.names[i];

		if (put_off && (!name || !*name->text)) {
			native_frames_put_off(n->frames, n->job_file, n->pcs[i]);
			continue;
		}
		/* What has no name is one by row, as without lines. */
		if (s->options.native_lines && (!name || !*name->text))
			native_frames_set_row(n->frames, n->job_file, n->pcs[i],
					      native_find_row(s, n->job_file, n->pcs[i]));
		native_frames_set_name(n->frames, n->job_file, n->pcs[i], name);
	}
	if (!err)
		native_note_made_names(n, now);
	/* Stacks that cannot be built now are tried again at the end. */
	stacks_retry(s->stacks);
	return 0;
}

static int pass_stops(struct session_native_state *n, double now)
{
	int err = native_files_pass_stops(&n->files, n->job_file, now, &n->answer->ahead);

	if (!err)
		native_note_users(n, n->job_file);
	return err;
}

/* Goes on with the question. Returns 0 when it is answered, or -EINPROGRESS. */
static int work_on_job(struct session *s, double now)
{
	struct session_native_state *n = s->native;
	int err = n->job == JOB_MAPPINGS ? look_at_mappings(n, now)
		  : n->job == JOB_ROWS   ? make_table(n, now)
		  : n->job == JOB_STOPS  ? pass_stops(n, now)
		  : n->job == JOB_NAMES  ? find_names(s, now)
		  : n->job == JOB_CHECK  ? native_check_names(n, now)
					 : native_find_lines(s);

	if (err != -EINPROGRESS)
		n->job = JOB_NONE;
	return err;
}

bool native_work_until(struct session *s, double until)
{
	const struct timespec pause = {.tv_nsec = ANSWER_NS};
	struct session_native_state *n = s->native;
	double now = clock_s(CLOCK_MONOTONIC);
	bool more = true;

	processes_visit_all(s->processes, note_process, n);
	while (more && now < until) {
		more = n->job != JOB_NONE || choose_job(s, now);
		if (more && work_on_job(s, now) == -EINPROGRESS)
			nanosleep(&pause, NULL);
		now = clock_s(CLOCK_MONOTONIC);
	}
	native_show_changed(s, now);
	return more;
}

static struct helper_subject job_subject(const struct session_native_state *n)
{
	const struct mapper *mapper = n->job == JOB_MAPPINGS ? native_mapper_of(n, n->job_proc_id) : NULL;
	const struct native_source *source = &n->names_source;

	if (mapper)
		return (struct helper_subject){mapper->pid, mapper->proc_id};
	if (n->job == JOB_ROWS)
		source = &native_files_at(&n->files, n->job_file)->source;
	if (n->job == JOB_STOPS)
		source = &native_files_at(&n->files, n->job_file)->stops->source;
	return (struct helper_subject){source->pid, source->life};
}

static void discard_job(struct session_native_state *n)
{
	if (n->job != JOB_NONE)
		helper_discard(job_subject(n));
	n->job = JOB_NONE;
}

void native_forget_question(struct session_native_state *n, uint64_t proc_id)
{
	const struct native_known_file *file = n->job == JOB_STOPS ? native_files_at(&n->files, n->job_file) : NULL;

	if (file && native_is_made(&file->source.mapped) && file->source.mapped.file.size == proc_id)
		discard_job(n);
}

/* Finds names and lines when the run has ended. What is not answered in time is not waited for any more. */
static void name_and_stop(struct session *s)
{
	double until = clock_s(CLOCK_MONOTONIC) + NATIVE_END_S + (s->options.native_lines ? NATIVE_LINES_END_S : 0);

	while (native_work_until(s, until) && clock_s(CLOCK_MONOTONIC) < until)
		;
	discard_job(s->native);
}

void native_name_frames(struct session *s)
{
	struct session_native_state *n = s->native;

	if (!n)
		return;
	n->names_only = true;
	/* A table that nobody will use would keep names waiting. */
	if (n->job != JOB_NAMES && n->job != JOB_LINES)
		discard_job(n);
	name_and_stop(s);
	if (s->options.fetch) {
		native_fetch_files(s, name_and_stop);
		name_and_stop(s);
	}
	native_log_costs(n);
	native_log_lines(n);
}
