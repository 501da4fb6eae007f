// SPDX-License-Identifier: Apache-2.0
/* Says in sentences what threads that wait for each other have in common. */
#include "dump/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/json.h"
#include "base/text.h"
#include "dump/deadlock.h"
#include "symbols/pysym.h"

/* Threads that others wait for of which the text tells. */
#define MOST_HOLDERS 5

/* Threads that wait for locks, or for the GIL, that one has. */
struct held_up {
	uint32_t holder, is_gil; /* the key */
	uint64_t place;          /* of the first one's lock */
	uint32_t first, last, count;
	bool several; /* they wait for more than one lock */
};

struct findings {
	const struct dump_process *process;
	struct intern table; /* struct held_up */
	uint32_t *next;      /* of each thread the next one that waits for the same one */
	uint32_t *order;
};

void dump_find_held_up(struct dump_process *process, bool stopped)
{
	for (size_t i = 0; i < process->count; i++) {
		struct dump_thread *thread = &process->threads[i];

		thread->held_up = !thread->circle && !thread->facts.is_moving && dump_find_holder(process, thread) &&
				  (stopped || dump_sleeps_still(process, thread));
	}
}

static int add_thread(struct findings *f, uint32_t i)
{
	const struct dump_thread *thread = &f->process->threads[i];
	const struct dump_thread *holder = dump_find_holder(f->process, thread);
	bool is_gil = thread->state.wait.state == PYBPF_STATE_GIL, is_fresh;
	struct held_up fresh = {.is_gil = is_gil, .first = i, .last = i}, *found;
	uint32_t at;

	if (!holder)
		return 0;
	fresh.holder = (uint32_t)(holder - f->process->threads);
	fresh.place = is_gil ? thread->gil : thread->locks.wanted ?: thread->state.futex;
	at = intern_add(&f->table, &fresh, &is_fresh);
	if (at == INTERN_NONE)
		return -ENOMEM;
	found = intern_item(&f->table, at);
	if (!is_fresh)
		f->next[found->last] = i;
	found->last = i;
	found->count++;
	found->several = found->several || found->place != fresh.place;
	return 0;
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct findings *f = arg;
	const struct held_up *x = intern_item(&f->table, *(const uint32_t *)a);
	const struct held_up *y = intern_item(&f->table, *(const uint32_t *)b);

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->first < y->first ? -1 : 1;
}

static int collect(const struct dump_process *process, struct findings *f)
{
	*f = (struct findings){.process = process,
			       .table = INTERN_INIT(sizeof(struct held_up), offsetof(struct held_up, place)),
			       .next = calloc(process->count + 1, sizeof(*f->next)),
			       .order = calloc(process->count + 1, sizeof(*f->order))};
	if (!f->next || !f->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < process->count; i++) {
		if (process->threads[i].held_up && add_thread(f, i))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < f->table.count; i++)
		f->order[i] = i;
	qsort_r(f->order, f->table.count, sizeof(*f->order), compare, f);
	return 0;
}

static void free_findings(struct findings *f)
{
	intern_free(&f->table);
	free(f->next);
	free(f->order);
}

static const struct held_up *held_up_at(const struct findings *f, uint32_t i)
{
	return intern_item(&f->table, f->order[i]);
}

static void print_thread(const char *word, const struct dump_thread *thread, FILE *out)
{
	fprintf(out, "%s %d \"", word, thread->tid);
	text_print(thread->name, out);
	fputs("\"", out);
}

static const char *name_wanted(const struct dump_thread *thread)
{
	return thread->state.wait.state == PYBPF_STATE_GIL ? "the GIL" : "a lock";
}

/* Says which thread the next one of a deadlock is; first: the one that was named first. */
static void print_next(const struct dump_thread *next, const struct dump_thread *first, FILE *out)
{
	if (next == first)
		fprintf(out, "thread %d", first->tid);
	else
		print_thread("thread", next, out);
}

static void print_deadlock(const struct dump_process *process, const struct dump_thread *first, FILE *out)
{
	const struct dump_thread *at = first, *next;
	bool joins;

	fputs("Deadlock: ", out);
	print_thread("thread", at, out);
	do {
		next = dump_find_awaited(process, at, &joins);
		fputs(at == first ? " waits for " : ", which waits for ", out);
		if (joins) {
			fputs("the end of ", out);
			print_next(next, first, out);
		} else if (next == at) {
			fprintf(out, "%s that it has itself", name_wanted(at));
		} else {
			fprintf(out, "%s that ", name_wanted(at));
			print_next(next, first, out);
			fputs(" has", out);
		}
		at = next;
	} while (at && at != first);
}

/* Returns the innermost function of Python in a thread's stack, or NULL. */
static const struct profile_frame *innermost(const struct dump_process *process, const struct dump_thread *thread)
{
	for (uint32_t s = thread->stack; s != PROFILE_ROOT; s = profile_stack_at(process->stacks, s)->parent) {
		const struct profile_frame *frame =
			profile_frame_at(process->stacks, profile_stack_at(process->stacks, s)->frame);

		if (frame->kind == PROFILE_PYTHON)
			return frame;
	}
	return NULL;
}

static void print_place(const struct dump_process *process, const struct profile_frame *frame, FILE *out)
{
	text_print(profile_string(process->stacks, frame->name), out);
	fputs(" (", out);
	text_print(pysym_short_path(profile_string(process->stacks, frame->file), NULL), out);
	if (frame->line != PROFILE_NO_LINE)
		fprintf(out, ":%" PRId32, frame->line);
	fputc(')', out);
}

