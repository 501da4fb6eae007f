// SPDX-License-Identifier: Apache-2.0
/* Native frames as a measure of a session: its state, the options it gets, and its part of the account. */
#include "session/native/native.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/native.h"
#include "processes/processes.h"
#include "session/account/account_entry.h"
#include "session/internal.h"
#include "session/native/internal.h"

/* Longest work in one go. */
#define WORK_S 0.01

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
	struct session_native_state *n = s->native;

	if (n)
		native_files_forget_stacks(&n->files,
					   n->job == JOB_ROWS || n->job == JOB_STOPS ? n->job_file : INTERN_NONE,
					   clock_s(CLOCK_MONOTONIC));
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

static double do_periodic_work(struct session *s, double now)
{
	bool more = native_work_until(s, now + WORK_S);

	return more ? now : native_next_check(s->native);
}

static void forget_process(struct session *s, uint64_t proc_id)
{
	struct session_native_state *n = s->native;
	uint32_t i = n ? intern_find(&n->mappers, &proc_id) : INTERN_NONE;

	if (i == INTERN_NONE)
		return;
	kernel_delete_native_list(s->kernel, proc_id);
	native_hide(n, intern_item(&n->mappers, i), clock_s(CLOCK_MONOTONIC));
	native_forget_question(n, proc_id);
	native_forget_mappings(n, intern_item(&n->mappers, i));
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
	a->tables_ns = n->files.costs.tables_ns;
	a->names_ns = n->files.costs.names_ns;
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
		fprintf(out, "; %" PRIu64 " more were not read in %g s", a->unread_line_places,
			NATIVE_END_S + NATIVE_LINES_END_S);
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
	{"native", "tables_cpu_s", SESSION_SECONDS(native.tables_ns)},
	{"native", "names_cpu_s", SESSION_SECONDS(native.names_ns)},
	{"native", "lines_cpu_s", SESSION_SECONDS(native.lines_ns)},
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
	.name_frames = native_name_frames,
	.note_count = note_count,
	.forget_process = forget_process,
	.forget_frames = forget_frames,
	.tell = tell,
	.print = print,
	.entries = entries,
};
