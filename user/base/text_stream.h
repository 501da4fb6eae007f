// SPDX-License-Identifier: Apache-2.0
/* A text that grows as it is written. */
#ifndef BASE_TEXT_STREAM_H
#define BASE_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

/*
 * As open_memstream(), whose texts lack what did not fit, and which says nothing of it, when memory is exhausted (glibc
 * 2.36, _IO_str_overflow). Here fclose() fails then, and *text is NULL. Else it is set by fclose(), as is *size, and
 * the caller frees it. NULL without memory.
 */
FILE *text_stream_open(char **text, size_t *size);

#endif
