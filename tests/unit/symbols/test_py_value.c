// SPDX-License-Identifier: Apache-2.0
/* Texts of objects in memory that the test makes, which lies and changes: of every layout. */
#include "walk_world.h"

#include "symbols/secrets/py_secret.h"
#include "symbols/objects/py_value.h"

/* PyTypeObject from the end of the object's header on, as py_value_internal.h has it. */
#define TYPE_SIZE       0
#define TYPE_NAME       8
#define TYPE_BASICSIZE  16
#define TYPE_FLAGS      152
#define TYPE_BASE       240
#define TYPE_DICT       248
#define TYPE_DICTOFFSET 272
#define TYPE_ROOM       400

#define READY    (1ull << 12)
#define HEAP     (1ull << 9)
#define IS_INT   (1ull << 24)
#define IS_LIST  (1ull << 25)
#define IS_BYTES (1ull << 27)
#define IS_DICT  (1ull << 29)
#define IS_TYPE  (1ull << 31)

struct made {
	struct world *w;
	struct walk_memory memory;
	uint64_t meta, of_int, of_list;
	uint64_t change_at, change_to; /* a word that the process changes after so many reads */
	uint64_t also_at, also_to;     /* at the same moment */
	unsigned change_after, reads;
	bool again; /* and then at each read */
};

static int changing_read(void *source, uint64_t addr, void *dst, size_t size)
{
	struct made *m = source;

	m->reads++;
	if (m->change_at && (m->reads == m->change_after || (m->again && m->reads > m->change_after)))
		put_ptr(m->w, m->change_at, 0, m->change_to + (m->again ? m->reads : 0));
	if (m->also_at && m->reads == m->change_after)
		put_ptr(m->w, m->also_at, 0, m->also_to);
	return world_read(m->w, addr, dst, size);
}

static uint32_t head(const struct made *m)
{
	return m->w->l.code_type + 8u;
}

static uint64_t make_name(struct world *w, const char *text)
{
	uint64_t addr = make(w, strlen(text) + 64);

	memcpy(bytes_at(w, addr, strlen(text) + 1), text, strlen(text) + 1);
	return addr;
}

static uint64_t make_type(struct made *m, const char *name, uint64_t flags, uint64_t base)
{
	struct world *w = m->w;
	uint64_t type = make(w, head(m) + TYPE_ROOM), fields = type + head(m);

	memset(bytes_at(w, type, head(m) + TYPE_ROOM), 0, head(m) + TYPE_ROOM);
	put_ptr(w, type, w->l.code_type, m->meta ?: type);
	put_ptr(w, fields, TYPE_NAME, make_name(w, name));
	put_ptr(w, fields, TYPE_BASICSIZE, 64);
	put_ptr(w, fields, TYPE_FLAGS, flags | READY);
	put_ptr(w, fields, TYPE_BASE, base);
	return type;
}

static uint64_t make_object(struct made *m, uint64_t type, const uint64_t *words, size_t count)
{
	uint64_t object = make(m->w, head(m) + 8 * count + 64);

	put_ptr(m->w, object, m->w->l.code_type, type);
	/* A reference: ob_refcnt, or ob_ref_shared with its 2 bits of state behind an ob_ref_local without one. */
	if (m->w->l.free_threaded)
		put_ptr(m->w, object, m->w->l.code_type - 16, 0);
	put_ptr(m->w, object, m->w->l.code_type - 8, m->w->l.free_threaded ? 1 << 2 : 1);
	for (size_t i = 0; i < count; i++)
		put_ptr(m->w, object + head(m), (uint16_t)(8 * i), words[i]);
	return object;
}

static uint64_t make_int(struct made *m, uint32_t number)
{
	uint64_t size = m->w->l.major == 3 && m->w->l.minor >= 12 ? 1 << 3 : 1;

	return make_object(m, m->of_int, (uint64_t[]){size, number}, 2);
}

static uint64_t make_list(struct made *m, const uint64_t *items, uint64_t count)
{
	uint64_t array = make(m->w, 8 * count + 64);

	for (uint64_t i = 0; i < count; i++)
		put_ptr(m->w, array, (uint16_t)(8 * i), items[i]);
	return make_object(m, m->of_list, (uint64_t[]){count, array, count}, 3);
}

