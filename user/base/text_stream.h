// SPDX-License-Identifier: Apache-2.0
/* A stdio stream that collects what is written to it in one text. */
#ifndef BASE_TEXT_STREAM_H
#define BASE_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

/*
 * As open_memstream(), but reports exhausted memory: glibc's text then silently lacks what did not fit (2.36,
 * _IO_str_overflow), while here fclose() fails and *text is NULL. Otherwise fclose() sets *text, which the caller
 * frees, and *size. Returns NULL without memory.
 */
FILE *text_stream_open(char **text, size_t *size);

#endif
