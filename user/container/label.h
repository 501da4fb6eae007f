/* SPDX-License-Identifier: Apache-2.0 */
/* What containers are called in output: NAME, or RUNTIME:NAME where two runtimes have a container of the name. */
#ifndef CONTAINER_LABEL_H
#define CONTAINER_LABEL_H

#include <stdint.h>

#include "container/container.h"

#define CONTAINER_LABEL_MAX (sizeof(((struct container *)NULL)->name) + sizeof(((struct container *)NULL)->runtime))

/* Names of containers, with their runtimes. */
struct container_labels;

/* Returns NULL without memory. */
struct container_labels *container_labels_new(void);
void container_labels_free(struct container_labels *labels);

/* Adds a container's name and runtime. Returns their number, from 1 on; 0 without memory. */
uint32_t container_labels_add(struct container_labels *labels, const struct container *container);
/* Adds what has the number in `from`, with its label if that was written. Returns as container_labels_add(). */
uint32_t container_labels_copy(struct container_labels *to, const struct container_labels *from, uint32_t number);
/* Returns whether unused ones should be left out, by copies of the others and _replace(): there are many. */
bool container_labels_are_many(const struct container_labels *labels);
/* Puts `fresh`, which is freed, in place of what `labels` has. */
void container_labels_replace(struct container_labels *labels, struct container_labels *fresh);

/*
 * Writes the label of the number, and returns out, if that is RUNTIME:NAME; returns NULL if it is NAME. It then stays,
 * whatever is added later.
 */
const char *container_labels_with_runtime(struct container_labels *labels, uint32_t number,
					  char out[CONTAINER_LABEL_MAX]);

#endif
