// SPDX-License-Identifier: Apache-2.0
/* The checked-in tables: layouts to 3.12, and from 3.13 on where a _Py_DebugOffsets has its fields. */
#include "cpython/layout.h"

#include <errno.h>

#include "cpython/debug_offsets.h"
#include "cpython/facts.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#include "cpython/layout_tables.h"

bool layout_windows_fit(const struct pybpf_layout *layout)
{
	return layout->tstate_window <= PYBPF_TSTATE_WINDOW && layout->frame_window <= PYBPF_FRAME_WINDOW &&
	       layout->code_window <= PYBPF_CODE_WINDOW;
}

int layout_from_table(int major, int minor, bool debug_build, struct layout_build *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(layout_builds); i++) {
		const struct layout_build *build = &layout_builds[i];

		if (build->layout.major != major || build->layout.minor != minor ||
		    build->layout.debug_build != debug_build)
			continue;
		if (!layout_windows_fit(&build->layout))
			return -ENOENT;
		*out = *build;
		cpython_fill_in(&out->layout);
		return 0;
	}
	return -ENOENT;
}

void layout_fit_release(struct layout_build *build, int micro)
{
	/*
	 * Nothing in the tables changed within a minor series but where 3.7 has gilstate.tstate_current and its GIL:
	 * 1392 up to 3.7.3, 1480 from 3.7.4 on, where PyGC_Head grew (bpo-27987, GH-13335). The row has the latter.
	 */
	if (build->layout.major != 3 || build->layout.minor != 7 || micro >= 4)
		return;
	build->layout.gil_from_head = 0;
	build->runtime_tstate_current = LAYOUT_NONE;
}

const struct debug_table *debug_table_find(unsigned int minor)
{
	const struct debug_table *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(debug_tables); i++)
		if (debug_tables[i].minor <= minor)
			found = &debug_tables[i];
	return found;
}

unsigned int debug_table_first_minor(void)
{
	return debug_tables[0].minor;
}

uint32_t debug_table_code_counter(uint64_t interp_size, uint64_t tstate_size)
{
	for (size_t i = 0; i < ARRAY_SIZE(code_counters); i++)
		if (code_counters[i].interp_size == interp_size && code_counters[i].tstate_size == tstate_size)
			return code_counters[i].next_version;
	return 0;
}
