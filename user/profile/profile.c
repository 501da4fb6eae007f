// SPDX-License-Identifier: Apache-2.0
/* The aggregated profile in memory: adding to it, and reading it. */
#include "profile/profile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/intern.h"
#include "profile/mappings.h"
#include "profile/parents.h"

_Static_assert(PROFILE_NONE == INTERN_NONE, "indexes are handed on as they are");

struct profile {
	struct intern strings; /* char * */
	struct intern frames, stacks, processes, threads, samples;
	struct intern mappings, account, facts, sources, origins;
	struct profile_parents parents;
	struct profile_event *events;
	size_t nr_events, events_room;
	uint32_t measure_name, measure_unit;
	uint64_t period_ns;
	unsigned roots; /* bits of enum profile_root */
};

struct file_origin {
	uint32_t file; /* string */
	enum profile_origin origin;
};

static const struct profile_measure samples_count = {.name = "samples", .unit = "count"};

struct profile *profile_new(void)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->roots = PROFILE_ROOT_BY_COUNT;
	intern_init(&p->strings, sizeof(char *), INTERN_TEXT);
	intern_init(&p->frames, sizeof(struct profile_frame), sizeof(struct profile_frame));
	intern_init(&p->stacks, sizeof(struct profile_stack), sizeof(struct profile_stack));
	intern_init(&p->processes, sizeof(struct profile_process), sizeof(struct profile_process));
	profile_parents_init(&p->parents);
	intern_init(&p->mappings, sizeof(struct profile_mapping), offsetof(struct profile_mapping, path));
	intern_init(&p->threads, sizeof(struct profile_thread), sizeof(struct profile_thread));
	intern_init(&p->samples, sizeof(struct profile_sample), offsetof(struct profile_sample, thread) + 4);
	intern_init(&p->account, sizeof(struct profile_account), offsetof(struct profile_account, text));
	intern_init(&p->facts, sizeof(struct profile_fact), sizeof(uint32_t));
	intern_init(&p->sources, sizeof(struct profile_source), sizeof(uint32_t));
	intern_init(&p->origins, sizeof(struct file_origin), sizeof(uint32_t));
	if (profile_add_string(p, "") != 0 || profile_set_measure(p, &samples_count) ||
	    profile_add_stack(p, PROFILE_NONE, PROFILE_NONE) != PROFILE_ROOT) {
		profile_free(p);
		return NULL;
	}
	return p;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->strings.count; i++)
		free(*(char **)intern_item(&p->strings, i));
	intern_free(&p->strings);
	intern_free(&p->frames);
	intern_free(&p->stacks);
	intern_free(&p->processes);
	profile_parents_free(&p->parents);
	intern_free(&p->mappings);
	intern_free(&p->threads);
	intern_free(&p->samples);
	intern_free(&p->account);
	intern_free(&p->facts);
	intern_free(&p->sources);
	intern_free(&p->origins);
	free(p->events);
	free(p);
}

uint32_t profile_add_string(struct profile *p, const char *text)
{
	uint32_t i = intern_find(&p->strings, &text);
	bool fresh;
	char *copy;

	if (i != INTERN_NONE)
		return i;
	copy = strdup(text);
	if (!copy)
		return PROFILE_NONE;
	i = intern_add(&p->strings, &copy, &fresh);
	if (i == INTERN_NONE)
		free(copy);
	return i;
}

static uint32_t add_frame(struct profile *p, const struct profile_frame *frame)
{
	bool fresh;

	if (frame->name == PROFILE_NONE || frame->file == PROFILE_NONE || frame->state == PROFILE_NONE)
		return PROFILE_NONE;
	return intern_add(&p->frames, frame, &fresh);
}

uint32_t profile_add_frame(struct profile *p, enum profile_frame_kind kind, const char *name, const char *file,
			   int32_t line, int32_t first_line)
{
	return add_frame(p, &(struct profile_frame){
				    .name = profile_add_string(p, name),
				    .file = profile_add_string(p, file),
				    .line = line,
				    .first_line = first_line,
				    .kind = kind,
			    });
}