static void begin(struct made *m, struct world *w)
{
	*m = (struct made){.w = w};
	m->memory = (struct walk_memory){.read = changing_read, .source = m};
	m->meta = make_type(m, "type", IS_TYPE, 0);
	m->of_int = make_type(m, w->l.major == 2 ? "long" : "int", IS_INT, 0);
	m->of_list = make_type(m, "list", IS_LIST, 0);
}

/* Returns the text of a variable's object, once what was read of it proves to have been there at one moment. */
static const char *proved_text(struct py_values *values, const char *name, uint64_t object, size_t *size)
{
	for (int i = 0; i < 4; i++) {
		const char *text;

		py_values_begin(values, i > 0);
		text = py_values_text(values, name, object, size);
		if (py_values_hold(values))
			return text;
	}
	return PY_VALUE_UNREADABLE;
}

static void assert_value(struct made *m, const char *name, uint64_t object, const char *expected)
{
	const struct py_values_of of = {.memory = &m->memory, .layout = &m->w->l, .runtime = &m->w->proc, .level = 1};
	struct py_values *values = py_values_new(&of);
	size_t size;
	const char *text;

	assert_non_null(values);
	text = proved_text(values, name, object, &size);
	assert_string_equal(text, expected);
	assert_true(size == strlen(expected) || !strcmp(expected, PY_VALUE_UNREADABLE));
	py_values_free(values);
}

static void check_plain(struct world *w)
{
	struct made m;
	uint64_t items[2];

	begin(&m, w);
	items[0] = make_int(&m, 7);
	items[1] = make_list(&m, items, 1);
	assert_value(&m, "x", make_list(&m, items, 2), w->l.major == 2 ? "[7L, [7L]]" : "[7, [7]]");
	assert_value(&m, "db_password", items[0], PY_VALUE_HIDDEN);
}

static void check_lies(struct world *w)
{
	struct made m;
	uint64_t seven, object, no_type;

	begin(&m, w);
	seven = make_int(&m, 7);
	assert_value(&m, "x", 0, PY_VALUE_UNREADABLE);
	assert_value(&m, "x", UNMAPPED, PY_VALUE_UNREADABLE);
	assert_value(&m, "x", seven + 4, PY_VALUE_UNREADABLE);
	/* A type whose type makes no types: some other object. */
	no_type = make_type(&m, "int", IS_INT, 0);
	put_ptr(w, no_type, w->l.code_type, m.of_int);
	assert_value(&m, "x", make_object(&m, no_type, (uint64_t[]){8, 7}, 2), PY_VALUE_UNREADABLE);
	/* A digit has 30 bits. */
	assert_value(&m, "x", make_int(&m, 0xffffffff), PY_VALUE_UNREADABLE);
	/* More items than there is room for, and more than there is memory. */
	object = make_list(&m, &seven, 1);
	put_ptr(w, object + head(&m), 0, 5);
	assert_value(&m, "x", object, PY_VALUE_UNREADABLE);
	put_ptr(w, object + head(&m), 0, 1ull << 60);
	put_ptr(w, object + head(&m), 16, 1ull << 60);
	assert_value(&m, "x", object, PY_VALUE_UNREADABLE);
	object = make_list(&m, (uint64_t[]){seven, UNMAPPED}, 2);
	assert_value(&m, "x", object, w->l.major == 2 ? "[7L, <unreadable>]" : "[7, <unreadable>]");
}

/* Decimals with exponents that the module decimal does not let them have. */
static void check_exponents(struct world *w)
{
	static const int64_t exponents[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, 1000000000000000000};
	struct made m;
	uint64_t type, digits;

	begin(&m, w);
	type = make_type(&m, "decimal.Decimal", 0, 0);
	digits = make(w, 64);
	put_ptr(w, digits, 0, 123);
	assert_value(&m, "x", make_object(&m, type, (uint64_t[]){0, 0, 5, 3, 1, 4, digits}, 7), "Decimal('1.23E+7')");
	for (size_t i = 0; i < ARRAY_SIZE(exponents); i++) {
		const uint64_t words[] = {0, 0, (uint64_t)exponents[i], 3, 1, 4, digits};

		assert_value(&m, "x", make_object(&m, type, words, 7), PY_VALUE_UNREADABLE);
	}
}

