// SPDX-License-Identifier: Apache-2.0
/* What a run says of native frames at its end. */
#ifndef SESSION_NATIVE_NATIVE_ACCOUNT_H
#define SESSION_NATIVE_NATIVE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpf.h"

/* How fetching a file for debuggers ended: X(name, key, text). */
#define NATIVE_FETCH_ENDS_X(X)                                                                                         \
	X(THERE, "fetched_files", "fetched")                                                                           \
	X(NOT_THERE, "unfetched_not_there", "no server has that of")                                                   \
	X(TOO_LARGE, "unfetched_too_large", "larger than 128 MiB")                                                     \
	X(REFUSED, "unfetched_refused", "refused, because what was sent is not the file that was asked for")           \
	X(NO_ANSWER, "unfetched_no_answer", "no server answered for")                                                  \
	X(NO_TIME, "unfetched_no_time", "no time was left for")

enum native_fetch_end {
#define X(name, key, text) NATIVE_FETCH_##name,
	NATIVE_FETCH_ENDS_X(X)
#undef X
	NATIVE_FETCH_ENDS,
};

struct session_native_account {
	bool is_there;
	uint64_t ends[PYBPF_NR_NATIVE_ENDS];                  /* samples by how the search for callers ended */
	uint64_t joined_exactly, joined_plus_one, not_joined; /* samples with Python frames and whole native ones */
	uint64_t wait_ns[PYBPF_NR_NATIVE_ENDS];               /* time of waits, likewise */
	uint64_t wait_not_joined_ns;
	uint64_t files, rows, bytes;             /* of the tables that are there at the end */
	uint64_t refused_files;                  /* that found no room in native_memory */
	uint64_t unreadable_files;               /* whose tables could not be made */
	uint64_t line_places, line_places_found; /* places whose lines were wanted, and found */
	uint64_t unread_line_places;             /* whose lines were not read when the run's time was over */
	uint64_t lineless_files;                 /* without information for debuggers */
	uint64_t elsewhere_line_files;           /* whose information is in files of its own (dwz, -gsplit-dwarf) */
	uint64_t failed_line_files;              /* whose information is too large, or could not be read in time */
	char lineless[160], elsewhere_lines[160], failed_lines[160]; /* their names, as far as they find room */
	uint64_t fetch_ends[NATIVE_FETCH_ENDS];                      /* files for debuggers */
	char fetch_names[NATIVE_FETCH_ENDS][160];
	uint64_t fetched_bytes;
	uint64_t tables_ns, names_ns, lines_ns; /* CPU time of helpers for tables, names and lines of all files */
};

#endif
