// SPDX-License-Identifier: Apache-2.0
/*
 * What the files that write the text of objects share. From the bottom: py_read.c reads, py_type.c knows the types,
 * py_write.c writes an object by its type, py_hide.c decides what is hidden; the others write some types each, and
 * py_value.c has the table of their writers, and the limits.
 */
#ifndef SYMBOLS_PY_VALUE_INTERNAL_H
#define SYMBOLS_PY_VALUE_INTERNAL_H

#include "cpython/facts.h"
#include "symbols/objects/py_dict.h"
#include "symbols/objects/py_out.h"
#include "symbols/objects/py_snapshot.h"
#include "symbols/objects/py_value.h"

/* Bytes of a name of C that are kept, with its NUL, such as that of a type: py_out_print() has room for more. */
#define PY_TYPE_NAME 192
/* Most bases of a type that are looked at. */
#define PY_BASES 32

struct py_object;

/* Writes an object; returns false if it cannot be read, or changed meanwhile. */
typedef bool py_writer(struct py_values *v, const struct py_object *o);

struct py_type {
	uint64_t address, flags, base, dict;
	uint64_t members, nr_members; /* of a heap type: its __slots__ (PyMemberDef) */
	py_writer *write;
	bool is_single; /* its objects have no parts */
	bool derived;   /* from the type that the writer knows */
	bool is_enum, is_dataclass;
	char name[PY_TYPE_NAME];
};

struct py_object {
	uint64_t at, fields; /* fields: behind its header */
	struct py_type type;
};

struct py_known {
	const char *name;
	py_writer *write;
};
struct py_known_class {
	struct py_known known;
	const char *module; /* its own, or a package around it */
};

/* Who writes objects, by their type: the tables end with a name that is NULL. */
struct py_writers {
	const struct py_known *single;         /* of types whose objects have no parts */
	const struct py_known *const *types;   /* likewise of other types of C; NULL ends it */
	const struct py_known_class *classes;  /* of classes that are written in Python */
	py_writer *member_of_enum, *exception; /* whatever their class is */
	py_writer *namedtuple;
	py_writer *type;     /* of types themselves */
	py_writer *instance; /* of all other types */
};

struct py_limits {
	uint32_t text, string, items;
	uint32_t levels; /* of objects within each other; on the last one only those without parts are written */
};

#define PY_TYPES 256

/* An object that is being written, in the one that it is a part of: one that is inside itself is a circle. */
struct py_nest {
	uint64_t object;
	const struct py_nest *outer; /* NULL: it is a variable's own */
	uint32_t levels;             /* that are left for its parts */
};

struct py_values {
	struct py_values_of of;
	struct walk_memory memory; /* the process's, within the limits of time */
	struct py_reader r;
	const struct py_limits *limits;
	const struct py_writers *writers;
	bool has_secret_name; /* a text that was written has the name of a secret in it, or a part that was not read */
	unsigned cost, max_cost, looked_at; /* of what was read; when the clock was looked at, in units of it */
	unsigned unit;                      /* bytes of a character of 2.7's unicode; 0: not looked for yet */
	bool is_over;                       /* the time is */
	struct py_snapshot snapshot;        /* of a value of a process that runs */
	bool in_snapshot;                   /* what is read now is of that value */
	const struct py_nest *nest;         /* what is being written now */
	struct py_type types[PY_TYPES];
	struct py_out out;
};

/* py_read.c */

/* v->of is set. level: from 1 to PY_VALUE_LEVELS. */
void py_read_init(struct py_values *v, unsigned level);
bool py_get(struct py_values *v, uint64_t addr, void *dst, size_t size);
/* Reads a name that ends with a NUL. A longer one is cut and ends with PY_OUT_MORE. Returns false if it cannot be read.
 */
bool py_read_name(struct py_values *v, uint64_t addr, char name[PY_TYPE_NAME]);
/* Reads the address of an object's type. Returns false if nobody has a reference to the object: it was freed meanwhile.
 */
bool py_read_head(struct py_values *v, uint64_t object, uint64_t *type);
const struct cpython_facts *py_facts(const struct py_values *v);

/* What was read of an object, to see later whether it changed. */
struct py_part {
	uint64_t at;
	size_t size;
	uint64_t *words;
};
/* Reads that many words; py_part_free() is to be called in any case. */
bool py_part_read(struct py_values *v, struct py_part *part, uint64_t at, size_t words);
/* Reads the part again. Returns whether it is the same. */
bool py_part_same(struct py_values *v, const struct py_part *part);
void py_part_free(struct py_part *part);

/* Where the characters of a str of 3.x are (PEP 393). */
struct py_units {
	uint64_t at, count;
	unsigned unit; /* bytes of each */
};
bool py_find_units(struct py_values *v, uint64_t object, struct py_units *out);

/* py_type.c */

