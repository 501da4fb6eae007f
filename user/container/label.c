// SPDX-License-Identifier: Apache-2.0
#include "container/label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"

struct name {
	char *text;
	uint32_t runtimes; /* that have a container of the name */
};

/* A container's name in one runtime. */
struct place {
	uint32_t name; /* index */
	char runtime[sizeof(((struct container *)NULL)->runtime)];
	bool used, with_runtime; /* its label was written; has the runtime's name in it */
};

struct container_labels {
	struct intern names;  /* struct name */
	struct intern places; /* struct place, by name and runtime */
	uint32_t many;        /* this number of them */
};

/* Places up to this number are kept, whether or not they are used. */
#define PLACES_KEPT 1024

struct container_labels *container_labels_new(void)
{
	struct container_labels *labels = calloc(1, sizeof(*labels));

	if (!labels)
		return NULL;
	intern_init(&labels->names, sizeof(struct name), INTERN_TEXT);
	intern_init(&labels->places, sizeof(struct place), offsetof(struct place, used));
	labels->many = PLACES_KEPT;
	return labels;
}

static struct name *name_at(const struct container_labels *labels, uint32_t i)
{
	return intern_item(&labels->names, i);
}

void container_labels_free(struct container_labels *labels)
{
	if (!labels)
		return;
	for (uint32_t i = 0; i < labels->names.count; i++)
		free(name_at(labels, i)->text);
	intern_free(&labels->names);
	intern_free(&labels->places);
	free(labels);
}

/* Returns the number of the name, or INTERN_NONE without memory. */
static uint32_t number_name(struct container_labels *labels, const char *text)
{
	struct name name = {.text = strdup(text)};
	bool fresh = false;
	uint32_t i = name.text ? intern_add(&labels->names, &name, &fresh) : INTERN_NONE;

	if (!fresh)
		free(name.text);
	return i;
}

/* Adds a place of that name, whose other fields are filled in. Returns as container_labels_add(). */
static uint32_t add_place(struct container_labels *labels, struct place *place, const char *name)
{
	bool fresh;
	uint32_t i;

	place->name = number_name(labels, name);
	if (place->name == INTERN_NONE)
		return 0;
	i = intern_add(&labels->places, place, &fresh);
	if (i == INTERN_NONE)
		return 0;
	name_at(labels, place->name)->runtimes += fresh;
	return i + 1;
}

uint32_t container_labels_add(struct container_labels *labels, const struct container *container)
{
	/* What is behind the runtime's end is a part of the key, and zeroed. */
	struct place place = {.used = false};

	snprintf(place.runtime, sizeof(place.runtime), "%s", container->runtime);
	return add_place(labels, &place, container->name);
}

bool container_labels_are_many(const struct container_labels *labels)
{
	return labels->places.count >= labels->many;
}

uint32_t container_labels_copy(struct container_labels *to, const struct container_labels *from, uint32_t number)
{
	struct place place = *(const struct place *)intern_item(&from->places, number - 1);

	return add_place(to, &place, name_at(from, place.name)->text);
}

void container_labels_replace(struct container_labels *labels, struct container_labels *fresh)
{
	struct container_labels old = *labels;

	*labels = *fresh;
	*fresh = old;
	container_labels_free(fresh);
	labels->many = labels->places.count * 2 > PLACES_KEPT ? labels->places.count * 2 : PLACES_KEPT;
}

const char *container_labels_with_runtime(struct container_labels *labels, uint32_t number,
					  char out[CONTAINER_LABEL_MAX])
{
	struct place *place = intern_item(&labels->places, number - 1);
	const struct name *name = name_at(labels, place->name);

	if (!place->used)
		place->with_runtime = name->runtimes > 1;
	place->used = true;
	if (!place->with_runtime)
		return NULL;
	snprintf(out, CONTAINER_LABEL_MAX, "%s:%s", place->runtime, name->text);
	return out;
}
