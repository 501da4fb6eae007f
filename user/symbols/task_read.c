// SPDX-License-Identifier: Apache-2.0
/*
 * Reads asyncio's tasks. A task counts as read when nothing of it changed meanwhile: either its thread shows that it
 * began no step of a task, or two readings of the task are equal.
 */
#include "symbols/task_read.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/intern.h"
#include "symbols/string.h"

/* Readings of a task, or of a list, until it is given up as moving. */
#define ATTEMPTS 4
/* Interpreters of a runtime, and thread states of all of them, that are visited. */
#define MAX_INTERPRETERS 1024
#define MAX_THREADS      PYBPF_MAX_THREADS
/* Objects between a task's coroutine and what it awaits in the end: a function is reached by one of its own at most. */
#define MAX_OBJECTS (2 * TASK_READ_FRAMES)
/* Bytes that are read of an object at once, as a read costs the same for 8 bytes: most have no more. */
#define AHEAD 320
/* Types that are remembered within a snapshot. */
#define MAX_TYPES 4096

/* Values of gi_frame_state (enum _framestate in pycore_frame.h), which 3.15 has numbered anew. */
enum {
	CREATED_314 = -3,
	SUSPENDED_314 = -2,
	YIELD_FROM_314 = -1,
	EXECUTING_314 = 0,
	CREATED_315 = 0,
	SUSPENDED_315 = 1,
	YIELD_FROM_315 = 2,
	YIELD_FROM_LOCKED_315 = 3, /* free-threaded: another thread looks at what it awaits */
	EXECUTING_315 = 4,
};
#define MINOR_NEW_STATES 15

enum gen_state {
	GEN_CREATED,
	GEN_YIELDED,
	GEN_AWAITS,
	GEN_RUNS,
	GEN_ENDED,
};

enum kind {
	KIND_OTHER,
	KIND_TASK,
	KIND_FUTURE,
	KIND_GENERATOR,   /* also a coroutine, and an asynchronous generator */
	KIND_WRAPPER,     /* its first field is what is awaited */
	KIND_FUTURE_ITER, /* its first field is a future that is awaited */
};

struct type {
	uint64_t address;
	uint64_t flags;
	uint32_t kind; /* enum kind */
	char name[TASK_READ_TYPE];
	uint32_t pad;
};

struct listed {
	uint64_t task;
	uint64_t tstate; /* whose list it is in; 0: the interpreter's */
	uint64_t interp;
};

struct task_reader {
	const struct walk_memory *memory;
	const struct task_read_place *place;
	struct walk_memory window_memory; /* memory by way of the window */
	struct walk_frames *frames;
	struct intern types; /* struct type */
	struct listed *listed;
	size_t nr_listed, listed_room, next;
	size_t nr_threads;                 /* visited so far */
	uint64_t window_addr, window_size; /* what of the memory the window has */
	uint8_t window[AHEAD];
	struct task_read read, again;
};

static int read_window(void *source, uint64_t addr, void *dst, size_t size)
{
	struct task_reader *r = source;
	uint64_t at = addr - r->window_addr;

	if (at >= r->window_size || size > r->window_size - (size_t)at)
		return r->memory->read(r->memory->source, addr, dst, size);
	memcpy(dst, r->window + at, size);
	return 0;
}

/* Reads the memory from addr on at once, so that what follows is of one moment; what does not fit is read on its own.
 */
static void look_ahead(struct task_reader *r, uint64_t addr)
{
	r->window_addr = addr;
	r->window_size = r->memory->read(r->memory->source, addr, r->window, AHEAD) ? 0 : AHEAD;
}

static int read_at(struct task_reader *r, uint64_t addr, void *dst, size_t size)
{
	return read_window(r, addr, dst, size);
}

static uint64_t pointer_at(struct task_reader *r, uint64_t addr)
{
	uint64_t value = 0;

	return read_at(r, addr, &value, sizeof(value)) ? 0 : value;
}

