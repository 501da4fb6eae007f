// SPDX-License-Identifier: Apache-2.0
/* Words that all formats of a comparison share. */
#include <math.h>
#include <string.h>

#include "output/diff/diff.h"

const char *output_diff_verdict(const struct diff_function *function)
{
	static const char *const verdicts[] = {
		[DIFF_UNJUDGED] = "few", [DIFF_NOISE] = "noise",   [DIFF_SPREAD] = "spread", [DIFF_LIKELY] = "likely",
		[DIFF_GREW] = "grew",    [DIFF_SHRANK] = "shrank", [DIFF_NEW] = "new",       [DIFF_GONE] = "gone",
	};

	return verdicts[function->verdict];
}

void output_diff_percent(double change, bool sign, char *text, size_t size)
{
	const char *plus = sign && change >= 0 ? "+" : "";

	if (isinf(change))
		snprintf(text, size, "%sany", plus);
	else if (change >= 10)
		snprintf(text, size, "%s%.0f times", plus, change + (sign ? 0 : 1));
	else
		snprintf(text, size, "%s%.*f %%", plus, fabs(change) < 0.0995 ? 1 : 0, 100 * change);
}

const char *output_diff_title(const struct diff *d, enum diff_side side, size_t run)
{
	const char *name = d->runs[side].names[run], *slash = strrchr(name, '/'), *title = slash ? slash + 1 : name;
	unsigned same = 0;

	for (int i = 0; i < DIFF_SIDES; i++) {
		for (size_t r = 0; r < d->runs[i].count; r++) {
			const char *other = strrchr(d->runs[i].names[r], '/');

			same += strcmp(title, other ? other + 1 : d->runs[i].names[r]) == 0;
		}
	}
	return same > 1 ? name : title;
}
