// SPDX-License-Identifier: Apache-2.0
/* Which samples of a profile pass the filters. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "profile/attributes.h"
#include "profile/edit_internal.h"

/* The fewest characters of a container's ID that select it, as in record. */
#define ID_PREFIX_MIN 4

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

/* Returns whether a text matches one of the globs, or there are none. */
static bool matches_one(const struct profile_edit_texts *globs, const char *text)
{
	for (size_t i = 0; i < globs->count; i++) {
		if (fnmatch(globs->items[i], text, 0) == 0)
			return true;
	}
	return !globs->count;
}

static bool service_passes(const struct edit *e, const struct profile_process *process)
{
	char version[PROFILE_ATTRIBUTE_MAX];

	profile_attribute_find(profile_string(e->from, process->attributes), PROFILE_SERVICE_VERSION, version);
	return matches_one(&e->edit->services, profile_string(e->from, process->service)) &&
	       matches_one(&e->edit->versions, version);
}

static bool process_passes(const struct edit *e, uint32_t process)
{
	const struct profile_process *owner = profile_process_at(e->from, process);
	const char *container = profile_string(e->from, owner->container);
	bool fits = !e->edit->pids.count;

	if (!service_passes(e, owner) || (e->edit->processes && !e->edit->processes[process]))
		return false;
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

bool edit_is_other(const struct edit *e, size_t sample)
{
	return e->edit->others && e->edit->others[sample];
}

bool edit_is_folded(const struct edit *e, uint32_t stack)
{
	return e->idle && e->idle[stack];
}

bool edit_is_first(const struct edit *e, uint32_t stack)
{
	uint32_t parent = profile_stack_at(e->from, stack)->parent;

	return parent == PROFILE_ROOT || (e->edit->under && !e->matches[parent].under);
}

void edit_choose_samples(struct edit *e, bool *passes, uint64_t *left_out)
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
		if (edit_is_other(e, i))
			continue;
		while (stack != PROFILE_ROOT && !e->wanted[stack] && !edit_is_folded(e, samples[i].stack)) {
			e->wanted[stack] = true;
			stack = edit_is_first(e, stack) ? PROFILE_ROOT : profile_stack_at(e->from, stack)->parent;
		}
	}
}