static uint32_t head_size(const struct task_reader *r)
{
	return r->place->layout.code_type + (uint32_t)sizeof(uint64_t);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static void read_name_of_type(struct task_reader *r, uint64_t type, char name[TASK_READ_TYPE])
{
	uint64_t addr = pointer_at(r, type + head_size(r) + PYBPF_TYPE_NAME);

	memset(name, 0, TASK_READ_TYPE);
	/* It may end shortly before memory that is not there. */
	for (size_t size = TASK_READ_TYPE - 1; addr && size && read_at(r, addr, name, size); size /= 2)
		name[0] = '\0';
	name[strnlen(name, TASK_READ_TYPE - 1)] = '\0';
	/* Bytes behind the end must not make two equal types differ. */
	memset(name + strlen(name), 0, TASK_READ_TYPE - strlen(name));
}

/* Types of the interpreter itself, and of _asyncio, that lead to what is awaited. */
static const struct known_type {
	const char *name;
	enum kind kind;
	bool is_heap; /* the types with these names that are not of the interpreter are heap types */
} known_types[] = {
	{"coroutine", KIND_GENERATOR, false},           {"generator", KIND_GENERATOR, false},
	{"async_generator", KIND_GENERATOR, false},     {"coroutine_wrapper", KIND_WRAPPER, false},
	{"async_generator_asend", KIND_WRAPPER, false}, {"async_generator_athrow", KIND_WRAPPER, false},
	{"anext_awaitable", KIND_WRAPPER, false},       {"_asyncio.FutureIter", KIND_FUTURE_ITER, true},
};

static enum kind find_kind(struct task_reader *r, uint64_t type, const struct type *own)
{
	char name[TASK_READ_TYPE];

	for (size_t i = 0; i < sizeof(known_types) / sizeof(*known_types); i++) {
		if (strcmp(own->name, known_types[i].name) == 0 &&
		    !(own->flags & PYBPF_TPFLAGS_HEAPTYPE) == !known_types[i].is_heap)
			return known_types[i].kind;
	}
	for (int i = 0; i < PYBPF_TASK_BASES && type; i++) {
		read_name_of_type(r, type, name);
		if (strcmp(name, "_asyncio.Future") == 0)
			return KIND_FUTURE;
		if (strcmp(name, "_asyncio.Task") == 0)
			return KIND_TASK;
		type = pointer_at(r, type + head_size(r) + PYBPF_TYPE_BASE);
	}
	return KIND_OTHER;
}

/* Returns the type of an object, valid until the next call, or NULL. */
static const struct type *type_of(struct task_reader *r, uint64_t object)
{
	struct type type = {.address = pointer_at(r, object + r->place->layout.code_type)};
	uint32_t i = intern_find(&r->types, &type);
	bool fresh;

	if (!type.address || i != INTERN_NONE)
		return i == INTERN_NONE ? NULL : intern_item(&r->types, i);
	if (r->types.count >= MAX_TYPES)
		return NULL;
	type.flags = pointer_at(r, type.address + head_size(r) + PYBPF_TYPE_FLAGS);
	read_name_of_type(r, type.address, type.name);
	type.kind = find_kind(r, type.address, &type);
	i = intern_add(&r->types, &type, &fresh);
	return i == INTERN_NONE ? NULL : intern_item(&r->types, i);
}

/* Looks at an object, whose fields are then read ahead. */
static enum kind look_at(struct task_reader *r, uint64_t object)
{
	const struct type *type = NULL;

	look_ahead(r, object);
	type = type_of(r, object);

	return type ? type->kind : KIND_OTHER;
}

/* Takes a name that asyncio gave and that nobody asked for: it is still a number. */
static void take_number(struct task_reader *r, uint64_t object, struct pybpf_task_name *out)
{
	uint64_t tag = pointer_at(r, object + head_size(r) + PYBPF_LONG_TAG), number;
	uint32_t digits[2] = {0};

	if (tag & PYBPF_LONG_SIGN || tag >> 3 > 2 ||
	    read_at(r, object + head_size(r) + PYBPF_LONG_DIGITS, digits, (tag >> 3 > 1 ? 2 : 1) * sizeof(*digits)))
		return;
	number = digits[0] | (uint64_t)digits[1] << PYBPF_DIGIT_BITS;
	out->form = PYBPF_TASK_NUMBER;
	out->size = sizeof(number);
	memcpy(out->text, &number, sizeof(number));
}

static void take_text(struct task_reader *r, uint64_t object, struct pybpf_task_name *out)
{
	uint8_t header[PYSYM_STRING_HEADER] = {0};
	struct pysym_string_shape shape;
	uint32_t kept;

	/* A short string is smaller than the header of a long one. */
	if (read_at(r, object, header, r->place->layout.str_ascii_data))
		return;
	read_at(r, object, header, sizeof(header));
	if (pysym_string_read_shape(&r->place->layout, header, &shape))
		return;
	kept = shape.data_size < PYBPF_TASK_TEXT ? shape.data_size : PYBPF_TASK_TEXT;
	if (read_at(r, object + shape.data_offset, out->text, kept)) {
		memset(out->text, 0, sizeof(out->text));
		return;
	}
	out->size = shape.data_size;
	out->form = shape.unit == 4   ? PYBPF_TASK_UCS4
		    : shape.unit == 2 ? PYBPF_TASK_UCS2
		    : shape.latin1    ? PYBPF_TASK_LATIN1
				      : PYBPF_TASK_ASCII;
}

/* Reads the name of a task; what was read ahead of the task is gone then. */
static void take_name(struct task_reader *r, uint64_t task, struct pybpf_task_name *out)
{
	uint64_t name = pointer_at(r, task + r->place->runtime.asyncio.task_name);
	const struct type *type = NULL;

	memset(out, 0, sizeof(*out));
	if (name) {
		look_ahead(r, name);
		type = type_of(r, name);
	}
	if (type && type->flags & PYBPF_TPFLAGS_UNICODE_SUBCLASS)
		take_text(r, name, out);
	else if (type && type->flags & PYBPF_TPFLAGS_LONG_SUBCLASS)
		take_number(r, name, out);
}

/* Reads the names of the task and of those that await it, as bpf/task.bpf.h does for the one that runs. */
static void read_chain(struct task_reader *r, uint64_t object, struct task_read *out)
{
	const struct pybpf_asyncio *asyncio = &r->place->runtime.asyncio;

	for (int i = 0; i < PYBPF_TASK_STEPS && object; i++) {
		enum kind kind = look_at(r, object);
		uint64_t next = 0;
		uint8_t is_set = 1;

		out->objects = mix(out->objects, object);
		if (kind != KIND_FUTURE && out->nr_tasks == PYBPF_TASKS)
			break;
		if (kind == KIND_TASK || kind == KIND_FUTURE)
			next = pointer_at(r, object + asyncio->awaited_by);
		if (read_at(r, object + asyncio->awaited_by_is_set, &is_set, sizeof(is_set)))
			is_set = 1;
		if (kind == KIND_TASK)
			take_name(r, object, &out->tasks[out->nr_tasks++]);
		else if (kind != KIND_FUTURE)
			out->tasks[out->nr_tasks++] = (struct pybpf_task_name){.form = PYBPF_TASK_UNKNOWN};
		if (next && is_set) {
			out->flags |= PYBPF_TASKS_SEVERAL;
			return;
		}
		object = next;
	}
	if (object)
		out->flags |= PYBPF_TASKS_MORE;
}

/* Returns the state of a generator, or a negative number if it is none. */
static int read_gen_state(struct task_reader *r, uint64_t generator)
{
	const bool renumbered = r->place->layout.minor >= MINOR_NEW_STATES;
	int8_t state;

	if (read_at(r, generator + r->place->layout.gen_state, &state, sizeof(state)))
		return -EFAULT;
	if (state == (renumbered ? CREATED_315 : CREATED_314))
		return GEN_CREATED;
	if (state == (renumbered ? SUSPENDED_315 : SUSPENDED_314))
		return GEN_YIELDED;
	if (state == (renumbered ? YIELD_FROM_315 : YIELD_FROM_314) || (renumbered && state == YIELD_FROM_LOCKED_315))
		return GEN_AWAITS;
	return state == (renumbered ? EXECUTING_315 : EXECUTING_314) ? GEN_RUNS : GEN_ENDED;
}

/*
 * Returns what a suspended generator awaits, or 0: it is on top of its stack (_PyGen_yf in Objects/genobject.c), and
 * below an index that belongs to it since 3.15.
 */
static uint64_t read_awaited(struct task_reader *r, uint64_t generator)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint64_t end = pointer_at(r, generator + l->gen_frame + l->frame_stack);
	uint64_t from_end = (l->minor >= MINOR_NEW_STATES ? 2 : 1) * sizeof(uint64_t);

	return end ? pointer_at(r, end - from_end) & ~(uint64_t)l->code_tag_mask : 0;
}

