// SPDX-License-Identifier: Apache-2.0
#include "base/text_stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define FIRST_ROOM 256

struct text_stream {
	char **text;
	size_t *size;
	char *bytes;
	size_t used, room;
	bool failed;
};

static bool reserve(struct text_stream *s, size_t more)
{
	size_t need = s->used + more + 1, room = s->room ? s->room : FIRST_ROOM;
	char *bytes;

	if (need <= s->room)
		return true;
	while (room < need)
		room *= 2;
	bytes = realloc(s->bytes, room);
	if (!bytes)
		return false;
	s->bytes = bytes;
	s->room = room;
	return true;
}

/* Says 0 where it fails, not -1: fopencookie(3). */
static ssize_t stream_write(void *cookie, const char *bytes, size_t size)
{
	struct text_stream *s = cookie;

	s->failed = s->failed || !reserve(s, size);
	if (s->failed)
		return 0;
	memcpy(s->bytes + s->used, bytes, size);
	s->used += size;
	return (ssize_t)size;
}

static int stream_close(void *cookie)
{
	struct text_stream *s = cookie;
	bool failed = s->failed || !reserve(s, 0);

	if (failed) {
		free(s->bytes);
		*s->text = NULL;
	} else {
		s->bytes[s->used] = '\0';
		*s->text = s->bytes;
		*s->size = s->used;
	}
	free(s);
	return failed ? -1 : 0;
}

FILE *text_stream_open(char **text, size_t *size)
{
	struct text_stream *s = calloc(1, sizeof(*s));
	FILE *stream;

	*text = NULL;
	if (!s)
		return NULL;
	s->text = text;
	s->size = size;
	stream = fopencookie(s, "w", (cookie_io_functions_t){.write = stream_write, .close = stream_close});
	if (!stream)
		free(s);
	return stream;
}
