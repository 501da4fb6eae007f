// SPDX-License-Identifier: Apache-2.0
/* A buffer for protobuf-c that compresses what is packed into it, and needs no room for the whole. */
#ifndef BASE_PROTO_GZIP_H
#define BASE_PROTO_GZIP_H

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

struct proto_gzip;

/* One gzip stream (RFC 1952) into out. NULL without memory. */
struct proto_gzip *proto_gzip_new(FILE *out);
/* What messages are packed to, one after the other. */
ProtobufCBuffer *proto_gzip_buffer(struct proto_gzip *z);
/* Ends the stream, and frees. Returns 0, or the negative errno of the first write that failed. */
int proto_gzip_finish(struct proto_gzip *z);

#endif
