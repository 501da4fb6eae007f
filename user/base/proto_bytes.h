// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_PROTO_BYTES_H
#define BASE_PROTO_BYTES_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/*
 * A buffer for protobuf-c that collects packed bytes in memory, for a message that is a field of another one: its size
 * comes before its bytes. Unlike protobuf-c's own, it tells when memory ran out.
 */
struct proto_bytes {
	ProtobufCBuffer base; /* first: protobuf-c knows only this */
	uint8_t *bytes;
	size_t size, room;
	bool no_memory; /* bytes are missing */
};

static inline void proto_bytes_append(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes)
{
	struct proto_bytes *to = (struct proto_bytes *)buffer;

	to->no_memory = to->no_memory || array_reserve(&to->bytes, &to->room, to->size + size, 1);
	if (to->no_memory)
		return;
	memcpy(to->bytes + to->size, bytes, size);
	to->size += size;
}

static inline struct proto_bytes proto_bytes(void)
{
	return (struct proto_bytes){.base.append = proto_bytes_append};
}

/* Returns the bytes as the value of a field; they stay the buffer's. */
static inline ProtobufCBinaryData proto_bytes_value(const struct proto_bytes *from)
{
	return (ProtobufCBinaryData){.len = from->size, .data = from->bytes};
}

/* Empties the buffer, which keeps its memory. */
static inline void proto_bytes_clear(struct proto_bytes *buffer)
{
	buffer->size = 0;
}

static inline void proto_bytes_free(struct proto_bytes *buffer)
{
	free(buffer->bytes);
	*buffer = proto_bytes();
}

#endif
