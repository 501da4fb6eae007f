// SPDX-License-Identifier: Apache-2.0
/* The hash of the paper, and that each process has a key of its own for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/siphash.h"

/*
 * The reference implementation's list (vectors.h), by length of input: key and input are the bytes 0, 1, 2, ... The one
 * of 15 bytes is also in the paper's appendix A.
 */
static const uint8_t reference[][8] = {
	{0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72}, {0xfd, 0x67, 0xdc, 0x93, 0xc5, 0x39, 0xf8, 0x74},
	{0x5a, 0x4f, 0xa9, 0xd9, 0x09, 0x80, 0x6c, 0x0d}, {0x2d, 0x7e, 0xfb, 0xd7, 0x96, 0x66, 0x67, 0x85},
	{0xb7, 0x87, 0x71, 0x27, 0xe0, 0x94, 0x27, 0xcf}, {0x8d, 0xa6, 0x99, 0xcd, 0x64, 0x55, 0x76, 0x18},
	{0xce, 0xe3, 0xfe, 0x58, 0x6e, 0x46, 0xc9, 0xcb}, {0x37, 0xd1, 0x01, 0x8b, 0xf5, 0x00, 0x02, 0xab},
	{0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93}, {0xb0, 0xe4, 0xa9, 0x0b, 0xdf, 0x82, 0x00, 0x9e},
	{0xf3, 0xb9, 0xdd, 0x94, 0xc5, 0xbb, 0x5d, 0x7a}, {0xa7, 0xad, 0x6b, 0x22, 0x46, 0x2f, 0xb3, 0xf4},
	{0xfb, 0xe5, 0x0e, 0x86, 0xbc, 0x8f, 0x1e, 0x75}, {0x90, 0x3d, 0x84, 0xc0, 0x27, 0x56, 0xea, 0x14},
	{0xee, 0xf2, 0x7a, 0x8e, 0x90, 0xca, 0x23, 0xf7}, {0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1},
};

static void test_reference(void **unused)
{
	uint8_t key[SIPHASH_KEY], input[16];

	(void)unused;
	for (uint8_t i = 0; i < 16; i++)
		key[i] = input[i] = i;
	for (size_t size = 0; size < sizeof(reference) / sizeof(*reference); size++) {
		uint64_t hash = siphash(key, input, size);

		assert_memory_equal(&hash, reference[size], sizeof(hash));
	}
}

/* A process that has drawn its key keeps it; each of two that draw theirs has another one. */
static void test_own_key(void **unused)
{
	uint8_t keys[2][SIPHASH_KEY];

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		int ends[2], status;
		pid_t child;

		assert_int_equal(pipe(ends), 0);
		child = fork();
		if (child == 0) {
			const uint8_t *key = siphash_process_key();
			uint8_t first[SIPHASH_KEY];

			memcpy(first, key, sizeof(first));
			_exit(siphash_process_key() != key || memcmp(first, key, sizeof(first)) ||
			      write(ends[1], key, SIPHASH_KEY) != SIPHASH_KEY);
		}
		assert_int_equal(read(ends[0], keys[i], SIPHASH_KEY), SIPHASH_KEY);
		close(ends[0]);
		close(ends[1]);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	assert_memory_not_equal(keys[0], keys[1], SIPHASH_KEY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_own_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