uint32_t profile_add_python(struct profile *p, const char *name, const char *file, const struct profile_place *place)
{
	return add_frame(p, &(struct profile_frame){
				    .name = profile_add_string(p, name),
				    .file = profile_add_string(p, file),
				    .line = place->line,
				    .first_line = place->first_line,
				    .end_line = place->end_line,
				    .column = place->column,
				    .end_column = place->end_column,
				    .kind = PROFILE_PYTHON,
			    });
}

uint32_t profile_add_code(struct profile *p, const char *name, const char *file, const struct profile_code *code)
{
	return add_frame(p, &(struct profile_frame){
				    .name = profile_add_string(p, name),
				    .file = profile_add_string(p, file),
				    .line = code->line,
				    .first_line = PROFILE_NO_LINE,
				    .kind = PROFILE_NATIVE,
				    .mapping = code->mapping + 1, /* PROFILE_NONE + 1 is 0 */
				    .marks = code->marks,
				    .address = code->address,
			    });
}

struct profile_place profile_place_of(const struct profile_frame *frame)
{
	return (struct profile_place){
		.line = frame->line,
		.first_line = frame->first_line,
		.end_line = frame->end_line,
		.column = frame->column,
		.end_column = frame->end_column,
	};
}

uint32_t profile_add_wait(struct profile *p, const char *state, const char *name, int32_t waker)
{
	return add_frame(p, &(struct profile_frame){
				    .name = profile_add_string(p, name),
				    .line = PROFILE_NO_LINE,
				    .first_line = PROFILE_NO_LINE,
				    .kind = PROFILE_NOTE,
				    .state = profile_add_string(p, state),
				    .waker = waker,
			    });
}

uint32_t profile_add_stack(struct profile *p, uint32_t parent, uint32_t frame)
{
	struct profile_stack stack = {parent, frame};
	bool fresh;

	return intern_add(&p->stacks, &stack, &fresh);
}

/* Returns whether there was memory for its texts. */
static bool make_process(struct profile *p, const struct profile_process_info *info, struct profile_process *process)
{
	*process = (struct profile_process){
		.pid = info->pid,
		.inner_pid = info->inner_pid == info->pid ? 0 : info->inner_pid,
		.name = profile_add_string(p, info->name),
		.container = profile_add_string(p, info->container ?: ""),
		.service = profile_add_string(p, info->service ?: ""),
		.attributes = profile_add_string(p, info->attributes ?: ""),
	};
	return process->name != PROFILE_NONE && process->container != PROFILE_NONE &&
	       process->service != PROFILE_NONE && process->attributes != PROFILE_NONE;
}

uint32_t profile_add_process(struct profile *p, const struct profile_process_info *info)
{
	struct profile_process process;
	bool fresh;

	return make_process(p, info, &process) ? intern_add(&p->processes, &process, &fresh) : PROFILE_NONE;
}

uint32_t profile_add_parent(struct profile *p, uint32_t above, const struct profile_process_info *info, bool ended)
{
	struct profile_parent parent = {.above = above, .ended = ended};

	return make_process(p, info, &parent.process) ? profile_parents_add(&p->parents, &parent) : PROFILE_NONE;
}

int profile_set_parent(struct profile *p, uint32_t process, uint32_t parent)
{
	return profile_parents_set(&p->parents, process, parent);
}

uint32_t profile_find_process(const struct profile *p, const struct profile_process *process)
{
	return intern_find(&p->processes, process);
}

struct intern *profile_mappings_of(struct profile *p)
{
	return &p->mappings;
}

const struct intern *profile_get_mappings(const struct profile *p)
{
	return &p->mappings;
}

const struct profile_parents *profile_get_parents(const struct profile *p)
{
	return &p->parents;
}

