// SPDX-License-Identifier: Apache-2.0
/* Tells waits for single processes, and names those for several. */
#include "profile/children.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What comes before the PID, and before the number of processes; the name without either. */
static const struct {
	const char *one, *many, *any;
} kinds[PROFILE_CHILD_KINDS] = {
	{"[child: ", "[child: ", "[child]"},
	{"[other: process ", "[other: ", "[other: a process]"},
	{"[poll: epoll until process ", "[poll: epoll until any of ", "[poll: epoll until a process]"},
};

unsigned profile_child_kind(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = profile_frame_at(p, frame);
	const char *name = profile_string(p, f->name);
	unsigned kind = 0;

	if (!f->state)
		return PROFILE_CHILD_KINDS;
	for (; kind < PROFILE_CHILD_KINDS; kind++) {
		size_t begin = strlen(kinds[kind].one), digits;

		if (strncmp(name, kinds[kind].one, begin) != 0)
			continue;
		digits = strspn(name + begin, "0123456789");
		if (digits && strcmp(name + begin + digits, "]") == 0)
			break;
	}
	return kind;
}

const char *profile_child_any(unsigned kind)
{
	return kinds[kind].any;
}

char *profile_children_name(unsigned kind, uint32_t processes)
{
	char *name;

	return asprintf(&name, "%s%" PRIu32 " processes]", kinds[kind].many, processes) < 0 ? NULL : name;
}
