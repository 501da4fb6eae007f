// SPDX-License-Identifier: Apache-2.0
/* Rows of a table that look alike, as those of long names can once these are shortened. */
#ifndef OUTPUT_EQUAL_TEXTS_H
#define OUTPUT_EQUAL_TEXTS_H

#include <stdint.h>

/* Finds for each text the first that is equal to it, in first. Returns 0 or -ENOMEM. */
int output_first_alike(char *const *texts, uint32_t count, uint32_t *first);
/* Frees texts and their array; texts may be NULL. */
void output_free_texts(char **texts, uint32_t count);

#endif
