// SPDX-License-Identifier: Apache-2.0
/*
 * Writes containers. Each is read before and after its items are written: if it has not changed, they were its items.
 * Offsets are from the end of the object's header on.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_value_internal.h"

/* Slots of a set's table, and entries of a dict's, that are read for each item that the limits allow. */
#define SLOTS_PER_ITEM 16
/* Deleted entries at the start of a dict that are skipped, which takes some milliseconds, and how many per read. */
#define DELETED_MAX   65536
#define DELETED_CHUNK 128
/* An entry of a dict: its key's hash in hashed tables, the key, the value. */
#define HASHED_WORDS 3
#define WORDS        2

static size_t at_most(uint64_t count, uint64_t limit)
{
	return (size_t)(count < limit ? count : limit);
}

void py_write_more(struct py_values *v, size_t written, size_t count)
{
	if (count > written)
		py_out_print(&v->out, "%s%s%zu more", written ? ", " : "", PY_OUT_MORE " ", count - written);
}

void py_write_items(struct py_values *v, const uint64_t *items, size_t have, size_t count)
{
	enum py_next next = PY_NEXT_ANY;

	for (size_t i = 0; i < have && !v->out.full; i++) {
		if (i)
			py_out_text(&v->out, ", ");
		py_write_item(v, items[i], &next);
	}
	py_write_more(v, have, count);
}

/* Writes an array of objects that `head` leads to, if both stay as they are. */
static bool write_array(struct py_values *v, const struct py_part *head, uint64_t at, uint64_t count)
{
	struct py_part items;
	size_t have = at_most(count, v->limits->items);
	bool done = py_part_read(v, &items, at, have);

	if (done) {
		py_write_items(v, items.words, have, (size_t)count);
		done = py_part_same(v, &items) && py_part_same(v, head);
	}
	py_part_free(&items);
	return done;
}

/* ob_size, ob_item, allocated. */
static bool write_list(struct py_values *v, const struct py_object *o)
{
	struct py_part head;
	bool done = py_part_read(v, &head, o->fields, 3) && head.words[0] <= head.words[2] && !(head.words[2] >> 48);

	py_begin_derived(v, o);
	py_out_text(&v->out, "[");
	done = done && write_array(v, &head, head.words[1], head.words[0]);
	py_out_text(&v->out, "]");
	py_end_derived(v, o);
	py_part_free(&head);
	return done;
}

static uint64_t tuple_items(const struct py_values *v, const struct py_object *o)
{
	return o->fields + py_facts(v)->objects->tuple_items;
}

static bool write_tuple(struct py_values *v, const struct py_object *o)
{
	struct py_part head;
	bool done = py_part_read(v, &head, o->fields, 1) && !(head.words[0] >> 48);

	py_begin_derived(v, o);
	py_out_text(&v->out, "(");
	done = done && write_array(v, &head, tuple_items(v, o), head.words[0]);
	py_out_text(&v->out, done && head.words[0] == 1 ? ",)" : ")");
	py_end_derived(v, o);
	py_part_free(&head);
	return done;
}

/* A class of collections.namedtuple() has the names in _fields. */
bool py_write_namedtuple(struct py_values *v, const struct py_object *o)
{
	struct py_type type = o->type;
	struct py_dict dict;
	struct py_part names = {0}, items = {0};
	struct py_entries said = {.is_named = false};
	struct py_object fields;
	uint64_t object = 0, counts[2];
	size_t have;
	bool done;

	for (int i = 0; i < PY_BASES && !object; i++) {
		if (!py_open_dict(&v->r, type.dict, &dict) || !py_find_text(&v->r, &dict, "_fields", &object)) {
			object = 0;
			if (!py_type_at(v, type.base, &type))
				return write_tuple(v, o);
		}
	}
	if (!py_look_at(v, object, &fields) || !(fields.type.flags & PYBPF_TPFLAGS_TUPLE_SUBCLASS) ||
	    !py_get(v, o->fields, &counts[0], 8) || !py_get(v, fields.fields, &counts[1], 8) ||
	    counts[0] != counts[1] || counts[0] >> 48)
		return write_tuple(v, o);
	have = at_most(counts[0], v->limits->items);
	done = py_part_read(v, &names, tuple_items(v, &fields), have) &&
	       py_part_read(v, &items, tuple_items(v, o), have);
	py_out_print(&v->out, "%s(", o->type.name);
	for (size_t i = 0; i < have && done; i++) {
		char *name = py_values_name(v, names.words[i]);

		py_out_text(&v->out, i ? ", " : "");
		py_write_named(v, name, items.words[i], &said);
		free(name);
	}
	py_write_more(v, have, (size_t)counts[0]);
	py_out_text(&v->out, ")");
	done = done && py_part_same(v, &items);
	py_part_free(&names);
	py_part_free(&items);
	return done;
}

