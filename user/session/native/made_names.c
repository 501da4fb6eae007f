// SPDX-License-Identifier: Apache-2.0
/*
 * Code in no file may be unloaded, and other code take its place. So its names are asked for again every now and then:
 * where they are others now, samples from then on are of another file, whose instructions have names of their own.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "native/mapped.h"
#include "session/internal.h"
#include "session/native/internal.h"

/* Seconds from one look at the names of a process to the next: from the least, twice as long as nothing changes. */
#define PAUSE_LEAST_S 0.05
#define PAUSE_MOST_S  0.5
/* The pause is this many times the CPU time of the look, if that is longer: a list may have 16 Ki entries. */
#define PAUSE_TIMES 100
/* Most numbers that code of one process gets. Code that changes more often has no names any more. */
#define NUMBERS_MAX 1000

bool native_is_restless(const struct native_known_file *file)
{
	return file->nr_numbers >= NUMBERS_MAX;
}

void native_note_made_names(struct session_native_state *n, double now)
{
	uint32_t index = native_files_of(&n->files, n->job_file);
	struct native_known_file *file = index == INTERN_NONE ? NULL : native_files_at(&n->files, index);

	if (!file || file->has_names || !native_is_made(&file->source.mapped))
		return;
	file->has_names = true;
	file->check_pause_s = PAUSE_LEAST_S;
	file->check_at = now + PAUSE_LEAST_S;
	file->nr_checked = 0;
}

static bool is_checked(const struct native_known_file *file)
{
	return file->has_names && file->source.pid;
}

double native_next_check(const struct session_native_state *n)
{
	double next = SESSION_NEVER_S;

	for (uint32_t i = 0; i < n->files.known.count; i++) {
		const struct native_known_file *file = native_files_at(&n->files, i);

		if (is_checked(file))
			next = fmin(next, file->check_at);
	}
	return next;
}

bool native_choose_check(struct session_native_state *n, double now)
{
	uint32_t skipped;

	for (uint32_t i = 0; i < n->files.known.count; i++) {
		struct native_known_file *file = native_files_at(&n->files, i);

		if (!is_checked(file) || file->check_at > now)
			continue;
		skipped = file->nr_checked;
		n->nr_pcs = native_frames_named(n->frames, file->number, skipped, n->pcs, NATIVE_NAMES_MAX);
		file->nr_checked = n->nr_pcs == NATIVE_NAMES_MAX ? skipped + n->nr_pcs : 0;
		if (!n->nr_pcs) {
			file->has_names = skipped != 0;
			continue;
		}
		n->job_file = file->number;
		n->helpers_cpu_s = helper_cpu_s();
		n->names_source = file->source;
		n->names_base = file->about.base;
		return true;
	}
	return false;
}

static bool are_same_names(const struct session_native_state *n)
{
	for (uint32_t i = 0; i < n->nr_pcs; i++) {
		if (!native_frames_has_name(n->frames, n->job_file, n->pcs[i], &n->answer->names.names[i]))
			return false;
	}
	return true;
}

int native_check_names(struct session_native_state *n, double now)
{
	int err = native_ask_names(&n->names_source, n->names_base, n->pcs, n->nr_pcs, &n->answer->names);
	uint32_t index = native_files_of(&n->files, n->job_file);
	struct native_known_file *file;

	if (err == -EINPROGRESS)
		return err;
	if (!err)
		native_add_names_cost(n);
	if (index == INTERN_NONE)
		return 0;
	file = native_files_at(&n->files, index);
	file->check_pause_s = fmin(2 * file->check_pause_s, PAUSE_MOST_S);
	file->check_at = now + fmax(file->check_pause_s, PAUSE_TIMES * (helper_cpu_s() - n->helpers_cpu_s));
	if (!err && !are_same_names(n) && !native_files_renumber_made(&n->files, index))
		native_note_users(n, index);
	return 0;
}
