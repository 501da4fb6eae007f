// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the socket for which a task waits: by the objects whose methods await, if what is awaited is theirs, to the
 * transport of asyncio that they have. Nothing is guessed: a future that is somebody else's has no socket.
 */
#include <string.h>

#include "cpython/structs.h"
#include "symbols/objects/py_frame.h"
#include "symbols/objects/py_value_internal.h"
#include "symbols/tasks/task_reader.h"

/* Objects from a method's to that of the socket: a stream, its protocol, TLS, and the transport below. */
#define MAX_HOPS 6

/* The attributes that are looked for. */
enum name {
	/*
	 * Where objects keep what their methods await: asyncio's StreamReader and aiohttp's, protocols while a buffer
	 * is full, and the events of anyio's.
	 */
	WAITER,
	DRAIN_WAITER,
	EOF_WAITER,
	READ_EVENT,
	WRITE_EVENT,
	DRAIN_WAITERS, /* 3.11+: in a deque */
	/* On the way to a transport: asyncio's TLS first, which has a transport of its own below. */
	SSL_PROTOCOL,
	TRANSPORT_,
	TRANSPORT,
	PROTOCOL_,
	PROTOCOL,
	STREAM_READER,
	/* Attributes of asyncio's transports. */
	SOCK_FD,
	SOCK,
	NAMES,
};
static const char *const names[] = {
	[WAITER] = "_waiter",
	[DRAIN_WAITER] = "_drain_waiter",
	[EOF_WAITER] = "_eof_waiter",
	[READ_EVENT] = "read_event",
	[WRITE_EVENT] = "write_event",
	[DRAIN_WAITERS] = "_drain_waiters",
	[SSL_PROTOCOL] = "_ssl_protocol",
	[TRANSPORT_] = "_transport",
	[TRANSPORT] = "transport",
	[PROTOCOL_] = "_protocol",
	[PROTOCOL] = "protocol",
	[STREAM_READER] = "_stream_reader",
	[SOCK_FD] = "_sock_fd",
	[SOCK] = "_sock",
};
_Static_assert(NAMES <= PY_NAMES_MAX, "all names are looked for at once");

/* Returns the first argument of the method whose frame it is, or 0. */
static uint64_t self_of(struct task_reader *r, uint64_t frame)
{
	const struct pybpf_layout *layout = &r->place->layout;
	uint64_t object = py_frame_object(layout, task_pointer_at(r, frame + py_frame_locals(layout))), content;

	return object && py_values_open_cell(r->values, object, &content) ? content : object;
}

static bool is_one_of(uint64_t value, const uint64_t *targets, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (value == targets[i])
			return true;
	}
	return false;
}

/* Returns whether one of the targets is among the items of the first block of a deque. */
static bool is_in_deque(struct py_values *v, uint64_t deque, const uint64_t *targets, size_t count)
{
	struct cpython_deque d;
	struct py_object o;
	uint64_t item;

	if (!py_look_at(v, deque, &o) || strcmp(o.type.name, "collections.deque") ||
	    !py_get(v, o.fields, &d, sizeof(d)))
		return false;
	for (uint64_t i = 0; i < d.length && d.begin + i < CPYTHON_DEQUE_BLOCK; i++) {
		if (!py_get(v, d.first + 8 + 8 * (d.begin + i), &item, sizeof(item)))
			return false;
		if (is_one_of(item, targets, count))
			return true;
	}
	return false;
}

static bool attributes(struct task_reader *r, uint64_t object, uint64_t found[NAMES])
{
	return object && py_names_find(&r->names, r->values, object, found);
}

/* Returns whether an object with these attributes keeps one of the targets to be woken by. */
static bool keeps(struct py_values *v, const uint64_t found[NAMES], const uint64_t *targets, size_t count)
{
	for (int i = WAITER; i < DRAIN_WAITERS; i++) {
		if (found[i] && is_one_of(found[i], targets, count))
			return true;
	}
	return found[DRAIN_WAITERS] && is_in_deque(v, found[DRAIN_WAITERS], targets, count);
}

/* Returns whether it or its protocol does. */
static bool waits_for(struct task_reader *r, const uint64_t found[NAMES], const uint64_t *targets, size_t count)
{
	uint64_t protocol[NAMES];

	return keeps(r->values, found, targets, count) ||
	       (attributes(r, found[PROTOCOL_], protocol) && keeps(r->values, protocol, targets, count)) ||
	       (attributes(r, found[PROTOCOL], protocol) && keeps(r->values, protocol, targets, count));
}

/*
 * Returns the descriptor of asyncio's transport, or -1: the number that it was made with may be another file's since,
 * unless its socket is open.
 */
static int descriptor_of(struct py_values *v, const uint64_t found[NAMES])
{
	struct cpython_socket socket;
	uint64_t made_with;
	struct py_object o;

	if (!found[SOCK_FD] || !found[SOCK] || !py_read_int(&v->r, found[SOCK_FD], &made_with) ||
	    !py_look_at(v, found[SOCK], &o) || strcmp(o.type.name, "socket") != 0 ||
	    !py_get(v, o.fields, &socket, sizeof(socket)) || socket.fd < 0 || (uint64_t)socket.fd != made_with)
		return -1;
	return socket.fd;
}

static int find_descriptor(struct task_reader *r, uint64_t found[NAMES])
{
	for (int i = 0; i < MAX_HOPS; i++) {
		int fd = descriptor_of(r->values, found), hop = SSL_PROTOCOL;

		if (fd >= 0)
			return fd;
		while (hop < STREAM_READER && !found[hop])
			hop++;
		if (!attributes(r, found[hop], found))
			return -1;
	}
	return -1;
}

void task_peer_begin(struct task_reader *r)
{
	struct py_values_of of = {.memory = r->memory,
				  .layout = &r->place->layout,
				  .runtime = &r->place->runtime,
				  .level = PY_VALUE_LEVELS};

	task_peer_end(r);
	r->values = py_values_new(&of);
	py_names_init(&r->names, names, NAMES);
}

void task_peer_end(struct task_reader *r)
{
	py_values_free(r->values);
	py_names_forget(&r->names);
	r->values = NULL;
}

int task_find_socket(struct task_reader *r, uint64_t awaited)
{
	uint64_t targets[1 + TASK_INNER] = {awaited}, found[NAMES];

	for (size_t i = 0; i < TASK_INNER && i < r->nr_inner && r->values; i++) {
		uint64_t self = self_of(r, r->inner[(r->nr_inner - 1 - i) % TASK_INNER]);

		if (attributes(r, self, found) && waits_for(r, found, targets, 1 + i))
			return find_descriptor(r, found);
		if (!self)
			break;
		targets[1 + i] = self;
	}
	return -1;
}
