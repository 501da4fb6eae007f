// SPDX-License-Identifier: Apache-2.0
/* Checks that the layout fits the process's memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "discovery/discovery.h"
#include "base/remote.h"

/* The first of each list are enough to tell a wrong layout. */
#define VALIDATE_MAX_INTERPRETERS 4
#define VALIDATE_MAX_THREADS      8
/* The lists change while they are read: a contradiction must last. */
#define VALIDATE_ATTEMPTS 3
/* End of user addresses, on x86-64 and on arm64 with 48 bits. */
#define USER_ADDRESS_END (1ULL << 48)

struct validation {
	const struct discovery_python *python;
	struct error *error;
	size_t threads; /* number of thread states that fit and have a thread id */
};

static int read_pointer(const struct validation *v, uint64_t addr, uint64_t *out)
{
	return remote_read(v->python->pid, addr, out, sizeof(*out));
}

static bool is_object_address(uint64_t addr)
{
	return addr >= 4096 && addr < USER_ADDRESS_END && addr % 8 == 0;
}

static int contradict(const struct validation *v, const char *what, uint64_t addr, uint64_t value)
{
	return error_set(v->error, -EINVAL,
			 "process %d (%s) does not look like Python %s: %s at %#" PRIx64 " is %#" PRIx64,
			 v->python->pid, v->python->comm, v->python->version, what, addr, value);
}

static int unreadable(const struct validation *v, const char *what, uint64_t addr, int err)
{
	int code = err == -EFAULT ? -EINVAL : err;

	if (err == -ESRCH)
		error_set(v->error, err, "process %d (%s) has ended", v->python->pid, v->python->comm);
	else if (err == -EPERM)
		error_set(
			v->error, err,
			"the memory of process %d (%s) cannot be read: process_vm_readv is not permitted; pybpf needs "
			"CAP_SYS_PTRACE, no seccomp filter that forbids it, and a ptrace_scope below 3; see `pybpf "
			"doctor`",
			v->python->pid, v->python->comm);
	else
		error_set(v->error, code, "process %d (%s): %s at %#" PRIx64 " cannot be read: %s", v->python->pid,
			  v->python->comm, what, addr, strerror(-err));
	return code;
}

/* thread_id is pthread_self(), on x86-64 the thread control block, whose first word points to itself. */
static int check_thread_id(struct validation *v, uint64_t tstate)
{
	uint64_t addr = tstate + v->python->build.layout.tstate_thread_id, id, self;
	int err = read_pointer(v, addr, &id);

	if (err)
		return unreadable(v, "a thread's id", addr, err);
	/* 3.12+ makes a thread state before it gives it to a thread. */
	if (!id)
		return 0;
	if (!is_object_address(id))
		return contradict(v, "a thread's id", addr, id);
#if defined(__x86_64__)
	/* The state of a thread that ended, or did not survive fork, can remain in the list. */
	err = read_pointer(v, id, &self);
	if (err == -ESRCH)
		return unreadable(v, "a thread", id, err);
	if (err || self != id)
		return 0;
#else
	(void)self;
#endif
	v->threads++;
	return 0;
}

static int check_interpreter(struct validation *v, uint64_t interp, size_t *visited)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	uint64_t addr = interp + layout->interp_threads_head, tstate, back;
	int err = read_pointer(v, addr, &tstate);

	if (err)
		return unreadable(v, "an interpreter's list of threads", addr, err);
	for (int i = 0; tstate && i < VALIDATE_MAX_THREADS; i++) {
		if (!is_object_address(tstate))
			return contradict(v, "a thread state's address", addr, tstate);
		addr = tstate + layout->tstate_interp;
		err = read_pointer(v, addr, &back);
		if (err)
			return unreadable(v, "a thread state", tstate, err);
		if (back != interp)
			return contradict(v, "a thread state's interpreter", addr, back);
		err = check_thread_id(v, tstate);
		if (err)
			return err;
		(*visited)++;
		addr = tstate + layout->tstate_next;
		err = read_pointer(v, addr, &tstate);
		if (err)
			return unreadable(v, "a thread state", addr, err);
	}
	return 0;
}

/* PyCode_Type.tp_name is "code"; it follows ob_type and ob_size, whatever the object header holds before
 * them. */
static int check_code_type(struct validation *v)
{
	uint64_t addr = v->python->code_type_addr, name;
	char text[5] = "";
	int err;

	if (!addr)
		return 0;
	addr += v->python->build.layout.code_type + 16;
	err = read_pointer(v, addr, &name);
	if (!err)
		err = remote_read(v->python->pid, name, text, sizeof(text));
	if (err)
		return unreadable(v, "PyCode_Type's name", addr, err);
	if (memcmp(text, "code", 5))
		return contradict(v, "PyCode_Type's name", addr, name);
	return 0;
}

static int validate_once(struct validation *v)
{
	const struct discovery_python *python = v->python;
	uint64_t interp, addr = python->interp_head_addr;
	size_t visited = 0;
	int err = read_pointer(v, addr, &interp);

	v->threads = 0;
	if (err)
		return unreadable(v, "the first interpreter", addr, err);
	for (int i = 0; interp && i < VALIDATE_MAX_INTERPRETERS; i++) {
		if (!is_object_address(interp))
			return contradict(v, "an interpreter's address", addr, interp);
		err = check_interpreter(v, interp, &visited);
		if (err)
			return err;
		addr = interp + python->build.layout.interp_next;
		err = read_pointer(v, addr, &interp);
		if (err)
			return unreadable(v, "the next interpreter", addr, err);
	}
	if (!v->threads)
		return error_set(v->error, -EAGAIN, "process %d (%s): Python %s %s", python->pid, python->comm,
				 python->version,
				 visited ? "has no thread that runs under its id (yet)" : "is not initialised yet");
	return check_code_type(v);
}

bool discovery_is_running(const struct discovery_python *python)
{
	uint64_t interp;

	return remote_read(python->pid, python->interp_head_addr, &interp, sizeof(interp)) || interp;
}

int discovery_validate(const struct discovery_python *python, struct error *error)
{
	struct validation v = {.python = python, .error = error};
	int err = -EINVAL;

	for (int i = 0; i < VALIDATE_ATTEMPTS && err == -EINVAL; i++)
		err = validate_once(&v);
	if (!err)
		error_clear(error);
	return err;
}
