// SPDX-License-Identifier: Apache-2.0
/* What the files that read a process ask of the collector. */
#include "dump/collect.h"

void dump_note_unread(struct dump_collector *c, int err)
{
	c->out->incomplete = c->out->incomplete ?: err;
}

bool dump_is_stopped(const struct dump_collector *c)
{
	return c->core || c->stopped || c->frozen;
}

const struct dump_known *dump_find_known(const struct dump_collector *c, const struct dump_thread *thread)
{
	return dump_known_by_tid(&c->known, thread->inside);
}
