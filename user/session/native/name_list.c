// SPDX-License-Identifier: Apache-2.0
#include "session/native/name_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void name_list_begin(struct name_list *list, char *text, size_t size)
{
	*list = (struct name_list){.text = text, .size = size};
	*text = '\0';
}

void name_list_add(struct name_list *list, const char *name)
{
	list->count++;
	if (list->at + strlen(name) + sizeof(", , and 1234567 more") > list->size) {
		list->more++;
		return;
	}
	list->at += (size_t)snprintf(list->text + list->at, list->size - list->at, "%s%s", list->at ? ", " : "", name);
}

uint64_t name_list_end(struct name_list *list)
{
	if (list->more)
		snprintf(list->text + list->at, list->size - list->at, "%s%" PRIu64 " more", list->at ? ", and " : "",
			 list->more);
	return list->count;
}
