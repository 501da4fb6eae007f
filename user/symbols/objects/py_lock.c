// SPDX-License-Identifier: Apache-2.0
/* Reads lockobject and rlockobject of Modules/_threadmodule.c. */
#include "symbols/objects/py_lock.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_value_internal.h"

/*
 * Behind the object's header. To 3.12: lock_lock, a pointer to a sem_t, and of an RLock rlock_owner and rlock_count.
 * From 3.14 on: PyMutex, a byte, and of an RLock the thread and the level of its _PyRecursiveMutex. 3.13 has a PyMutex
 * in its Lock since one of its releases, and its object is shorter since then.
 */
#define LOCK_PLACE          0
#define LOCK_OWNER          8
#define LOCK_WITH_SEMAPHORE 24 /* lock_lock, in_weakreflist, locked */

/* Bits of a PyMutex (Include/cpython/lock.h, Include/internal/pycore_lock.h). */
#define MUTEX_LOCKED 1
#define MUTEX_PARKED 2

/* A thread that is parked sleeps on wait_entry.sema, which follows wait_entry.addr (Python/parking_lot.c, 3.13+). */
#define PARKED_ADDRESS 8

static bool is_named(const struct py_type *type, const char *name)
{
	return !strcmp(type->name, name);
}

static bool read_u64(struct py_values *v, uint64_t at, uint64_t *out)
{
	return py_get(v, at, out, sizeof(*out));
}

uint64_t py_lock_wanted(struct py_values *v, uint64_t futex)
{
	uint64_t address;
	uint8_t bits;

	if (py_facts(v)->threads->has_parking && read_u64(v, futex - PARKED_ADDRESS, &address) &&
	    py_get(v, address, &bits, sizeof(bits)) && bits == (MUTEX_LOCKED | MUTEX_PARKED))
		return address;
	return py_facts(v)->threads->lock == CPYTHON_LOCK_MUTEX ? 0 : futex;
}

/* A semaphore's value is its first word, of glibc and of musl, which has -1 where threads wait. */
static bool is_taken(struct py_values *v, uint64_t semaphore)
{
	int32_t value;

	return py_get(v, semaphore, &value, sizeof(value)) && value <= 0;
}

/* Returns whether the lock has a PyMutex and no semaphore. */
static bool has_mutex(struct py_values *v, const struct py_type *type, bool reentrant)
{
	enum cpython_lock lock = py_facts(v)->threads->lock;
	uint64_t size;

	if (lock != CPYTHON_LOCK_EITHER)
		return lock == CPYTHON_LOCK_MUTEX;
	return !reentrant && read_u64(v, type->address + py_header_size(&v->r) + PYBPF_TYPE_BASICSIZE, &size) &&
	       size < py_header_size(&v->r) + LOCK_WITH_SEMAPHORE;
}

bool py_lock_read(struct py_values *v, uint64_t object, struct py_lock *out)
{
	struct py_object o;
	bool reentrant;

	*out = (struct py_lock){0};
	if (!object || !py_look_at(v, object, &o))
		return false;
	reentrant = is_named(&o.type, "_thread.RLock");
	if (!reentrant && !is_named(&o.type, "_thread.lock") && !is_named(&o.type, "thread.lock"))
		return false;
	if (has_mutex(v, &o.type, reentrant)) {
		uint8_t bits;

		out->place = o.fields + LOCK_PLACE;
		out->is_locked = py_get(v, out->place, &bits, sizeof(bits)) && (bits & MUTEX_LOCKED);
	} else {
		if (!read_u64(v, o.fields + LOCK_PLACE, &out->place))
			return false;
		out->is_locked = is_taken(v, out->place);
	}
	if (reentrant && out->is_locked && !read_u64(v, o.fields + LOCK_OWNER, &out->owner))
		return false;
	return true;
}

static bool is_exit(const char *name)
{
	return !strcmp(name, "__exit__");
}

/* Returns whether the PyMethodDef is that of __exit__. */
static bool defines_exit(struct py_values *v, uint64_t definition)
{
	char name[sizeof("__exit__")];
	uint64_t at;

	return read_u64(v, definition, &at) && py_get(v, at, name, sizeof(name)) && !name[sizeof(name) - 1] &&
	       is_exit(name);
}

/* Returns whether the object is a function of Python's with that name. */
static bool is_function_exit(struct py_values *v, uint64_t function)
{
	struct py_object o;
	uint64_t name;
	char *text;
	bool found;

	if (!py_look_at(v, function, &o) || !is_named(&o.type, "function") ||
	    !read_u64(v, o.fields + py_facts(v)->function->name, &name))
		return false;
	text = py_values_name(v, name);
	found = text && is_exit(text);
	free(text);
	return found;
}

uint64_t py_lock_bound_to(struct py_values *v, uint64_t method)
{
	struct py_object o;
	uint64_t self;

	if (!method || !py_look_at(v, method, &o) || !is_named(&o.type, "builtin_function_or_method") ||
	    !read_u64(v, o.fields + PYBPF_CFUNCTION_SELF, &self))
		return 0;
	return self;
}

/* Reads the lock itself, or the one of a condition. */
static bool read_lock_of(struct py_values *v, uint64_t object, struct py_lock *out)
{
	struct py_object o;
	uint64_t lock;

	if (py_lock_read(v, object, out))
		return true;
	return py_look_at(v, object, &o) && is_named(&o.type, "Condition") && py_attribute(v, &o, "_lock", &lock) &&
	       py_lock_read(v, lock, out);
}

bool py_lock_of_with(struct py_values *v, uint64_t item, uint64_t next, struct py_lock *out)
{
	uint64_t function, object = next;
	struct py_object o;
	bool exits;

	if (!item || !py_look_at(v, item, &o))
		return false;
	if (is_named(&o.type, "builtin_function_or_method") || is_named(&o.type, "method") ||
	    is_named(&o.type, "instancemethod")) {
		if (!read_u64(v, o.fields + PYBPF_METHOD_FUNCTION, &function) ||
		    !read_u64(v, o.fields + PYBPF_METHOD_SELF, &object))
			return false;
		exits = is_named(&o.type, "builtin_function_or_method") ? defines_exit(v, function)
									: is_function_exit(v, function);
	} else if (is_named(&o.type, "method_descriptor")) {
		exits = read_u64(v, o.fields + PYBPF_DESCRIPTOR_DEFINITION, &function) && defines_exit(v, function);
	} else {
		exits = py_facts(v)->threads->splits_exit && is_function_exit(v, item);
	}
	return exits && object && read_lock_of(v, object, out);
}
