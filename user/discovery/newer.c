// SPDX-License-Identifier: Apache-2.0
/* Says once what is left out of a Python that is newer than those known. */
#include "base/log.h"
#include "cpython/newer.h"
#include "discovery/discovery.h"

/* Most builds of newer versions that are reported. */
#define MAX_WARNED 16

void discovery_warn_newer(const struct discovery_python *python)
{
	/* The same build has many files where each container has its own: its version is what tells it. */
	static struct {
		uint32_t version_hex;
		bool free_threaded, debug_build;
	} warned[MAX_WARNED];
	static size_t count;
	char left_out[CPYTHON_LEFT_OUT_MAX];

	cpython_describe_left_out(&python->build.layout, left_out);
	if (!left_out[0] || count == MAX_WARNED)
		return;
	for (size_t i = 0; i < count; i++) {
		if (warned[i].version_hex == python->build.version_hex &&
		    warned[i].free_threaded == python->free_threaded && warned[i].debug_build == python->debug_build)
			return;
	}
	warned[count].version_hex = python->build.version_hex;
	warned[count].free_threaded = python->free_threaded;
	warned[count++].debug_build = python->debug_build;
	log_warn("Python %s%s (%s) is newer than those that this pybpf knows; left out: %s; "
		 "use a newer pybpf if there is one",
		 python->version, python->free_threaded ? "t" : "", python->path, left_out);
}
