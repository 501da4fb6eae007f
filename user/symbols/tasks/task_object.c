// SPDX-License-Identifier: Apache-2.0
/* Objects in the memory of a process, as far as the tasks of asyncio lead to them. */
#include <errno.h>
#include <string.h>

#include "cpython/facts.h"
#include "symbols/objects/string.h"
#include "symbols/tasks/task_reader.h"

/* Types that are remembered within a snapshot. */
#define MAX_TYPES 4096

int task_read_window(void *source, uint64_t addr, void *dst, size_t size)
{
	struct task_reader *r = source;
	uint64_t at = addr - r->window_addr;

	if (at >= r->window_size || size > r->window_size - (size_t)at)
		return r->memory->read(r->memory->source, addr, dst, size);
	memcpy(dst, r->window + at, size);
	return 0;
}

void task_look_ahead(struct task_reader *r, uint64_t addr)
{
	r->window_addr = addr;
	r->window_size = r->memory->read(r->memory->source, addr, r->window, TASK_AHEAD) ? 0 : TASK_AHEAD;
}

int task_read_at(struct task_reader *r, uint64_t addr, void *dst, size_t size)
{
	return task_read_window(r, addr, dst, size);
}

uint64_t task_pointer_at(struct task_reader *r, uint64_t addr)
{
	uint64_t value = 0;

	return task_read_at(r, addr, &value, sizeof(value)) ? 0 : value;
}

uint32_t task_head_size(const struct task_reader *r)
{
	return cpython_header_size(&r->place->layout);
}

uint64_t task_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static void read_name_of_type(struct task_reader *r, uint64_t type, char name[TASK_READ_TYPE])
{
	uint64_t addr = task_pointer_at(r, type + task_head_size(r) + PYBPF_TYPE_NAME);

	memset(name, 0, TASK_READ_TYPE);
	/* It may end shortly before unmapped memory. */
	for (size_t size = TASK_READ_TYPE - 1; addr && size && task_read_at(r, addr, name, size); size /= 2)
		name[0] = '\0';
	name[strnlen(name, TASK_READ_TYPE - 1)] = '\0';
	/* Bytes behind the end must not make two equal types differ. */
	memset(name + strlen(name), 0, TASK_READ_TYPE - strlen(name));
}

/* Types of the interpreter itself, and of _asyncio, that lead to what is awaited. */
static const struct known_type {
	const char *name;
	enum task_kind kind;
	bool is_heap; /* the types with these names that are not of the interpreter are heap types */
} known_types[] = {
	{"coroutine", TASK_KIND_GENERATOR, false},           {"generator", TASK_KIND_GENERATOR, false},
	{"async_generator", TASK_KIND_GENERATOR, false},     {"coroutine_wrapper", TASK_KIND_WRAPPER, false},
	{"async_generator_asend", TASK_KIND_WRAPPER, false}, {"async_generator_athrow", TASK_KIND_WRAPPER, false},
	{"anext_awaitable", TASK_KIND_WRAPPER, false},       {"_asyncio.FutureIter", TASK_KIND_FUTURE_ITER, true},
};

static enum task_kind find_kind(struct task_reader *r, uint64_t type, const struct task_type *own)
{
	char name[TASK_READ_TYPE];

	for (size_t i = 0; i < sizeof(known_types) / sizeof(*known_types); i++) {
		if (strcmp(own->name, known_types[i].name) != 0)
			continue;
		/* The types of _asyncio are heap types since 3.12. */
		if ((task_is_old(r) && known_types[i].is_heap) ||
		    !(own->flags & PYBPF_TPFLAGS_HEAPTYPE) == !known_types[i].is_heap)
			return known_types[i].kind;
	}
	for (int i = 0; i < PYBPF_TASK_BASES && type; i++) {
		read_name_of_type(r, type, name);
		if (strcmp(name, "_asyncio.Future") == 0)
			return TASK_KIND_FUTURE;
		if (strcmp(name, "_asyncio.Task") == 0)
			return TASK_KIND_TASK;
		type = task_pointer_at(r, type + task_head_size(r) + PYBPF_TYPE_BASE);
	}
	return TASK_KIND_OTHER;
}

const struct task_type *task_type_of(struct task_reader *r, uint64_t object)
{
	struct task_type type = {.address = task_pointer_at(r, object + r->place->layout.code_type)};
	uint32_t i = intern_find(&r->types, &type);
	bool fresh;

	if (!type.address || i != INTERN_NONE)
		return i == INTERN_NONE ? NULL : intern_item(&r->types, i);
	if (r->types.count >= MAX_TYPES)
		return NULL;
	type.flags = task_pointer_at(r, type.address + task_head_size(r) + PYBPF_TYPE_FLAGS);
	read_name_of_type(r, type.address, type.name);
	type.kind = find_kind(r, type.address, &type);
	i = intern_add(&r->types, &type, &fresh);
	return i == INTERN_NONE ? NULL : intern_item(&r->types, i);
}

enum task_kind task_look_at(struct task_reader *r, uint64_t object)
{
	const struct task_type *type = NULL;

	task_look_ahead(r, object);
	type = task_type_of(r, object);

	return type ? type->kind : TASK_KIND_OTHER;
}