/* Reads an object's type. Returns false if it is not an object. */
bool py_look_at(struct py_values *v, uint64_t object, struct py_object *o);
bool py_type_at(struct py_values *v, uint64_t type, struct py_type *out);
/* Finds an attribute of the class or of its bases. */
bool py_find_in_class(struct py_values *v, const struct py_type *type, const char *name, uint64_t *value);
bool py_class_has(struct py_values *v, const struct py_type *type, const char *name);

/* py_write.c */

/* Adds the text of an object, or PY_VALUE_UNREADABLE. */
void py_write(struct py_values *v, uint64_t object);
/* Adds "Name(" and ")" around what a type derived from a known one writes. */
void py_begin_derived(struct py_values *v, const struct py_object *o);
void py_end_derived(struct py_values *v, const struct py_object *o);

/* py_scalar.c */

/* Adds the first `kept` of `count` units in quotes, with what is secret in them hidden; cut: there are more than
 * `count`. */
void py_write_text(struct py_values *v, const uint8_t *units, size_t kept, size_t count, bool cut, unsigned unit,
		   enum py_quote quote);
/* Writes the two doubles behind the object's header. Returns as a writer. */
bool py_write_complex_parts(struct py_values *v, const struct py_object *o);

/* py_container.c */

/* Adds the objects behind one another, as many as the limits allow, of `count` in all. */
void py_write_items(struct py_values *v, const uint64_t *items, size_t have, size_t count);
/* Adds "N more" if not all of count items were written. */
void py_write_more(struct py_values *v, size_t written, size_t count);
enum py_pairs {
	PY_PAIRS_KEYS,  /* key: value */
	PY_PAIRS_NAMES, /* name=value, or key: value where a key is no name */
};
/* How many entries a dict has is not known without counting them. */
#define PY_COUNT_UNKNOWN UINT64_MAX
/* Adds the entries of a dict, of which there are `used`. first: nothing stands before them. Returns as a writer. */
bool py_write_pairs(struct py_values *v, const struct py_dict *dict, uint64_t used, enum py_pairs form, bool *first);
/* py_hide.c */

/* What entries of a dict or of an object say of each other: {"name": "password", "value": "x"}. */
struct py_entries {
	bool is_named;           /* one says that the value is a secret's */
	size_t value, value_end; /* where the value was written */
};

/* What an item of a sequence says of the next one. */
enum py_next {
	PY_NEXT_ANY,
	PY_NEXT_SECRET,
	PY_NEXT_USER, /* it is a user, perhaps with a password: "bob:x" */
};
/* Returns whether the value of what has that name is hidden. */
bool py_hides_name(const struct py_values *v, const char *name);
/*
 * Returns whether the value of an enum's member is hidden: its name says so, or cannot be read. named: there is a name,
 * an object at `name`; text: the name, or NULL.
 */
bool py_hides_member(struct py_values *v, bool named, uint64_t name, const char *text);
/*
 * Marks what is secret in a text of `count` characters of `unit` bytes in *hidden, and notes whether the text names a
 * secret. cut: it goes on. *text: room for `count` characters.
 */
void py_hide_in_text(struct py_values *v, const uint8_t *units, size_t count, bool cut, unsigned unit, char *text,
		     uint8_t *hidden);
/* Adds an item of a sequence, or that it is hidden. *next: what the item before says, PY_NEXT_ANY for the first one. */
void py_write_item(struct py_values *v, uint64_t item, enum py_next *next);
/* Adds an attribute, name=value, whose value may be hidden; NULL: the name cannot be read. entries: all zero at first.
 */
void py_write_named(struct py_values *v, const char *name, uint64_t value, struct py_entries *entries);
/* Likewise an entry of a dict, key: value. */
void py_write_entry(struct py_values *v, uint64_t key, uint64_t value, struct py_entries *entries);

/* py_instance.c */

/* Finds an attribute in __slots__ or in the object's dict; *value is not 0. */
bool py_attribute(struct py_values *v, const struct py_object *o, const char *name, uint64_t *value);
/* Finds a slot of the type, or of a base, and where its value is in an object. */
bool py_find_slot(struct py_values *v, const struct py_type *type, const char *name, uint64_t *offset);

/* The writers of each file, by the name of the type. */
extern const struct py_known py_known_scalars[];       /* py_scalar.c */
extern const struct py_known py_known_containers[];    /* py_container.c */
extern const struct py_known py_known_library[];       /* py_library.c */
extern const struct py_known_class py_known_classes[]; /* likewise */
extern const struct py_known py_known_callables[];     /* py_callable.c */
extern const struct py_known py_known_instances[];     /* py_instance.c */
extern const struct py_known py_known_numpy[];         /* py_numpy.c */

/* For classes that are written in Python: py_known_classes. */
py_writer py_write_path, py_write_frame, py_write_series, py_write_index, py_write_nat, py_write_tensor;
py_writer py_write_instance, py_write_enum, py_write_exception, py_write_class, py_write_namedtuple;

#endif
