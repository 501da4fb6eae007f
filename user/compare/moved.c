// SPDX-License-Identifier: Apache-2.0
/* Finds the first lines of functions, and from them how far they have moved. */
#include "compare/moved.h"

#include <errno.h>
#include <stddef.h>

struct beginning {
	uint32_t name, file; /* strings: the key */
	int32_t line;        /* PROFILE_NO_LINE: of several functions */
};

void diff_beginnings_init(struct diff_beginnings *b)
{
	intern_init(&b->table, sizeof(struct beginning), offsetof(struct beginning, line));
}

void diff_beginnings_free(struct diff_beginnings *b)
{
	intern_free(&b->table);
}

static struct beginning of_frame(struct profile *strings, const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = profile_frame_at(p, frame);

	return (struct beginning){.name = profile_add_string(strings, profile_string(p, f->name)),
				  .file = profile_add_string(strings, profile_string(p, f->file)),
				  .line = f->first_line};
}

int diff_beginnings_add(struct diff_beginnings *b, struct profile *strings, const struct profile *p)
{
	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		struct beginning one = of_frame(strings, p, i), *known;
		bool is_fresh;
		uint32_t at;

		if (profile_frame_at(p, i)->kind != PROFILE_PYTHON || one.line == PROFILE_NO_LINE)
			continue;
		at = one.name == PROFILE_NONE || one.file == PROFILE_NONE ? INTERN_NONE
									  : intern_add(&b->table, &one, &is_fresh);
		if (at == INTERN_NONE)
			return -ENOMEM;
		known = intern_item(&b->table, at);
		if (known->line != one.line)
			known->line = PROFILE_NO_LINE;
	}
	return 0;
}

/* Returns the first line of that function, or PROFILE_NO_LINE. */
static int32_t find(const struct diff_beginnings *b, const struct beginning *wanted)
{
	uint32_t at = intern_find(&b->table, wanted);

	return at == INTERN_NONE ? PROFILE_NO_LINE : ((const struct beginning *)intern_item(&b->table, at))->line;
}

int32_t diff_moved_line(const struct diff_beginnings *one, const struct diff_beginnings *other, struct profile *strings,
			const struct profile *p, uint32_t frame)
{
	const struct beginning wanted = of_frame(strings, p, frame);
	int32_t line = profile_frame_at(p, frame)->line, from = find(one, &wanted), to = find(other, &wanted);
	int64_t moved = (int64_t)line - from + to;

	if (line == PROFILE_NO_LINE || from == PROFILE_NO_LINE || to == PROFILE_NO_LINE || line < from)
		return line;
	/* A file may say anything. */
	return moved < 0 || moved > INT32_MAX ? line : (int32_t)moved;
}