static uint64_t make_key(struct made *m, const char *text)
{
	uint64_t string = make_text(m->w, strlen(text));

	put_ptr(m->w, string, m->w->l.code_type, make_type(m, "str", IS_BYTES, 0));
	memcpy(bytes_at(m->w, string + m->w->l.str_ascii_data, strlen(text)), text, strlen(text));
	return string;
}

/* A dict of 2.7 of as many as 8 entries: fill, used, mask, table. */
static uint64_t make_old_dict(struct made *m, const char *const *keys, const uint64_t *values, size_t count)
{
	uint64_t table = make(m->w, 8 * 24);

	memset(bytes_at(m->w, table, 8 * 24), 0, 8 * 24);
	for (size_t i = 0; i < count; i++) {
		put_ptr(m->w, table + 24 * i, 8, make_key(m, keys[i]));
		put_ptr(m->w, table + 24 * i, 16, values[i]);
	}
	return make_object(m, make_type(m, "dict", IS_DICT, 0), (uint64_t[]){count, count, 7, table}, 4);
}

/* 2.7 has the module decimal in Python, and its exponents are C longs. */
static void check_old_exponents(struct world *w)
{
	static const char *const module[] = {"__module__"}, *const names[] = {"_is_special", "_sign", "_exp", "_int"};
	static const uint64_t exponents[] = {5, INT64_MAX, (uint64_t)INT64_MIN};

	if (w->l.major != 2)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(exponents); i++) {
		uint64_t type, of_int, zero, words[4];
		struct made m;

		world_clear(w);
		begin(&m, w);
		of_int = make_type(&m, "int", 1 << 23, 0);
		zero = make_object(&m, of_int, (uint64_t[]){0}, 1);
		words[0] = words[1] = zero;
		words[2] = make_object(&m, of_int, &exponents[i], 1);
		words[3] = make_key(&m, "123");
		type = make_type(&m, "Decimal", HEAP, 0);
		put_ptr(w, type + head(&m), TYPE_DICT,
			make_old_dict(&m, module, (uint64_t[]){make_key(&m, "decimal")}, 1));
		put_ptr(w, type + head(&m), TYPE_DICTOFFSET, head(&m));
		words[0] = make_old_dict(&m, names, words, ARRAY_SIZE(words));
		assert_value(&m, "x", make_object(&m, type, words, 1), i ? PY_VALUE_UNREADABLE : "Decimal('1.23E+7')");
	}
}

static void check_circles(struct world *w)
{
	struct made m;
	uint64_t list, deep, array;

	begin(&m, w);
	list = make_list(&m, (uint64_t[]){0}, 1);
	deep = make_list(&m, &list, 1);
	for (int i = 0; i < 100; i++)
		deep = make_list(&m, &deep, 1);
	assert_value(&m, "x", deep, "[[[[...]]]]");
	/* What is inside itself ends as in repr(), before the limit. */
	memcpy(&array, bytes_at(w, list + head(&m) + 8, 8), 8);
	put_ptr(w, array, 0, list);
	assert_value(&m, "x", list, "[[...]]");
}

/* A base that is its own base, and a name without an end. */
static void check_types(struct world *w)
{
	struct made m;
	uint64_t type, text;

	begin(&m, w);
	type = make_type(&m, "Thing", HEAP, 0);
	put_ptr(w, type + head(&m), TYPE_BASE, type);
	assert_value(&m, "x", make_object(&m, type, (uint64_t[]){0}, 1), "<Thing object>");
	text = make(w, 4096);
	memset(bytes_at(w, text, 4096), 'n', 4096);
	type = make_type(&m, "", HEAP, 0);
	put_ptr(w, type + head(&m), TYPE_NAME, text);
	assert_value(&m, "x", make_object(&m, type, (uint64_t[]){0}, 1),
		     "<nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
		     "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
		     "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
		     "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn... object>");
}

/* A name that is cut ends with a whole character, wherever its characters begin. */
static void check_cut_names(struct world *w)
{
	for (int begin_at = 0; begin_at < 2; begin_at++) {
		char name[600] = "x", expected[600] = "<x";
		struct made m;
		uint64_t type;

		begin(&m, w);
		for (int i = 0; i < 250; i++)
			memcpy(name + begin_at + 2 * i, "\xc3\xa9", 2);
		/* 188 bytes have room; a character of which the last byte is there may be cut, too. */
		for (int i = 0; i < 93; i++)
			memcpy(expected + 1 + begin_at + 2 * i, "\xc3\xa9", 2);
		strcat(expected, "... object>");
		type = make_type(&m, name, HEAP, 0);
		assert_value(&m, "v", make_object(&m, type, (uint64_t[]){0}, 1), expected);
	}
}

