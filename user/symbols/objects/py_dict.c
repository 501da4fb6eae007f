// SPDX-License-Identifier: Apache-2.0
/*
 * Dicts of CPython 2.7 and 3.6 to 3.15, and where objects have theirs. The process may change what is read: every
 * pointer is followed once, every length bounded, and what was found is checked by its type.
 */
#include "symbols/objects/py_dict.h"

#include <stdlib.h>
#include <string.h>

#include "cpython/facts.h"
#include "symbols/objects/string_read.h"

/* Most entries of a dict that are searched. */
#define MAX_ENTRIES 65536
/* Likewise, where each key is a string to be read: sys.modules has modules in the order of their import. */
#define MAX_TEXT_ENTRIES 8192
/* Most bytes of a key of bytes, with one more. */
#define MAX_BYTES_KEY 64
/* Farther from an object's start its dict is not looked for. */
#define MAX_OFFSET (1u << 20)
/* Entries that are read at once. */
#define BATCH 64

static bool read_bytes(const struct py_reader *r, uint64_t addr, void *out, size_t size)
{
	return addr && !r->memory->read(r->memory->source, addr, out, size);
}

bool py_read_u64(const struct py_reader *r, uint64_t addr, uint64_t *out)
{
	return read_bytes(r, addr, out, sizeof(*out));
}

uint32_t py_header_size(const struct py_reader *r)
{
	return cpython_header_size(r->layout);
}

static const struct cpython_dict *facts_of(const struct py_reader *r)
{
	return cpython_facts(r->layout)->dict;
}

bool py_is_a(const struct py_reader *r, uint64_t object, enum py_kind kind)
{
	uint64_t type, flags;

	return object && py_read_u64(r, object + r->layout->code_type, &type) && type &&
	       py_read_u64(r, type + py_header_size(r) + PYBPF_TYPE_FLAGS, &flags) && (flags & (unsigned)kind);
}

/* 2.7: PyDictObject has the table itself, with unused entries in between. */
static bool open_old_dict(const struct py_reader *r, uint64_t object, struct py_dict *dict)
{
	struct {
		uint64_t fill, used, mask, table;
	} fields;

	if (!read_bytes(r, object + py_header_size(r), &fields, sizeof(fields)) || fields.mask >= UINT32_MAX)
		return false;
	*dict = (struct py_dict){.entries = fields.table, .count = (uint32_t)fields.mask + 1, .hashed = true};
	return true;
}

/* Opens a PyDictKeysObject; values: of a split table, or 0. */
static bool open_keys(const struct py_reader *r, uint64_t keys, uint64_t values, struct py_dict *dict)
{
	uint64_t used, size, indices;
	uint8_t head[32];

	/* Not the count of references, which comes first: objects that share the keys come and go. */
	if (!keys || !read_bytes(r, keys + 8, head, sizeof(head)))
		return false;
	*dict = (struct py_dict){.values = values, .hashed = true};
	if (facts_of(r)->has_log2_sizes) { /* log2 of the size, log2 of the indices' bytes, kind; nentries at 16 */
		if (head[1] > 32)
			return false;
		memcpy(&used, head + 16, sizeof(used));
		indices = 1ull << head[1];
		dict->hashed = head[2] == PYBPF_KEYS_GENERAL;
		dict->entries = keys + PYBPF_KEYS_INDICES + indices;
	} else { /* size, lookup, usable, nentries; an index has as many bytes as the size needs */
		memcpy(&size, head, sizeof(size));
		memcpy(&used, head + 24, sizeof(used));
		if (size > UINT32_MAX)
			return false;
		dict->entries = keys + PYBPF_KEYS_INDICES_310 + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
	}
	if (used > UINT32_MAX)
		return false;
	dict->count = (uint32_t)used;
	return true;
}

bool py_open_dict(const struct py_reader *r, uint64_t object, struct py_dict *dict)
{
	uint64_t keys, values, at = object + py_header_size(r);

	if (!py_is_a(r, object, PY_KIND_DICT))
		return false;
	if (facts_of(r)->has_own_table)
		return open_old_dict(r, object, dict);
	if (!py_read_u64(r, at + PYBPF_DICT_KEYS, &keys) || !py_read_u64(r, at + PYBPF_DICT_VALUES, &values))
		return false;
	/* PyDictValues may have 4 counters before the values, in 8 bytes. */
	return open_keys(r, keys, values && facts_of(r)->values == CPYTHON_VALUES_INLINE ? values + 8 : values, dict);
}

static enum py_found found_if(bool done)
{
	return done ? PY_FOUND : PY_UNREADABLE;
}

/* Finds the values behind the object's own fields; capacity, size, embedded and valid stand before them. */
static bool find_inline(const struct py_reader *r, uint64_t object, uint64_t type, uint64_t *values)
{
	uint8_t counters[4];
	uint64_t size;

	if (!py_read_u64(r, type + py_header_size(r) + PYBPF_TYPE_BASICSIZE, &size) ||
	    !read_bytes(r, object + size, counters, sizeof(counters)) || !counters[3])
		return false;
	*values = object + size + 8;
	return true;
}