static void await_object(struct task_reader *r, struct task_read *out, enum task_read_awaits awaits, uint64_t object)
{
	const struct type *type;

	look_ahead(r, object);
	type = type_of(r, object);
	out->awaits = awaits;
	if (!type)
		return;
	memcpy(out->type, type->name, sizeof(out->type));
	if (awaits == TASK_AWAITS_OBJECT && type->kind == KIND_TASK) {
		out->awaits = TASK_AWAITS_TASK;
		take_name(r, object, &out->awaited);
	}
}

/*
 * Keeps the function of a generator, and puts what it awaits into *object; 0: it is the last one. Returns 0, -EAGAIN
 * when that cannot be of a suspended task, -EINPROGRESS when the task runs, -ENOENT when it has ended.
 */
static int read_generator(struct task_reader *r, uint64_t *object, struct task_read *out)
{
	uint64_t generator = *object;
	int state, err;

	state = read_gen_state(r, generator);
	*object = 0;
	if (state < 0 || state == GEN_ENDED)
		return state < 0 || out->nr_frames ? -EAGAIN : -ENOENT;
	if (state == GEN_RUNS)
		return out->nr_frames ? -EAGAIN : -EINPROGRESS;
	/* An outer one has begun all others. */
	if (state == GEN_CREATED && out->nr_frames)
		return -EAGAIN;
	if (out->nr_frames == TASK_READ_FRAMES) {
		out->awaits = TASK_AWAITS_MORE;
		return 0;
	}
	err = walk_frames_read(r->frames, generator + r->place->layout.gen_frame, &out->frames[out->nr_frames]);
	if (err)
		return -EAGAIN;
	out->nr_frames++;
	out->awaits = state == GEN_CREATED ? TASK_AWAITS_FIRST_STEP : TASK_AWAITS_YIELD;
	if (state != GEN_AWAITS)
		return 0;
	*object = read_awaited(r, generator);
	return *object ? 0 : -EAGAIN;
}

