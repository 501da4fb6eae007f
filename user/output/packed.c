// SPDX-License-Identifier: Apache-2.0
#define ZLIB_CONST /* what is compressed is const */
#include "output/packed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>
#include <zlib.h>

/* zlib's manual, deflateInit2: 15 is the largest window, and 16 more asks for gzip's header. */
#define WINDOW_BITS  (15 + 16)
#define MEMORY_LEVEL 8 /* its default */
/* Bytes that are written at once; Base64 makes four of three. */
#define CHUNK (3 * 8192)

struct packed {
	FILE *out;
	bool failed; /* nothing more is compressed then: what is left to compress may be freed memory */
	z_stream z;
	unsigned char bytes[CHUNK]; /* compressed */
};

static int write_base64(const unsigned char *bytes, size_t size, FILE *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[CHUNK / 3 * 4];
	size_t n = 0;

	if (!size)
		return 0;
	for (size_t i = 0; i < size; i += 3) {
		unsigned bits = bytes[i] << 16;

		bits |= i + 1 < size ? bytes[i + 1] << 8 : 0;
		bits |= i + 2 < size ? bytes[i + 2] : 0;
		text[n++] = digits[bits >> 18];
		text[n++] = digits[bits >> 12 & 63];
		text[n++] = i + 1 < size ? digits[bits >> 6 & 63] : '=';
		text[n++] = i + 2 < size ? digits[bits & 63] : '=';
	}
	return fwrite(text, 1, n, out) == n ? 0 : -1;
}

/* Compresses what is at hand. Only whole chunks, which need no padding, are written before the end. */
static int pack(struct packed *packed, int flush)
{
	int state;

	do {
		if (!packed->z.avail_out) {
			if (write_base64(packed->bytes, CHUNK, packed->out))
				return -1;
			packed->z.next_out = packed->bytes;
			packed->z.avail_out = CHUNK;
		}
		state = deflate(&packed->z, flush);
	} while (packed->z.avail_in || (flush == Z_FINISH && state == Z_OK));
	return state == Z_STREAM_ERROR ? -1 : 0;
}

static ssize_t packed_write(void *cookie, const char *bytes, size_t size)
{
	struct packed *packed = cookie;

	if (packed->failed)
		return 0;
	packed->z.next_in = (const Bytef *)bytes;
	packed->z.avail_in = (uInt)size;
	packed->failed = pack(packed, Z_NO_FLUSH);
	/* fopencookie(3): a failure is 0; glibc takes -1 for a number of bytes. */
	return packed->failed ? 0 : (ssize_t)size;
}

static int packed_close(void *cookie)
{
	struct packed *packed = cookie;
	int err = packed->failed ? -1 : pack(packed, Z_FINISH);

	err = err ?: write_base64(packed->bytes, CHUNK - packed->z.avail_out, packed->out);
	deflateEnd(&packed->z);
	free(packed);
	return err;
}

FILE *packed_open(FILE *out)
{
	struct packed *packed = calloc(1, sizeof(*packed));
	FILE *stream;

	if (!packed)
		return NULL;
	packed->out = out;
	packed->z.next_out = packed->bytes;
	packed->z.avail_out = CHUNK;
	if (deflateInit2(&packed->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(packed);
		return NULL;
	}
	stream = fopencookie(packed, "w", (cookie_io_functions_t){.write = packed_write, .close = packed_close});
	if (!stream) {
		deflateEnd(&packed->z);
		free(packed);
		return NULL;
	}
	setvbuf(stream, NULL, _IOFBF, CHUNK);
	return stream;
}
