// SPDX-License-Identifier: Apache-2.0
/* Saved profiles as files: everything comes back, and what is foreign, cut, newer or made to harm is refused. */
#include <errno.h>
#include <zlib.h>

#include "profile/saved.h"
#include "rich_profile.h"

struct bytes {
	char *data;
	size_t size;
};

static struct bytes saved(const struct profile *p)
{
	struct bytes file = {0};
	FILE *out = open_memstream(&file.data, &file.size);

	assert_non_null(out);
	assert_int_equal(profile_save(p, out), 0);
	assert_int_equal(fclose(out), 0);
	return file;
}

/* What loading says; *p only when it succeeds. */
static int load(const void *data, size_t size, struct profile **p, struct error *error)
{
	FILE *in = size ? fmemopen((void *)data, size, "r") : fopen("/dev/null", "r");
	int err;

	assert_non_null(in);
	error_clear(error);
	*p = NULL;
	err = profile_load_stream(in, "x.pybpf", p, error);
	fclose(in);
	assert_true(!err == !!*p);
	assert_int_equal(error->code, err);
	assert_true(!err == !*error->text);
	/* One sentence that begins with the file. */
	assert_true(!err || strncmp(error->text, "x.pybpf ", 8) == 0);
	assert_null(strchr(error->text, '\n'));
	return err;
}

static void assert_refused(const void *data, size_t size, int want, const char *words)
{
	struct profile *p;
	struct error error;
	int err = load(data, size, &p, &error);

	if (err != want || !strstr(error.text, words))
		print_error("wanted %d and \"%s\", got %d and \"%s\"\n", want, words, err, error.text);
	assert_int_equal(err, want);
	assert_non_null(strstr(error.text, words));
}

static void test_round_trip(void **unused)
{
	(void)unused;
	for (uint64_t seed = 1; seed < 6; seed++) {
		struct profile *p = rich_profile(seed), *again;
		struct bytes file = saved(p);
		struct error error;

		assert_int_equal(load(file.data, file.size, &again, &error), 0);
		assert_same_profile(p, again);
		profile_free(again);
		profile_sort_events(p);
		free(file.data);
		file = saved(p);
		assert_int_equal(load(file.data, file.size, &again, &error), 0);
		assert_same_profile(p, again);
		free(file.data);
		profile_free(again);
		profile_free(p);
	}
}

static void test_empty_profile(void **unused)
{
	struct profile *p = new_profile(), *again;
	struct bytes file = saved(p);
	struct error error;

	(void)unused;
	assert_int_equal(load(file.data, file.size, &again, &error), 0);
	assert_same_profile(p, again);
	free(file.data);
	profile_free(again);
	profile_free(p);
}

static struct profile *small_profile(void)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), thread = profile_add_thread(p, owner, 43, "worker");
	uint32_t root = on(p, PROFILE_ROOT, "<module>", "app.py", 10), leaf = on(p, root, "f", "app.py", 3);

	assert_int_equal(profile_add_sample(p, leaf, owner, thread, 7), 0);
	assert_int_equal(profile_add_sample(p, root, owner, PROFILE_NONE, 1), 0);
	assert_int_equal(profile_add_event(p, 1000, 0, 2), 0);
	assert_int_equal(profile_add_event(p, 900, 1, 1), 0);
	assert_int_equal(profile_add_account(p, "lost", "ring", "lost in the ring", 3), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, "there"), 0);
	assert_int_equal(profile_set_source(p, "app.py", "f()\n"), 0);
	return p;
}

static void test_truncated(void **unused)
{
	struct profile *p = small_profile();
	struct bytes file = saved(p);

	(void)unused;
	assert_refused(file.data, 0, -EBADMSG, "is empty");
	for (size_t size = 1; size < file.size; size++)
		assert_refused(file.data, size, -EBADMSG, "was cut off");
	free(file.data);
	profile_free(p);
}

