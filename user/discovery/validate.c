// SPDX-License-Identifier: Apache-2.0
/* Checks that the layout fits the process's memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/remote.h"
#include "cpython/facts.h"
#include "discovery/validate.h"

/* The first of each list are enough to tell a wrong layout. */
#define VALIDATE_MAX_INTERPRETERS 4
#define VALIDATE_MAX_THREADS      8
/* The lists change while they are read: a contradiction must last. */
#define VALIDATE_ATTEMPTS 3

static int read_pointer(const struct validation *v, uint64_t addr, uint64_t *out)
{
	return validate_read(v, addr, out, sizeof(*out));
}

/* thread_id is pthread_self(), on x86-64 the thread control block, whose first word points to itself. */
static int check_thread_id(struct validation *v, uint64_t tstate)
{
	uint64_t addr = tstate + v->python->build.layout.tstate_thread_id, id, self;
	int err = read_pointer(v, addr, &id);
	bool runs;

	if (err)
		return validate_unreadable(v, "a thread's id", addr, err);
	/* 3.12+ makes a thread state before it gives it to a thread. */
	if (!id)
		return 0;
	if (!validate_is_address(id))
		return validate_contradict(v, "a thread's id", addr, id);
#if defined(__x86_64__)
	/* The state of a thread that ended, or did not survive fork, can remain in the list. */
	err = read_pointer(v, id, &self);
	if (err == -ESRCH)
		return validate_unreadable(v, "a thread", id, err);
	if (err || self != id)
		return 0;
#else
	(void)self;
#endif
	err = validate_thread_fields(v, tstate, &runs);
	if (err || !runs)
		return err;
	v->threads++;
	return validate_thread_frames(v, tstate);
}

static int check_interpreter(struct validation *v, uint64_t interp, size_t *visited)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	uint64_t addr = interp + layout->interp_threads_head, tstate, back;
	int err = read_pointer(v, addr, &tstate);

	if (err)
		return validate_unreadable(v, "an interpreter's list of threads", addr, err);
	for (int i = 0; tstate && i < VALIDATE_MAX_THREADS; i++) {
		if (!validate_is_address(tstate))
			return validate_contradict(v, "a thread state's address", addr, tstate);
		addr = tstate + layout->tstate_interp;
		err = read_pointer(v, addr, &back);
		if (err)
			return validate_unreadable(v, "a thread state", tstate, err);
		if (back != interp)
			return validate_contradict(v, "a thread state's interpreter", addr, back);
		err = check_thread_id(v, tstate);
		if (err)
			return err;
		(*visited)++;
		addr = tstate + layout->tstate_next;
		err = read_pointer(v, addr, &tstate);
		if (err)
			return validate_unreadable(v, "a thread state", addr, err);
	}
	return validate_interpreter_fields(v, interp);
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
	addr += cpython_header_size(&v->python->build.layout) + PYBPF_TYPE_NAME;
	err = read_pointer(v, addr, &name);
	if (!err)
		err = validate_read(v, name, text, sizeof(text));
	if (err)
		return validate_unreadable(v, "PyCode_Type's name", addr, err);
	if (memcmp(text, "code", 5))
		return validate_contradict(v, "PyCode_Type's name", addr, name);
	return 0;
}

static int validate_once(struct validation *v)
{
	const struct discovery_python *python = v->python;
	uint64_t interp, addr = python->interp_head_addr;
	size_t visited = 0;
	int err = read_pointer(v, addr, &interp);

	v->threads = 0;
	v->frames = 0;
	v->frames_looked = 0;
	if (err)
		return validate_unreadable(v, "the first interpreter", addr, err);
	for (int i = 0; interp && i < VALIDATE_MAX_INTERPRETERS; i++) {
		if (!validate_is_address(interp))
			return validate_contradict(v, "an interpreter's address", addr, interp);
		err = check_interpreter(v, interp, &visited);
		if (err)
			return err;
		addr = interp + python->build.layout.interp_next;
		err = read_pointer(v, addr, &interp);
		if (err)
			return validate_unreadable(v, "the next interpreter", addr, err);
	}
	if (!v->threads)
		return error_set(v->error, -EAGAIN, "process %d (%s): Python %s %s", python->pid, python->comm,
				 python->version,
				 visited ? "has no thread that runs under its id (yet)" : "is not initialised yet");
	err = check_code_type(v);
	if (!err && !v->frames && cpython_is_newer(&python->build.layout))
		return error_set(v->error, -EAGAIN,
				 "process %d (%s): Python %s runs no function (yet) by which its frames could be "
				 "checked",
				 python->pid, python->comm, python->version);
	return err;
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

	/* Frames that changed while they were read have shown nothing. */
	for (int i = 0; i < VALIDATE_ATTEMPTS && (err == -EINVAL || (err == -EAGAIN && v.frames_looked)); i++)
		err = validate_once(&v);
	if (!err)
		error_clear(error);
	return err;
}
