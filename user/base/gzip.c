// SPDX-License-Identifier: Apache-2.0
/* Writes gzip through a stdio stream. */
#define ZLIB_CONST /* the input is const */
#include "base/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <zlib.h>

#define ZLIB_MEMORY 8 /* zlib's default */
#define CHUNK       32768

struct gzip {
	FILE *out;
	int error; /* errno; then nothing more is compressed, as the input may be freed memory */
	z_stream z;
	unsigned char bytes[CHUNK]; /* compressed */
};

static void write_bytes(struct gzip *gzip)
{
	size_t size = CHUNK - gzip->z.avail_out;

	errno = 0;
	if (fwrite(gzip->bytes, 1, size, gzip->out) != size)
		gzip->error = errno ?: EIO;
	gzip->z.next_out = gzip->bytes;
	gzip->z.avail_out = CHUNK;
}

static void compress_input(struct gzip *gzip, int flush)
{
	int state;

	do {
		if (!gzip->z.avail_out)
			write_bytes(gzip);
		if (gzip->error)
			return;
		state = deflate(&gzip->z, flush);
	} while (gzip->z.avail_in || (flush == Z_FINISH && state == Z_OK));
	if (state == Z_STREAM_ERROR)
		gzip->error = EIO;
}

static ssize_t gzip_write(void *cookie, const char *bytes, size_t size)
{
	struct gzip *gzip = cookie;

	if (!gzip->error) {
		gzip->z.next_in = (const Bytef *)bytes;
		gzip->z.avail_in = (uInt)size;
		compress_input(gzip, Z_NO_FLUSH);
	}
	/* fopencookie(3): return 0 for a failure, because glibc takes -1 for a number of bytes. */
	return gzip->error ? 0 : (ssize_t)size;
}

static int gzip_close(void *cookie)
{
	struct gzip *gzip = cookie;
	int error;

	if (!gzip->error)
		compress_input(gzip, Z_FINISH);
	if (!gzip->error)
		write_bytes(gzip);
	error = gzip->error;
	deflateEnd(&gzip->z);
	free(gzip);
	if (!error)
		return 0;
	errno = error;
	return -1;
}

FILE *gzip_open(FILE *out)
{
	struct gzip *gzip = calloc(1, sizeof(*gzip));
	FILE *stream;

	if (!gzip)
		return NULL;
	gzip->out = out;
	gzip->z.next_out = gzip->bytes;
	gzip->z.avail_out = CHUNK;
	if (deflateInit2(&gzip->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, ZLIB_MEMORY, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		free(gzip);
		return NULL;
	}
	stream = fopencookie(gzip, "w", (cookie_io_functions_t){.write = gzip_write, .close = gzip_close});
	if (!stream) {
		deflateEnd(&gzip->z);
		free(gzip);
	}
	return stream;
}