/* Whenever an item changes once, the list is read anew; if it always does, it cannot be read. */
static void check_changes(struct world *w)
{
	const char *before = w->l.major == 2 ? "[7L]" : "[7]", *after = w->l.major == 2 ? "[8L]" : "[8]";

	for (unsigned i = 1; i < 40; i++) {
		const struct py_values_of of = {
			.memory = &(struct walk_memory){0}, .layout = &w->l, .runtime = &w->proc, .level = 1};
		struct py_values_of with = of;
		struct py_values *values;
		uint64_t items[2], list, array;
		const char *text;
		struct made m;
		size_t size;

		world_clear(w);
		begin(&m, w);
		items[0] = make_int(&m, 7);
		items[1] = make_int(&m, 8);
		list = make_list(&m, items, 1);
		memcpy(&array, bytes_at(w, list + head(&m) + 8, 8), 8);
		m.change_at = array;
		m.change_to = items[1];
		m.change_after = i;
		with.memory = &m.memory;
		values = py_values_new(&with);
		assert_non_null(values);
		text = proved_text(values, "x", list, &size);
		assert_true(!strcmp(text, before) || !strcmp(text, after));
		py_values_free(values);
		m.reads = 0;
		m.change_after = 0;
		m.again = true;
		assert_value(&m, "x", list, PY_VALUE_UNREADABLE);
	}
}

/* The items of a list are freed, and others made in their places: the list itself is as it was. */
static void check_parts_made_anew(struct world *w)
{
	const char *before = w->l.major == 2 ? "[1L, 2L]" : "[1, 2]", *after = w->l.major == 2 ? "[3L, 4L]" : "[3, 4]";
	bool changed = false;

	for (unsigned i = 1; i < 60; i++) {
		uint64_t items[2], list;
		struct made m;
		struct py_values_of of = {.layout = &w->l, .runtime = &w->proc, .level = 1};
		struct py_values *values;
		const char *text;
		size_t size;

		world_clear(w);
		begin(&m, w);
		items[0] = make_int(&m, 1);
		items[1] = make_int(&m, 2);
		list = make_list(&m, items, 2);
		m.change_at = items[0] + head(&m) + 8;
		m.change_to = 3;
		m.also_at = items[1] + head(&m) + 8;
		m.also_to = 4;
		m.change_after = i;
		of.memory = &m.memory;
		values = py_values_new(&of);
		assert_non_null(values);
		text = proved_text(values, "x", list, &size);
		changed |= !strcmp(text, after);
		if (strcmp(text, before) != 0)
			assert_string_equal(text, after);
		py_values_free(values);
	}
	assert_true(changed);
}

/* What was freed has no reference, or the address of more free memory. */
static void check_freed(struct world *w)
{
	const uint64_t free_words[] = {0, 0x7f31c2a04e50, 0x55d6c2a04e50};

	for (size_t i = 0; i < ARRAY_SIZE(free_words); i++) {
		struct made m;
		uint64_t object;

		/* The free list of free-threaded builds goes through the first word, which says nothing. */
		if (w->l.free_threaded && i)
			continue;
		world_clear(w);
		begin(&m, w);
		object = make_int(&m, 7);
		assert_value(&m, "x", object, w->l.major == 2 ? "7L" : "7");
		put_ptr(w, object, w->l.code_type - 8, free_words[i]);
		assert_value(&m, "x", object, PY_VALUE_UNREADABLE);
	}
}

/* Memory in which the type of an object is one thing at its first look, and another one from then on. */
struct flipping {
	struct made *m;
	uint64_t first, step, count; /* the objects: so many, from this address on, so far from each other */
	uint64_t type, looks[100];   /* what their types are at the first look; how often each was looked at */
};

static int flipping_read(void *source, uint64_t addr, void *dst, size_t size)
{
	struct flipping *f = source;
	uint64_t type = size - sizeof(f->type); /* the last word of what is read may be one */
	uint64_t at = addr + type - f->m->w->l.code_type - f->first, i = at / f->step;
	bool is_type = size >= sizeof(f->type) && size <= 24 && at % f->step == 0 && i < f->count;
	int err = world_read(f->m->w, addr, dst, size);

	if (is_type && !f->looks[i]++ && !err)
		memcpy((uint8_t *)dst + type, &f->type, sizeof(f->type));
	return err;
}

