// SPDX-License-Identifier: Apache-2.0
/* IDs of containers: those that runtimes make, and names that are their beginnings. */
#include <ctype.h>
#include <string.h>

#include "container/internal.h"

#define FULL_ID 64

bool container_is_full_id(const char *id, size_t len)
{
	if (len != FULL_ID)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)id[i]) || isupper((unsigned char)id[i]))
			return false;
	return true;
}

bool container_is_nameless(const struct container *container)
{
	return strlen(container->name) == CONTAINER_SHORT_ID && strlen(container->id) > CONTAINER_SHORT_ID &&
	       !strncmp(container->name, container->id, CONTAINER_SHORT_ID);
}