/* Reads the functions from the task's coroutine on. Returns as read_generator does. */
static int read_coroutines(struct task_reader *r, uint64_t object, struct task_read *out)
{
	int err;

	for (int i = 0; i < MAX_OBJECTS && object; i++) {
		enum kind kind = look_at(r, object);
		uint64_t first;

		out->objects = mix(out->objects, object);
		if (kind == KIND_GENERATOR) {
			err = read_generator(r, &object, out);
			if (err || !object)
				return err;
			continue;
		}
		first = kind == KIND_WRAPPER || kind == KIND_FUTURE_ITER ? pointer_at(r, object + head_size(r)) : 0;
		if (kind == KIND_WRAPPER && first) {
			object = first;
			continue;
		}
		out->objects = mix(out->objects, first);
		await_object(r, out, out->nr_frames ? TASK_AWAITS_OBJECT : TASK_AWAITS_INSIDE, first ?: object);
		return 0;
	}
	out->awaits = TASK_AWAITS_MORE;
	return object ? 0 : -ENOENT;
}

/* Reads the task once. Returns as read_generator does. */
static int read_once(struct task_reader *r, const struct listed *listed, struct task_read *out)
{
	uint64_t coro;

	walk_frames_begin(r->frames, &r->window_memory, &r->place->layout, &r->place->runtime, r->place->proc_id,
			  listed->interp);
	memset(out, 0, offsetof(struct task_read, frames));
	out->address = listed->task;
	if (look_at(r, listed->task) != KIND_TASK)
		return -ENOENT;
	coro = pointer_at(r, listed->task + r->place->runtime.asyncio.task_coro);
	if (!coro)
		return -ENOENT;
	read_chain(r, listed->task, out);
	return read_coroutines(r, coro, out);
}

static bool is_same(const struct task_read *a, const struct task_read *b)
{
	return memcmp(a, b, offsetof(struct task_read, frames)) == 0 &&
	       memcmp(a->frames, b->frames, a->nr_frames * sizeof(*a->frames)) == 0;
}

