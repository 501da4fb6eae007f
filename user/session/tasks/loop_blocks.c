// SPDX-License-Identifier: Apache-2.0
/* Adds up callbacks that blocked their event loops. */
#include "session/tasks/loop_blocks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/text.h"
#include "kernel/callbacks.h"
#include "session/run/due.h"
#include "session/internal.h"
#include "session/measure.h"
#include "session/place_name.h"
#include "symbols/tasks/tasks.h"

/* The tasks of a place are one, as their names may be different ones for each request. */
struct place {
	uint32_t frame; /* of the profile, as the next ones; PROFILE_NONE: not known */
	uint32_t has_task;
	uint32_t task; /* the first one, or PROFILE_NONE */
	uint32_t nr_tasks;
	uint64_t count, ns, longest_ns;
};

struct task_at {
	uint32_t place, task;
};

static void init(struct session *s)
{
	struct session_loop_blocks *b = &s->loop_blocks;

	intern_init(&b->places, sizeof(struct place), offsetof(struct place, task));
	intern_init(&b->tasks, sizeof(struct task_at), sizeof(struct task_at));
}

static void release(struct session *s)
{
	struct session_loop_blocks *b = &s->loop_blocks;

	intern_free(&b->places);
	intern_free(&b->tasks);
	init(s);
}

/* Finds the task that runs in the stack, which is the one nearest to the leaf. */
static uint32_t find_task(const struct profile *profile, uint32_t stack)
{
	while (stack != PROFILE_ROOT) {
		const struct profile_stack *node = profile_stack_at(profile, stack);
		const struct profile_frame *frame = profile_frame_at(profile, node->frame);

		if (frame->kind == PROFILE_NOTE && tasks_is_task(profile_string(profile, frame->name)))
			return node->frame;
		stack = node->parent;
	}
	return PROFILE_NONE;
}

/* Returns whether it is Handle._run of Lib/asyncio/events.py; names have their class since 3.11. */
static bool is_run_of_handle(const struct profile *profile, const struct profile_frame *frame)
{
	const char *name = profile_string(profile, frame->name);

	return strcmp(name, "Handle._run") == 0 ||
	       (strcmp(name, "_run") == 0 && strcmp(profile_string(profile, frame->file), "asyncio/events.py") == 0);
}

/* Returns whether the stack is that of a callback without a task, and not of the loop itself. */
static bool is_callback(const struct profile *profile, uint32_t stack)
{
	while (stack != PROFILE_ROOT) {
		const struct profile_stack *node = profile_stack_at(profile, stack);
		const struct profile_frame *frame = profile_frame_at(profile, node->frame);

		if (is_run_of_handle(profile, frame))
			return true;
		stack = node->parent;
	}
	return false;
}

/* Notes that a task was at the place. Returns 0 or -ENOMEM. */
static int add_task(struct session_loop_blocks *b, uint32_t place, uint32_t task)
{
	const struct task_at at = {.place = place, .task = task};
	struct place *to = intern_item(&b->places, place);
	bool is_fresh;

	if (intern_add(&b->tasks, &at, &is_fresh) == INTERN_NONE)
		return -ENOMEM;
	if (is_fresh && !to->nr_tasks++)
		to->task = task;
	return 0;
}

static int add(struct session *s, uint64_t stack_id, bool has_task, const struct pybpf_wait_time *time)
{
	uint32_t stack = stacks_find(s->stacks, stack_id), i, task = PROFILE_NONE;
	struct place fresh = {.frame = PROFILE_NONE, .task = PROFILE_NONE}, *place;
	bool known = stack != PROFILE_NONE && stack != PROFILE_ROOT, is_fresh;

	if (!has_task && !(known && is_callback(s->profile, stack)))
		return 0;
	if (known) {
		task = find_task(s->profile, stack);
		fresh.frame = profile_stack_at(s->profile, stack)->frame;
		fresh.has_task = task != PROFILE_NONE;
	}
	i = intern_add(&s->loop_blocks.places, &fresh, &is_fresh);
	if (i == INTERN_NONE || (task != PROFILE_NONE && add_task(&s->loop_blocks, i, task)))
		return -ENOMEM;
	place = intern_item(&s->loop_blocks.places, i);
	place->count += time->count;
	place->ns += time->ns;
	if (time->longest_ns > place->longest_ns)
		place->longest_ns = time->longest_ns;
	return 0;
}

