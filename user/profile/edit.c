// SPDX-License-Identifier: Apache-2.0
/* Copies a profile into another, filtered, merged and anonymized. */
#include "profile/edit.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "profile/edit_internal.h"
#include "profile/parents.h"
#include "profile/idle.h"
#include "base/array.h"

/* The fewest characters of a container's ID that select it, as in record. */
#define ID_PREFIX_MIN 4

/* The copying of one profile into another. Maps hold PROFILE_NONE for entries that were not copied. */
struct edit {
	struct profile *to;
	const struct profile *from;
	const struct profile_edit *edit;
	struct edit_match *matches; /* indexed by stack */
	uint32_t *frames, *stacks, *processes, *threads, *samples;
	bool *wanted; /* by stack: a sample that passes the filters needs it */
	bool *idle;   /* by stack: it waits for work, and is to be folded; NULL: none is */
};

int profile_edit_add_pid(struct profile_edit_pids *pids, int32_t pid)
{
	if (array_reserve(&pids->items, &pids->room, pids->count + 1, sizeof(*pids->items)))
		return -ENOMEM;
	pids->items[pids->count++] = pid;
	return 0;
}

int profile_edit_add_text(struct profile_edit_texts *texts, const char *text)
{
	if (array_reserve(&texts->items, &texts->room, texts->count + 1, sizeof(*texts->items)))
		return -ENOMEM;
	texts->items[texts->count++] = text;
	return 0;
}

void profile_edit_free(struct profile_edit *edit)
{
	free(edit->pids.items);
	free(edit->threads.items);
	free(edit->containers.items);
	free(edit->focus.items);
	free(edit->ignore.items);
	free(edit->hide.items);
	free(edit->own_paths.items);
	*edit = (struct profile_edit){.under = NULL};
}

int profile_edit_check(struct profile_edit *edit, struct error *error)
{
	if (edit->anonymize && getrandom(edit->salt, sizeof(edit->salt), 0) != (ssize_t)sizeof(edit->salt))
		return error_set(error, -EIO, "cannot draw a random number to hash names with: %s", strerror(errno));
	return edit_check_patterns(edit, error);
}

static bool is_id(const char *text)
{
	return strlen(text) >= ID_PREFIX_MIN && text[strspn(text, "0123456789abcdef")] == '\0';
}

/*
 * Returns whether the query selects the container: a glob of its name, in Kubernetes also without the pod's name; or
 * the beginning of its ID.
 */
static bool container_fits(const char *container, const char *query)
{
	const char *slash = strrchr(container, '/');
	size_t known = strlen(container), asked = strlen(query);

	if (fnmatch(query, container, 0) == 0 || (slash && fnmatch(query, slash + 1, 0) == 0))
		return true;
	return is_id(container) && is_id(query) && strncmp(container, query, known < asked ? known : asked) == 0;
}

static bool process_passes(const struct edit *e, uint32_t process)
{
	const struct profile_process *owner = profile_process_at(e->from, process);
	const char *container = profile_string(e->from, owner->container);
	bool fits = !e->edit->pids.count;

	for (size_t i = 0; i < e->edit->pids.count; i++)
		fits |= owner->pid == e->edit->pids.items[i];
	if (!fits || !e->edit->containers.count)
		return fits;
	for (size_t i = 0; i < e->edit->containers.count; i++) {
		if (*container && container_fits(container, e->edit->containers.items[i]))
			return true;
	}
	return false;
}

static bool thread_passes(const struct edit *e, uint32_t index)
{
	const struct profile_thread *thread;
	char tid[16];

	if (!e->edit->threads.count)
		return true;
	if (index == PROFILE_NONE)
		return false;
	thread = profile_thread_at(e->from, index);
	snprintf(tid, sizeof(tid), "%d", thread->tid);
	for (size_t i = 0; i < e->edit->threads.count; i++) {
		const char *query = e->edit->threads.items[i];

		if (strcmp(tid, query) == 0 || fnmatch(query, profile_string(e->from, thread->name), 0) == 0)
			return true;
	}
	return false;
}

