// SPDX-License-Identifier: Apache-2.0
/* Frames of one profile in another. */
#include "profile/mappings.h"

/* Adds compiled code of another profile, with its library alone. */
static uint32_t add_code_of(struct profile *p, const struct profile *from, const struct profile_frame *frame,
			    int32_t line)
{
	const struct profile_mapping_info library = {
		.file = profile_string(from, profile_library_of(from, frame)), .build_id = "", .path = ""};
	struct profile_code code = {.mapping = PROFILE_NONE, .marks = frame->marks, .line = line};

	if (profile_library_of(from, frame) != frame->file) {
		code.mapping = profile_add_mapping(p, &library);
		if (code.mapping == PROFILE_NONE)
			return PROFILE_NONE;
	}
	return profile_add_code(p, profile_string(from, frame->name), profile_string(from, frame->file), &code);
}

uint32_t profile_add_frame_of(struct profile *p, const struct profile *from, uint32_t frame, int32_t line,
			      int32_t first_line)
{
	const struct profile_frame *f = profile_frame_at(from, frame);
	const char *name = profile_string(from, f->name);

	if (f->state)
		return profile_add_wait(p, profile_string(from, f->state), name, f->waker);
	if (f->kind == PROFILE_NATIVE)
		return add_code_of(p, from, f, line);
	return profile_add_frame(p, (enum profile_frame_kind)f->kind, name, profile_string(from, f->file), line,
				 first_line);
}
