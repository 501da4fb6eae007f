// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stdio.h>

/* zlib's manual, deflateInit2 and inflateInit2: 15 is the largest window, and 16 more asks for gzip's header. */
#define GZIP_WINDOW (15 + 16)

/*
 * A stream whose bytes are compressed into out (gzip, RFC 1952; without a time: the same bytes make the same file), or
 * NULL without memory. fclose() writes the rest; where any of it could not be written, it returns EOF with errno of the
 * first failure. out stays open.
 */
FILE *gzip_open(FILE *out);

#endif