/*
 * Returns the key of an entry of a set, or 0. It is followed by its hash, which is -1 for a removed one, and for no
 * key. 2.7 has the hash first, and puts a certain string in the place of a removed key.
 */
static uint64_t set_key(struct py_values *v, uint64_t first, uint64_t second)
{
	static const char dummy[] = "<dummy key>";
	bool old = py_facts(v)->objects->has_hash_first;
	uint64_t key = old ? second : first;
	char *name;
	bool is_dummy;

	if (!old || !key)
		return second == UINT64_MAX ? 0 : key;
	name = py_values_name(v, key);
	is_dummy = name && !strcmp(name, dummy);
	free(name);
	return is_dummy ? 0 : key;
}

/* fill, used, mask, table (PySetObject). */
static bool write_set_items(struct py_values *v, const struct py_part *head)
{
	uint64_t used = head->words[1];
	size_t slots = at_most(head->words[2] + 1, (uint64_t)v->limits->items * SLOTS_PER_ITEM), have = 0;
	uint64_t *items = calloc(slots + 1, sizeof(*items));
	struct py_part table;
	bool done = py_part_read(v, &table, head->words[3], 2 * slots) && items;

	for (size_t i = 0; done && i < slots && have < v->limits->items; i++) {
		items[have] = set_key(v, table.words[2 * i], table.words[2 * i + 1]);
		have += items[have] != 0;
	}
	done = done && have <= used;
	if (done) {
		for (size_t i = 0; i < have && !v->out.full; i++) {
			py_out_text(&v->out, i ? ", " : "");
			py_write(v, items[i]);
		}
		py_write_more(v, have, (size_t)used);
		done = py_part_same(v, &table) && py_part_same(v, head);
	}
	py_part_free(&table);
	free(items);
	return done;
}

static bool write_set(struct py_values *v, const struct py_object *o)
{
	struct py_part head;
	bool done = py_part_read(v, &head, o->fields, 4) && !(head.words[1] >> 48) && head.words[2] != UINT64_MAX;
	bool old = py_facts(v)->repr->has_old_literals;
	bool plain = done && !o->type.derived && !old && !strcmp(o->type.name, "set") && head.words[1];

	if (!plain)
		py_out_print(&v->out, "%s(", o->type.name);
	if (done && head.words[1]) {
		py_out_text(&v->out, old ? "[" : "{");
		done = write_set_items(v, &head);
		py_out_text(&v->out, old ? "]" : "}");
	} else if (done && old) {
		py_out_text(&v->out, "[]");
	}
	if (!plain)
		py_out_text(&v->out, ")");
	py_part_free(&head);
	return done;
}

/*
 * Returns how many entries before the first one have been deleted: most of the table, where a program adds at its end
 * and takes from its start, as a cache does.
 */
static size_t count_deleted(struct py_values *v, const struct py_dict *dict, size_t words)
{
	uint64_t chunk[DELETED_CHUNK * HASHED_WORDS];

	for (size_t done = 0; !dict->values && done < DELETED_MAX; done += DELETED_CHUNK) {
		size_t count = at_most(dict->count - at_most(done, dict->count), DELETED_CHUNK);

		if (!count || !py_get(v, dict->entries + done * words * 8, chunk, count * words * 8))
			break;
		for (size_t i = 0; i < count; i++) {
			if (chunk[(i + 1) * words - 1])
				return done + i;
		}
	}
	return 0;
}

