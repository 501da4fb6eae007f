// SPDX-License-Identifier: Apache-2.0
/* What the side that samples believes of the process that serves, which may have been taken over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "serve/internal.h"

static struct serve_message message(uint32_t kind, uint64_t id, uint32_t what, uint32_t seconds)
{
	return (struct serve_message){.kind = kind, .id = id, .what = what, .seconds = seconds};
}

static bool take(struct serve_open *open, struct serve_message what)
{
	struct serve_request request;

	return serve_open_take(open, &what, &request);
}

static void test_life_of_a_request(void **unused)
{
	struct serve_open open = {.seconds_most = 120};
	struct serve_message asks = message(SERVE_MESSAGE_REQUEST, 7, SERVE_WALL, 120);
	struct serve_message leaves = message(SERVE_MESSAGE_CANCEL, 7, 0, 0);
	struct serve_request request;

	(void)unused;
	assert_true(serve_open_take(&open, &asks, &request));
	assert_int_equal(request.id, 7);
	assert_int_equal(request.what, SERVE_WALL);
	assert_int_equal(request.seconds, 120);
	assert_false(request.cancelled);
	assert_true(serve_open_take(&open, &leaves, &request));
	assert_int_equal(request.id, 7);
	assert_true(request.cancelled);
	assert_false(serve_open_close(&open, 7));
	/* Its answer and the client's end may cross. */
	assert_true(serve_open_take(&open, &asks, &request));
	assert_true(serve_open_close(&open, 7));
	assert_false(serve_open_take(&open, &leaves, &request));
}

static void test_nonsense(void **unused)
{
	struct serve_open open = {.seconds_most = 120};

	(void)unused;
	assert_false(take(&open, message(SERVE_MESSAGE_REQUEST, 1, SERVE_PROFILE, 121)));
	assert_false(take(&open, message(SERVE_MESSAGE_REQUEST, 1, SERVE_PROFILE, 0)));
	assert_false(take(&open, message(SERVE_MESSAGE_REQUEST, 1, SERVE_METRICS, 1)));
	assert_false(take(&open, message(SERVE_MESSAGE_REQUEST, 1, SERVE_WHATS, 0)));
	assert_false(take(&open, message(SERVE_MESSAGE_REQUEST, 1, UINT32_MAX, UINT32_MAX)));
	assert_false(take(&open, message(SERVE_MESSAGE_CANCEL, 1, 0, 0)));
	assert_false(take(&open, message(4711, 1, SERVE_METRICS, 0)));
	assert_int_equal(open.count, 0);
	assert_true(take(&open, message(SERVE_MESSAGE_REQUEST, 1, SERVE_METRICS, 0)));
	assert_false(take(&open, message(SERVE_MESSAGE_REQUEST, 1, SERVE_METRICS, 0)));
	for (uint64_t id = 2; id < 1000; id++)
		assert_int_equal(take(&open, message(SERVE_MESSAGE_REQUEST, id, SERVE_METRICS, 0)),
				 id <= SERVE_WAITING_MAX);
	assert_int_equal(open.count, SERVE_WAITING_MAX);
}

static void test_crash(void **unused)
{
	struct serve_open open = {.seconds_most = 120};
	struct serve_request request;
	uint64_t sum = 0;

	(void)unused;
	for (uint64_t id = 1; id <= 5; id++)
		assert_true(take(&open, message(SERVE_MESSAGE_REQUEST, id, SERVE_GIL, 1)));
	while (serve_open_cancel_one(&open, &request)) {
		assert_true(request.cancelled);
		sum += request.id;
	}
	assert_int_equal(sum, 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life_of_a_request),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