static bool stack_passes(const struct edit *e, uint32_t stack)
{
	size_t focuses = e->edit->focus.count;
	uint64_t all = focuses < PROFILE_EDIT_FOCUS_MAX ? (1ull << focuses) - 1 : UINT64_MAX;
	const struct edit_match *match = &e->matches[stack];

	return match->focus == all && !match->ignore && (match->under || !e->edit->under);
}

static uint32_t *new_map(size_t count)
{
	uint32_t *map = malloc((count ? count : 1) * sizeof(*map));

	for (size_t i = 0; map && i < count; i++)
		map[i] = PROFILE_NONE;
	return map;
}

static int begin(struct edit *e)
{
	size_t samples;

	profile_samples(e->from, &samples);
	e->frames = new_map(profile_frame_count(e->from));
	e->stacks = new_map(profile_stack_count(e->from));
	e->processes = new_map(profile_process_count(e->from));
	e->threads = new_map(profile_thread_count(e->from));
	e->samples = new_map(samples);
	e->wanted = calloc(profile_stack_count(e->from), sizeof(*e->wanted));
	if (e->edit->fold_idle)
		e->idle = profile_idle_stacks(e->from);
	return e->frames && e->stacks && e->processes && e->threads && e->samples && e->wanted &&
			       (e->idle || !e->edit->fold_idle)
		       ? 0
		       : -ENOMEM;
}

static void end(struct edit *e)
{
	free(e->matches);
	free(e->frames);
	free(e->stacks);
	free(e->processes);
	free(e->threads);
	free(e->samples);
	free(e->wanted);
	free(e->idle);
}

static bool is_folded(const struct edit *e, uint32_t stack)
{
	return e->idle && e->idle[stack];
}

/* Returns whether the stack's leaf is the outermost frame after the frames below `under` were cut off. */
static bool is_first(const struct edit *e, uint32_t stack)
{
	uint32_t parent = profile_stack_at(e->from, stack)->parent;

	return parent == PROFILE_ROOT || (e->edit->under && !e->matches[parent].under);
}

/* Chooses the samples that pass the filters, marks their stacks in e->wanted, and adds up the others in *left_out. */
static void choose(struct edit *e, bool *passes, uint64_t *left_out)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(e->from, &count);

	for (size_t i = 0; i < count; i++) {
		uint32_t stack = samples[i].stack;

		passes[i] = process_passes(e, samples[i].process) && thread_passes(e, samples[i].thread) &&
			    stack_passes(e, stack);
		if (!passes[i]) {
			*left_out += stack == PROFILE_ROOT ? 0 : samples[i].value;
			continue;
		}
		while (stack != PROFILE_ROOT && !e->wanted[stack] && !is_folded(e, samples[i].stack)) {
			e->wanted[stack] = true;
			stack = is_first(e, stack) ? PROFILE_ROOT : profile_stack_at(e->from, stack)->parent;
		}
	}
}

/* Adds a frame that is no wait's. */
static uint32_t add_frame(struct edit *e, const struct profile_frame *frame, const char *name, const char *file)
{
	struct profile_place place = profile_place_of(frame);

	if (frame->kind != PROFILE_PYTHON)
		return profile_add_frame(e->to, (enum profile_frame_kind)frame->kind, name, file, frame->line,
					 frame->first_line);
	if (e->edit->no_columns)
		place.end_line = place.column = place.end_column = 0;
	return profile_add_python(e->to, name, file, &place);
}

static uint32_t move_frame(struct edit *e, uint32_t index)
{
	const struct profile_frame *frame = profile_frame_at(e->from, index);
	const char *name = profile_string(e->from, frame->name), *file = profile_string(e->from, frame->file);
	char *hidden_name = NULL, *hidden_file = NULL;
	uint32_t moved = PROFILE_NONE;

	if (e->frames[index] != PROFILE_NONE)
		return e->frames[index];
	if (e->edit->anonymize) {
		hidden_name = frame->kind == PROFILE_NOTE     ? edit_hidden_note(e->edit, name)
			      : frame->kind == PROFILE_THREAD ? edit_hidden(e->edit, 't', name)
			      : frame->kind == PROFILE_KERNEL ? strdup(name)
							      : edit_hidden_name(e->edit, name);
		hidden_file = edit_hidden_path(e->edit, file);
		name = hidden_name;
		file = hidden_file;
	}
	if (name && frame->state)
		moved = profile_add_wait(e->to, profile_string(e->from, frame->state), name, frame->waker);
	else if (name && file)
		moved = add_frame(e, frame, name, file);
	if (moved != PROFILE_NONE && frame->kind == PROFILE_PYTHON &&
	    profile_set_origin(e->to, file, edit_origin_of(e->from, frame, e->edit)))
		moved = PROFILE_NONE;
	free(hidden_name);
	free(hidden_file);
	e->frames[index] = moved;
	return moved;
}

