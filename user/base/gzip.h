// SPDX-License-Identifier: Apache-2.0
/* A stdio stream that compresses what is written to it. */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stdio.h>

/* zlib's manual, deflateInit2 and inflateInit2: 15 is the largest window, and 16 more asks for gzip's header. */
#define GZIP_WINDOW (15 + 16)

/*
 * Returns a stream that compresses its bytes into out (gzip, RFC 1952; without a time, so that equal bytes make equal
 * files), or NULL without memory. fclose() writes the rest; if any byte could not be written, it returns EOF with errno
 * of the first failure. out stays open.
 */
FILE *gzip_open(FILE *out);

#endif
