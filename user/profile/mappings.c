// SPDX-License-Identifier: Apache-2.0
/* The parts of files that functions of compiled code are in. */
#include "profile/mappings.h"

#include <stdbool.h>

uint32_t profile_add_mapping(struct profile *p, const struct profile_mapping_info *info)
{
	const struct profile_mapping mapping = {
		.file = profile_add_string(p, info->file),
		.build_id = profile_add_string(p, info->build_id),
		.start = info->start,
		.limit = info->limit,
		.offset = info->offset,
		.path = profile_add_string(p, info->path),
	};
	bool fresh;

	if (mapping.file == PROFILE_NONE || mapping.build_id == PROFILE_NONE || mapping.path == PROFILE_NONE)
		return PROFILE_NONE;
	return intern_add(profile_mappings_of(p), &mapping, &fresh);
}

uint32_t profile_copy_mapping(struct profile *p, const struct profile *from, const struct profile_frame *frame)
{
	const struct profile_mapping *mapping;

	if (!frame->mapping)
		return PROFILE_NONE;
	mapping = profile_mapping_at(from, frame->mapping - 1);
	return profile_add_mapping(p, &(struct profile_mapping_info){
					      .file = profile_string(from, mapping->file),
					      .build_id = profile_string(from, mapping->build_id),
					      .path = profile_string(from, mapping->path),
					      .start = mapping->start,
					      .limit = mapping->limit,
					      .offset = mapping->offset,
				      });
}

uint32_t profile_library_of(const struct profile *p, const struct profile_frame *frame)
{
	return frame->mapping ? profile_mapping_at(p, frame->mapping - 1)->file : frame->file;
}
