// SPDX-License-Identifier: Apache-2.0
/* Has files for debuggers fetched, those first that most instructions wait for. */
#include "session/native/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "fetch/fetch.h"
#include "helper/helper.h"
#include "session/internal.h"
#include "session/native/internal.h"
#include "session/native/name_list.h"

/* Longest time that all of it takes, and most files: somebody waits for the profile. */
#define TOTAL_S   60.0
#define FILES_MAX 64
/* Interval between looks at signals. */
#define SLICE_S 0.1

struct fetched_file {
	uint32_t number;
	enum native_fetch_end end;
};

void native_fetch_init(struct native_fetching *f)
{
	intern_init(&f->files, sizeof(struct fetched_file), sizeof(uint32_t));
}

void native_fetch_free(struct native_fetching *f)
{
	intern_free(&f->files);
}

/* Returns what is known of a file that has a build-id, or NULL. */
static const struct native_known_file *find_file(const struct session_native_state *n, uint32_t number)
{
	uint32_t index = native_files_of(&n->files, number);
	const struct native_known_file *file = index == INTERN_NONE ? NULL : native_files_at(&n->files, index);

	/* The kernel's own code, which has no inode, is no file. */
	return file && file->is_known && file->about.build_id_size && file->id.inode ? file : NULL;
}

bool native_may_fetch(const struct session *s, uint32_t number)
{
	const struct session_native_state *n = s->native;

	return s->options.fetch && !n->fetching.is_over && intern_find(&n->fetching.files, &number) == INTERN_NONE &&
	       find_file(n, number);
}

void native_fetch_set_source(const struct session *s, uint32_t number, struct native_source *source)
{
	const struct session_native_state *n = s->native;
	const struct native_known_file *file = number == n->fetching.current ? find_file(n, number) : NULL;

	if (!file)
		return;
	source->pid = 0;
	source->life = 0;
	memcpy(source->fetched, file->about.build_id, sizeof(source->fetched));
	source->fetched_size = file->about.build_id_size;
}

static void show_progress(const struct session *s, uint32_t number)
{
	if (!s->options.fetch_progress)
		return;
	fprintf(stderr, "\r\033[K");
	if (number)
		fprintf(stderr, "fetching symbols of %s ", native_frames_file_name(s->native->frames, number));
	fflush(stderr);
}

/* Waits for the answer of the process that fetches, until a signal comes. Returns its error. */
static int fetch(const struct session *s, const struct native_known_file *file, uint32_t server, double deadline_s,
		 struct fetch_answer *answer)
{
	int err = fetch_ask(s->options.fetch, file->about.build_id, file->about.build_id_size, server, deadline_s);

	while (!err && (err = fetch_wait(s->options.fetch, SLICE_S, answer))) {
		if (helper_is_interrupted() || clock_s(CLOCK_MONOTONIC) > deadline_s + SLICE_S)
			return -ETIMEDOUT;
		err = 0;
	}
	return err ?: answer->error;
}

static enum native_fetch_end end_of(int err)
{
	return err == -ENOENT      ? NATIVE_FETCH_NOT_THERE
	       : err == -EFBIG     ? NATIVE_FETCH_TOO_LARGE
	       : err == -ETIMEDOUT ? NATIVE_FETCH_NO_TIME
				   : NATIVE_FETCH_NO_ANSWER;
}

/* Fetches the file from the first server that has it, and has it read. Returns how that ended. */
static enum native_fetch_end fetch_and_read(struct session *s, const struct native_known_file *file, double deadline_s,
					    void (*work)(struct session *s))
{
	struct native_fetching *f = &s->native->fetching;
	struct fetch_answer answer = {.server = 0};
	bool was_refused = false;
	int err;

	for (uint32_t server = 0; server < FETCH_SERVERS_MAX; server = answer.server + 1) {
		err = fetch(s, file, server, deadline_s, &answer);
		if (err)
			return was_refused ? NATIVE_FETCH_REFUSED : end_of(err);
		f->bytes += answer.size;
		f->current = file->number;
		f->refused = 0;
		native_frames_resume(s->native->frames, file->number);
		work(s);
		f->current = 0;
		if (!f->refused)
			return NATIVE_FETCH_THERE;
		log_info("native symbols: %s: what server %u sent is not its file for debuggers: %s",
			 native_frames_file_name(s->native->frames, file->number), answer.server + 1,
			 helper_describe_error(f->refused));
		was_refused = true;
	}
	return NATIVE_FETCH_REFUSED;
}

/* Notes how it ended: what is still put off in the file is found without, or gets no name. */
static void settle(struct session *s, uint32_t number, enum native_fetch_end end)
{
	const struct fetched_file settled = {.number = number, .end = end};

	if (intern_add(&s->native->fetching.files, &settled, &(bool){false}) == INTERN_NONE)
		s->native->fetching.is_over = true;
	native_frames_resume(s->native->frames, number);
}

void native_fetch_files(struct session *s, void (*work)(struct session *s))
{
	struct native_fetching *f = &s->native->fetching;
	double deadline_s = clock_s(CLOCK_MONOTONIC) + TOTAL_S;
	uint32_t number, count, done = 0;

	while ((number = native_frames_most_put_off(s->native->frames, &count))) {
		const struct native_known_file *file = find_file(s->native, number);
		enum native_fetch_end end = NATIVE_FETCH_NO_TIME;

		if (file && done++ < FILES_MAX && !f->is_over) {
			show_progress(s, number);
			end = fetch_and_read(s, file, deadline_s, work);
			f->is_over |= end == NATIVE_FETCH_NO_TIME;
		}
		settle(s, number, end);
	}
	if (done)
		show_progress(s, 0);
	f->is_over = true;
}

void native_tell_fetched(const struct session_native_state *n, struct session_native_account *out)
{
	struct name_list lists[NATIVE_FETCH_ENDS];

	for (int i = 0; i < NATIVE_FETCH_ENDS; i++)
		name_list_begin(&lists[i], out->fetch_names[i], sizeof(out->fetch_names[i]));
	for (uint32_t i = 0; i < n->fetching.files.count; i++) {
		const struct fetched_file *file = intern_item(&n->fetching.files, i);

		name_list_add(&lists[file->end], native_frames_file_name(n->frames, file->number));
	}
	for (int i = 0; i < NATIVE_FETCH_ENDS; i++)
		out->fetch_ends[i] = name_list_end(&lists[i]);
	out->fetched_bytes = n->fetching.bytes;
}
