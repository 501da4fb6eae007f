// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdio.h>

/*
 * A stream whose bytes are written to out as Base64 (RFC 4648, padded, one line), or NULL without memory. fclose()
 * writes the rest; where any of it could not be written, it returns EOF with errno of the first failure. out stays
 * open.
 */
FILE *base64_open(FILE *out);

#endif
