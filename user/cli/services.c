// SPDX-License-Identifier: Apache-2.0
/*
 * The table of questions that helpers answer, and so of all that a main process which was taken over could have them
 * do: SECURITY.md says what that is.
 */
#include "cli/services.h"

#include "discovery/ask.h"
#include "discovery/ask_tasks.h"
#include "discovery/ask_threads.h"
#include "discovery/service.h"
#include "dump/core.h"
#include "dump/greenlets.h"
#include "dump/native.h"
#include "dump/stack.h"
#include "dump/state.h"
#include "native/ask.h"
#include "native/ask_ahead.h"
#include "native/ask_lines.h"
#include "session/sources/source_file.h"

static helper_service *const items[] = {
	discovery_serve_cmdline,
	discovery_serve_container_find,
	discovery_serve_container_names,
	discovery_serve_container_of,
	discovery_serve_mapped_file,
	discovery_serve_memory,
	discovery_serve_runtimes,
	discovery_serve_service,
	discovery_serve_tasks,
	discovery_serve_threads,
	discovery_serve_validate,
	dump_serve_core_files,
	dump_serve_greenlet_search,
	dump_serve_greenlets,
	dump_serve_native,
	dump_serve_sockets,
	dump_serve_stack,
	dump_serve_state,
	native_serve_ahead,
	native_serve_lines,
	native_serve_mappings,
	native_serve_names,
	native_serve_rows,
	source_file_serve_look,
	source_file_serve_look_at_path,
	source_file_serve_text,
};

const struct helper_services cli_services = {.items = items, .count = sizeof(items) / sizeof(*items)};