/* Copies the wanted stacks. A parent has a smaller index than its children. Returns 0 or -ENOMEM. */
static int move_stacks(struct edit *e)
{
	e->stacks[PROFILE_ROOT] = PROFILE_ROOT;
	for (uint32_t i = 1; i < profile_stack_count(e->from); i++) {
		const struct profile_stack *stack = profile_stack_at(e->from, i);
		uint32_t frame, below;

		if (!e->wanted[i])
			continue;
		below = is_first(e, i) ? PROFILE_ROOT : e->stacks[stack->parent];
		if (e->matches[i].hide) {
			e->stacks[i] = below;
			continue;
		}
		frame = move_frame(e, stack->frame);
		if (frame == PROFILE_NONE)
			return -ENOMEM;
		e->stacks[i] = profile_add_stack(e->to, below, frame);
		if (e->stacks[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

/* Names in place of those of a process, where they are hidden. */
struct names {
	char *name, *container;
};

/* Fills in a process's names, or what stands for them. Returns whether there was memory. */
static bool name_process(struct edit *e, const struct profile_process *process, struct profile_process_info *info,
			 struct names *names)
{
	*names = (struct names){0};
	info->name = profile_string(e->from, process->name);
	info->container = profile_string(e->from, process->container);
	if (e->edit->anonymize) {
		info->name = names->name = edit_hidden(e->edit, 'p', info->name);
		info->container = names->container = edit_hidden(e->edit, 'c', info->container);
	}
	return info->name && info->container;
}

static void free_names(struct names *names)
{
	free(names->name);
	free(names->container);
}

/* Says in the copy who started the process. Returns 0 or -ENOMEM. */
static int move_parents(struct edit *e, uint32_t index)
{
	const struct profile_parents *parents = profile_get_parents(e->from);
	uint32_t chain[PROFILE_PARENTS_MAX], above = PROFILE_NONE;
	size_t count = e->edit->merge_processes ? 0 : profile_parents_chain(parents, index, chain);

	for (size_t i = 0; i < count; i++) {
		const struct profile_parent *parent = profile_parents_at(parents, chain[i]);
		struct names names;
		struct profile_process_info info = {.pid = parent->process.pid, .inner_pid = parent->process.inner_pid};

		above = name_process(e, &parent->process, &info, &names)
				? profile_add_parent(e->to, above, &info, parent->ended)
				: PROFILE_NONE;
		free_names(&names);
		if (above == PROFILE_NONE)
			return -ENOMEM;
	}
	return count ? profile_set_parent(e->to, e->processes[index], above) : 0;
}

static uint32_t move_process(struct edit *e, uint32_t index)
{
	const struct profile_process *process = profile_process_at(e->from, index);
	struct profile_process_info info = {0};
	struct names names;

	if (e->processes[index] != PROFILE_NONE)
		return e->processes[index];
	if (!e->edit->merge_processes) {
		info.pid = process->pid;
		info.inner_pid = process->inner_pid;
	}
	if (name_process(e, process, &info, &names))
		e->processes[index] = profile_add_process(e->to, &info);
	free_names(&names);
	if (e->processes[index] != PROFILE_NONE && move_parents(e, index))
		e->processes[index] = PROFILE_NONE;
	return e->processes[index];
}

static uint32_t move_thread(struct edit *e, uint32_t index, uint32_t process)
{
	const struct profile_thread *thread = profile_thread_at(e->from, index);
	const char *name = profile_string(e->from, thread->name);
	char *hidden = NULL;

	if (e->threads[index] != PROFILE_NONE)
		return e->threads[index];
	if (e->edit->anonymize)
		name = hidden = edit_hidden(e->edit, 't', name);
	if (name)
		e->threads[index] = profile_add_thread(e->to, process, thread->tid, name);
	free(hidden);
	return e->threads[index];
}

/* Returns the stack in the copy: a note's where all of it was hidden or folded. PROFILE_NONE: no memory. */
static uint32_t moved_stack(struct edit *e, uint32_t stack)
{
	const char *hidden = e->edit->own_only ? "[libraries]" : "[hidden]";
	uint32_t note;

	if (is_folded(e, stack))
		note = profile_add_wait(e->to, profile_string(e->from, profile_state_of(e->from, stack)),
					PROFILE_IDLE_NAME, 0);
	else if (e->stacks[stack] != PROFILE_ROOT || stack == PROFILE_ROOT)
		return e->stacks[stack];
	else
		note = profile_add_frame(e->to, PROFILE_NOTE, hidden, "", PROFILE_NO_LINE, PROFILE_NO_LINE);
	return note == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(e->to, PROFILE_ROOT, note);
}

static int move_samples(struct edit *e, const bool *passes)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(e->from, &count);

	for (size_t i = 0; i < count; i++) {
		uint32_t process, thread = PROFILE_NONE, stack;

		if (!passes[i])
			continue;
		stack = moved_stack(e, samples[i].stack);
		process = move_process(e, samples[i].process);
		if (process != PROFILE_NONE && samples[i].thread != PROFILE_NONE) {
			thread = move_thread(e, samples[i].thread, process);
			if (thread == PROFILE_NONE)
				return -ENOMEM;
		}
		if (process == PROFILE_NONE || stack == PROFILE_NONE ||
		    profile_add_time(e->to, stack, process, thread, samples[i].value, samples[i].count))
			return -ENOMEM;
		e->samples[i] = profile_find_sample(e->to, stack, process, thread);
	}
	return 0;
}

/* Returns the start of the run in nanoseconds since 1970; 0: unknown. */
static uint64_t start_of(const struct profile *p)
{
	const char *fact = profile_find_fact(p, PROFILE_FACT_START);

	return fact ? strtoull(fact, NULL, 10) : 0;
}

static int move_events(struct edit *e, uint64_t to_start)
{
	uint64_t from_start = start_of(e->from), later = 0;
	size_t there, count;
	const struct profile_event *events = profile_events(e->from, &count);
	int err = 0;

	profile_events(e->to, &there);
	if (to_start && from_start && from_start > to_start)
		later = from_start - to_start;
	else if (to_start && from_start && there)
		err = profile_delay_events(e->to, to_start - from_start);
	for (size_t i = 0; i < count && !err; i++) {
		uint64_t time;

		if (e->samples[events[i].sample] == PROFILE_NONE)
			continue;
		if (__builtin_add_overflow(events[i].time_ns, later, &time) || time > INT64_MAX)
			return -EOVERFLOW;
		err = profile_add_event(e->to, time, e->samples[events[i].sample], events[i].value);
	}
	profile_sort_events(e->to);
	return err;
}

static int move_sources(struct edit *e)
{
	uint32_t texts = profile_string_count(e->from);
	bool *needed = calloc(texts, sizeof(*needed));
	size_t count;
	const struct profile_source *sources = profile_sources(e->from, &count);
	int err = needed ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < profile_frame_count(e->from) && !err; i++)
		needed[profile_frame_at(e->from, i)->file] |= e->frames[i] != PROFILE_NONE;
	for (size_t i = 0; i < count && !err; i++) {
		if (needed[sources[i].file])
			err = profile_set_source(e->to, profile_string(e->from, sources[i].file),
						 profile_string(e->from, sources[i].text));
		needed[sources[i].file] = false;
	}
	/* The text that another profile has for such a file need not be that of this one. */
	for (uint32_t i = 1; i < texts && !err; i++) {
		if (needed[i])
			err = profile_set_source(e->to, profile_string(e->from, i), "");
	}
	free(needed);
	return err;
}

/* Returns whether the profile is empty, so that it can take the measure and roots of another. */
static bool is_empty(const struct profile *p)
{
	size_t samples, account, facts;

	profile_samples(p, &samples);
	profile_account_entries(p, &account);
	profile_facts(p, &facts);
	return !samples && !account && !facts;
}

static int take_measure(struct edit *e, struct error *error)
{
	struct profile_measure to = profile_get_measure(e->to), from = profile_get_measure(e->from);

	if (is_empty(e->to)) {
		profile_set_roots(e->to, profile_wanted_roots(e->from));
		return profile_set_measure(e->to, &from);
	}
	profile_set_roots(e->to, profile_wanted_roots(e->to) | profile_wanted_roots(e->from));
	if (strcmp(to.name, from.name) != 0 || strcmp(to.unit, from.unit) != 0)
		return error_set(error, -EINVAL, "one has %s in %s, the other %s in %s", to.name, to.unit, from.name,
				 from.unit);
	if (to.period_ns != from.period_ns) {
		return error_set(
			error, -EINVAL,
			"one of the %s stands for %.3f ms of CPU time in one, for %.3f ms in the other; profiles of "
			"one rate can be added up",
			to.name, (double)to.period_ns / 1e6, (double)from.period_ns / 1e6);
	}
	return 0;
}

/* Checks that the sum of all values, times the period, stays in the range that the formats can write. */
static int check_sum(const struct edit *e)
{
	uint64_t period = profile_get_measure(e->from).period_ns ?: 1, sum = profile_total(e->to), time;

	if (__builtin_add_overflow(sum, profile_total(e->from), &sum) || __builtin_mul_overflow(sum, period, &time) ||
	    time > INT64_MAX)
		return -EOVERFLOW;
	return 0;
}

/* Adds the time by state of the samples that pass to the account, if their values are time of threads. */
static int add_states(struct edit *e, const bool *passes)
{
	const bool timed = strcmp(profile_get_measure(e->from).unit, PROFILE_UNIT_TIME) == 0;
	size_t count;
	const struct profile_sample *samples = profile_samples(e->from, &count);
	int err = 0;

	for (size_t i = 0; i < count && timed && !err; i++) {
		uint32_t state = profile_state_of(e->from, samples[i].stack);
		const char *name = state ? profile_string(e->from, state) : PROFILE_STATE_RUNNING;
		uint64_t ns;

		if (!passes[i] || strcmp(name, PROFILE_STATE_SUSPENDED) == 0)
			continue;
		if (__builtin_mul_overflow(samples[i].value, 1000, &ns))
			return -EOVERFLOW;
		err = profile_add_account(e->to, PROFILE_ACCOUNT_STATES, name, name, ns);
	}
	return err;
}

/* Adds the account and the facts of the run. left_out: the value of the samples that do not pass. */
static int describe(struct edit *e, const bool *passes, uint64_t left_out)
{
	int err = edit_add_account(e->to, e->from, left_out != 0);

	if (!err && left_out)
		err = add_states(e, passes)
			      ?: profile_add_account(e->to, PROFILE_ACCOUNT_LEFT_OUT, "filters",
						     "that the filters did not let pass", left_out);
	return err ?: edit_add_facts(e->to, e->from, e->edit);
}

static int move(struct edit *e)
{
	uint64_t left_out = 0, to_start = start_of(e->to);
	bool *passes;
	size_t count;
	int err = check_sum(e) ?: begin(e);

	if (err)
		return err;
	profile_samples(e->from, &count);
	passes = calloc(count ? count : 1, sizeof(*passes));
	if (!passes)
		return -ENOMEM;
	choose(e, passes, &left_out);
	err = move_stacks(e) ?: move_samples(e, passes) ?: move_events(e, to_start);
	if (!err && !e->edit->anonymize && !e->edit->no_sources)
		err = move_sources(e);
	if (!err && !e->edit->no_account)
		err = describe(e, passes, left_out);
	free(passes);
	return err;
}

int profile_edit_add(struct profile *to, const struct profile *from, const struct profile_edit *edit,
		     struct error *error)
{
	static const struct profile_edit all = {.under = NULL};
	struct edit e = {.to = to, .from = from, .edit = edit ?: &all};
	int err;

	error_clear(error);
	err = take_measure(&e, error) ?: edit_match_stacks(from, e.edit, &e.matches, error);
	err = err ?: move(&e);
	end(&e);
	if (err && !error->code)
		error_set(error, err, "%s",
			  err == -ENOMEM ? "out of memory" : "their numbers, or the time between them, are too large");
	return err;
}
