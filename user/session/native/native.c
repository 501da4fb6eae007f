// SPDX-License-Identifier: Apache-2.0
/*
 * What processes map is read when a process is found to run Python, and again when a stack ends where a mapping is
 * missing. One question is asked at a time.
 */
#include "session/native/native.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/native.h"
#include "native/made.h"
#include "processes/processes.h"
#include "session/account_entry.h"
#include "session/internal.h"
#include "session/native/internal.h"

/* Seconds from one look at a process's mappings to the next: from the least, twice as long as nothing changes. */
#define PAUSE_LEAST_S 0.05
#define PAUSE_MOST_S  2.0
/* Longest work in one go. */
#define WORK_S 0.01
/* Until it is looked again whether an answer has come that took longer than it was waited for, in nanoseconds. */
#define ANSWER_NS 500000
/* Longest time for names when the run has ended. */
#define END_S 1.0
/* Likewise for lines: information of 80 MiB takes a second of CPU time. */
#define LINES_END_S 9.0

static void on_gap(void *arg, uint64_t proc_id, const struct native_gap *gap)
{
	struct session_native_state *n = arg;
	struct mapper *mapper = native_mapper_of(n, proc_id);
	uint32_t index = gap->file ? native_files_of(&n->files, gap->file) : INTERN_NONE;

	if (index != INTERN_NONE)
		native_files_want_stop(&n->files, index, &(struct native_stop){gap->pc, gap->is_innermost},
				       clock_s(CLOCK_MONOTONIC));
	else if (mapper)
		mapper->is_due = true;
}

static void release(struct session *s)
{
	struct session_native_state *n = s->native;

	if (!n)
		return;
	for (uint32_t i = 0; i < n->mappers.count; i++)
		free(((struct mapper *)intern_item(&n->mappers, i))->mappings);
	intern_free(&n->mappers);
	native_files_free(&n->files);
	native_lines_free(&n->lines);
	native_fetch_free(&n->fetching);
	native_pages_free(&n->pages);
	native_frames_free(n->frames);
	native_walker_free(n->walker);
	free(n->answer);
	free(n);
	s->native = NULL;
}

static int make_state(struct session *s)
{
	struct session_native_state *n = calloc(1, sizeof(*n));

	s->native = n;
	if (!n)
		return -ENOMEM;
	intern_init(&n->mappers, sizeof(struct mapper), sizeof(uint64_t));
	native_lines_init(&n->lines);
	native_fetch_init(&n->fetching);
	n->answer = malloc(sizeof(*n->answer));
	n->frames = native_frames_new(&(struct native_frames_options){
		.all = s->options.native == SESSION_NATIVE_ALL,
		.lines = s->options.native_lines,
		.full_paths = s->options.full_filenames,
	});
	if (!n->answer || !n->frames)
		return -ENOMEM;
	native_pages_init(&n->pages, s->kernel);
	native_files_init(&n->files, &n->pages, n->frames);
	native_frames_set_on_gap(n->frames, on_gap, n);
	return 0;
}

static int attach(struct session *s)
{
	int err = make_state(s);

	if (err) {
		log_error("out of memory while starting");
		return err;
	}
	stacks_set_native(s->stacks, s->native->frames);
	return 0;
}

/* New stacks go into another profile from now on. */
static void forget_frames(struct session *s)
{
	if (!s->native)
		return;
	native_frames_forget_profile(s->native->frames);
}

enum pybpf_native_exact session_native_exact(const struct session_options *options)
{
	if (!options->native_lines)
		return PYBPF_NATIVE_ROWS;
	return options->native == SESSION_NATIVE_ALL ? PYBPF_NATIVE_EXACT_ALL : PYBPF_NATIVE_EXACT;
}

struct native_frames *session_native_frames(const struct session *s)
{
	return s->native ? s->native->frames : NULL;
}

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

