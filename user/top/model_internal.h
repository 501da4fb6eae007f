// SPDX-License-Identifier: Apache-2.0
/* What the files of the model share. */
#ifndef TOP_MODEL_INTERNAL_H
#define TOP_MODEL_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "top/model.h"

struct top_model {
	struct intern texts;
	struct intern tables[TOP_TABLES];
	uint64_t forgotten[TOP_TABLES];
	struct top_sums last, before, all;
	uint32_t intervals;
	uint32_t met; /* number of the sample that is counted */
	uint32_t begun_anew;
	bool wants_expressions;
};

#endif
