// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_PROTO_STREAM_H
#define BASE_PROTO_STREAM_H

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

/* A buffer for protobuf-c that writes packed bytes to a stream, so that the message is never in memory as a whole. */
struct proto_stream {
	ProtobufCBuffer base; /* first: protobuf-c knows only this */
	FILE *out;
};

static inline void proto_stream_append(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes)
{
	fwrite_unlocked(bytes, 1, size, ((struct proto_stream *)buffer)->out);
}

/* ferror() or fclose() of the stream tells whether everything was written. */
static inline struct proto_stream proto_stream(FILE *out)
{
	return (struct proto_stream){.base.append = proto_stream_append, .out = out};
}

#endif