struct settling {
	struct session *session;
	const struct session_due *due;
	uint64_t end_ns; /* as session_find_end() tells it */
	struct pybpf_block_key *taken;
	size_t nr_taken, taken_room;
	uint32_t *ended; /* threads */
	size_t nr_ended, ended_room;
};

static int take_block(const struct pybpf_block_key *key, const struct pybpf_wait_time *time, void *arg)
{
	struct settling *settling = arg;

	if (!session_is_due(settling->session, settling->due, key->proc_id))
		return 0;
	if (array_reserve(&settling->taken, &settling->taken_room, settling->nr_taken + 1, sizeof(*settling->taken)))
		return -ENOMEM;
	settling->taken[settling->nr_taken++] = *key;
	return add(settling->session, key->stack_id, key->has_task, time);
}

/* Takes the callback in which a thread was last: at the end of its process, or of the run, in which it may go on. */
static int take_callback(uint32_t pid, const struct pybpf_callback *callback, void *arg)
{
	struct settling *settling = arg;
	bool goes_on = callback->left && settling->end_ns > callback->seen_ns;
	uint64_t last_ns = goes_on ? settling->end_ns : callback->last_ns, ns = last_ns - callback->first_ns;
	const struct pybpf_wait_time time = {.count = 1, .ns = ns, .longest_ns = ns};

	if (!session_is_due(settling->session, settling->due, callback->proc_id))
		return 0;
	if (array_reserve(&settling->ended, &settling->ended_room, settling->nr_ended + 1, sizeof(*settling->ended)))
		return -ENOMEM;
	settling->ended[settling->nr_ended++] = pid;
	if (ns < settling->session->options.loop_block_ns)
		return 0;
	return add(settling->session,
		   last_ns - callback->seen_ns > callback->stack_ns ? callback->seen_stack_id : callback->stack_id,
		   callback->task, &time);
}

/* At the end of the run the callbacks of threads that are asleep lasted until then. */
static int settle(struct session *s, const struct session_due *due)
{
	struct settling settling = {.session = s, .due = due};
	int err = session_find_end(s, due, &settling.end_ns);

	err = err ?: kernel_visit_blocks(s->kernel, take_block, &settling);
	err = err ?: kernel_visit_callbacks(s->kernel, take_callback, &settling);
	for (size_t i = 0; i < settling.nr_taken; i++)
		kernel_delete_block(s->kernel, &settling.taken[i]);
	for (size_t i = 0; i < settling.nr_ended; i++)
		kernel_delete_callback(s->kernel, settling.ended[i]);
	free(settling.taken);
	free(settling.ended);
	return err;
}

static void add_to(struct session_loop_block *to, const struct place *place)
{
	to->count += place->count;
	to->ns += place->ns;
	if (place->longest_ns > to->longest_ns)
		to->longest_ns = place->longest_ns;
}

static void name_place(const struct profile *profile, const struct place *from, struct session_loop_block *to)
{
	add_to(to, from);
	to->nr_tasks = from->nr_tasks;
	if (from->nr_tasks == 1)
		snprintf(to->task, sizeof(to->task), "%s",
			 profile_string(profile, profile_frame_at(profile, from->task)->name));
	if (from->frame != PROFILE_NONE)
		session_name_place(profile, from->frame, to->where, sizeof(to->where));
}

static int compare_time(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	return (one->ns < other->ns) - (one->ns > other->ns);
}

static void tell(const struct session *s, struct session_account *all)
{
	struct session_loop_blocks_account *account = &all->loop_blocks;
	const struct intern *places = &s->loop_blocks.places;
	struct place *sorted = places->items;

	account->limit_ns = s->options.loop_block_ns;
	account->switches = s->options.mode != SESSION_CPU;
	account->asyncio = processes_have_asyncio(s->processes);
	if (s->options.mode <= SESSION_WALL && s->options.freq)
		account->sampled_ns = 1000000000u / s->options.freq;
	account->nr_places = places->count;
	account->lost = kernel_count_lost_callbacks(s->kernel);
	if (places->count)
		qsort(sorted, places->count, sizeof(*sorted), compare_time);
	for (uint32_t i = 0; i < places->count; i++) {
		add_to(&account->sum, &sorted[i]);
		if (i < SESSION_LOOP_BLOCKS_LISTED)
			name_place(s->profile, &sorted[i], &account->listed[i]);
	}
}

static void print_times(const struct session_loop_block *block, FILE *out)
{
	fprintf(out, "%" PRIu64 " time%s, %.3f s, longest %.1f ms", block->count, block->count == 1 ? "" : "s",
		(double)block->ns / 1e9, (double)block->longest_ns / 1e6);
}

