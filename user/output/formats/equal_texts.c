// SPDX-License-Identifier: Apache-2.0
/* Finds texts that are equal. */
#include "output/formats/equal_texts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/intern.h"

struct item {
	const char *text;
	uint32_t index;
};

int output_first_alike(char *const *texts, uint32_t count, uint32_t *first)
{
	struct intern items;
	int err = 0;

	intern_init(&items, sizeof(struct item), INTERN_TEXT);
	for (uint32_t i = 0; i < count && !err; i++) {
		const struct item item = {.text = texts[i], .index = i};
		bool fresh;
		uint32_t at = intern_add(&items, &item, &fresh);

		if (at == INTERN_NONE)
			err = -ENOMEM;
		else
			first[i] = ((const struct item *)intern_item(&items, at))->index;
	}
	intern_free(&items);
	return err;
}

void output_free_texts(char **texts, uint32_t count)
{
	for (uint32_t i = 0; texts && i < count; i++)
		free(texts[i]);
	free(texts);
}