/* An object's dict can have any keys. */
static void write_pair(struct py_values *v, enum py_pairs form, const uint64_t pair[2], bool *first,
		       struct py_entries *said)
{
	char *name = form == PY_PAIRS_NAMES ? py_values_name(v, pair[0]) : NULL;

	py_out_text(&v->out, *first ? "" : ", ");
	*first = false;
	if (name)
		py_write_named(v, name, pair[1], said);
	else
		py_write_entry(v, pair[0], pair[1], said);
	free(name);
}

bool py_write_pairs(struct py_values *v, const struct py_dict *dict, uint64_t used, enum py_pairs form, bool *first)
{
	size_t words = dict->hashed ? HASHED_WORDS : WORDS, written = 0, left = 0;
	size_t deleted = count_deleted(v, dict, words);
	size_t have = at_most(dict->count - deleted, (uint64_t)v->limits->items * SLOTS_PER_ITEM);
	struct py_part entries = {0}, values = {0};
	struct py_order order, again;
	struct py_entries said = {.is_named = false};
	bool done = py_read_order(&v->r, dict, &order) &&
		    py_part_read(v, &entries, dict->entries + deleted * words * 8, have * words);

	if (dict->values)
		done = py_part_read(v, &values, dict->values, have) && done;
	for (size_t i = 0; done && i < (order.count ? order.count : have); i++) {
		size_t at = order.count ? order.entries[i] : i, end = (at + 1) * words;
		uint64_t key, value;

		/* More entries came meanwhile. */
		done = at < have;
		if (!done)
			break;
		key = entries.words[end - 2];
		value = dict->values ? values.words[at] : entries.words[end - 1];
		if (!key || !value)
			continue;
		if (written == v->limits->items) {
			left++;
			continue;
		}
		if (v->out.full)
			break;
		write_pair(v, form, (uint64_t[]){key, value}, first, &said);
		written++;
	}
	if (used == PY_COUNT_UNKNOWN)
		used = written + left + (dict->count - deleted - have);
	py_write_more(v, written, (size_t)used);
	/* Keys that are added later to the table that objects of a class share are no change. */
	done = done && (dict->values ? py_part_same(v, &values) : py_part_same(v, &entries)) &&
	       py_read_order(&v->r, dict, &again) && !memcmp(&again, &order, sizeof(order));
	py_part_free(&entries);
	py_part_free(&values);
	return done;
}

/* 2.7: fill, used, mask, table; else used, a version or tag, keys, values. */
static bool write_pairs_of(struct py_values *v, const struct py_object *o)
{
	struct py_dict dict;
	struct py_part head;
	bool first = true, done = py_part_read(v, &head, o->fields, 4) && py_open_dict(&v->r, o->at, &dict);
	uint64_t used = done ? head.words[py_facts(v)->objects->dict_used / 8] : 0;

	done = done && used <= dict.count && py_write_pairs(v, &dict, used, PY_PAIRS_KEYS, &first) &&
	       py_part_same(v, &head);
	py_part_free(&head);
	return done;
}

static bool write_dict(struct py_values *v, const struct py_object *o)
{
	bool done;

	py_begin_derived(v, o);
	py_out_text(&v->out, "{");
	done = write_pairs_of(v, o);
	py_out_text(&v->out, "}");
	py_end_derived(v, o);
	return done;
}

/* To 3.11 its items are a list of tuples (odict_repr in Objects/odictobject.c); here they are pairs always. */
static bool write_named_dict(struct py_values *v, const struct py_object *o)
{
	const char *name = strrchr(o->type.name, '.');
	bool done;

	py_out_text(&v->out, name ? name + 1 : o->type.name);
	py_out_text(&v->out, "({");
	done = write_pairs_of(v, o);
	py_out_text(&v->out, "})");
	return done;
}

/* default_factory stands behind the dict (Modules/_collectionsmodule.c). */
static bool write_defaultdict(struct py_values *v, const struct py_object *o)
{
	const char *name = strrchr(o->type.name, '.');
	uint64_t factory;
	bool done = py_get(v, o->fields + py_facts(v)->objects->default_factory, &factory, sizeof(factory));

	py_out_text(&v->out, name ? name + 1 : o->type.name);
	py_out_text(&v->out, "(");
	if (done && factory)
		py_write(v, factory);
	else
		py_out_text(&v->out, "None");
	py_out_text(&v->out, ", {");
	done = done && write_pairs_of(v, o);
	py_out_text(&v->out, "})");
	return done;
}

