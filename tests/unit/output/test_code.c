// SPDX-License-Identifier: Apache-2.0
/* What kind of code a file's name tells. */
#include "output/code.h"
#include "profiles.h"

static void assert_code(struct profile *p, const char *name, const char *file, enum output_code want)
{
	const uint32_t frame = profile_add_frame(p, PROFILE_NATIVE, name, file, PROFILE_NO_LINE, PROFILE_NO_LINE);

	if (output_code_of(p, profile_frame_at(p, frame)) != want)
		fail_msg("%s (%s): not %d", name, file, want);
}

static void test_files(void **unused)
{
	static const struct {
		const char *file;
		enum output_code code;
	} files[] = {
		{"zlib.cpython-312-x86_64-linux-gnu.so", OUTPUT_CODE_EXTENSION},
		{"_rust.abi3.so", OUTPUT_CODE_EXTENSION},
		{"lib.cpython-313t-x86_64-linux-gnu.so", OUTPUT_CODE_EXTENSION},
		{"libtorch_python.abi3.so", OUTPUT_CODE_EXTENSION},
		{"_json.so", OUTPUT_CODE_EXTENSION},
		{"datetime.x86_64-linux-gnu.so", OUTPUT_CODE_EXTENSION},
		{"libz.so.1.2.13", OUTPUT_CODE_LIBRARY},
		{"libssl.so", OUTPUT_CODE_LIBRARY},
		{"libpython-tools.so", OUTPUT_CODE_LIBRARY},
		{"python-launcher", OUTPUT_CODE_LIBRARY},
		{"ld-linux-x86-64.so.2", OUTPUT_CODE_LIBRARY},
		{"uwsgi", OUTPUT_CODE_LIBRARY},
		{".so", OUTPUT_CODE_LIBRARY},
		{"so", OUTPUT_CODE_LIBRARY},
		{"", OUTPUT_CODE_LIBRARY},
		{"python3.12", OUTPUT_CODE_INTERPRETER},
		{"python3.13t", OUTPUT_CODE_INTERPRETER},
		{"python2.7", OUTPUT_CODE_INTERPRETER},
		{"libpython3.11.so.1.0", OUTPUT_CODE_INTERPRETER},
	};
	struct profile *p = new_profile();

	(void)unused;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		assert_code(p, "f", files[i].file, files[i].code);
	assert_code(p, "[CPython]", "uwsgi", OUTPUT_CODE_INTERPRETER);
	profile_free(p);
}

/* A file's name tells nothing of Python's functions. */
static void test_frame_kinds(void **unused)
{
	static const enum output_code codes[] = {
		[PROFILE_PYTHON] = OUTPUT_CODE_PYTHON,  [PROFILE_NOTE] = OUTPUT_CODE_NOTE,
		[PROFILE_THREAD] = OUTPUT_CODE_NOTE,    [PROFILE_KERNEL] = OUTPUT_CODE_KERNEL,
		[PROFILE_NATIVE] = OUTPUT_CODE_LIBRARY,
	};
	struct profile *p = new_profile();

	(void)unused;
	_Static_assert(sizeof(codes) / sizeof(*codes) == PROFILE_FRAME_KINDS, "each kind");
	for (int kind = 0; kind < PROFILE_FRAME_KINDS; kind++) {
		const uint32_t frame =
			profile_add_frame(p, (enum profile_frame_kind)kind, "f", kind == PROFILE_NATIVE ? "x" : "x.so",
					  PROFILE_NO_LINE, PROFILE_NO_LINE);

		assert_int_equal(output_code_of(p, profile_frame_at(p, frame)), codes[kind]);
	}
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_frame_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
