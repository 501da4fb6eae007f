// SPDX-License-Identifier: Apache-2.0
/* Which service a process is a part of. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "discovery/service.h"

static const char *unit_of(const char *cgroup)
{
	static struct discovery_service_own own;

	own = (struct discovery_service_own){0};
	discovery_service_read_cgroup(cgroup, &own);
	return own.unit;
}

static void test_units(void **unused)
{
	(void)unused;
	assert_string_equal(unit_of("0::/system.slice/web.service\n"), "web");
	assert_string_equal(unit_of("0::/system.slice/web.service/workers\n"), "web");
	assert_string_equal(unit_of("0::/user.slice/user-1000.slice/user@1000.service/app.slice/notes.service\n"),
			    "notes");
	assert_string_equal(unit_of("0::/user.slice/user-1000.slice/user@1000.service/session.slice\n"), "");
	assert_string_equal(unit_of("0::/user.slice/user-0.slice/session-3.scope\n"), "");
	assert_string_equal(unit_of("12:cpu,cpuacct:/\n1:name=systemd:/system.slice/old.service\n0::/\n"), "old");
	assert_string_equal(unit_of("0::/\n"), "");
	/* Seen from a private cgroup namespace. */
	assert_string_equal(unit_of("0::/../../../../system.slice/ssh.service\n"), "ssh");
	assert_string_equal(unit_of("0::/.service\n"), "");
	assert_string_equal(unit_of(""), "");
}

#define ENVIRONMENT(text) text, sizeof(text)

static const char *otel_of(const char *text, size_t size)
{
	static struct discovery_service_own own;

	own = (struct discovery_service_own){0};
	discovery_service_read_environment(text, size, &own);
	return own.otel;
}

static const char *version_of(const char *text, size_t size)
{
	static struct discovery_service_own own;

	own = (struct discovery_service_own){0};
	discovery_service_read_environment(text, size, &own);
	return own.version;
}

static void test_resource_attributes(void **unused)
{
#define ATTRIBUTES "OTEL_RESOURCE_ATTRIBUTES="
	(void)unused;
	assert_string_equal(version_of(ENVIRONMENT(ATTRIBUTES "service.version=1.4.2")), "1.4.2");
	assert_string_equal(version_of(ENVIRONMENT("A=b\0" ATTRIBUTES "a=b,service.version=2,service.name=shop\0")),
			    "2");
	assert_string_equal(otel_of(ENVIRONMENT("A=b\0" ATTRIBUTES "a=b,service.version=2,service.name=shop\0")),
			    "shop");
	/* The variable of its own counts more. */
	assert_string_equal(otel_of(ENVIRONMENT(ATTRIBUTES "service.name=a\0OTEL_SERVICE_NAME=b")), "b");
	assert_string_equal(version_of(ENVIRONMENT(ATTRIBUTES "service.version=1%2C2%20%zz%2")), "1,2 %zz%2");
	assert_string_equal(version_of(ENVIRONMENT(ATTRIBUTES "service.version=a%00b,c=d")), "a%00b");
	assert_string_equal(version_of(ENVIRONMENT(ATTRIBUTES "service.version=,my.service.version=1")), "");
	/* Blanks around keys and values do not belong to them, as OpenTelemetry's programs take them. */
	assert_string_equal(otel_of(ENVIRONMENT(ATTRIBUTES "a=b, service.name=shop")), "shop");
	assert_string_equal(otel_of(ENVIRONMENT(ATTRIBUTES " service.name =\t my shop , a=b")), "my shop");
	assert_string_equal(version_of(ENVIRONMENT(ATTRIBUTES "service.version= ,a=b")), "");
	assert_string_equal(version_of(ENVIRONMENT(ATTRIBUTES "service.version")), "");
	/* Without an end. */
	assert_string_equal(version_of(ATTRIBUTES "service.version=1.4%2", 45), "1.4%");
	assert_string_equal(version_of(ATTRIBUTES, 25), "");
}

static void test_titles(void **unused)
{
	(void)unused;
	assert_false(discovery_service_is_overwritten(ENVIRONMENT("A=b\0C=")));
	assert_false(discovery_service_is_overwritten("A=b", 3));
	assert_false(discovery_service_is_overwritten("", 0));
	/* Zeroes, a title that is longer than the arguments were, and blanks. */
	assert_true(discovery_service_is_overwritten(ENVIRONMENT("\0\0\0")));
	assert_true(discovery_service_is_overwritten(ENVIRONMENT("ker -n 4 --b=c\0\0\0")));
	assert_true(discovery_service_is_overwritten("          ", 10));
}