static void print_block(const struct session_loop_block *block, FILE *out)
{
	fputs("pybpf:   ", out);
	if (block->nr_tasks > 1)
		fprintf(out, "%" PRIu32 " tasks", block->nr_tasks);
	else
		text_print(*block->task ? block->task : "no task", out);
	fputs(" in ", out);
	text_print(*block->where ? block->where : "a place that is not known", out);
	fputs(": ", out);
	print_times(block, out);
	fputc('\n', out);
}

/* What was not looked at is not denied. */
static void print_none(const struct session_loop_blocks_account *a, FILE *out)
{
	fprintf(out, "pybpf: no callback was seen to block its event loop for %g ms or longer",
		(double)a->limit_ns / 1e6);
	if (a->sampled_ns)
		fprintf(out, "; one that computes for less than %.0f ms may be missed (-F)",
			(double)(a->limit_ns + 2 * a->sampled_ns) / 1e6);
	fputc('\n', out);
}

static void print(const struct session_account *all, const struct profile *p, FILE *out)
{
	const struct session_loop_blocks_account *a = &all->loop_blocks;

	(void)p;
	if (!a->limit_ns)
		return;
	if (!a->asyncio && !a->sum.count) {
		fputs("pybpf: no process was found to use asyncio: there are no tasks\n", out);
		return;
	}
	if (!a->sum.count) {
		print_none(a, out);
	} else {
		fprintf(out, "pybpf: callbacks blocked their event loop for %g ms or longer ",
			(double)a->limit_ns / 1e6);
		print_times(&a->sum, out);
		if (a->nr_places > SESSION_LOOP_BLOCKS_LISTED)
			fprintf(out, "; %d of the %" PRIu64 " places", SESSION_LOOP_BLOCKS_LISTED, a->nr_places);
		fputs(":\n", out);
	}
	for (uint64_t i = 0; i < a->nr_places && i < SESSION_LOOP_BLOCKS_LISTED; i++)
		print_block(&a->listed[i], out);
	if (!a->switches || !a->sampled_ns)
		fprintf(out, "pybpf: callbacks that %s are not seen without --mode=wall\n",
			a->switches ? "only compute" : "sleep or wait");
	if (a->lost)
		fprintf(out, "pybpf: lost: %" PRIu64 " callback%s that found no room\n", a->lost,
			a->lost == 1 ? "" : "s");
}

static void hide(struct session_account *a)
{
	for (size_t i = 0; i < SESSION_LOOP_BLOCKS_LISTED; i++)
		a->loop_blocks.listed[i].task[0] = a->loop_blocks.listed[i].where[0] = '\0';
}

static void write_times(struct json *j, const struct session_loop_block *block)
{
	json_uint(j, "count", block->count);
	json_decimal(j, "total_s", block->ns, 9);
	json_decimal(j, "longest_s", block->longest_ns, 9);
}

/* null if they were not looked for. */
static void write_json(const struct session_account *all, FILE *out)
{
	const struct session_loop_blocks_account *a = &all->loop_blocks;
	struct json j = {.out = out, .bare = true};

	if (!a->limit_ns) {
		json_null(&j, "loop_blocks");
		return;
	}
	json_begin_object(&j, "loop_blocks");
	json_decimal(&j, "limit_s", a->limit_ns, 9);
	write_times(&j, &a->sum);
	json_uint(&j, "places", a->nr_places);
	json_uint(&j, "lost", a->lost);
	json_begin_array(&j, "longest");
	for (uint64_t i = 0; i < a->nr_places && i < SESSION_LOOP_BLOCKS_LISTED; i++) {
		const struct session_loop_block *block = &a->listed[i];

		json_begin_object(&j, NULL);
		json_string(&j, "task", block->task);
		json_uint(&j, "tasks", block->nr_tasks);
		json_string(&j, "where", block->where);
		write_times(&j, block);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
}

static void ask_kernel(const struct session_options *options, struct kernel_options *kernel)
{
	kernel->loop_block_ns = options->loop_block_ns;
}

static bool is_wanted(const struct session_options *options)
{
	return options->loop_block_ns != 0;
}

/* A place is a frame of the profile. */
const struct session_measure session_loop_blocks_measure = {
	.name = "callbacks that block their event loop",
	.is_wanted = is_wanted,
	.ask_kernel = ask_kernel,
	.init = init,
	.free = release,
	.settle = settle,
	.forget_frames = release,
	.tell = tell,
	.print = print,
	.write_json = write_json,
	.hide = hide,
};