/* What a thread's loop does at a moment. */
struct moment {
	uint64_t contexts; /* entered and left so far; PyThreadState.context_ver, see walk_find_task() */
	uint64_t running;  /* the task that it runs */
	uint32_t status;
	bool known;
};

/* Bytes of a thread state that have all of it: a _PyThreadStateImpl of 3.14 and 3.15 has less than 900. */
#define MOMENT_BYTES 1024

static struct moment look_at_thread(struct task_reader *r, uint64_t tstate)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint32_t running = r->place->runtime.asyncio.running_task, end = running + (uint32_t)sizeof(uint64_t);
	uint32_t contexts = l->tstate_datastack_top - PYBPF_CONTEXT_VER;
	struct moment moment = {0};
	uint8_t fields[MOMENT_BYTES];

	/* One read, so that it is one moment. */
	if (!tstate || l->tstate_datastack_top < PYBPF_CONTEXT_VER || contexts + sizeof(uint64_t) > end ||
	    l->tstate_status + sizeof(uint32_t) > end || end > sizeof(fields) ||
	    r->memory->read(r->memory->source, tstate, fields, end))
		return moment;
	memcpy(&moment.contexts, fields + contexts, sizeof(moment.contexts));
	memcpy(&moment.running, fields + running, sizeof(moment.running));
	memcpy(&moment.status, fields + l->tstate_status, sizeof(moment.status));
	moment.known = true;
	return moment;
}

/*
 * Returns whether a step of the task at any time between the two moments would show. A step enters a context, runs the
 * task, and leaves the context. So it cannot have begun since: the number would be another one. Nor can it have been
 * about to begin: then the thread was attached, and ran no task, as C code goes from the one to the other.
 */
static bool would_show(const struct moment *before, const struct moment *after)
{
	return before->known && after->known && before->contexts == after->contexts &&
	       before->running == after->running && (before->running || !(before->status & PYBPF_TSTATE_ACTIVE));
}

/* Reads the task until nothing can have changed meanwhile. Returns as read_once does. */
static int read_task(struct task_reader *r, const struct listed *listed)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		struct moment before = look_at_thread(r, listed->tstate), after;
		int err, again;

		if (before.known && before.running == listed->task)
			return -EINPROGRESS;
		err = read_once(r, listed, &r->read);
		after = look_at_thread(r, listed->tstate);
		if (would_show(&before, &after) && err != -EAGAIN)
			return err;
		again = read_once(r, listed, &r->again);
		if (err == again && err != -EAGAIN && (err || is_same(&r->read, &r->again)))
			return err;
	}
	return -EAGAIN;
}

int task_reader_next(struct task_reader *r, const struct task_read **out, struct task_read_counts *counts)
{
	if (r->next == r->nr_listed)
		return -ENOENT;
	switch (read_task(r, &r->listed[r->next++])) {
	case 0:
		*out = &r->read;
		counts->suspended++;
		return 1;
	case -EINPROGRESS:
		counts->running++;
		return 0;
	case -ENOENT:
		counts->ended++;
		return 0;
	default:
		counts->moving++;
		return 0;
	}
}

struct links {
	uint64_t next, prev; /* struct llist_node (pycore_llist.h) */
};

static int add_listed(struct task_reader *r, uint64_t task, uint64_t tstate, uint64_t interp)
{
	if (array_reserve(&r->listed, &r->listed_room, r->nr_listed + 1, sizeof(*r->listed)))
		return -ENOMEM;
	r->listed[r->nr_listed++] = (struct listed){task, tstate, interp};
	return 0;
}

/* Goes through a list once. Returns 0, -ENOMEM, -EAGAIN if the list changed meanwhile, -E2BIG. */
static int go_through(struct task_reader *r, uint64_t head, uint64_t tstate, uint64_t interp)
{
	struct links links, next;
	uint64_t node = head;

	if (read_at(r, head, &links, sizeof(links)))
		return -EAGAIN;
	/* A thread without asyncio may never have set up its list. */
	while (links.next != head && links.next) {
		if (r->nr_listed == TASK_READ_TASKS)
			return -E2BIG;
		if (read_at(r, links.next, &next, sizeof(next)) || next.prev != node)
			return -EAGAIN;
		if (add_listed(r, links.next - r->place->runtime.asyncio.task_node, tstate, interp))
			return -ENOMEM;
		node = links.next;
		links = next;
	}
	return links.next || node == head ? 0 : -EAGAIN;
}

