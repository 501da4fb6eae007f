// SPDX-License-Identifier: Apache-2.0
/* The next step that keeps a folder of epochs within its limits. */
#include "archive/retain.h"

static bool has_ended_before(const struct archive_epoch *epoch, uint64_t time_ms)
{
	return epoch->span.begin_ms + epoch->span.length_ms < time_ms;
}

/*
 * Finds the first epochs that follow each other, began in one hour and ended before a time. The hour of the newest
 * epoch is not over. Returns whether there are two or more.
 */
static bool find_hour(const struct archive_list *list, uint64_t merge_from, uint64_t before_ms,
		      struct archive_step *step)
{
	const struct archive_epoch *newest = &list->epochs[list->count - 1];

	for (size_t i = 0; i < list->count; i = step->last + 1) {
		const struct archive_epoch *first = &list->epochs[i];
		uint64_t size = first->size;

		*step = (struct archive_step){ARCHIVE_MERGE, i, i};
		for (size_t k = i + 1; k < list->count; k++) {
			const struct archive_epoch *next = &list->epochs[k];

			size += next->size;
			if (archive_hour_of(next) != archive_hour_of(first) || size > ARCHIVE_MERGE_BYTES ||
			    k - i == ARCHIVE_MERGE_FILES || first->is_stuck || next->is_stuck ||
			    next->span.first != list->epochs[k - 1].span.last + 1 || next->is_apart)
				break;
			step->last = k;
		}
		if (step->last > i && first->span.first >= merge_from &&
		    archive_hour_of(first) != archive_hour_of(newest) &&
		    has_ended_before(&list->epochs[step->last], before_ms))
			return true;
	}
	return false;
}

/* Returns the first epoch before the newest one that ended before a time and can be removed, or the newest one. */
static size_t find_old(const struct archive_list *list, uint64_t time_ms)
{
	size_t i = 0;

	while (i + 1 < list->count && (list->epochs[i].is_stuck || !has_ended_before(&list->epochs[i], time_ms)))
		i++;
	return i;
}

struct archive_step archive_retain(const struct archive_list *list, const struct archive_limits *limits,
				   uint64_t now_ms)
{
	const uint64_t kept_ms = limits->keep_ms < now_ms ? limits->keep_ms : now_ms;
	struct archive_step step = {ARCHIVE_NOTHING, 0, 0};
	uint64_t size = 0;
	size_t old;

	for (size_t i = 0; i < list->count; i++) {
		if (list->epochs[i].is_part && !list->epochs[i].is_stuck)
			return (struct archive_step){ARCHIVE_REMOVE, i, i};
		size += list->epochs[i].size;
	}
	if (list->count < 2)
		return step;
	old = find_old(list, now_ms - kept_ms);
	if (old < list->count - 1)
		return (struct archive_step){ARCHIVE_REMOVE, old, old};
	if (find_hour(list, limits->merge_from, now_ms - kept_ms / ARCHIVE_MERGE_SHARE, &step))
		return step;
	if (size <= limits->keep_size)
		return (struct archive_step){ARCHIVE_NOTHING, 0, 0};
	if (find_hour(list, limits->merge_from, UINT64_MAX, &step))
		return step;
	old = find_old(list, UINT64_MAX);
	return (struct archive_step){old < list->count - 1 ? ARCHIVE_REMOVE : ARCHIVE_NOTHING, old, old};
}
