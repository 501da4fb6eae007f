// SPDX-License-Identifier: Apache-2.0
#include "profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Each kind of thing lies in an array and is found through an open-addressing table of indexes, so that a profile
 * costs a few bytes beside its content. A table is at most half full.
 */
struct table {
	uint32_t *slots; /* index + 1; 0: empty */
	uint32_t mask;
};

struct array {
	void *items;
	uint32_t count, capacity;
	struct table table;
};

struct profile {
	struct array strings; /* char * */
	struct array frames, stacks, processes, threads, samples;
};

static uint64_t hash_bytes(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t hash = 0xcbf29ce484222325ULL; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		/* Keys have no padding. NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
		hash = (hash ^ p[i]) * 0x100000001b3ULL;
	return hash ^ (hash >> 32);
}

static int array_reserve(struct array *a, size_t item_size)
{
	uint32_t capacity;
	void *items;

	if (a->count < a->capacity)
		return 0;
	capacity = a->capacity ? a->capacity * 2 : 64;
	if (capacity > UINT32_MAX / 4)
		return -ENOMEM;
	items = reallocarray(a->items, capacity, item_size);
	if (!items)
		return -ENOMEM;
	a->items = items;
	a->capacity = capacity;
	return 0;
}

/* How much of an item makes its identity, and where strings hide behind a pointer. */
static uint64_t item_hash(const void *item, size_t key_size)
{
	if (!key_size) {
		const char *text = *(char *const *)item;

		return hash_bytes(text, strlen(text));
	}
	return hash_bytes(item, key_size);
}

static int item_equal(const void *a, const void *b, size_t key_size)
{
	if (!key_size)
		return strcmp(*(char *const *)a, *(char *const *)b) == 0;
	return memcmp(a, b, key_size) == 0;
}

static int table_grow(struct array *a, size_t item_size, size_t key_size)
{
	uint32_t size = a->table.slots ? (a->table.mask + 1) * 2 : 128;
	uint32_t *slots;

	if (a->table.slots && (uint64_t)(a->count + 1) * 2 <= a->table.mask)
		return 0;
	slots = calloc(size, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->count; i++) {
		uint32_t at = (uint32_t)item_hash((char *)a->items + i * item_size, key_size) & (size - 1);

		while (slots[at])
			at = (at + 1) & (size - 1);
		slots[at] = i + 1;
	}
	free(a->table.slots);
	a->table.slots = slots;
	a->table.mask = size - 1;
	return 0;
}

/*
 * Finds or appends the item whose identity is its first key_size bytes (0: a char * and the text behind it, which the
 * array then owns). Sets *fresh when it was appended.
 */
static uint32_t array_intern(struct array *a, const void *item, size_t item_size, size_t key_size, int *fresh)
{
	uint32_t at;

	*fresh = 0;
	if (table_grow(a, item_size, key_size) || array_reserve(a, item_size))
		return PROFILE_NONE;
	at = (uint32_t)item_hash(item, key_size) & a->table.mask;
	for (; a->table.slots[at]; at = (at + 1) & a->table.mask) {
		uint32_t i = a->table.slots[at] - 1;

		if (item_equal((char *)a->items + i * item_size, item, key_size))
			return i;
	}
	memcpy((char *)a->items + a->count * item_size, item, item_size);
	a->table.slots[at] = ++a->count;
	*fresh = 1;
	return a->count - 1;
}

static void array_free(struct array *a)
{
	free(a->items);
	free(a->table.slots);
}

struct profile *profile_new(void)
{
	struct profile *p = calloc(1, sizeof(*p));
	struct profile_stack root = {PROFILE_NONE, PROFILE_NONE};
	int fresh;

	if (!p)
		return NULL;
	if (profile_add_string(p, "") != 0 ||
	    array_intern(&p->stacks, &root, sizeof(root), sizeof(root), &fresh) != PROFILE_ROOT) {
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
		free(((char **)p->strings.items)[i]);
	array_free(&p->strings);
	array_free(&p->frames);
	array_free(&p->stacks);
	array_free(&p->processes);
	array_free(&p->threads);
	array_free(&p->samples);
	free(p);
}

uint32_t profile_add_string(struct profile *p, const char *text)
{
	char *item = strdup(text);
	int fresh;
	uint32_t i;

	if (!item)
		return PROFILE_NONE;
	i = array_intern(&p->strings, &item, sizeof(item), 0, &fresh);
	if (!fresh)
		free(item);
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
	int fresh;

	if (frame.name == PROFILE_NONE || frame.file == PROFILE_NONE)
		return PROFILE_NONE;
	return array_intern(&p->frames, &frame, sizeof(frame), sizeof(frame), &fresh);
}

uint32_t profile_add_stack(struct profile *p, uint32_t parent, uint32_t frame)
{
	struct profile_stack stack = {parent, frame};
	int fresh;

	return array_intern(&p->stacks, &stack, sizeof(stack), sizeof(stack), &fresh);
}

uint32_t profile_add_process(struct profile *p, int32_t pid, const char *name)
{
	struct profile_process process = {.pid = pid, .name = profile_add_string(p, name)};
	int fresh;

	if (process.name == PROFILE_NONE)
		return PROFILE_NONE;
	return array_intern(&p->processes, &process, sizeof(process), sizeof(process), &fresh);
}

uint32_t profile_add_thread(struct profile *p, uint32_t process, int32_t tid, const char *name)
{
	struct profile_thread thread = {.process = process, .tid = tid, .name = profile_add_string(p, name)};
	int fresh;

	if (thread.name == PROFILE_NONE)
		return PROFILE_NONE;
	return array_intern(&p->threads, &thread, sizeof(thread), sizeof(thread), &fresh);
}

int profile_add_sample(struct profile *p, uint32_t stack, uint32_t process, uint32_t thread, uint64_t value)
{
	struct profile_sample sample = {.stack = stack, .process = process, .thread = thread};
	int fresh;
	uint32_t i =
		array_intern(&p->samples, &sample, sizeof(sample), offsetof(struct profile_sample, thread) + 4, &fresh);

	if (i == PROFILE_NONE)
		return -ENOMEM;
	((struct profile_sample *)p->samples.items)[i].value += value;
	return 0;
}

const char *profile_string(const struct profile *p, uint32_t index)
{
	return ((char **)p->strings.items)[index];
}

const struct profile_frame *profile_frame(const struct profile *p, uint32_t index)
{
	return &((const struct profile_frame *)p->frames.items)[index];
}

const struct profile_stack *profile_stack(const struct profile *p, uint32_t index)
{
	return &((const struct profile_stack *)p->stacks.items)[index];
}

const struct profile_process *profile_process(const struct profile *p, uint32_t index)
{
	return &((const struct profile_process *)p->processes.items)[index];
}

const struct profile_thread *profile_thread(const struct profile *p, uint32_t index)
{
	return &((const struct profile_thread *)p->threads.items)[index];
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
