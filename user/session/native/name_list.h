// SPDX-License-Identifier: Apache-2.0
/* Names of files for the account, as many as there is room for. */
#ifndef SESSION_NATIVE_NAME_LIST_H
#define SESSION_NATIVE_NAME_LIST_H

#include <stddef.h>
#include <stdint.h>

struct name_list {
	char *text;
	size_t size, at;
	uint64_t count, more; /* names, and those of them that found no room */
};

/* Begins an empty list in text, of size bytes. */
void name_list_begin(struct name_list *list, char *text, size_t size);
void name_list_add(struct name_list *list, const char *name);
/* Says how many found no room. Returns the number of all. */
uint64_t name_list_end(struct name_list *list);

#endif
