// SPDX-License-Identifier: Apache-2.0
/* Keeps to the memory limit: first times of samples are no longer kept, then new stacks. */
#include <malloc.h>
#include <unistd.h>

#include "base/beyond.h"
#include "base/log.h"
#include "base/procfs.h"
#include "kernel/events.h"
#include "kernel/kernel.h"
#include "session/internal.h"

/* Interval between checks of the memory limit. */
#define MEMORY_LOOK_S 0.1
/* Likewise of the memory of maps, which takes some 10 us for each. */
#define MAPS_LOOK_S 2.0

/*
 * Times are kept by default in saved profiles, however long the run is, and must not be why stacks are lost: they take
 * at most one part in TIMES_SHARE of the memory limit, and none of the last part in TIMES_RESERVE.
 */
#define TIMES_SHARE   4
#define TIMES_RESERVE 16

/* Near the limit: less than one part in NEAR_SHARE of it is left. A run in epochs then forgets what it has met. */
#define NEAR_SHARE 5

/* Blocks of this size have pages of their own, which grow in place and go back when they are freed. */
#define OWN_PAGES_BYTES (1 << 20)

void session_let_blocks_grow_in_place(void)
{
	/* A fixed threshold: mallopt(3), M_MMAP_THRESHOLD. Else arrays are copied as they grow, and both copies count.
	 */
	mallopt(M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
}

static void stop_times(struct session *s)
{
	if (s->times_full)
		return;
	s->times_full = true;
	kernel_refuse_times(s->kernel, true);
	log_warn("the memory for times of samples is used up: further samples are counted without their time, see "
		 "--max-memory");
}

bool session_may_keep_time(struct session *s)
{
	size_t settled;

	profile_events(s->profile, &settled);
	if (settled + session_measures_count_times(s) < s->options.max_memory / TIMES_SHARE / SESSION_TIME_BYTES)
		return true;
	stop_times(s);
	return false;
}

void session_join_memory(struct session *s, struct session *other)
{
	struct session *next = s->beside;

	s->beside = other->beside;
	other->beside = next;
}

void session_leave_memory(struct session *s)
{
	struct session *before = s->beside;

	while (before->beside != s)
		before = before->beside;
	before->beside = s->beside;
	s->beside = s;
}

/*
 * Reads the resident memory of the process without the rings that it maps, which are maps, and the memory of the maps
 * of all its sessions, as each has last read them. Returns 0 or negative errno.
 */
static int read_memory(const struct session *s, uint64_t *own_bytes, uint64_t *map_bytes)
{
	const struct session *each = s;
	uint64_t kib, mapped = 0;
	int err = procfs_rss(getpid(), &kib);

	*map_bytes = 0;
	do {
		mapped += kernel_get_mapped_bytes(each->kernel);
		*map_bytes += each->map_bytes;
		each = each->beside;
	} while (each != s);
	*own_bytes = err ? 0 : beyond(kib * 1024, mapped);
	return err;
}

int session_get_memory(struct session *s, uint64_t *own_bytes, uint64_t *map_bytes)
{
	uint64_t all_bytes;

	s->map_bytes = kernel_get_map_bytes(s->kernel);
	*map_bytes = s->map_bytes;
	return read_memory(s, own_bytes, &all_bytes);
}

void session_keep_memory(struct session *s, double now)
{
	uint64_t used, maps;

	if (!session_takes_new_stacks(s) || now < s->next_memory_look)
		return;
	s->next_memory_look = now + MEMORY_LOOK_S;
	if (now >= s->next_maps_look) {
		s->next_maps_look = now + MAPS_LOOK_S;
		s->map_bytes = kernel_get_map_bytes(s->kernel);
	}
	if (read_memory(s, &used, &maps))
		return;
	used += maps;
	s->memory_near = used >= s->options.max_memory - s->options.max_memory / NEAR_SHARE;
	if (s->options.times && used >= s->options.max_memory - s->options.max_memory / TIMES_RESERVE)
		stop_times(s);
	if (used < s->options.max_memory)
		return;
	s->stacks_refused = true;
	kernel_refuse_new_stacks(s->kernel, true);
	log_warn("the memory limit of %llu MiB is reached: new stacks are not kept %s, see --max-memory",
		 (unsigned long long)(s->options.max_memory >> 20),
		 s->options.rolling ? "until others are forgotten" : "any more");
}

bool session_nears_memory_limit(const struct session *s)
{
	return s->memory_near;
}

bool session_takes_new_stacks(const struct session *s)
{
	return !s->stacks_refused;
}

void session_keep_new_stacks(struct session *s)
{
	/* Returns free memory to the kernel, as session_keep_memory() would see no difference otherwise. */
	malloc_trim(0);
	if (!session_takes_new_stacks(s))
		kernel_refuse_new_stacks(s->kernel, false);
	s->stacks_refused = false;
	s->memory_near = false;
}