/*
 * ob_size, leftblock, rightblock, leftindex, rightindex, state, maxlen; 2.7: the same without ob_size, but len before
 * state. A block has a link to the left, 64 items and a link to the right; in 2.7 62 items and the links, the right one
 * first (Modules/_collectionsmodule.c).
 */
static bool write_deque(struct py_values *v, const struct py_object *o)
{
	bool old = py_facts(v)->objects->has_len_in_deque;
	size_t per_block = old ? 62 : 64, before = old ? 0 : 1, link = old ? 62 : 65, have = 0;
	struct py_part head, block = {0};
	bool done = py_part_read(v, &head, o->fields, 7);
	const uint64_t *f = head.words;
	uint64_t count = done ? (old ? f[4] : f[0]) : 0, at = done ? (old ? f[0] : f[1]) : 0,
		 i = done ? (old ? f[2] : f[3]) : 0;
	uint64_t most = done ? f[6] : 0;
	enum py_next next = PY_NEXT_ANY;
	size_t wanted = at_most(count, v->limits->items);

	done = done && !(count >> 48) && i < per_block;
	if (o->type.derived)
		py_out_print(&v->out, "%s([", o->type.name);
	else
		py_out_text(&v->out, "deque([");
	while (done && have < wanted && !v->out.full) {
		done = py_part_read(v, &block, at, per_block + 2);
		for (; done && i < per_block && have < wanted && !v->out.full; i++, have++) {
			py_out_text(&v->out, have ? ", " : "");
			py_write_item(v, block.words[before + i], &next);
		}
		at = done ? block.words[link] : 0;
		i = 0;
		done = done && py_part_same(v, &block);
		py_part_free(&block);
	}
	py_write_more(v, wanted, (size_t)count);
	py_out_text(&v->out, "]");
	if ((int64_t)most >= 0)
		py_out_print(&v->out, ", maxlen=%llu", (unsigned long long)most);
	py_out_text(&v->out, ")");
	done = done && py_part_same(v, &head);
	py_part_free(&block);
	py_part_free(&head);
	return done;
}

/* start, stop, step as objects. */
static bool write_three(struct py_values *v, const struct py_object *o)
{
	uint64_t parts[3], one = 0;
	bool is_range = !strcmp(o->type.name, "range");

	if (!py_get(v, o->fields, parts, sizeof(parts)))
		return false;
	py_out_print(&v->out, "%s(", o->type.name);
	py_write(v, parts[0]);
	py_out_text(&v->out, ", ");
	py_write(v, parts[1]);
	if (!is_range || !py_read_int(&v->r, parts[2], &one) || one != 1) {
		py_out_text(&v->out, ", ");
		py_write(v, parts[2]);
	}
	py_out_text(&v->out, ")");
	return true;
}

/* 2.7: start, step, length as C longs. */
static bool write_xrange(struct py_values *v, const struct py_object *o)
{
	int64_t f[3], stop;

	if (!py_get(v, o->fields, f, sizeof(f)))
		return false;
	stop = (int64_t)((uint64_t)f[0] + (uint64_t)f[2] * (uint64_t)f[1]);
	if (f[0] == 0 && f[1] == 1)
		py_out_print(&v->out, "xrange(%lld)", (long long)stop);
	else if (f[1] == 1)
		py_out_print(&v->out, "xrange(%lld, %lld)", (long long)f[0], (long long)stop);
	else
		py_out_print(&v->out, "xrange(%lld, %lld, %lld)", (long long)f[0], (long long)stop, (long long)f[1]);
	return true;
}

const struct py_known py_known_containers[] = {
	{"list", write_list},
	{"tuple", write_tuple},
	{"set", write_set},
	{"frozenset", write_set},
	{"dict", write_dict},
	{"collections.OrderedDict", write_named_dict},
	{"collections.defaultdict", write_defaultdict},
	{"collections.deque", write_deque},
	{"range", write_three},
	{"slice", write_three},
	{"xrange", write_xrange},
	{NULL, NULL},
};