/* Says what keeps a thread that others wait for, as far as that is known. */
static void print_holder(const struct dump_process *process, const struct dump_thread *holder, FILE *out)
{
	const struct dump_thread *further = dump_find_holder(process, holder);
	const struct dump_thread *joined = dump_find_joined(process, holder);
	const struct profile_frame *frame = holder->facts.is_moving ? NULL : innermost(process, holder);
	enum pybpf_state state = holder->state.wait.state;
	char cause[DUMP_STATE_NAME];

	if (holder->circle) {
		fputs(", which is part of a deadlock", out);
		return;
	}
	if (further && further != holder) {
		fprintf(out, ", which waits for %s that ", name_wanted(holder));
		print_thread("thread", further, out);
		fputs(" has", out);
		return;
	}
	if (joined) {
		print_thread(", which waits for the end of thread", joined, out);
		return;
	}
	if (!frame || holder->state_unread)
		return;
	fprintf(out, ", which %s in ",
		state == PYBPF_STATE_SLEEP          ? "sleeps"
		: state != PYBPF_STATE_RUNNING      ? "is"
		: holder->cpu == DUMP_WAITS_FOR_CPU ? "waits for a CPU"
						    : "runs");
	print_place(process, frame, out);
	if (state == PYBPF_STATE_SLEEP || state == PYBPF_STATE_RUNNING)
		return;
	dump_name_state(holder, cause, sizeof(cause));
	fputs(", ", out);
	text_print(cause, out);
}

static void print_held_up(const struct findings *f, const struct held_up *held_up, FILE *out)
{
	const struct dump_thread *holder = &f->process->threads[held_up->holder];

	if (held_up->count == 1) {
		print_thread("Thread", &f->process->threads[held_up->first], out);
		fputs(" waits", out);
	} else {
		fprintf(out, "%" PRIu32 " threads wait", held_up->count);
	}
	fprintf(out, " for %s that ", held_up->is_gil ? "the GIL" : held_up->several ? "locks" : "a lock");
	print_thread("thread", holder, out);
	fputs(" has", out);
	print_holder(f->process, holder, out);
}

/* Returns the first thread from *at on that is the first one of a deadlock, with *at behind it; NULL at the end. */
static const struct dump_thread *next_deadlock(const struct dump_process *process, size_t *at, uint32_t *reported)
{
	while (*at < process->count) {
		const struct dump_thread *thread = &process->threads[(*at)++];

		if (thread->circle > *reported) {
			*reported = thread->circle;
			return thread;
		}
	}
	return NULL;
}

void dump_print_findings(const struct dump_process *process, FILE *out)
{
	const struct dump_thread *first;
	struct findings f;
	int err = collect(process, &f);
	uint32_t reported = 0;
	size_t at = 0;

	while ((first = next_deadlock(process, &at, &reported))) {
		print_deadlock(process, first, out);
		fputc('\n', out);
	}
	for (uint32_t i = 0; !err && i < f.table.count && i < MOST_HOLDERS; i++) {
		print_held_up(&f, held_up_at(&f, i), out);
		fputc('\n', out);
	}
	if (!err && f.table.count > MOST_HOLDERS)
		fprintf(out, "%" PRIu32 " more %s what others wait for\n", f.table.count - MOST_HOLDERS,
			f.table.count == MOST_HOLDERS + 1 ? "thread has" : "threads have");
	free_findings(&f);
}

static void write_deadlock(const struct dump_process *process, const struct dump_thread *first, struct json *j)
{
	const struct dump_thread *at = first;

	json_string(j, "kind", "deadlock");
	json_null(j, "holder");
	json_begin_array(j, "threads");
	do {
		json_int(j, NULL, at->tid);
		at = dump_find_awaited(process, at, NULL);
	} while (at && at != first);
	json_end_array(j);
}

static void write_held_up(const struct findings *f, const struct held_up *held_up, struct json *j)
{
	uint32_t i = held_up->first;

	json_string(j, "kind", held_up->is_gil ? "GIL" : "lock");
	json_int(j, "holder", f->process->threads[held_up->holder].tid);
	json_begin_array(j, "threads");
	for (uint32_t left = held_up->count; left; left--, i = f->next[i])
		json_int(j, NULL, f->process->threads[i].tid);
	json_end_array(j);
}

/* Writes the sentence of a deadlock, whose first thread it is, or else of what holds threads up. */
static void write_text(const struct findings *f, const struct dump_thread *deadlock, const struct held_up *held_up,
		       struct json *j)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out && deadlock)
		print_deadlock(f->process, deadlock, out);
	else if (out)
		print_held_up(f, held_up, out);
	if (out)
		fclose(out);
	json_string(j, "text", text ?: "");
	free(text);
}

void dump_write_findings(const struct dump_process *process, struct json *j)
{
	const struct dump_thread *first;
	struct findings f;
	int err = collect(process, &f);
	uint32_t reported = 0;
	size_t at = 0;

	json_begin_array(j, "findings");
	while ((first = next_deadlock(process, &at, &reported))) {
		json_begin_object(j, NULL);
		write_deadlock(process, first, j);
		write_text(&f, first, NULL, j);
		json_end_object(j);
	}
	for (uint32_t i = 0; !err && i < f.table.count; i++) {
		json_begin_object(j, NULL);
		write_held_up(&f, held_up_at(&f, i), j);
		write_text(&f, NULL, held_up_at(&f, i), j);
		json_end_object(j);
	}
	json_end_array(j);
	free_findings(&f);
}
