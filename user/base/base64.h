// SPDX-License-Identifier: Apache-2.0
/* A stdio stream that encodes what is written to it as Base64. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdio.h>

/*
 * Returns a stream that writes its bytes to out as Base64 (RFC 4648, padded, one line), or NULL without memory.
 * fclose() writes the rest; if any byte could not be written, it returns EOF with errno of the first failure. out stays
 * open.
 */
FILE *base64_open(FILE *out);

#endif
