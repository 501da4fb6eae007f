// SPDX-License-Identifier: Apache-2.0
/* Estimates design effects of bursts from the times of samples: how much more counts vary than independent draws. */
#include "compare/diff_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "compare/noise.h"

/* Sorts the indices of events into slices of equal time: those of slice i are from starts[i] to starts[i + 1] - 1. */
static uint32_t *sliced(const struct profile_event *events, size_t count, size_t starts[NOISE_SLICES + 1])
{
	uint64_t first = UINT64_MAX, last = 0;
	size_t at[NOISE_SLICES + 1] = {0};
	uint32_t *order = calloc(count + 1, sizeof(*order));
	double width;

	if (!order)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		first = events[i].time_ns < first ? events[i].time_ns : first;
		last = events[i].time_ns > last ? events[i].time_ns : last;
	}
	width = ((double)(last - first) + 1) / NOISE_SLICES;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < count; i++) {
			size_t slice = (size_t)((double)(events[i].time_ns - first) / width);

			if (slice >= NOISE_SLICES)
				slice = NOISE_SLICES - 1;
			if (pass == 0)
				at[slice + 1]++;
			else
				order[at[slice]++] = (uint32_t)i;
		}
		for (size_t i = 0; i < NOISE_SLICES && pass == 0; i++) {
			at[i + 1] += at[i];
			starts[i] = at[i];
		}
	}
	starts[NOISE_SLICES] = count;
	return order;
}

/* Fills the series of all samples and of each function's own samples, by slice of one run. */
static void fill_series(const struct diff *d, const struct diff_map *map, const uint32_t *order, const size_t *starts,
			struct noise_series *all, struct noise_series *functions)
{
	const struct profile *p = d->merged;
	size_t count;
	const struct profile_event *events = profile_events(map->p, &count);
	const struct profile_sample *samples = profile_samples(p, &count);

	for (unsigned slice = 0; slice < NOISE_SLICES; slice++) {
		for (size_t i = starts[slice]; i < starts[slice + 1]; i++) {
			const struct profile_event *event = &events[order[i]];
			uint32_t sample = map->samples[event->sample];

			if (sample == PROFILE_NONE)
				continue;
			all->current += event->value;
			functions[profile_stack_at(p, samples[sample].stack)->frame].current += event->value;
		}
		noise_end_slice(all, all, slice);
		for (uint32_t i = 0; i < profile_frame_count(p); i++)
			noise_end_slice(&functions[i], all, slice);
	}
}

/* Adds the run's design effects, times its samples, to the functions'. */
static int add_bursts(struct diff *d, const struct diff_map *map)
{
	uint32_t frames = profile_frame_count(d->merged);
	size_t count, starts[NOISE_SLICES + 1] = {0};
	const struct profile_event *events = profile_events(map->p, &count);
	struct noise_series all = {0}, *functions = calloc(frames + 1, sizeof(*functions));
	uint32_t *order = sliced(events, count, starts);
	int err = functions && order ? 0 : -ENOMEM;

	if (!err && count)
		fill_series(d, map, order, starts, &all, functions);
	for (uint32_t i = 0; i < frames && !err; i++)
		d->functions[i].bursts += map->self[i] * (count ? noise_find_bursts(&functions[i], &all) : 1);
	free(functions);
	free(order);
	return err;
}

int diff_estimate_bursts(struct diff *d, const struct diff_map *maps, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = add_bursts(d, &maps[i]);
	for (uint32_t i = 0; i < profile_frame_count(d->merged) && !err; i++) {
		struct diff_function *f = &d->functions[i];
		double samples = (double)f->self[DIFF_BEFORE] + (double)f->self[DIFF_AFTER];

		f->bursts = samples > 0 ? f->bursts / samples : 1;
	}
	return err;
}
