// SPDX-License-Identifier: Apache-2.0
/* The profiles of an epoch's services: all of it, each sample once. */
#include <errno.h>

#include "agent/internal.h"
#include "rich_profile.h"

/* What was handed over, and when it ends. */
struct taken {
	uint64_t total, of_shop;
	unsigned services, most; /* most: beyond so many, no time is left */
	unsigned fails_at;       /* number of the service for which take() fails; 0: it never fails */
};

static int take(void *arg, const struct agent_service *service)
{
	struct taken *t = arg;
	const char *start = profile_find_fact(service->profile, PROFILE_FACT_START);

	if (++t->services == t->fails_at)
		return -E2BIG;
	assert_non_null(start);
	assert_string_equal(start, "5");
	assert_true(profile_total(service->profile) > 0);
	for (uint32_t i = 0; i < profile_process_count(service->profile); i++)
		assert_string_equal(
			profile_string(service->profile, profile_process_at(service->profile, i)->container),
			service->container);
	t->total += profile_total(service->profile);
	if (strcmp(service->name, "shop") == 0)
		t->of_shop += profile_total(service->profile);
	return 0;
}

static bool goes_on(void *arg)
{
	const struct taken *t = arg;

	return t->services < t->most;
}

/* Two services, one of them in two containers, a container and a program without a service, and one that has no sample.
 */
static struct profile *epoch(void)
{
	static const struct profile_process_info infos[] = {
		{.pid = 1, .name = "web", .container = "front", .service = "shop"},
		{.pid = 2, .name = "job", .container = "front", .service = "shop"},
		{.pid = 3, .name = "web", .container = "back", .service = "shop"},
		{.pid = 4, .name = "web", .container = "front", .service = "bank"},
		{.pid = 5, .name = "cron", .container = "other"},
		{.pid = 6, .name = "cron"},
		{.pid = 7, .name = "idle"},
	};
	struct profile *p = new_profile();
	uint32_t stack = on(p, PROFILE_ROOT, "f", "app.py", 1);

	for (uint32_t i = 0; i < 6; i++)
		take_in(p, stack, profile_add_process(p, &infos[i]), 1u << i);
	take_in(p, PROFILE_ROOT, profile_add_process(p, &infos[6]), 1000);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_START, "5"), 0);
	return p;
}

static void test_each_service_once(void **unused)
{
	struct profile *p = epoch();
	struct taken t = {.most = 100};
	uint64_t left = 1;
	uint32_t from = 0;

	(void)unused;
	assert_int_equal(agent_each_service(p, &from, take, goes_on, &t, &left), 0);
	assert_int_equal(t.services, 5);
	assert_int_equal(t.total, 63);
	assert_int_equal(t.of_shop, 1 + 2 + 4);
	assert_int_equal(left, 0);
	profile_free(p);
}

static void test_what_is_left_is_counted(void **unused)
{
	struct profile *p = epoch();
	struct taken slow = {.most = 2}, refused = {.most = 100, .fails_at = 1};
	uint64_t left = 0;
	uint32_t from = 0;

	(void)unused;
	assert_int_equal(agent_each_service(p, &from, take, goes_on, &slow, &left), -ETIME);
	assert_int_equal(slow.services, 2);
	assert_int_equal(slow.total + left, 63);
	from = 0;
	assert_int_equal(agent_each_service(p, &from, take, goes_on, &refused, &left), -E2BIG);
	assert_int_equal(refused.services, 5);
	assert_int_equal(left, 1 + 2);
	profile_free(p);
}

/* Where each epoch has time for two of five services, each is handed over in turn. */
static void test_no_service_is_always_left(void **unused)
{
	struct profile *p = epoch();
	uint32_t from = UINT32_MAX;
	uint64_t sum = 0;

	(void)unused;
	for (unsigned i = 0; i < 5; i++) {
		struct taken t = {.most = 2};
		uint64_t left;

		assert_int_equal(agent_each_service(p, &from, take, goes_on, &t, &left), -ETIME);
		assert_int_equal(t.total + left, 63);
		sum += t.total;
	}
	/* Twice each. */
	assert_int_equal(sum, 2 * 63);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_service_once),
		cmocka_unit_test(test_what_is_left_is_counted),
		cmocka_unit_test(test_no_service_is_always_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