static int find_in_list(struct task_reader *r, uint64_t head, uint64_t tstate, uint64_t interp,
			struct task_read_counts *counts)
{
	size_t begin = r->nr_listed;
	int err = -EAGAIN;

	r->window_size = 0;
	for (int i = 0; i < ATTEMPTS && err == -EAGAIN; i++) {
		r->nr_listed = begin;
		err = go_through(r, head, tstate, interp);
	}
	counts->torn += err == -EAGAIN;
	counts->beyond += err == -E2BIG;
	return err == -ENOMEM ? err : 0;
}

static int find_in_interpreter(struct task_reader *r, uint64_t interp, struct task_read_counts *counts)
{
	const struct pybpf_layout *l = &r->place->layout;
	const struct pybpf_asyncio *asyncio = &r->place->runtime.asyncio;
	uint64_t tstate = pointer_at(r, interp + l->interp_threads_head);
	int err = find_in_list(r, interp + asyncio->interp_tasks, 0, interp, counts);

	while (r->nr_threads < MAX_THREADS && tstate && !err) {
		r->nr_threads++;
		err = find_in_list(r, tstate + asyncio->thread_tasks, tstate, interp, counts);
		tstate = pointer_at(r, tstate + l->tstate_next);
	}
	return err;
}

int task_reader_find(struct task_reader *r, const struct walk_memory *memory, const struct task_read_place *place,
		     struct task_read_counts *counts)
{
	uint64_t interp;
	int err = 0;

	r->memory = memory;
	r->place = place;
	r->window_memory = (struct walk_memory){read_window, r};
	r->window_size = 0;
	r->nr_listed = 0;
	r->nr_threads = 0;
	r->next = 0;
	/* A type may be freed, and another one made at its address. */
	intern_free(&r->types);
	interp = pointer_at(r, place->runtime.interp_head);
	for (int i = 0; i < MAX_INTERPRETERS && interp && !err; i++) {
		err = find_in_interpreter(r, interp, counts);
		interp = pointer_at(r, interp + place->layout.interp_next);
	}
	return err;
}

struct task_reader *task_reader_new(void)
{
	struct task_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	intern_init(&r->types, sizeof(struct type), sizeof(uint64_t));
	r->frames = walk_frames_new();
	if (!r->frames) {
		task_reader_free(r);
		return NULL;
	}
	return r;
}

void task_reader_free(struct task_reader *r)
{
	if (!r)
		return;
	walk_frames_free(r->frames);
	intern_free(&r->types);
	free(r->listed);
	free(r);
}

#define PACKED_HEAD offsetof(struct task_read, tasks)

size_t task_read_packed_size(const struct task_read *task)
{
	return PACKED_HEAD + task->nr_tasks * sizeof(*task->tasks) + task->nr_frames * sizeof(*task->frames);
}

void task_read_pack(const struct task_read *task, void *out)
{
	char *at = out;

	memcpy(at, task, PACKED_HEAD);
	at += PACKED_HEAD;
	memcpy(at, task->tasks, task->nr_tasks * sizeof(*task->tasks));
	at += task->nr_tasks * sizeof(*task->tasks);
	memcpy(at, task->frames, task->nr_frames * sizeof(*task->frames));
}

size_t task_read_unpack(const void *bytes, size_t size, struct task_read *out)
{
	const char *at = bytes;

	if (size < PACKED_HEAD)
		return 0;
	memcpy(out, at, PACKED_HEAD);
	if (out->nr_tasks > PYBPF_TASKS || out->nr_frames > TASK_READ_FRAMES || out->awaits >= TASK_AWAITS_KINDS ||
	    size < task_read_packed_size(out))
		return 0;
	out->type[sizeof(out->type) - 1] = '\0';
	at += PACKED_HEAD;
	memcpy(out->tasks, at, out->nr_tasks * sizeof(*out->tasks));
	at += out->nr_tasks * sizeof(*out->tasks);
	memcpy(out->frames, at, out->nr_frames * sizeof(*out->frames));
	return task_read_packed_size(out);
}