/* A hundred lists, each in the one before, that are something else, of that type, at the first look. */
static void check_depth(struct world *w, uint64_t (*type)(const struct made *m), unsigned level)
{
	struct made m;
	struct flipping f = {.m = &m, .count = ARRAY_SIZE(f.looks)};
	const struct walk_memory memory = {.read = flipping_read, .source = &f};
	const struct py_values_of of = {.memory = &memory, .layout = &w->l, .runtime = &w->proc, .level = level};
	struct py_values *values = py_values_new(&of);
	uint64_t object, array, items[ARRAY_SIZE(f.looks)];
	size_t size, depth = 0;
	const char *text;

	assert_non_null(values);
	world_clear(w);
	begin(&m, w);
	array = make(w, sizeof(items));
	for (size_t i = 0; i < f.count; i++) {
		object = make_object(&m, m.of_list, (uint64_t[]){1, array + 8 * ((i + 1) % f.count), 1}, 3);
		items[i] = object;
		f.first = i ? f.first : object;
		f.step = i == 1 ? object - f.first : f.step;
	}
	memcpy(bytes_at(w, array, sizeof(items)), items, sizeof(items));
	f.type = type(&m);
	text = py_values_text(values, "x", f.first, &size);
	while (text[depth] == '[')
		depth++;
	/* At most the lists of all levels, and the text that replaces a list that is nested too deeply. */
	assert_in_range(depth, 0, level == 1 ? 4 : level == 2 ? 6 : 9);
	py_values_free(values);
}

static uint64_t no_type(const struct made *m)
{
	(void)m;
	return UNMAPPED;
}

/* A type without parts, which may be nested one level deeper. */
static uint64_t int_type(const struct made *m)
{
	return m->of_int;
}

static void check_depths(struct world *w)
{
	for (unsigned level = 1; level <= PY_VALUE_LEVELS; level++) {
		check_depth(w, no_type, level);
		check_depth(w, int_type, level);
	}
}

static void test_depths(void **state)
{
	(void)state;
	each_layout(check_depths);
}

static void test_plain(void **state)
{
	(void)state;
	each_layout(check_plain);
}

static void test_lies(void **state)
{
	(void)state;
	each_layout(check_lies);
}

static void test_exponents(void **state)
{
	(void)state;
	each_layout(check_exponents);
	each_layout(check_old_exponents);
}

static void test_circles(void **state)
{
	(void)state;
	each_layout(check_circles);
}

static void test_types(void **state)
{
	(void)state;
	each_layout(check_types);
}

static void test_cut_names(void **state)
{
	(void)state;
	each_layout(check_cut_names);
}

static void test_parts_made_anew(void **state)
{
	(void)state;
	each_layout(check_parts_made_anew);
}

static void test_freed(void **state)
{
	(void)state;
	each_layout(check_freed);
}

static void test_changes(void **state)
{
	(void)state;
	each_layout(check_changes);
}

static void test_secrets(void **state)
{
	static const char *const hidden[] = {
		"password", "PASSWORD",     "dbPassword",    "api_key",       "apiKey",
		"key",      "X-Auth-Token", "Authorization", "client_secret", "AWS_SECRET_ACCESS_KEY",
		"pwd",      "sessionid",    "SSHKey",        "JWTAuth",       "dbAPIKeys",
		"DBPass1",  "KEYs"};
	static const char *const shown[] = {"monkey", "keyboard", "author",  "compass",     "name",
					    "",       "x",        "keynote", "SSHKeyboard", "K"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		assert_true(py_is_secret(hidden[i]));
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		assert_false(py_is_secret(shown[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),           cmocka_unit_test(test_lies),
		cmocka_unit_test(test_circles),         cmocka_unit_test(test_types),
		cmocka_unit_test(test_cut_names),       cmocka_unit_test(test_changes),
		cmocka_unit_test(test_parts_made_anew), cmocka_unit_test(test_freed),
		cmocka_unit_test(test_secrets),         cmocka_unit_test(test_depths),
		cmocka_unit_test(test_exponents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
