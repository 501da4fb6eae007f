// SPDX-License-Identifier: Apache-2.0
/* Writes and finds attributes of processes. */
#include "profile/attributes.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *key, *column;
} attributes[PROFILE_ATTRIBUTES] = {
	[PROFILE_CONTAINER_ID] = {"container.id", "container_id"},
	[PROFILE_CONTAINER_IMAGE] = {"container.image.name", "image"},
	[PROFILE_K8S_NAMESPACE] = {"k8s.namespace.name", "namespace"},
	[PROFILE_K8S_POD_UID] = {"k8s.pod.uid", "pod_uid"},
	[PROFILE_SERVICE_VERSION] = {"service.version", "version"},
};

const char *profile_attribute_key(enum profile_attribute attribute)
{
	return attributes[attribute].key;
}

const char *profile_attribute_column(enum profile_attribute attribute)
{
	return attributes[attribute].column;
}

void profile_attribute_add(char *text, enum profile_attribute attribute, const char *value)
{
	const size_t before = strlen(text), room = PROFILE_ATTRIBUTES_MAX - before;

	if (!*value)
		return;
	if (snprintf(text + before, room, "%s=%s\n", attributes[attribute].key, value) >= (int)room) {
		text[before] = '\0';
		return;
	}
	for (char *c = text + before; c[1]; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
}

const char *profile_attribute_find(const char *text, enum profile_attribute attribute, char out[PROFILE_ATTRIBUTE_MAX])
{
	const char *key = attributes[attribute].key;
	const size_t key_size = strlen(key);

	out[0] = '\0';
	while (*text) {
		const size_t size = strcspn(text, "\n");

		if (size > key_size && text[key_size] == '=' && !memcmp(text, key, key_size)) {
			snprintf(out, PROFILE_ATTRIBUTE_MAX, "%.*s", (int)(size - key_size - 1), text + key_size + 1);
			return out;
		}
		text += size + (text[size] == '\n');
	}
	return out;
}
