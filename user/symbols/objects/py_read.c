// SPDX-License-Identifier: Apache-2.0
/* Reads what objects are made of, within the limits of time, and from the snapshot of a process that runs. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "symbols/objects/py_value_internal.h"
#include "symbols/objects/string.h"
#include "symbols/objects/string_read.h"

/*
 * Most of what may be read for the variables of a thread at each level, in units of a read and of UNIT bytes: some
 * 0.4 seconds', if the clock does not end it before. The clock is looked at once in this number of units.
 */
#define MAX_COST      (1u << 18)
#define COST_PER_LOOK 64
#define UNIT          64
/* Bytes of a name that are read at once: no page ends within them. */
#define NAME_PART 64
/* Longest string that is a name, or a path. */
#define MAX_NAME 4096

static void spend(struct py_values *v, size_t size)
{
	v->cost += 1 + (unsigned)(size / UNIT);
	if (v->cost / COST_PER_LOOK != v->looked_at) {
		v->looked_at = v->cost / COST_PER_LOOK;
		v->is_over = v->is_over || v->cost > v->max_cost ||
			     (v->of.until_ns && clock_ns(CLOCK_MONOTONIC) > v->of.until_ns);
	}
}

static int read_within_time(void *source, uint64_t addr, void *dst, size_t size)
{
	struct py_values *v = source;

	spend(v, size);
	if (v->is_over)
		return -1;
	return v->in_snapshot ? py_snapshot_read(&v->snapshot, v->of.memory, addr, dst, size)
			      : v->of.memory->read(v->of.memory->source, addr, dst, size);
}

void py_read_init(struct py_values *v, unsigned level)
{
	v->memory = (struct walk_memory){.read = read_within_time, .source = v};
	v->r = (struct py_reader){&v->memory, v->of.layout};
	v->max_cost = level * MAX_COST * (v->of.stopped ? 1 : 2);
}

bool py_values_are_over(const struct py_values *v)
{
	return v->is_over;
}

int py_values_read(struct py_values *v, uint64_t addr, void *dst, size_t size)
{
	return addr ? read_within_time(v, addr, dst, size) : -1;
}

bool py_get(struct py_values *v, uint64_t addr, void *dst, size_t size)
{
	return !py_values_read(v, addr, dst, size);
}

const struct cpython_facts *py_facts(const struct py_values *v)
{
	return cpython_facts(v->of.layout);
}

bool py_part_read(struct py_values *v, struct py_part *part, uint64_t at, size_t words)
{
	*part = (struct py_part){
		.at = at, .size = words * sizeof(uint64_t), .words = calloc(words + 1, sizeof(uint64_t))};
	return part->words && (!words || py_get(v, at, part->words, part->size));
}

bool py_part_same(struct py_values *v, const struct py_part *part)
{
	struct py_part now;
	bool same = py_part_read(v, &now, part->at, part->size / sizeof(uint64_t)) &&
		    !memcmp(now.words, part->words, part->size);

	py_part_free(&now);
	return same;
}

void py_part_free(struct py_part *part)
{
	free(part->words);
	part->words = NULL;
}

bool py_read_name(struct py_values *v, uint64_t addr, char name[PY_TYPE_NAME])
{
	const size_t most = PY_TYPE_NAME - sizeof(PY_OUT_MORE);
	size_t size = 0, part;

	/* It may end shortly before unmapped memory, which begins with a page. */
	for (; size < most && strnlen(name, size) == size; size += part) {
		part = NAME_PART - (addr + size) % NAME_PART;
		part = part < most - size ? part : most - size;
		if (!py_get(v, addr + size, name + size, part))
			return false;
	}
	size = strnlen(name, size);
	name[size] = '\0';
	if (size < most)
		return size > 0;
	/* Not a part of a character. */
	while (size && ((unsigned char)name[size - 1] & 0xc0) == 0x80)
		size--;
	size -= size && (unsigned char)name[size - 1] >= 0xc0;
	memcpy(name + size, PY_OUT_MORE, sizeof(PY_OUT_MORE));
	return true;
}

bool py_find_units(struct py_values *v, uint64_t object, struct py_units *out)
{
	const struct pybpf_layout *l = v->of.layout;
	uint32_t state;

	if (!py_get(v, object + l->str_length, &out->count, sizeof(out->count)) ||
	    !py_get(v, object + l->str_state, &state, sizeof(state)))
		return false;
	state >>= l->str_kind_shift;
	out->unit = state & 7;
	if (out->unit != 1 && out->unit != 2 && out->unit != 4)
		return false;
	out->at = object + (state & 16 ? l->str_ascii_data : l->str_compact_data);
	/* A string of a class of its own, and to 3.11 an old one: PyUnicodeObject.data is behind what others have. */
	return (state & 8) || py_get(v, object + l->str_compact_data, &out->at, sizeof(out->at));
}

/* Decodes a str that is not compact, as those of classes derived from str are. */
static char *read_own_string(struct py_values *v, uint64_t object)
{
	uint8_t data[MAX_NAME * sizeof(uint32_t)];
	struct pysym_string_shape shape = {.latin1 = true};
	struct py_units units;

	if (!py_find_units(v, object, &units) || units.count > MAX_NAME)
		return NULL;
	shape.unit = (uint8_t)units.unit;
	shape.data_size = (uint32_t)(units.count * units.unit);
	if (shape.data_size && !py_get(v, units.at, data, shape.data_size))
		return NULL;
	return pysym_string_decode(&shape, data, shape.data_size);
}

char *py_values_name(struct py_values *v, uint64_t object)
{
	bool old = v->of.layout->string_kind == PYBPF_STR_BYTES;
	uint64_t length;
	char *name;

	if (!py_is_a(&v->r, object, old ? PY_KIND_BYTES : PY_KIND_TEXT) ||
	    !py_get(v, object + v->of.layout->str_length, &length, sizeof(length)) || length > MAX_NAME)
		return NULL;
	name = pysym_read_string(&v->memory, v->of.layout, object);
	return name || old ? name : read_own_string(v, object);
}

/* Reads an object's type. Returns false if nobody has a reference to the object: it was freed meanwhile. */
bool py_read_head(struct py_values *v, uint64_t object, uint64_t *type)
{
	if (!v->in_snapshot)
		return py_get(v, object + v->of.layout->code_type, type, sizeof(*type));
	spend(v, sizeof(*type));
	return !v->is_over && py_snapshot_type(&v->snapshot, v->of.memory, v->of.layout, object, type);
}

void py_values_begin(struct py_values *v, bool again)
{
	v->in_snapshot = !v->of.stopped;
	if (!again)
		py_snapshot_forget(&v->snapshot);
	if (v->in_snapshot)
		spend(v, py_snapshot_take(&v->snapshot, v->of.memory));
}

bool py_values_hold(struct py_values *v)
{
	bool in_snapshot = v->in_snapshot;

	v->in_snapshot = false;
	return !in_snapshot || py_snapshot_holds(&v->snapshot);
}

unsigned py_values_worth(const struct py_values *v)
{
	return py_snapshot_worth(&v->snapshot);
}