static const char *tag_of(const char *image)
{
	static char tag[DISCOVERY_SERVICE_MAX];

	return discovery_service_read_tag(image, tag) ? tag : "";
}

static void test_tags(void **unused)
{
	(void)unused;
	assert_string_equal(tag_of("registry:5000/team/shop:1.4"), "1.4");
	assert_string_equal(tag_of("shop:v2"), "v2");
	assert_string_equal(tag_of("registry:5000/shop:1.4@sha256:5f4dcc3b"), "1.4");
	assert_string_equal(tag_of("registry:5000/shop@sha256:5f4dcc3b"), "");
	assert_string_equal(tag_of("shop:latest@sha256:5f4dcc3b"), "");
	assert_string_equal(tag_of("shop:latest"), "");
	assert_string_equal(tag_of("registry:5000/shop"), "");
	assert_string_equal(tag_of("shop:"), "");
	assert_string_equal(tag_of(""), "");
}

static void test_environments(void **unused)
{
	char wide[1000];

	(void)unused;
	assert_string_equal(otel_of(ENVIRONMENT("A=b\0OTEL_SERVICE_NAME=shop\0OTEL_SERVICE_NAME=other")), "shop");
	assert_string_equal(otel_of(ENVIRONMENT("XOTEL_SERVICE_NAME=shop\0")), "");
	assert_string_equal(otel_of(ENVIRONMENT("OTEL_SERVICE_NAME=\0A=b")), "");
	assert_string_equal(otel_of("", 0), "");
	/* Without an end, and longer than a name may be. */
	assert_string_equal(otel_of("OTEL_SERVICE_NAME=shop", 20), "sh");
	memset(wide, 'x', sizeof(wide));
	memcpy(wide, "OTEL_SERVICE_NAME=", 18);
	assert_int_equal(strlen(otel_of(wide, sizeof(wide))), DISCOVERY_SERVICE_MAX - 1);
}

static void test_order(void **unused)
{
	struct discovery_service_own own = {.otel = "otel", .unit = "unit"};
	struct discovery_service_facts facts = {.own = &own, .container = "pod-7f9c/web", .program = "python3 app.py"};
	struct discovery_service_rules rules = {0};

	(void)unused;
	assert_string_equal(discovery_find_service(&rules, &facts), "otel");
	own.otel[0] = '\0';
	assert_string_equal(discovery_find_service(&rules, &facts), "web");
	facts.container = NULL;
	assert_string_equal(discovery_find_service(&rules, &facts), "unit");
	own.unit[0] = '\0';
	assert_string_equal(discovery_find_service(&rules, &facts), "python3 app.py");
	assert_int_equal(discovery_service_add_rule(&rules, "none=x*"), 0);
	assert_int_equal(discovery_service_add_rule(&rules, "app=python3 app*"), 0);
	assert_int_equal(discovery_service_add_rule(&rules, "later=*"), 0);
	assert_string_equal(discovery_find_service(&rules, &facts), "app");
	facts.program = "gunicorn";
	facts.container = "pod-7f9c/x1";
	assert_string_equal(discovery_find_service(&rules, &facts), "none");
	facts.container = NULL;
	assert_string_equal(discovery_find_service(&rules, &facts), "later");
	discovery_service_free_rules(&rules);
}

static void test_rules(void **unused)
{
	static const char *const wrong[] = {"", "shop", "=x", "shop="};
	struct discovery_service_rules rules = {0};
	char wide[DISCOVERY_SERVICE_MAX + 10];

	(void)unused;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(discovery_service_add_rule(&rules, wrong[i]), -EINVAL);
	memset(wide, 'x', sizeof(wide));
	strcpy(wide + DISCOVERY_SERVICE_MAX, "=*");
	assert_int_equal(discovery_service_add_rule(&rules, wide), -EINVAL);
	assert_int_equal(discovery_service_add_rule(&rules, wide + 1), 0);
	discovery_service_free_rules(&rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_environments),
		cmocka_unit_test(test_resource_attributes),
		cmocka_unit_test(test_titles),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
