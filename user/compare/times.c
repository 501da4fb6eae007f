// SPDX-License-Identifier: Apache-2.0
/* Estimates design effects from the times of samples: how much more counts vary by bursts than independent draws. */
#include "compare/diff_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "compare/noise.h"

/* The self and total counts of functions and stacks, by slice of one run. */
struct slices {
	struct noise_series all;
	struct entry_series {
		struct noise_series self, total;
	} * functions, *stacks;
};

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

static void slice_end(const struct profile *p, struct slices *slices, const bool *outermost, unsigned number)
{
	noise_end_slice(&slices->all, &slices->all, number);
	for (uint32_t s = profile_stack_count(p) - 1; s > PROFILE_ROOT; s--) {
		const struct profile_stack *stack = profile_stack_at(p, s);
		struct entry_series *entry = &slices->stacks[s], *function = &slices->functions[stack->frame];

		entry->total.current += entry->self.current;
		slices->stacks[stack->parent].total.current += entry->total.current;
		function->self.current += entry->self.current;
		if (outermost[s])
			function->total.current += entry->total.current;
		noise_end_slice(&entry->self, &slices->all, number);
		noise_end_slice(&entry->total, &slices->all, number);
	}
	slices->stacks[PROFILE_ROOT].total.current = 0;
	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		noise_end_slice(&slices->functions[i].self, &slices->all, number);
		noise_end_slice(&slices->functions[i].total, &slices->all, number);
	}
}

static void widen(struct diff_change *change, const struct noise_series *series, const struct noise_series *all)
{
	float found = (float)noise_design_effect(series, all);

	if (found > change->design_effect)
		change->design_effect = found;
}

int diff_take_times(struct diff *d, const struct diff_map *map, const bool *outermost)
{
	const struct profile *p = d->merged;
	size_t count, nr_samples, starts[NOISE_SLICES + 1] = {0};
	const struct profile_event *events = profile_events(map->p, &count);
	const struct profile_sample *samples = profile_samples(p, &nr_samples);
	struct slices slices = {
		.functions = calloc(profile_frame_count(p) + 1, sizeof(*slices.functions)),
		.stacks = calloc(profile_stack_count(p), sizeof(*slices.stacks)),
	};
	const struct noise_series *all = d->options.basis == DIFF_SHARE ? &slices.all : NULL;
	uint32_t *order = sliced(events, count, starts);
	int err = -ENOMEM;

	if (!slices.functions || !slices.stacks || !order)
		goto done;
	for (unsigned slice = 0; slice < NOISE_SLICES; slice++) {
		for (size_t i = starts[slice]; i < starts[slice + 1]; i++) {
			const struct profile_event *event = &events[order[i]];
			uint32_t sample = map->samples[event->sample];

			if (sample == PROFILE_NONE)
				continue;
			slices.all.current += event->value;
			slices.stacks[samples[sample].stack].self.current += event->value;
		}
		slice_end(p, &slices, outermost, slice);
	}
	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		widen(&d->functions[i].self, &slices.functions[i].self, all);
		widen(&d->functions[i].total, &slices.functions[i].total, all);
	}
	for (uint32_t i = 0; i < profile_stack_count(p); i++) {
		widen(&d->stacks[i].self, &slices.stacks[i].self, all);
		widen(&d->stacks[i].total, &slices.stacks[i].total, all);
	}
	err = 0;
done:
	free(slices.functions);
	free(slices.stacks);
	free(order);
	return err;
}
