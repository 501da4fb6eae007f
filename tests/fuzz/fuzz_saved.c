// SPDX-License-Identifier: Apache-2.0
/*
 * Saved profiles: an input that begins as a file is one, any other is the message that a file has compressed. What is
 * taken must come back when it is saved, and every text, index and parent must be one that there is.
 */
#include "fuzz.h"
#include "output/output.h"
#include "profile/edit.h"
#include "profile/saved_internal.h"

static void check_rows(const struct profile *p)
{
	size_t samples, events, n;
	const struct profile_sample *sample = profile_samples(p, &samples);
	const struct profile_event *event = profile_events(p, &events);

	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		FUZZ_CHECK(profile_frame_at(p, i)->name < profile_string_count(p));
		FUZZ_CHECK(profile_frame_at(p, i)->file < profile_string_count(p));
		FUZZ_CHECK(profile_frame_at(p, i)->line >= PROFILE_NO_LINE);
	}
	for (uint32_t i = 1; i < profile_stack_count(p); i++) {
		FUZZ_CHECK(profile_stack_at(p, i)->parent < i);
		FUZZ_CHECK(profile_stack_at(p, i)->frame < profile_frame_count(p));
	}
	for (uint32_t i = 0; i < profile_thread_count(p); i++)
		FUZZ_CHECK(profile_thread_at(p, i)->process < profile_process_count(p));
	for (size_t i = 0; i < samples; i++) {
		FUZZ_CHECK(sample[i].stack < profile_stack_count(p));
		FUZZ_CHECK(sample[i].process < profile_process_count(p));
		FUZZ_CHECK(sample[i].thread == PROFILE_NONE || sample[i].thread < profile_thread_count(p));
	}
	for (size_t i = 0; i < events; i++)
		FUZZ_CHECK(event[i].sample < samples && event[i].value <= sample[event[i].sample].value);
	profile_account_entries(p, &n);
	FUZZ_CHECK(n <= 4096);
}

static void check_same(const struct profile *a, const struct profile *b)
{
	size_t n, m;

	FUZZ_CHECK(profile_frame_count(a) == profile_frame_count(b));
	FUZZ_CHECK(profile_stack_count(a) == profile_stack_count(b));
	FUZZ_CHECK(profile_total(a) == profile_total(b));
	profile_samples(a, &n);
	profile_samples(b, &m);
	FUZZ_CHECK(n == m);
	profile_events(a, &n);
	profile_events(b, &m);
	FUZZ_CHECK(n == m);
	profile_sources(a, &n);
	profile_sources(b, &m);
	FUZZ_CHECK(n == m);
}

static void save_again(const struct profile *p)
{
	struct profile *again = NULL;
	struct error error;
	char *file = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&file, &size), *in;

	FUZZ_CHECK(out && !profile_save(p, out) && !fclose(out));
	in = fmemopen(file, size, "r");
	FUZZ_CHECK(in && !profile_load_stream(in, "again", &again, &error));
	fclose(in);
	check_same(p, again);
	profile_free(again);
	free(file);
}

static void edit(const struct profile *p)
{
	const char *threads[] = {"t*"}, *focus[] = {"a"}, *ignore[] = {"x.*y"};
	struct profile_edit edits[] = {
		{.anonymize = true, .merge_processes = true},
		{.threads = {.items = threads, .count = 1}, .under = "a*"},
		{.focus = {.items = focus, .count = 1}, .ignore = {.items = ignore, .count = 1}},
	};
	struct error error;

	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		struct profile *some = profile_new();

		FUZZ_CHECK(some);
		if (!profile_edit_add(some, p, &edits[i], &error))
			check_rows(some);
		FUZZ_CHECK(profile_total(some) <= profile_total(p));
		profile_free(some);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char magic[] = PROFILE_SAVED_MAGIC;
	struct profile *p = NULL;
	struct error error = {0};
	int err;

	if (size >= strlen(magic) && memcmp(data, magic, strlen(magic)) == 0) {
		FILE *in = fmemopen((void *)data, size, "r");

		FUZZ_CHECK(in);
		err = profile_load_stream(in, "fuzz", &p, &error);
		fclose(in);
	} else {
		err = saved_load_bytes(data, size, &p, &(struct saved_error){"fuzz", &error});
	}
	FUZZ_CHECK(!err || err == -EBADMSG || err == -ENOTSUP || err == -EFBIG);
	FUZZ_CHECK(memchr(error.text, '\0', sizeof(error.text)));
	FUZZ_CHECK(!!err == !!error.text[0] && !err == !!p);
	if (!p)
		return 0;
	check_rows(p);
	save_again(p);
	edit(p);
	profile_free(p);
	return 0;
}
