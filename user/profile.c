// SPDX-License-Identifier: Apache-2.0
#include "profile.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"

_Static_assert(PROFILE_NONE == INTERN_NONE, "indexes are handed on as they are");

struct profile {
	struct intern strings; /* char * */
	struct intern frames, stacks, processes, threads, samples;
	size_t string_bytes;
	unsigned roots; /* of enum profile_root, or ROOTS_BY_COUNT */
};

#define ROOTS_BY_COUNT UINT_MAX

struct profile *profile_new(void)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->roots = ROOTS_BY_COUNT;
	intern_init(&p->strings, sizeof(char *), 0);
	intern_init(&p->frames, sizeof(struct profile_frame), sizeof(struct profile_frame));
	intern_init(&p->stacks, sizeof(struct profile_stack), sizeof(struct profile_stack));
	intern_init(&p->processes, sizeof(struct profile_process), sizeof(struct profile_process));
	intern_init(&p->threads, sizeof(struct profile_thread), sizeof(struct profile_thread));
	intern_init(&p->samples, sizeof(struct profile_sample), offsetof(struct profile_sample, thread) + 4);
	if (profile_add_string(p, "") != 0 || profile_add_stack(p, PROFILE_NONE, PROFILE_NONE) != PROFILE_ROOT) {
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
	intern_free(&p->threads);
	intern_free(&p->samples);
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
	else
		p->string_bytes += intern_heap(strlen(copy) + 1);
	return i;
}

uint32_t profile_add_frame(struct profile *p, enum profile_frame_kind kind, const char *name, const char *file,
			   int32_t line)
{
	struct profile_frame frame = {
		.name = profile_add_string(p, name),
		.file = profile_add_string(p, file),
		.line = line,
		.kind = kind,
	};
	bool fresh;

	if (frame.name == PROFILE_NONE || frame.file == PROFILE_NONE)
		return PROFILE_NONE;
	return intern_add(&p->frames, &frame, &fresh);
}

uint32_t profile_add_stack(struct profile *p, uint32_t parent, uint32_t frame)
{
	struct profile_stack stack = {parent, frame};
	bool fresh;

	return intern_add(&p->stacks, &stack, &fresh);
}

uint32_t profile_add_process(struct profile *p, const struct profile_process_info *info)
{
	struct profile_process process = {
		.pid = info->pid,
		.inner_pid = info->inner_pid == info->pid ? 0 : info->inner_pid,
		.name = profile_add_string(p, info->name),
		.container = profile_add_string(p, info->container ? info->container : ""),
	};
	bool fresh;

	if (process.name == PROFILE_NONE || process.container == PROFILE_NONE)
		return PROFILE_NONE;
	return intern_add(&p->processes, &process, &fresh);
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
	struct profile_sample sample = {.stack = stack, .process = process, .thread = thread};
	bool fresh;
	uint32_t i = intern_add(&p->samples, &sample, &fresh);

	if (i == PROFILE_NONE)
		return -ENOMEM;
	((struct profile_sample *)intern_item(&p->samples, i))->value += value;
	return 0;
}

const char *profile_string(const struct profile *p, uint32_t index)
{
	return *(char *const *)intern_item(&p->strings, index);
}

const struct profile_frame *profile_frame(const struct profile *p, uint32_t index)
{
	return intern_item(&p->frames, index);
}

const struct profile_stack *profile_stack(const struct profile *p, uint32_t index)
{
	return intern_item(&p->stacks, index);
}

const struct profile_process *profile_process(const struct profile *p, uint32_t index)
{
	return intern_item(&p->processes, index);
}

const struct profile_thread *profile_thread(const struct profile *p, uint32_t index)
{
	return intern_item(&p->threads, index);
}

const struct profile_sample *profile_samples(const struct profile *p, size_t *count)
{
	*count = p->samples.count;
	return p->samples.items;
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

unsigned profile_roots(const struct profile *p)
{
	if (p->roots != ROOTS_BY_COUNT)
		return p->roots;
	return p->processes.count > 1 ? PROFILE_ROOT_PROCESS : 0;
}

size_t profile_bytes(const struct profile *p)
{
	return intern_heap(sizeof(*p)) + p->string_bytes + intern_bytes(&p->strings) + intern_bytes(&p->frames) +
	       intern_bytes(&p->stacks) + intern_bytes(&p->processes) + intern_bytes(&p->threads) +
	       intern_bytes(&p->samples);
}