/* Takes a name that asyncio gave and that nobody asked for: it is still a number. */
static void take_number(struct task_reader *r, uint64_t object, struct pybpf_task_name *out)
{
	uint64_t tag = task_pointer_at(r, object + task_head_size(r) + PYBPF_LONG_TAG), number;
	uint32_t digits[2] = {0};

	if (tag & PYBPF_LONG_SIGN || tag >> PYBPF_LONG_COUNT_SHIFT > 2 ||
	    task_read_at(r, object + task_head_size(r) + PYBPF_LONG_DIGITS, digits,
			 (tag >> PYBPF_LONG_COUNT_SHIFT > 1 ? 2 : 1) * sizeof(*digits)))
		return;
	number = digits[0] | (uint64_t)digits[1] << PYBPF_DIGIT_BITS;
	out->form = PYBPF_TASK_NUMBER;
	out->size = sizeof(number);
	memcpy(out->text, &number, sizeof(number));
}

static void take_text(struct task_reader *r, uint64_t object, struct pybpf_task_name *out)
{
	/* Offsets come from the process, too, and may be beyond what is read of a header. */
	size_t need = r->place->layout.str_state + 4u;
	uint8_t header[PYSYM_STRING_HEADER] = {0};
	struct pysym_string_shape shape;
	uint32_t kept;

	/* A short string is smaller than the header of a long one. */
	if (task_read_at(r, object, header, sizeof(header)) &&
	    (need > sizeof(header) || task_read_at(r, object, header, need)))
		return;
	if (pysym_string_read_shape(&r->place->layout, header, &shape))
		return;
	kept = shape.data_size < PYBPF_TASK_TEXT ? shape.data_size : PYBPF_TASK_TEXT;
	if (task_read_at(r, object + shape.data_offset, out->text, kept)) {
		memset(out->text, 0, sizeof(out->text));
		return;
	}
	out->size = shape.data_size;
	out->form = shape.unit == 4   ? PYBPF_TASK_UCS4
		    : shape.unit == 2 ? PYBPF_TASK_UCS2
		    : shape.latin1    ? PYBPF_TASK_LATIN1
				      : PYBPF_TASK_ASCII;
}

void task_take_name(struct task_reader *r, uint64_t task, struct pybpf_task_name *out)
{
	const struct pybpf_asyncio *asyncio = &r->place->runtime.asyncio;
	uint64_t name;
	const struct task_type *type = NULL;

	/* Tasks of 3.7 have no names, but their coroutines have (PyCoroObject.cr_qualname). */
	if (asyncio->task_name)
		name = task_pointer_at(r, task + asyncio->task_name);
	else
		name = task_pointer_at(r, task_pointer_at(r, task + asyncio->task_coro) + task_head_size(r) +
						  PYBPF_CORO_QUALNAME);
	memset(out, 0, sizeof(*out));
	if (name) {
		task_look_ahead(r, name);
		type = task_type_of(r, name);
	}
	if (type && type->flags & PYBPF_TPFLAGS_UNICODE_SUBCLASS)
		take_text(r, name, out);
	else if (type && type->flags & PYBPF_TPFLAGS_LONG_SUBCLASS)
		take_number(r, name, out);
}

/* Entries of a set that are read at once. */
#define SET_BATCH 64

/* The hash is -1 if the key was removed. */
struct set_entry {
	uint64_t key, hash;
};

static int visit_set(struct task_reader *r, uint64_t table, uint64_t size,
		     int (*visit)(struct task_reader *r, uint64_t key, void *arg), void *arg)
{
	struct set_entry entries[SET_BATCH];
	int err = 0;

	for (uint64_t i = 0; i < size; i += SET_BATCH) {
		uint64_t count = size - i < SET_BATCH ? size - i : SET_BATCH;

		if (task_read_at(r, table + i * sizeof(*entries), entries, count * sizeof(*entries)))
			return -EAGAIN;
		for (uint64_t j = 0; j < count && !err; j++) {
			if (entries[j].key && entries[j].hash != UINT64_MAX)
				err = visit(r, entries[j].key, arg);
		}
		if (err)
			return err;
	}
	return 0;
}

int task_read_set(struct task_reader *r, uint64_t set, uint64_t most,
		  int (*visit)(struct task_reader *r, uint64_t key, void *arg), void *arg)
{
	const struct task_type *type = task_type_of(r, set);
	uint64_t fields = set + task_head_size(r), mask = task_pointer_at(r, fields + PYBPF_SET_MASK),
		 table = task_pointer_at(r, fields + PYBPF_SET_TABLE);
	int err;

	if (!type || strcmp(type->name, "set") != 0 || type->flags & PYBPF_TPFLAGS_HEAPTYPE || !table)
		return -EAGAIN;
	err = visit_set(r, table, mask < most ? mask + 1 : most, visit, arg);
	/* With another table this one's memory may have been anything. */
	r->window_size = 0;
	if (!err && task_pointer_at(r, fields + PYBPF_SET_TABLE) != table)
		return -EAGAIN;
	return err ?: mask < most ? 0 : -E2BIG;
}

bool task_is_old(const struct task_reader *r)
{
	return cpython_facts(&r->place->layout)->tasks->kind == CPYTHON_TASKS_IN_SETS;
}
