// SPDX-License-Identifier: Apache-2.0
/* Whose the resident memory of processes is, by page: --mode=memory. */
#ifndef SESSION_PAGE_OWNERS_H
#define SESSION_PAGE_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "pybpf.h"

struct session_page_owners {
	struct intern processes; /* by proc_id */
	uint64_t page;           /* bytes of a page */
	uint64_t given, taken;   /* pages that got an owner, and that lost one */
	uint64_t refused;        /* bytes that were touched and for which there was no memory */
};

void session_page_owners_init(struct session_page_owners *o);
void session_page_owners_free(struct session_page_owners *o);

/*
 * Takes a record of size bytes. may_grow: there is memory for pages in places where none had an owner. Returns 0,
 * -EBADMSG or -ENOMEM.
 */
int session_page_owners_take(struct session_page_owners *o, const struct pybpf_memory_event *event, size_t size,
			     bool may_grow);

/*
 * Returns the bytes that the stack of the key has touched and its process has not given back since; most: not now, but
 * when the process held most.
 */
uint64_t session_page_owners_get(const struct session_page_owners *o, const struct pybpf_count_key *key, bool most);
/*
 * Tells how many bytes stacks were given and have given back, with those of forgotten processes; what remains is held
 * now, or was when its process ended.
 */
void session_page_owners_tell(const struct session_page_owners *o, uint64_t *given, uint64_t *given_back);

/* Forgets a process. */
void session_page_owners_forget(struct session_page_owners *o, uint64_t proc_id);

#endif
