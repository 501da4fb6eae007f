// SPDX-License-Identifier: Apache-2.0
/* Reads a saved profile's file: checks its first line, and decompresses its message. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "profile/saved_internal.h"
#include "base/array.h"
#include "base/gzip.h"

#define CHUNK 65536
/* The most digits of a format number. */
#define FORMAT_DIGITS 6
/*
 * Limits on the unpacked size. Profiles are compressed to a third or a tenth of their size, but stacks that are one
 * long recursion each to a thousandth, which is zlib's best: a thousand of these, of 8,192 frames, are accepted. A file
 * that exceeds this was made to exhaust memory.
 */
#define RATIO_MAX    100
#define RATIO_FREE   ((size_t)16 << 20)
#define UNPACKED_MAX ((size_t)512 << 20)

static int cannot_read(struct saved_error *error, int err)
{
	return saved_say(error, err ? -err : -EIO, "cannot be read: %s", strerror(err ? err : EIO));
}

/* The unpacked bytes. */
struct unpacked {
	uint8_t *bytes;
	size_t size, room;
};

/*
 * Inflates the input of z. Returns zlib's result, Z_OK if it needs more input. Sets *err to 0, or to a negative errno
 * with a sentence in *error.
 */
static int inflate_chunk(z_stream *z, struct unpacked *u, struct saved_error *error, int *err)
{
	int result;

	do {
		if (u->size == u->room && array_reserve(&u->bytes, &u->room, u->size + CHUNK, 1)) {
			*err = saved_no_memory(error);
			return Z_MEM_ERROR;
		}
		z->next_out = u->bytes + u->size;
		z->avail_out = (unsigned)(u->room - u->size < CHUNK ? u->room - u->size : CHUNK);
		result = inflate(z, Z_NO_FLUSH);
		u->size = (size_t)(z->next_out - u->bytes);
		if (u->size > UNPACKED_MAX || u->size > RATIO_FREE + RATIO_MAX * (size_t)z->total_in) {
			*err = saved_too_large(error);
			return Z_DATA_ERROR;
		}
	} while (result == Z_OK && !z->avail_out);
	/* zlib had room for output, but no input left: not an error. */
	if (result == Z_BUF_ERROR)
		return Z_OK;
	if (result != Z_OK && result != Z_STREAM_END)
		*err = saved_damaged(error, "what it has compressed cannot be unpacked");
	return result;
}

static int inflate_stream(FILE *in, struct unpacked *u, struct saved_error *error)
{
	uint8_t chunk[CHUNK];
	z_stream z = {0};
	int result = inflateInit2(&z, GZIP_WINDOW), err = 0;

	if (result != Z_OK)
		return saved_no_memory(error);
	while (result == Z_OK) {
		errno = 0;
		z.next_in = chunk;
		z.avail_in = (unsigned)fread(chunk, 1, sizeof(chunk), in);
		if (ferror(in))
			err = cannot_read(error, errno);
		else if (!z.avail_in)
			err = saved_say(error, -EBADMSG, "was cut off: it ends in the middle of the profile");
		if (err)
			break;
		result = inflate_chunk(&z, u, error, &err);
	}
	if (result == Z_STREAM_END && (z.avail_in || fgetc(in) != EOF))
		err = saved_damaged(error, "there is data after the end of the profile");
	inflateEnd(&z);
	return err;
}

/* Reads the first line, which identifies a saved profile and its format. */
static int read_magic(FILE *in, struct saved_error *error)
{
	static const char magic[] = PROFILE_SAVED_MAGIC;
	int format = 0, c = 0;

	errno = 0;
	for (const char *m = magic; *m; m++) {
		c = fgetc(in);
		if (c == EOF && ferror(in))
			return cannot_read(error, errno);
		if (c == EOF && m == magic)
			return saved_say(error, -EBADMSG, "is empty, no profile was saved there");
		if (c == EOF)
			return saved_say(error, -EBADMSG, "was cut off: it ends in its first line");
		if (c != *m)
			return saved_say(error, -EBADMSG,
					 "is no saved profile: it does not begin with \"" PROFILE_SAVED_MAGIC
					 "\"; `pybpf record -o NAME.pybpf` saves one");
	}
	for (int i = 0; i < FORMAT_DIGITS && (c = fgetc(in)) >= '0' && c <= '9'; i++)
		format = format * 10 + c - '0';
	if (c == EOF)
		return saved_say(error, -EBADMSG, "was cut off: it ends in its first line");
	if (c != '\n' || format < 1)
		return saved_damaged(error, "its first line does not say its format");
	if (format > PROFILE_SAVED_FORMAT)
		return saved_say(error, -ENOTSUP,
				 "was written by a newer pybpf (format %d; this one reads up to %d): use that version",
				 format, PROFILE_SAVED_FORMAT);
	return 0;
}

int profile_load_stream(FILE *in, const char *name, struct profile **p, struct error *error)
{
	struct saved_error sentence = {name, error};
	struct unpacked unpacked = {0};
	int err = read_magic(in, &sentence);

	err = err ?: inflate_stream(in, &unpacked, &sentence);
	err = err ?: saved_load_bytes(unpacked.bytes, unpacked.size, p, &sentence);
	free(unpacked.bytes);
	return err;
}

int profile_open(const char *path, FILE **in, struct error *error)
{
	*in = fopen(path, "re");
	return *in ? 0 : cannot_read(&(struct saved_error){path, error}, errno);
}
