// SPDX-License-Identifier: Apache-2.0
/* A growing text behind a stdio stream. */
#include "base/text_stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/array.h"

struct text_stream {
	char **text;
	size_t *size;
	char *bytes;
	size_t used, room;
	bool failed;
};

/* Returns 0 for a failure, not -1: fopencookie(3). */
static ssize_t stream_write(void *cookie, const char *bytes, size_t size)
{
	struct text_stream *s = cookie;

	s->failed = s->failed || array_reserve(&s->bytes, &s->room, s->used + size + 1, 1);
	if (s->failed)
		return 0;
	memcpy(s->bytes + s->used, bytes, size);
	s->used += size;
	return (ssize_t)size;
}

static int stream_close(void *cookie)
{
	struct text_stream *s = cookie;
	bool failed = s->failed || array_reserve(&s->bytes, &s->room, s->used + 1, 1);

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