bool py_read_order(const struct py_reader *r, const struct py_dict *dict, struct py_order *out)
{
	uint8_t counters[2];

	*out = (struct py_order){0};
	if (!dict->values || facts_of(r)->values == CPYTHON_VALUES_NONE)
		return true;
	/* Capacity and size are 8 bytes before the values, and the indices follow them. */
	if (facts_of(r)->values == CPYTHON_VALUES_INLINE) {
		if (!read_bytes(r, dict->values - 8, counters, sizeof(counters)) || counters[1] > PY_ORDER_MAX)
			return false;
		out->count = counters[1];
		return !out->count || read_bytes(r, dict->values + 8ull * counters[0], out->entries, out->count);
	}
	/* The size is 2 bytes before the values, and the indices before it, the first one last (pycore_dict.h). */
	if (!read_bytes(r, dict->values - 2, counters, 1) || counters[0] > PY_ORDER_MAX)
		return false;
	out->count = counters[0];
	if (out->count && !read_bytes(r, dict->values - 2 - out->count, out->entries, out->count))
		return false;
	for (uint8_t i = 0; i < out->count / 2; i++) {
		uint8_t entry = out->entries[i];

		out->entries[i] = out->entries[out->count - 1 - i];
		out->entries[out->count - 1 - i] = entry;
	}
	return true;
}

/*
 * 3.11+: a pointer before the object leads to its dict, if it has one; else its values are in an array, in the order of
 * the keys that its type has.
 */
static enum py_found open_managed(const struct py_reader *r, uint64_t object, uint64_t type, uint64_t flags,
				  struct py_dict *dict)
{
	uint64_t pointer = 0, values = 0, keys;

	/* In free-threaded builds it comes right before the object, else before the collector's two words. */
	if (!py_read_u64(r, object - (r->layout->free_threaded ? 8 : 24), &pointer))
		return PY_UNREADABLE;
	switch (facts_of(r)->values) {
	case CPYTHON_VALUES_BESIDE:
		if (!py_read_u64(r, object - 32, &values))
			return PY_UNREADABLE;
		break;
	case CPYTHON_VALUES_TAGGED:
		values = pointer & 1 ? pointer + 1 : 0;
		break;
	default:
		if (!pointer && (flags & PYBPF_TPFLAGS_INLINE_VALUES) && !find_inline(r, object, type, &values))
			return PY_UNREADABLE;
	}
	if (!values)
		return pointer ? found_if(py_open_dict(r, pointer, dict)) : PY_NOTHING;
	return found_if(py_read_u64(r, type + py_header_size(r) + facts_of(r)->cached_keys, &keys) &&
			open_keys(r, keys, values, dict));
}

/*
 * Objects of variable size, such as an int of a class of its own, have the pointer to their dict at their end: makes an
 * offset from there one from the start (_PyObject_GetDictPtr to 3.11).
 */
static bool from_end(const struct py_reader *r, uint64_t object, uint64_t type, uint64_t *at)
{
	uint64_t sizes[2], count, end;

	if (!read_bytes(r, type + py_header_size(r) + PYBPF_TYPE_BASICSIZE, sizes, sizeof(sizes)) ||
	    !py_read_u64(r, object + py_header_size(r), &count))
		return false;
	/* The sign of an int is that of its number of digits. */
	count = (int64_t)count < 0 ? 0 - count : count;
	if (sizes[0] > MAX_OFFSET || sizes[1] > MAX_OFFSET || count > MAX_OFFSET)
		return false;
	end = (sizes[0] + count * sizes[1] + 7) & ~7ull;
	*at += end;
	return *at < end;
}

enum py_found py_find_attributes(const struct py_reader *r, uint64_t object, struct py_dict *dict)
{
	uint64_t type, flags, at, attributes;

	if (cpython_is_newer(r->layout) || !py_read_u64(r, object + r->layout->code_type, &type) ||
	    !py_read_u64(r, type + py_header_size(r) + PYBPF_TYPE_FLAGS, &flags))
		return PY_UNREADABLE;
	if (facts_of(r)->values != CPYTHON_VALUES_NONE && (flags & PYBPF_TPFLAGS_MANAGED_DICT))
		return open_managed(r, object, type, flags, dict);
	if (!py_read_u64(r, type + py_header_size(r) + PYBPF_TYPE_DICTOFFSET, &at) ||
	    ((int64_t)at < 0 && !from_end(r, object, type, &at)) || at >= MAX_OFFSET)
		return PY_UNREADABLE;
	if (!at)
		return PY_NOTHING;
	if (!py_read_u64(r, object + at, &attributes))
		return PY_UNREADABLE;
	return attributes ? found_if(py_open_dict(r, attributes, dict)) : PY_NOTHING;
}

bool py_open_attributes(const struct py_reader *r, uint64_t object, struct py_dict *dict)
{
	return py_find_attributes(r, object, dict) == PY_FOUND;
}

