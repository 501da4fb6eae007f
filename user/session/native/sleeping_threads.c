// SPDX-License-Identifier: Apache-2.0
/* Native frames of threads that have slept since before the run: the programs meet them only when they wake. */
#include <errno.h>

#include "kernel/native.h"
#include "pybpf_wait.h"
#include "session/internal.h"
#include "session/native/internal.h"
#include "session/native/native.h"

bool session_native_is_pending(const struct session *s, uint64_t proc_id)
{
	const struct session_native_state *n = s->native;
	const struct mapper *mapper = n ? native_mapper_of(n, proc_id) : NULL;

	if (!n || !mapper)
		return n != NULL;
	for (uint32_t i = 0; i < mapper->count; i++) {
		const struct native_known_file *file = native_files_at(&n->files, mapper->mappings[i].file);

		if (file->state == NATIVE_FILE_WANTED && !file->shown.pages)
			return true;
	}
	return !mapper->shown.count || mapper->is_unshown;
}

static int read_page(void *arg, uint32_t number, struct pybpf_native_page *out)
{
	return kernel_read_native_page(arg, number, out);
}

void session_native_follow(struct session *s, const struct pybpf_thread_found *found, struct native_walked *out)
{
	struct session_native_state *n = s->native;
	const struct mapper *mapper = n ? native_mapper_of(n, found->proc_id) : NULL;
	const struct native_thread thread = {mapper ? mapper->pid : 0, found->pc, found->sp, found->bp, NULL};

	*out = (struct native_walked){.end = PYBPF_NATIVE_NOT_ASKED};
	if (!n)
		return;
	if (!n->walker)
		n->walker = native_walker_new(read_page, s->kernel, session_native_exact(&s->options));
	if (!n->walker)
		return;
	if (n->walker_writes != n->pages.writes)
		native_walker_forget_pages(n->walker);
	n->walker_writes = n->pages.writes;
	native_walker_follow(n->walker, &thread, mapper && mapper->shown.count ? &mapper->shown : NULL, out);
}
