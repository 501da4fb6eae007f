// SPDX-License-Identifier: Apache-2.0
/* Merges the profiles of both sides into one tree of stacks, with the values of both sides. */
#include "compare/diff_internal.h"
#include "compare/moved.h"
#include "profile/children.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void diff_map_free(struct diff_map *map)
{
	free(map->frames);
	free(map->stacks);
	free(map->processes);
	free(map->samples);
	free(map->self);
}

static uint32_t *indexes(size_t count)
{
	return calloc(count + 1, sizeof(uint32_t));
}

/* Merges the profile's processes by name if they are among the roots, else all into one with the name `common`. */
static int merge_processes(struct diff_map *map, struct profile *merged, unsigned roots, const char *common)
{
	const struct profile *p = map->p;

	for (uint32_t i = 0; i < profile_process_count(p); i++) {
		const struct profile_process *process = profile_process_at(p, i);
		struct profile_process_info info = {.name = common};

		if (roots & PROFILE_ROOT_PROCESS)
			info.name = profile_string(p, process->name);
		if (roots & PROFILE_ROOT_CONTAINER && process->container)
			info.container = profile_string(p, process->container);
		map->processes[i] = profile_add_process(merged, &info);
		if (map->processes[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

/* Where the functions begin: of a run, and of all runs after. NULL: lines are not distinguished. */
struct beginnings {
	const struct diff_beginnings *own, *after;
};

/* Adds a frame of a run. Processes of several runs have different PIDs. */
static uint32_t add_frame(const struct diff_map *map, struct profile *merged, uint32_t frame,
			  const struct beginnings *beginnings)
{
	const struct profile_frame *f = profile_frame_at(map->p, frame);
	unsigned kind = profile_child_kind(map->p, frame);
	int32_t line = beginnings ? f->line : PROFILE_NO_LINE;

	if (kind < PROFILE_CHILD_KINDS)
		return profile_add_wait(merged, profile_string(map->p, f->state), profile_child_any(kind), f->waker);
	if (beginnings && map->side == DIFF_BEFORE)
		line = diff_moved_line(beginnings->own, beginnings->after, merged, map->p, frame);
	return profile_add_frame_of(merged, map->p, frame, line, PROFILE_NO_LINE);
}

static int merge_stacks(struct diff_map *map, struct profile *merged, const struct beginnings *beginnings)
{
	const struct profile *p = map->p;

	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		map->frames[i] = add_frame(map, merged, i, beginnings);
		if (map->frames[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	for (uint32_t i = PROFILE_ROOT + 1; i < profile_stack_count(p); i++) {
		const struct profile_stack *s = profile_stack_at(p, i);

		map->stacks[i] = profile_add_stack(merged, map->stacks[s->parent], map->frames[s->frame]);
		if (map->stacks[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

static int merge_samples(struct diff_map *map, struct diff *d)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(map->p, &count);

	for (size_t i = 0; i < count; i++) {
		uint32_t stack = map->stacks[samples[i].stack], process = map->processes[samples[i].process];

		map->samples[i] = PROFILE_NONE;
		if (stack == PROFILE_ROOT)
			continue;
		if (profile_add_time(d->merged, stack, process, PROFILE_NONE,
				     map->side == DIFF_AFTER ? samples[i].value : 0,
				     map->side == DIFF_AFTER ? samples[i].count : 0))
			return -ENOMEM;
		map->samples[i] = profile_find_sample(d->merged, stack, process, PROFILE_NONE);
		if (map->side == DIFF_BEFORE)
			d->before[map->samples[i]] += samples[i].value;
	}
	return 0;
}

static bool have_fact(const struct diff_map *maps, size_t count, const char *key, const char *value)
{
	for (size_t i = 0; i < count; i++) {
		const char *other = profile_find_fact(maps[i].p, key);

		if (!other || strcmp(other, value) != 0)
			return false;
	}
	return true;
}

/* Copies the facts that all runs have with the same value. */
static int merge_facts(const struct diff_map *maps, size_t nr_maps, struct profile *merged)
{
	size_t count;
	const struct profile_fact *facts = profile_facts(maps[0].p, &count);
	struct profile_measure measure = profile_get_measure(maps[0].p);
	uint64_t period_ns = measure.period_ns;

	for (size_t i = 0; i < count; i++) {
		const char *key = profile_string(maps[0].p, facts[i].key);
		const char *value = profile_string(maps[0].p, facts[i].value);

		if (have_fact(maps, nr_maps, key, value) && profile_set_fact(merged, key, value))
			return -ENOMEM;
	}
	for (size_t i = 0; i < nr_maps; i++) {
		if (profile_get_measure(maps[i].p).period_ns != period_ns)
			measure.period_ns = 0;
	}
	return profile_set_measure(merged, &measure);
}

/* Merges the stacks of a run by line. Returns 0 or -ENOMEM. */
static int merge_lines(struct diff_map *map, struct profile *merged, const struct diff_beginnings *after)
{
	struct diff_beginnings own;
	int err;

	diff_beginnings_init(&own);
	err = diff_beginnings_add(&own, merged, map->p);
	err = err ?: merge_stacks(map, merged, &(struct beginnings){&own, after});
	diff_beginnings_free(&own);
	return err;
}

int diff_merge(struct diff *d, struct diff_map *maps, size_t nr_maps)
{
	struct diff_beginnings after;
	const char *common = "";
	unsigned roots = 0;
	size_t room = 0;
	int err;

	d->merged = profile_new();
	if (!d->merged)
		return -ENOMEM;
	for (size_t i = 0; i < nr_maps; i++) {
		size_t count;

		profile_samples(maps[i].p, &count);
		room += count;
		if (profile_process_count(maps[i].p))
			common = profile_string(maps[i].p, profile_process_at(maps[i].p, 0)->name);
		roots |= profile_roots(maps[i].p) & ~(unsigned)PROFILE_ROOT_THREAD;
		maps[i].frames = indexes(profile_frame_count(maps[i].p));
		maps[i].stacks = indexes(profile_stack_count(maps[i].p));
		maps[i].processes = indexes(profile_process_count(maps[i].p));
		maps[i].samples = indexes(count);
		if (!maps[i].frames || !maps[i].stacks || !maps[i].processes || !maps[i].samples)
			return -ENOMEM;
	}
	d->before = calloc(room + 1, sizeof(*d->before));
	err = d->before ? merge_facts(maps, nr_maps, d->merged) : -ENOMEM;
	diff_beginnings_init(&after);
	for (size_t i = 0; i < nr_maps && d->options.by_line && !err; i++)
		err = maps[i].side == DIFF_AFTER ? diff_beginnings_add(&after, d->merged, maps[i].p) : 0;
	for (size_t i = 0; i < nr_maps && !err; i++) {
		err = merge_processes(&maps[i], d->merged, roots, common);
		if (!err)
			err = d->options.by_line ? merge_lines(&maps[i], d->merged, &after)
						 : merge_stacks(&maps[i], d->merged, NULL);
		err = err ?: merge_samples(&maps[i], d);
	}
	diff_beginnings_free(&after);
	profile_set_roots(d->merged, roots);
	return err;
}
