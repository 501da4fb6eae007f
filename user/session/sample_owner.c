// SPDX-License-Identifier: Apache-2.0
#include "session/sample_owner.h"

#include <errno.h>
#include <string.h>

#include "kernel/counts.h"
#include "session/internal.h"

int session_find_owners(struct session *s, const struct pybpf_thread_key *of, struct processes_record *process,
			uint32_t *owner, uint32_t *thread)
{
	struct pybpf_thread_name name;
	char text[sizeof(name.comm) + 1] = "";

	*thread = PROFILE_NONE;
	*owner = processes_add_to_profile(s->processes, process, s->profile);
	if (*owner == PROFILE_NONE)
		return -ENOMEM;
	if (!s->options.threads || !of->tid)
		return 0;
	kernel_get_thread_name(s->kernel, of, &name);
	memcpy(text, name.comm, sizeof(name.comm));
	*thread = profile_add_thread(s->profile, *owner, (int32_t)of->tid,
				     session_find_thread_name(s, process, of, text));
	return *thread == PROFILE_NONE ? -ENOMEM : 0;
}
