// SPDX-License-Identifier: Apache-2.0
/* Why a process runs no Python, as far as its files tell. */
#include <errno.h>
#include <string.h>

#include "base/host.h"
#include "base/process_source.h"
#include "discovery/search.h"

const char *discovery_inside_path(const struct discovery_search *search, const char *path)
{
	size_t len = strlen(search->root);

	return len > 1 && !strncmp(path, search->root, len) && path[len] == '/' ? path + len : path;
}

/* The files of a 32-bit process are not read: it is refused when their names say Python. */
static bool has_python_name(const struct discovery_search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		const char *slash = strrchr(search->files[i].map.path, '/');

		if (slash && (!strncmp(slash, "/python", 7) || !strncmp(slash, "/libpython", 10)))
			return true;
	}
	return false;
}

/* Returns whether the loader has not mapped all libraries of the program yet; it lies beside these. */
static bool is_loading(const struct discovery_search *search)
{
	size_t libraries = search->main.libraries;

	return libraries && !search->has_heap && search->nr_mapped < 2 + libraries;
}

enum discovery_result discovery_tell_nothing(struct discovery_search *search, const char *comm)
{
	if (search->refused)
		return DISCOVERY_UNSUPPORTED;
	if (search->foreign_main && has_python_name(search)) {
		error_set(search->error, -ENOTSUP,
			  "process %d (%s) runs %s, which is a 32-bit program or one for another machine; pybpf "
			  "reads 64-bit "
			  "Python only",
			  search->pid, comm, discovery_inside_path(search, search->exe));
		return DISCOVERY_UNSUPPORTED;
	}
	if (search->kernel_thread) {
		error_set(search->error, -ENOEXEC, "process %d (%s) is a thread of the kernel, and runs no Python",
			  search->pid, comm);
		return DISCOVERY_NOT_PYTHON;
	}
	if ((!search->count || is_loading(search)) && !process_source_of(search->pid)) {
		error_set(search->error, -EAGAIN,
			  "process %d (%s) maps %s: it is just starting a program, or ending; try again", search->pid,
			  comm, search->count ? "its libraries in part" : "no executable file");
		return DISCOVERY_UNMAPPED;
	}
	if (search->unreadable && (search->unreadable_error == -EPERM || search->unreadable_error == -EACCES)) {
		error_set(search->error, search->unreadable_error,
			  "%zu of the %zu file%s that process %d (%s) maps cannot be opened: %s%s", search->unreadable,
			  search->count, search->count == 1 ? "" : "s", search->pid, comm,
			  strerror(-search->unreadable_error), host_explain_denial(true));
		return DISCOVERY_DENIED;
	}
	if (search->unreadable_error == -ENOMEM) {
		error_set(search->error, -ENOMEM,
			  "process %d (%s) is left out: looking at the files that it maps took too much memory",
			  search->pid, comm);
		return DISCOVERY_UNSUPPORTED;
	}
	error_set(search->error, -ENOEXEC,
		  "process %d (%s) maps no Python: %s%zu executable file%s %s CPython's runtime%s", search->pid, comm,
		  search->count == 1 ? "its " : "none of its ", search->count, search->count == 1 ? "" : "s",
		  search->count == 1 ? "does not hold" : "holds",
		  search->unreadable ? " (some could not be opened)" : "");
	return DISCOVERY_NOT_PYTHON;
}
