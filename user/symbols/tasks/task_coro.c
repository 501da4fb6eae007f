// SPDX-License-Identifier: Apache-2.0
/* Reads the functions of a suspended task: its coroutine, what that awaits, and so on. */
#include <errno.h>
#include <string.h>

#include "symbols/tasks/task_reader.h"

/* Objects between a task's coroutine and what it awaits in the end: a function is reached by one of its own at most. */
#define MAX_OBJECTS (2 * TASK_READ_FRAMES)

static void await_object(struct task_reader *r, struct task_read *out, enum task_read_awaits awaits, uint64_t object)
{
	const struct task_type *type;

	task_look_ahead(r, object);
	type = task_type_of(r, object);
	out->awaits = awaits;
	if (!type)
		return;
	memcpy(out->type, type->name, sizeof(out->type));
	if (awaits == TASK_AWAITS_OBJECT && type->kind == TASK_KIND_FUTURE)
		out->fd = task_find_socket(r, object);
	if (awaits == TASK_AWAITS_OBJECT && type->kind == TASK_KIND_TASK) {
		out->awaits = TASK_AWAITS_TASK;
		task_take_name(r, object, &out->awaited);
	}
}

/*
 * Keeps the function of a generator, and puts what it awaits into *object; 0: it is the last one. Returns 0, -EAGAIN
 * when that cannot be of a suspended task, -EINPROGRESS when the task runs, -ENOENT when it has ended.
 */
static int read_generator(struct task_reader *r, uint64_t *object, struct task_read *out)
{
	struct task_gen generator;
	int err = task_read_gen(r, *object, &generator);

	*object = 0;
	if (err || generator.state == TASK_GEN_ENDED)
		return err || out->nr_frames ? -EAGAIN : -ENOENT;
	if (generator.state == TASK_GEN_RUNS)
		return out->nr_frames ? -EAGAIN : -EINPROGRESS;
	/* An outer one has begun all others. */
	if (generator.state == TASK_GEN_CREATED && out->nr_frames)
		return -EAGAIN;
	if (out->nr_frames == TASK_READ_FRAMES) {
		out->awaits = TASK_AWAITS_MORE;
		return 0;
	}
	err = walk_frames_read(r->frames, generator.frame, &out->frames[out->nr_frames]);
	if (err)
		return -EAGAIN;
	r->inner[r->nr_inner++ % TASK_INNER] = generator.frame;
	out->nr_frames++;
	out->awaits = generator.state == TASK_GEN_CREATED ? TASK_AWAITS_FIRST_STEP : TASK_AWAITS_YIELD;
	if (generator.state != TASK_GEN_AWAITS)
		return 0;
	*object = generator.awaited;
	return *object ? 0 : -EAGAIN;
}

int task_read_coroutines(struct task_reader *r, uint64_t object, struct task_read *out)
{
	int err;

	r->nr_inner = 0;
	for (int i = 0; i < MAX_OBJECTS && object; i++) {
		enum task_kind kind = task_look_at(r, object);
		uint64_t first;

		out->objects = task_mix(out->objects, object);
		if (kind == TASK_KIND_GENERATOR) {
			err = read_generator(r, &object, out);
			if (err || !object)
				return err;
			continue;
		}
		first = kind == TASK_KIND_WRAPPER || kind == TASK_KIND_FUTURE_ITER
				? task_pointer_at(r, object + task_head_size(r))
				: 0;
		if (kind == TASK_KIND_WRAPPER && first) {
			object = first;
			continue;
		}
		out->objects = task_mix(out->objects, first);
		await_object(r, out, out->nr_frames ? TASK_AWAITS_OBJECT : TASK_AWAITS_INSIDE, first ?: object);
		return 0;
	}
	out->awaits = TASK_AWAITS_MORE;
	return object ? 0 : -ENOENT;
}
