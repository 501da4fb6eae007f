// SPDX-License-Identifier: Apache-2.0
#include "native/flow_rows.h"

#include <stdlib.h>

#include "pybpf_native.h"

static int compare_rows(const void *a, const void *b)
{
	const struct flow_row *one = a, *other = b;

	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return (one->end > other->end) - (one->end < other->end);
}

/* Makes one of two rows that overlap, the last one and one that begins in it. Returns whether now is to be kept, too.
 */
static bool settle_two(struct flow_row *last, struct flow_row *now)
{
	uint64_t end = now->end > last->end ? now->end : last->end;

	if (last->rule != now->rule && last->is_certain && !now->is_certain)
		return false;
	/* They agree, or the one whose function is certain stays. */
	if (last->rule == now->rule || now->is_certain != last->is_certain) {
		if (last->rule == now->rule)
			now->end = end;
		now->is_certain |= last->is_certain && last->rule == now->rule;
		if (now->start > last->start && (now->is_begin || last->rule != now->rule)) {
			last->end = now->start;
			return true;
		}
		now->is_begin |= last->is_begin;
		now->start = last->start;
		*last = *now;
		return false;
	}
	last->rule = PYBPF_NATIVE_NONE;
	last->end = end;
	return false;
}

void flow_rows_settle(struct flow_rows *r)
{
	size_t kept = 0;

	if (r->count)
		qsort(r->rows, r->count, sizeof(*r->rows), compare_rows);
	for (size_t i = 0; i < r->count; i++) {
		struct flow_row now = r->rows[i];

		if (!kept || now.start >= r->rows[kept - 1].end || settle_two(&r->rows[kept - 1], &now))
			r->rows[kept++] = now;
	}
	r->count = kept;
}
