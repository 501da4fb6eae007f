// SPDX-License-Identifier: Apache-2.0
#include "native/debug_data.h"

#include <errno.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Most bytes of the decoder: `xz -8` has a dictionary of 32 MiB (xz(1), --memlimit). */
#define DECODER_MAX (40u << 20)
#define INPUT_BYTES ((size_t)64 * 1024)
#define BEGIN_BYTES ((size_t)512 * 1024)

struct unpacking {
	lzma_stream lzma;
	struct elf_file *elf;
	struct elf_section section;
	uint64_t done; /* bytes of the section that were read */
	uint8_t input[INPUT_BYTES];
	uint8_t *bytes;
	size_t size, room;
};

/* Reads on in the section. Returns 0, or -EBADMSG at its end. */
static int fill_input(struct unpacking *u)
{
	ssize_t n = elf_file_read_section(u->elf, &u->section, u->done, u->input, sizeof(u->input));

	if (n <= 0)
		return -EBADMSG;
	u->done += (uint64_t)n;
	u->lzma.next_in = u->input;
	u->lzma.avail_in = (size_t)n;
	return 0;
}

static int make_room(struct unpacking *u)
{
	size_t room = u->room ? 2 * u->room : BEGIN_BYTES;
	uint8_t *bytes;

	if (room > NATIVE_DEBUG_DATA_MAX)
		return -EFBIG;
	bytes = realloc(u->bytes, room);
	if (!bytes)
		return -ENOMEM;
	u->bytes = bytes;
	u->room = room;
	return 0;
}

/* Returns 1 at the end, 0 before, or negative errno. */
static int go_on(struct unpacking *u)
{
	lzma_ret ret;
	int err = 0;

	if (!u->lzma.avail_in)
		err = fill_input(u);
	if (!err && u->size == u->room)
		err = make_room(u);
	if (err)
		return err;
	u->lzma.next_out = u->bytes + u->size;
	u->lzma.avail_out = u->room - u->size;
	ret = lzma_code(&u->lzma, LZMA_RUN);
	u->size = u->room - u->lzma.avail_out;
	if (ret == LZMA_STREAM_END)
		return 1;
	if (ret == LZMA_MEM_ERROR || ret == LZMA_MEMLIMIT_ERROR)
		return -ENOMEM;
	return ret == LZMA_OK ? 0 : -EBADMSG;
}

static int unpack(struct unpacking *u)
{
	int done = lzma_stream_decoder(&u->lzma, DECODER_MAX, 0) == LZMA_OK ? 0 : -ENOMEM;

	while (!done)
		done = go_on(u);
	lzma_end(&u->lzma);
	return done < 0 ? done : 0;
}

int native_debug_data_unpack(struct elf_file *elf, void **bytes, size_t *size)
{
	struct unpacking *u;
	int err;

	*bytes = NULL;
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->lzma = (lzma_stream)LZMA_STREAM_INIT;
	u->elf = elf;
	err = elf_file_section(elf, ".gnu_debugdata", &u->section);
	err = err ? err : unpack(u);
	if (err) {
		free(u->bytes);
	} else {
		*bytes = u->bytes;
		*size = u->size;
	}
	free(u);
	return err;
}
