// SPDX-License-Identifier: Apache-2.0
/* Closes the descriptors that a process does not need. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rights/rights.h"

static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int rights_keep_descriptors(int *kept, size_t count)
{
	unsigned from = STDERR_FILENO + 1;

	qsort(kept, count, sizeof(*kept), compare);
	for (size_t i = 0; i < count; i++) {
		if (kept[i] < (int)from)
			continue;
		if ((unsigned)kept[i] > from && close_range(from, (unsigned)kept[i] - 1, 0))
			return -errno;
		from = (unsigned)kept[i] + 1;
	}
	return close_range(from, ~0u, 0) ? -errno : 0;
}
