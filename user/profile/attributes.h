// SPDX-License-Identifier: Apache-2.0
/*
 * What else is known of a process than its names: one text, with a line "KEY=VALUE" for each attribute. Keys are those
 * of OpenTelemetry's semantic conventions.
 */
#ifndef PROFILE_ATTRIBUTES_H
#define PROFILE_ATTRIBUTES_H

#include <stddef.h>

/* Bytes of all attributes of a process, and of a value, with their NUL. */
#define PROFILE_ATTRIBUTES_MAX 1024
#define PROFILE_ATTRIBUTE_MAX  256

enum profile_attribute {
	PROFILE_CONTAINER_ID,
	PROFILE_CONTAINER_IMAGE,
	PROFILE_K8S_NAMESPACE,
	PROFILE_K8S_POD_UID,
	PROFILE_SERVICE_VERSION,
	PROFILE_ATTRIBUTES,
};

/* Returns the key: "container.id". */
const char *profile_attribute_key(enum profile_attribute attribute);
/* Returns its name as a column and as a label, which have no dots: "container_id". */
const char *profile_attribute_column(enum profile_attribute attribute);

/*
 * Adds an attribute to a text of PROFILE_ATTRIBUTES_MAX bytes, unless the value is empty or finds no room. Control
 * characters in it become question marks.
 */
void profile_attribute_add(char *text, enum profile_attribute attribute, const char *value);
/* Copies an attribute's value of a text: "" if it is not there. A longer one is cut. Returns out. */
const char *profile_attribute_find(const char *text, enum profile_attribute attribute, char out[PROFILE_ATTRIBUTE_MAX]);

#endif
