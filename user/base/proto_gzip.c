// SPDX-License-Identifier: Apache-2.0
#include "base/proto_gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHUNK 65536
/* deflateInit2: the largest window, and 16 for a gzip header, whose time is 0: the same profile is the same file. */
#define GZIP_WINDOW (15 + 16)
#define ZLIB_MEMORY 8 /* its default */

struct proto_gzip {
	ProtobufCBuffer base; /* first: protobuf-c knows only this */
	z_stream z;
	FILE *out;
	int err;
	size_t waiting;
	uint8_t plain[CHUNK], packed[CHUNK];
};

static void compress_chunk(struct proto_gzip *z, int flush)
{
	z->z.next_in = z->plain;
	z->z.avail_in = (unsigned)z->waiting;
	z->waiting = 0;
	do {
		size_t size;

		z->z.next_out = z->packed;
		z->z.avail_out = sizeof(z->packed);
		deflate(&z->z, flush);
		size = sizeof(z->packed) - z->z.avail_out;
		errno = 0;
		if (fwrite(z->packed, 1, size, z->out) != size)
			z->err = errno ? -errno : -EIO;
	} while (!z->z.avail_out && !z->err);
}

static void append(ProtobufCBuffer *buffer, size_t size, const uint8_t *data)
{
	struct proto_gzip *z = (struct proto_gzip *)buffer;

	while (size && !z->err) {
		size_t some = CHUNK - z->waiting < size ? CHUNK - z->waiting : size;

		memcpy(z->plain + z->waiting, data, some);
		z->waiting += some;
		data += some;
		size -= some;
		if (z->waiting == CHUNK)
			compress_chunk(z, Z_NO_FLUSH);
	}
}

struct proto_gzip *proto_gzip_new(FILE *out)
{
	struct proto_gzip *z = calloc(1, sizeof(*z));

	if (!z)
		return NULL;
	if (deflateInit2(&z->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, ZLIB_MEMORY, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		free(z);
		return NULL;
	}
	z->base.append = append;
	z->out = out;
	return z;
}

ProtobufCBuffer *proto_gzip_buffer(struct proto_gzip *z)
{
	return &z->base;
}

int proto_gzip_finish(struct proto_gzip *z)
{
	int err;

	if (!z->err)
		compress_chunk(z, Z_FINISH);
	err = z->err;
	deflateEnd(&z->z);
	free(z);
	return err;
}