static void test_bits_flipped(void **unused)
{
	struct profile *p = small_profile();
	struct bytes file = saved(p);
	size_t harmless = 0;

	(void)unused;
	for (size_t bit = 0; bit < file.size * 8; bit++) {
		struct profile *again;
		struct error error;

		file.data[bit / 8] ^= (char)(1 << bit % 8);
		/* gzip's header says more than matters, and deflate's end is filled up to a byte. */
		if (load(file.data, file.size, &again, &error) == 0) {
			assert_same_profile(p, again);
			profile_free(again);
			harmless++;
		}
		file.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	assert_true(harmless < 8 * 8);
	free(file.data);
	profile_free(p);
}

static void test_foreign(void **unused)
{
	static const char png[] = "\x89PNG\r\n\x1a\n", folded[] = "main (a.py:1) 3\n", near[] = "pybpf prof";

	(void)unused;
	assert_refused(png, sizeof(png), -EBADMSG, "is no saved profile");
	assert_refused(folded, strlen(folded), -EBADMSG, "is no saved profile");
	assert_refused(near, strlen(near), -EBADMSG, "was cut off");
	assert_refused("pybpf profile \n", 15, -EBADMSG, "does not say its format");
	assert_refused("pybpf profile 0\n", 16, -EBADMSG, "does not say its format");
	assert_refused("pybpf profile 99999999999999999999\n", 35, -EBADMSG, "does not say its format");
	assert_refused("pybpf profile 2\nwhatever", 24, -ENOTSUP,
		       "was written by a newer pybpf (format 2; this one reads up to 1): use that version");
	assert_refused("pybpf profile 1\nno gzip", 23, -EBADMSG, "cannot be unpacked");
}

static void test_more_behind_the_end(void **unused)
{
	struct profile *p = small_profile();
	struct bytes file = saved(p);
	char *twice = malloc(file.size * 2);

	(void)unused;
	assert_non_null(twice);
	memcpy(twice, file.data, file.size);
	memcpy(twice + file.size, file.data, file.size);
	assert_refused(twice, file.size * 2, -EBADMSG, "there is data after the end");
	assert_refused(twice, file.size + 1, -EBADMSG, "there is data after the end");
	free(twice);
	free(file.data);
	profile_free(p);
}

/* A file of some bytes and of many zeros, compressed. */
static struct bytes compressed(const void *data, size_t size, size_t zeros)
{
	static uint8_t nothing[65536];
	struct bytes file = {.data = malloc(64 + size * 2 + zeros / 100)};
	z_stream z = {0};

	assert_non_null(file.data);
	file.size = (size_t)sprintf(file.data, "%s%d\n", PROFILE_SAVED_MAGIC, PROFILE_SAVED_FORMAT);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = (uint8_t *)file.data + file.size;
	z.avail_out = (unsigned)(64 + size * 2 + zeros / 100 - file.size);
	z.next_in = (uint8_t *)data;
	z.avail_in = (unsigned)size;
	assert_int_equal(deflate(&z, zeros ? Z_NO_FLUSH : Z_FINISH), zeros ? Z_OK : Z_STREAM_END);
	while (zeros) {
		z.next_in = nothing;
		z.avail_in = (unsigned)(zeros < sizeof(nothing) ? zeros : sizeof(nothing));
		zeros -= z.avail_in;
		assert_int_equal(deflate(&z, zeros ? Z_NO_FLUSH : Z_FINISH), zeros ? Z_OK : Z_STREAM_END);
	}
	file.size += z.total_out;
	deflateEnd(&z);
	return file;
}

static void test_bomb(void **unused)
{
	/* Field 1, of a length: its texts. */
	static const uint8_t texts[] = {0x0a, 0x80, 0x80, 0x80, 0x80, 0x01};
	struct bytes bomb = compressed(texts, sizeof(texts), (size_t)1 << 28);

	(void)unused;
	assert_true(bomb.size < 1 << 20);
	assert_refused(bomb.data, bomb.size, -EFBIG, "out of proportion");
	free(bomb.data);
}

/* Fields that nobody knows cost protobuf-c much more than their two bytes each. */
static void test_unknown_fields(void **unused)
{
	enum {
		FIELDS = 100000
	};
	uint8_t few[] = {0xf8, 0x3f, 1}; /* field 1023, a varint */
	struct profile *p = small_profile(), *again;
	struct error error;
	char *many = malloc(3 * FIELDS);
	struct bytes file = saved(p), more;
	uint8_t plain[4096];
	size_t head = strlen("pybpf profile 1\n");
	z_stream z = {.next_in = (uint8_t *)file.data + head, .avail_in = (unsigned)(file.size - head)};

	(void)unused;
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_out = plain;
	z.avail_out = sizeof(plain);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	memcpy(plain + z.total_out, few, sizeof(few));
	more = compressed(plain, z.total_out + sizeof(few), 0);
	inflateEnd(&z);
	assert_int_equal(load(more.data, more.size, &again, &error), 0);
	assert_same_profile(p, again);
	profile_free(again);
	profile_free(p);
	free(more.data);
	free(file.data);

	assert_non_null(many);
	for (size_t i = 0; i < FIELDS; i++)
		memcpy(many + 3 * i, few, sizeof(few));
	file = compressed(many, 3 * FIELDS, 0);
	assert_refused(file.data, file.size, -EFBIG, "out of proportion");
	free(file.data);
	free(many);
}

static void test_deepest(void **unused)
{
	enum {
		DEEPEST = 32768
	};
	struct profile *p = new_profile(), *again;
	struct bytes file;
	uint32_t stack = PROFILE_ROOT;
	struct error error;

	(void)unused;
	for (int i = 0; i < DEEPEST; i++)
		stack = on(p, stack, "dive", "deep.py", 1);
	take_in(p, stack, process(p, 1, "x"), 1);
	file = saved(p);
	assert_int_equal(load(file.data, file.size, &again, &error), 0);
	assert_same_profile(p, again);
	profile_free(again);
	free(file.data);
	on(p, stack, "dive", "deep.py", 1);
	file = saved(p);
	assert_refused(file.data, file.size, -EBADMSG, "too deep");
	free(file.data);
	profile_free(p);
}

static int load_path(const char *path, struct profile **p, struct error *error)
{
	FILE *in;
	int err = profile_open(path, &in, error);

	if (err)
		return err;
	err = profile_load_stream(in, path, p, error);
	fclose(in);
	return err;
}

static void test_paths(void **unused)
{
	struct profile *p = NULL;
	struct error error;

	(void)unused;
	assert_int_equal(load_path("/nowhere/x.pybpf", &p, &error), -ENOENT);
	assert_string_equal(error.text, "/nowhere/x.pybpf cannot be read: No such file or directory");
	assert_int_equal(load_path("/tmp", &p, &error), -EISDIR);
	assert_string_equal(error.text, "/tmp cannot be read: Is a directory");
	assert_int_equal(load_path("/dev/zero", &p, &error), -EBADMSG);
}

static void test_full_disk(void **unused)
{
	struct profile *p = rich_profile(7);
	FILE *out = fopen("/dev/full", "w");
	int err;

	(void)unused;
	assert_non_null(out);
	err = profile_save(p, out);
	assert_true(err == -ENOSPC || fflush(out));
	fclose(out);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_empty_profile),
		cmocka_unit_test(test_truncated),  cmocka_unit_test(test_bits_flipped),
		cmocka_unit_test(test_foreign),    cmocka_unit_test(test_more_behind_the_end),
		cmocka_unit_test(test_bomb),       cmocka_unit_test(test_unknown_fields),
		cmocka_unit_test(test_deepest),    cmocka_unit_test(test_paths),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