uint32_t profile_add_thread(struct profile *p, uint32_t process, int32_t tid, const char *name)
{
	struct profile_thread thread = {.process = process, .tid = tid, .name = profile_add_string(p, name)};
	bool fresh;

	if (thread.name == PROFILE_NONE)
		return PROFILE_NONE;
	return intern_add(&p->threads, &thread, &fresh);
}

int profile_add_sample(struct profile *p, uint32_t stack, uint32_t process, uint32_t thread, uint64_t value)
{
	return profile_add_time(p, stack, process, thread, value, 0);
}

int profile_add_time(struct profile *p, uint32_t stack, uint32_t process, uint32_t thread, uint64_t value,
		     uint64_t count)
{
	struct profile_sample *at;
	struct profile_sample sample = {.stack = stack, .process = process, .thread = thread};
	bool fresh;
	uint32_t i = intern_add(&p->samples, &sample, &fresh);

	if (i == PROFILE_NONE)
		return -ENOMEM;
	at = intern_item(&p->samples, i);
	at->value += value;
	at->count += count;
	return 0;
}

uint32_t profile_find_sample(const struct profile *p, uint32_t stack, uint32_t process, uint32_t thread)
{
	const struct profile_sample sample = {.stack = stack, .process = process, .thread = thread};

	return intern_find(&p->samples, &sample);
}

void profile_clear_samples(struct profile *p)
{
	intern_free(&p->samples);
	p->nr_events = 0;
}

int profile_add_event(struct profile *p, uint64_t time_ns, uint32_t sample, uint32_t value)
{
	if (array_reserve(&p->events, &p->events_room, p->nr_events + 1, sizeof(*p->events)))
		return -ENOMEM;
	p->events[p->nr_events++] = (struct profile_event){.time_ns = time_ns, .sample = sample, .value = value};
	return 0;
}

int profile_set_measure(struct profile *p, const struct profile_measure *measure)
{
	p->measure_name = profile_add_string(p, measure->name);
	p->measure_unit = profile_add_string(p, measure->unit);
	p->period_ns = measure->period_ns;
	return p->measure_name == PROFILE_NONE || p->measure_unit == PROFILE_NONE ? -ENOMEM : 0;
}

