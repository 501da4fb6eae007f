// SPDX-License-Identifier: Apache-2.0
#include "session/native/costs.h"

#include <inttypes.h>

#include "base/log.h"
#include "session/native/internal.h"

void native_add_names_cost(struct session_native_state *n)
{
	const struct native_costs costs = {.names_ns = n->answer->names.cpu_ns, .names = n->nr_pcs};

	native_files_add_costs(&n->files, native_files_of(&n->files, n->job_file), &costs);
}

void native_log_costs(const struct session_native_state *n)
{
	for (uint32_t i = 0; i < n->files.known.count; i++) {
		const struct native_known_file *file = native_files_at(&n->files, i);
		const struct native_costs *costs = &file->costs;

		if (!costs->tables_ns && !costs->names)
			continue;
		log_info("native files: %s: a table of %" PRIu64 " rows, %.1f KiB, in %.1f ms of CPU time; %" PRIu64
			 " names in %.1f ms",
			 native_frames_file_name(n->frames, file->number), file->shown.rows,
			 (double)file->shown.pages * sizeof(struct pybpf_native_page) / 1024,
			 (double)costs->tables_ns / 1e6, costs->names, (double)costs->names_ns / 1e6);
	}
}