static void forget_mappings(struct session_native_state *n, struct mapper *mapper)
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
	forget_mappings(n, mapper);
	note_files(n, mapper, now);
	for (uint32_t i = 0; i < now->count; i++) {
		const struct native_mapped *item = &now->items[i];
		uint32_t file = find_file(n, mapper, item);

		if (file == INTERN_NONE)
			continue;
		native_files_at(&n->files, file)->users++;
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
	/* Code that was made at run time, or a list that is true again. */
	if (!err && mapper->code_pages != n->answer->mappings.code_pages) {
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
	err = stacks_retry(s->stacks);
	if (err && !s->error)
		s->error = err;
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

/* Returns whether there is more to do at once. */
static bool work_until(struct session *s, double until)
{
	const struct timespec pause = {.tv_nsec = ANSWER_NS};
	struct session_native_state *n = s->native;
	double begin = clock_s(CLOCK_MONOTONIC), now = begin;
	bool more = true;

	processes_visit_all(s->processes, note_process, n);
	while (more && now < until) {
		more = n->job != JOB_NONE || choose_job(s, now);
		if (more && work_on_job(s, now) == -EINPROGRESS)
			nanosleep(&pause, NULL);
		now = clock_s(CLOCK_MONOTONIC);
	}
	native_show_changed(s, now);
	n->worked_s += now - begin;
	return more;
}

static double do_periodic_work(struct session *s, double now)
{
	bool more = work_until(s, now + WORK_S);

	return s->error ? s->error : more ? now : native_next_check(s->native);
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

/* Finds names and lines when the run has ended. What is not answered in time is not waited for any more. */
static void name_and_stop(struct session *s)
{
	double until = clock_s(CLOCK_MONOTONIC) + END_S + (s->options.native_lines ? LINES_END_S : 0);

	while (work_until(s, until) && clock_s(CLOCK_MONOTONIC) < until)
		;
	discard_job(s->native);
}

static void name_frames(struct session *s)
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
	native_log_lines(n);
}

static void forget_process(struct session *s, uint64_t proc_id)
{
	struct session_native_state *n = s->native;
	uint32_t i = n ? intern_find(&n->mappers, &proc_id) : INTERN_NONE;

	if (i == INTERN_NONE)
		return;
	kernel_delete_native_list(s->kernel, proc_id);
	native_hide(n, intern_item(&n->mappers, i), clock_s(CLOCK_MONOTONIC));
	forget_mappings(n, intern_item(&n->mappers, i));
	native_files_forget_made(&n->files, proc_id, clock_s(CLOCK_MONOTONIC));
	intern_remove(&n->mappers, i);
}

static void note_count(struct session *s, const struct session_counted *counted)
{
	struct session_native_account *a = s->native ? &s->native->account : NULL;
	enum native_join join;
	enum pybpf_native_end end = stacks_find_native(s->stacks, counted->key->stack_id, &join);
	uint64_t count = counted->count->count;

	if (!a || end == PYBPF_NATIVE_NOT_ASKED)
		return;
	a->ends[end] += count;
	if (counted->key->no_frames_reason || end != PYBPF_NATIVE_END_WHOLE)
		return;
	*(join == NATIVE_JOIN_EXACT      ? &a->joined_exactly
	  : join == NATIVE_JOIN_PLUS_ONE ? &a->joined_plus_one
					 : &a->not_joined) += count;
}

void session_native_note_wait(struct session *s, uint64_t stack_id, uint64_t ns)
{
	struct session_native_account *a = s->native ? &s->native->account : NULL;
	enum native_join join;
	enum pybpf_native_end end = stacks_find_native(s->stacks, stack_id, &join);

	if (!a || end == PYBPF_NATIVE_NOT_ASKED)
		return;
	a->wait_ns[end] += ns;
	if (end == PYBPF_NATIVE_END_WHOLE && join == NATIVE_JOIN_OTHER)
		a->wait_not_joined_ns += ns;
}

static void tell(const struct session *s, struct session_account *account)
{
	const struct session_native_state *n = s->native;
	struct session_native_account *a = &account->native;

	if (!n)
		return;
	*a = n->account;
	a->is_there = true;
	a->files = n->files.there;
	a->rows = n->files.rows;
	a->bytes = kernel_count_native_chunks(s->kernel) * KERNEL_NATIVE_CHUNK_BYTES;
	a->refused_files = n->files.refused;
	a->unreadable_files = n->files.unreadable;
	a->table_s = n->worked_s;
	native_tell_lines(n, a);
	native_tell_fetched(n, a);
}

static void print_lines(const struct session_native_account *a, FILE *out)
{
	if (!a->line_places && !a->unread_line_places)
		return;
	fprintf(out, "pybpf: native lines: %" PRIu64 " of %" PRIu64 " places have lines", a->line_places_found,
		a->line_places);
	if (a->lineless_files)
		fprintf(out, "; no information for debuggers: %s", a->lineless);
	if (a->elsewhere_line_files)
		fprintf(out, "; with it in another file, which is missing (dwz) or not read (-gsplit-dwarf): %s",
			a->elsewhere_lines);
	if (a->failed_line_files)
		fprintf(out, "; too large or not readable: %s", a->failed_lines);
	if (a->unread_line_places)
		fprintf(out, "; %" PRIu64 " more were not read in %g s", a->unread_line_places, END_S + LINES_END_S);
	fputc('\n', out);
}

static void print_fetched(const struct session_native_account *a, FILE *out)
{
	static const char *const texts[] = {
#define X(name, key, text) text,
		NATIVE_FETCH_ENDS_X(X)
#undef X
	};
	const char *before = "pybpf: native symbols: files for debuggers: ";

	for (int i = 0; i < NATIVE_FETCH_ENDS; i++) {
		if (!a->fetch_ends[i])
			continue;
		fprintf(out, "%s%s: %s", before, texts[i], a->fetch_names[i]);
		if (i == NATIVE_FETCH_THERE)
			fprintf(out, " (%.1f MB)", (double)a->fetched_bytes / 1e6);
		before = "; ";
	}
	if (*before == ';')
		fputc('\n', out);
}

static uint64_t sum_of(const uint64_t ends[PYBPF_NR_NATIVE_ENDS])
{
	uint64_t all = 0;

	for (int i = 0; i < PYBPF_NR_NATIVE_ENDS; i++)
		all += ends[i];
	return all;
}

/* How searches ended, for people. */
static const char *const end_texts[] = {"",
#define X(name, key, text) text,
					PYBPF_NATIVE_ENDS(X)
#undef X
};

static void print_samples(const struct session_native_account *a, FILE *out)
{
	uint64_t all = sum_of(a->ends);

	if (!all)
		return;
	fprintf(out, "pybpf: native frames: %.1f %% of %" PRIu64 " sample%s with all of them",
		100 * (double)a->ends[PYBPF_NATIVE_END_WHOLE] / (double)all, all, all == 1 ? "" : "s");
	for (int i = PYBPF_NATIVE_END_WHOLE + 1; i < PYBPF_NR_NATIVE_ENDS; i++) {
		if (a->ends[i])
			fprintf(out, "; %" PRIu64 " %s", a->ends[i], end_texts[i]);
	}
	fputc('\n', out);
	if (a->not_joined)
		fprintf(out,
			"pybpf: native frames: of %" PRIu64 " sample%s they do not fit Python's: only those that the "
			"last function called are shown\n",
			a->not_joined, a->not_joined == 1 ? "" : "s");
}

/* Less time than this is 0.00 seconds. */
#define WAIT_TOLD_NS 5000000u

static void print_waits(const struct session_native_account *a, FILE *out)
{
	uint64_t all = sum_of(a->wait_ns);

	if (all < WAIT_TOLD_NS)
		return;
	fprintf(out, "pybpf: native frames: %.1f %% of %.2f thread-seconds of waits with all of them",
		100 * (double)a->wait_ns[PYBPF_NATIVE_END_WHOLE] / (double)all, (double)all / 1e9);
	for (int i = PYBPF_NATIVE_END_WHOLE + 1; i < PYBPF_NR_NATIVE_ENDS; i++) {
		if (a->wait_ns[i] >= WAIT_TOLD_NS)
			fprintf(out, "; %.2f %s", (double)a->wait_ns[i] / 1e9, end_texts[i]);
	}
	fputc('\n', out);
	if (a->wait_not_joined_ns >= WAIT_TOLD_NS)
		fprintf(out,
			"pybpf: native frames: in %.2f thread-seconds of waits they do not fit Python's: only those "
			"that the "
			"last function called are shown\n",
			(double)a->wait_not_joined_ns / 1e9);
}

static void print(const struct session_account *account, const struct profile *profile, FILE *out)
{
	const struct session_native_account *a = &account->native;

	(void)profile;
	if (!a->is_there || (!sum_of(a->ends) && !sum_of(a->wait_ns)))
		return;
	print_samples(a, out);
	print_waits(a, out);
	print_lines(a, out);
	print_fetched(a, out);
	if (a->refused_files)
		fprintf(out,
			"pybpf: native frames: the tables of %" PRIu64 " file%s found no room: see --native-memory\n",
			a->refused_files, a->refused_files == 1 ? "" : "s");
}

static const struct session_entry entries[] = {
#define X(name, key, text) {"native", key, SESSION_COUNT(native.ends[PYBPF_NATIVE_END_##name])},
	PYBPF_NATIVE_ENDS(X)
#undef X
		{"native", "joined", SESSION_COUNT(native.joined_exactly)},
	{"native", "joined_plus_one", SESSION_COUNT(native.joined_plus_one)},
	{"native", "not_joined", SESSION_COUNT(native.not_joined)},
#define X(name, key, text) {"native", "waits_" key "_ns", SESSION_COUNT(native.wait_ns[PYBPF_NATIVE_END_##name])},
	PYBPF_NATIVE_ENDS(X)
#undef X
		{"native", "waits_not_joined_ns", SESSION_COUNT(native.wait_not_joined_ns)},
	{"native", "files", SESSION_COUNT(native.files)},
	{"native", "rows", SESSION_COUNT(native.rows)},
	{"native", "bytes", SESSION_COUNT(native.bytes)},
	{"native", "refused_files", SESSION_COUNT(native.refused_files)},
	{"native", "unreadable_files", SESSION_COUNT(native.unreadable_files)},
	{"native", "line_places", SESSION_COUNT(native.line_places)},
	{"native", "line_places_found", SESSION_COUNT(native.line_places_found)},
	{"native", "line_places_unread", SESSION_COUNT(native.unread_line_places)},
	{"native", "files_without_lines", SESSION_COUNT(native.lineless_files)},
	{"native", "files_with_lines_elsewhere", SESSION_COUNT(native.elsewhere_line_files)},
	{"native", "files_with_failed_lines", SESSION_COUNT(native.failed_line_files)},
#define X(name, key, text) {"native", key, SESSION_COUNT(native.fetch_ends[NATIVE_FETCH_##name])},
	NATIVE_FETCH_ENDS_X(X)
#undef X
		{"native", "fetched_bytes", SESSION_COUNT(native.fetched_bytes)},
	{0},
};

static bool is_wanted(const struct session_options *options)
{
	return options->native != SESSION_NATIVE_NONE;
}

const struct session_measure session_native_measure = {
	.name = "native frames",
	.is_wanted = is_wanted,
	.free = release,
	.attach = attach,
	.do_periodic_work = do_periodic_work,
	.name_frames = name_frames,
	.note_count = note_count,
	.forget_process = forget_process,
	.forget_frames = forget_frames,
	.tell = tell,
	.print = print,
	.entries = entries,
};