static bool is_text(const struct py_reader *r, uint64_t object, const char *text)
{
	char *found = NULL;
	uint64_t length;
	bool same;

	/* Not to decode long ones: what is looked for is ASCII. */
	if (py_is_a(r, object, r->layout->string_kind == PYBPF_STR_BYTES ? PY_KIND_BYTES : PY_KIND_TEXT) &&
	    py_read_u64(r, object + r->layout->str_length, &length) && length == strlen(text))
		found = pysym_read_string(r->memory, r->layout, object);
	same = found && !strcmp(found, text);
	free(found);
	return same;
}

static bool has_bytes(const struct py_reader *r, uint64_t object, const char *text)
{
	char found[MAX_BYTES_KEY];
	size_t size, length = strlen(text);

	return length < sizeof(found) && py_read_bytes(r, object, found, length + 1, &size) && size == length &&
	       !memcmp(found, text, length);
}

/* What the key of an entry is: the first of these that is set; without any, it has this hash. */
struct wanted {
	const char *text, *bytes;
	uint64_t object, hash;
};

static bool is_wanted(const struct py_reader *r, const struct wanted *wanted, uint64_t key, uint64_t hash)
{
	if (wanted->text)
		return is_text(r, key, wanted->text);
	if (wanted->bytes)
		return has_bytes(r, key, wanted->bytes);
	return wanted->object ? key == wanted->object : hash == wanted->hash;
}

static bool find_entry(const struct py_reader *r, const struct py_dict *dict, const struct wanted *wanted,
		       uint64_t *value)
{
	uint32_t size = dict->hashed ? PYBPF_ENTRY_HASHED : PYBPF_ENTRY, words = size / 8;
	uint64_t batch[BATCH * PYBPF_ENTRY_HASHED / 8];

	for (uint32_t i = 0; i < dict->count && i < (wanted->text || wanted->bytes ? MAX_TEXT_ENTRIES : MAX_ENTRIES);
	     i++) {
		const uint64_t *entry = &batch[(size_t)(i % BATCH) * words];
		uint32_t left = dict->count - i;
		uint64_t key, found;

		if (i % BATCH == 0 && !read_bytes(r, dict->entries + (uint64_t)i * size, batch,
						  (size_t)(left < BATCH ? left : BATCH) * size))
			return false;
		key = entry[words - 2];
		found = entry[words - 1];
		if (dict->values && !py_read_u64(r, dict->values + 8ull * i, &found))
			return false;
		if (!key || !found || !is_wanted(r, wanted, key, entry[0]))
			continue;
		*value = found;
		return true;
	}
	return false;
}

bool py_find_text(const struct py_reader *r, const struct py_dict *dict, const char *key, uint64_t *value)
{
	return find_entry(r, dict, &(struct wanted){.text = key}, value);
}

bool py_find_bytes(const struct py_reader *r, const struct py_dict *dict, const char *key, uint64_t *value)
{
	return find_entry(r, dict, &(struct wanted){.bytes = key}, value);
}

bool py_open_module(const struct py_reader *r, uint64_t interp, const char *name, struct py_dict *dict)
{
	uint64_t modules, module, names;

	/* A module's first field is its dict. */
	return r->layout->interp_modules && py_read_u64(r, interp + r->layout->interp_modules, &modules) &&
	       py_open_dict(r, modules, dict) && py_find_text(r, dict, name, &module) &&
	       py_read_u64(r, module + py_header_size(r), &names) && py_open_dict(r, names, dict);
}

bool py_find_int(const struct py_reader *r, const struct py_dict *dict, uint64_t key, uint64_t *value)
{
	return dict->hashed && find_entry(r, dict, &(struct wanted){.hash = key}, value);
}

bool py_find_object(const struct py_reader *r, const struct py_dict *dict, uint64_t key, uint64_t *value)
{
	return key && find_entry(r, dict, &(struct wanted){.object = key}, value);
}

bool py_read_int(const struct py_reader *r, uint64_t object, uint64_t *out)
{
	uint64_t at = object + py_header_size(r), size;
	uint32_t digits[2] = {0};

	if (cpython_facts(r->layout)->objects->has_c_int && py_is_a(r, object, PY_KIND_INT))
		return py_read_u64(r, at, out);
	if (!py_is_a(r, object, PY_KIND_LONG) || !py_read_u64(r, at, &size))
		return false;
	/* In lv_tag the sign is 0 if positive and 1 for zero. */
	if (cpython_facts(r->layout)->objects->has_long_tag)
		size = size & 2 ? UINT64_MAX : size >> PYBPF_LONG_COUNT_SHIFT;
	if (size > 2 || (size && !read_bytes(r, at + PYBPF_LONG_DIGITS, digits, size * sizeof(digits[0]))))
		return false;
	*out = digits[0] | (uint64_t)digits[1] << PYBPF_DIGIT_BITS;
	return true;
}

bool py_read_bytes(const struct py_reader *r, uint64_t object, char *out, size_t room, size_t *size)
{
	uint64_t length;

	if (!py_is_a(r, object, PY_KIND_BYTES) || !py_read_u64(r, object + r->layout->bytes_size, &length))
		return false;
	*size = length < room ? (size_t)length : room;
	return !*size || read_bytes(r, object + r->layout->bytes_data, out, *size);
}
