// SPDX-License-Identifier: Apache-2.0
/* A stream whose bytes are compressed (gzip, RFC 1952) and written as Base64 (RFC 4648) to another stream. */
#ifndef OUTPUT_PACKED_H
#define OUTPUT_PACKED_H

#include <stdio.h>

/* NULL without memory. fclose() writes the rest and returns EOF where writing failed; out stays open. */
FILE *packed_open(FILE *out);

#endif
