// SPDX-License-Identifier: Apache-2.0
/* Names places in programs. */
#include "session/place_name.h"

#include <inttypes.h>
#include <stdio.h>

#include "profile/profile.h"

void session_name_place(const struct profile *profile, uint32_t index, char *out, size_t size)
{
	const struct profile_frame *frame = profile_frame_at(profile, index);
	const char *name = profile_string(profile, frame->name), *file = profile_string(profile, frame->file);

	if (!*file)
		snprintf(out, size, "%s", name);
	else if (frame->line == PROFILE_NO_LINE)
		snprintf(out, size, "%s (%s)", name, file);
	else
		snprintf(out, size, "%s (%s:%" PRId32 ")", name, file, frame->line);
}
