// SPDX-License-Identifier: Apache-2.0
/* Writes Base64 through a stdio stream. */
#include "base/base64.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

struct base64 {
	FILE *out;
	int error; /* errno */
	unsigned char group[3];
	size_t count; /* bytes in the group */
};

static void write_group(struct base64 *b)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = b->group[0] << 16 | (b->count > 1 ? b->group[1] << 8 : 0) | (b->count > 2 ? b->group[2] : 0);
	const char text[4] = {
		digits[bits >> 18],
		digits[bits >> 12 & 63],
		b->count > 1 ? digits[bits >> 6 & 63] : '=',
		b->count > 2 ? digits[bits & 63] : '=',
	};

	errno = 0;
	if (fwrite_unlocked(text, 1, sizeof(text), b->out) != sizeof(text))
		b->error = errno ?: EIO;
	b->count = 0;
}

static ssize_t base64_write(void *cookie, const char *bytes, size_t size)
{
	struct base64 *b = cookie;

	for (size_t i = 0; i < size && !b->error; i++) {
		b->group[b->count++] = (unsigned char)bytes[i];
		if (b->count == sizeof(b->group))
			write_group(b);
	}
	/* fopencookie(3): return 0 for a failure, because glibc takes -1 for a number of bytes. */
	return b->error ? 0 : (ssize_t)size;
}

static int base64_close(void *cookie)
{
	struct base64 *b = cookie;
	int error;

	if (b->count && !b->error)
		write_group(b);
	error = b->error;
	free(b);
	if (!error)
		return 0;
	errno = error;
	return -1;
}

FILE *base64_open(FILE *out)
{
	struct base64 *b = calloc(1, sizeof(*b));
	FILE *stream;

	if (!b)
		return NULL;
	b->out = out;
	stream = fopencookie(b, "w", (cookie_io_functions_t){.write = base64_write, .close = base64_close});
	if (!stream)
		free(b);
	return stream;
}