int profile_add_account(struct profile *p, const char *group, const char *key, const char *text, uint64_t value)
{
	struct profile_account entry = {
		.group = profile_add_string(p, group),
		.key = profile_add_string(p, key),
		.text = profile_add_string(p, text),
	};
	bool fresh;
	uint32_t i;

	if (entry.group == PROFILE_NONE || entry.key == PROFILE_NONE || entry.text == PROFILE_NONE)
		return -ENOMEM;
	i = intern_add(&p->account, &entry, &fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	((struct profile_account *)intern_item(&p->account, i))->value += value;
	return 0;
}

int profile_set_fact(struct profile *p, const char *key, const char *value)
{
	struct profile_fact fact = {.key = profile_add_string(p, key), .value = profile_add_string(p, value)};
	bool fresh;
	uint32_t i;

	if (fact.key == PROFILE_NONE || fact.value == PROFILE_NONE)
		return -ENOMEM;
	i = intern_add(&p->facts, &fact, &fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	((struct profile_fact *)intern_item(&p->facts, i))->value = fact.value;
	return 0;
}

int profile_set_source(struct profile *p, const char *file, const char *text)
{
	struct profile_source source = {.file = profile_add_string(p, file), .text = profile_add_string(p, text)};
	struct profile_source *known;
	uint32_t i, none;
	bool fresh;

	if (source.file == PROFILE_NONE || source.text == PROFILE_NONE)
		return -ENOMEM;
	i = intern_add(&p->sources, &source, &fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	known = intern_item(&p->sources, i);
	if (known->text == source.text)
		return 0;
	none = profile_add_string(p, "");
	known->text = none;
	return none == PROFILE_NONE ? -ENOMEM : 0;
}

int profile_set_origin(struct profile *p, const char *file, enum profile_origin origin)
{
	const struct file_origin entry = {.file = profile_add_string(p, file), .origin = origin};
	struct file_origin *known;
	uint32_t i = INTERN_NONE;
	bool fresh;

	if (entry.file != PROFILE_NONE)
		i = intern_add(&p->origins, &entry, &fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	known = intern_item(&p->origins, i);
	if (origin < known->origin)
		known->origin = origin;
	return 0;
}

enum profile_origin profile_origin_of(const struct profile *p, uint32_t file)
{
	uint32_t i = intern_find(&p->origins, &file);

	return i == INTERN_NONE ? PROFILE_OWN : ((const struct file_origin *)intern_item(&p->origins, i))->origin;
}

const char *profile_string(const struct profile *p, uint32_t index)
{
	return *(char *const *)intern_item(&p->strings, index);
}

const struct profile_frame *profile_frame_at(const struct profile *p, uint32_t index)
{
	return intern_item(&p->frames, index);
}

const struct profile_stack *profile_stack_at(const struct profile *p, uint32_t index)
{
	return intern_item(&p->stacks, index);
}

const struct profile_process *profile_process_at(const struct profile *p, uint32_t index)
{
	return intern_item(&p->processes, index);
}

const struct profile_thread *profile_thread_at(const struct profile *p, uint32_t index)
{
	return intern_item(&p->threads, index);
}

const struct profile_sample *profile_samples(const struct profile *p, size_t *count)
{
	*count = p->samples.count;
	return p->samples.items;
}

const struct profile_event *profile_events(const struct profile *p, size_t *count)
{
	*count = p->nr_events;
	return p->events;
}

static int by_time(const void *a, const void *b)
{
	const struct profile_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->sample < y->sample ? -1 : x->sample > y->sample;
}

void profile_sort_events(struct profile *p)
{
	if (p->nr_events)
		qsort(p->events, p->nr_events, sizeof(*p->events), by_time);
}

int profile_delay_events(struct profile *p, uint64_t ns)
{
	for (size_t i = 0; i < p->nr_events; i++) {
		if (p->events[i].time_ns > INT64_MAX || ns > INT64_MAX - p->events[i].time_ns)
			return -EOVERFLOW;
	}
	for (size_t i = 0; i < p->nr_events; i++)
		p->events[i].time_ns += ns;
	return 0;
}

const struct profile_account *profile_account_entries(const struct profile *p, size_t *count)
{
	*count = p->account.count;
	return p->account.items;
}

const struct profile_source *profile_sources(const struct profile *p, size_t *count)
{
	*count = p->sources.count;
	return p->sources.items;
}

const struct profile_fact *profile_facts(const struct profile *p, size_t *count)
{
	*count = p->facts.count;
	return p->facts.items;
}

struct profile_measure profile_get_measure(const struct profile *p)
{
	return (struct profile_measure){
		.name = profile_string(p, p->measure_name),
		.unit = profile_string(p, p->measure_unit),
		.period_ns = p->period_ns,
	};
}

uint32_t profile_string_count(const struct profile *p)
{
	return p->strings.count;
}

uint32_t profile_stack_count(const struct profile *p)
{
	return p->stacks.count;
}

uint32_t profile_thread_count(const struct profile *p)
{
	return p->threads.count;
}

uint32_t profile_frame_count(const struct profile *p)
{
	return p->frames.count;
}

uint32_t profile_process_count(const struct profile *p)
{
	return p->processes.count;
}

void profile_set_roots(struct profile *p, unsigned roots)
{
	p->roots = roots;
}

unsigned profile_wanted_roots(const struct profile *p)
{
	return p->roots;
}

unsigned profile_roots(const struct profile *p)
{
	unsigned roots = p->roots & ~(unsigned)PROFILE_ROOT_BY_COUNT;

	return p->roots & PROFILE_ROOT_BY_COUNT && p->processes.count > 1 ? roots | PROFILE_ROOT_PROCESS : roots;
}
