// SPDX-License-Identifier: Apache-2.0
/* Attributes of processes as one text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "profile/attributes.h"

static const char *found(const char *text, enum profile_attribute attribute)
{
	static char value[PROFILE_ATTRIBUTE_MAX];

	return profile_attribute_find(text, attribute, value);
}

static void test_what_was_added_is_found(void **unused)
{
	char text[PROFILE_ATTRIBUTES_MAX] = "";

	(void)unused;
	profile_attribute_add(text, PROFILE_SERVICE_VERSION, "1.4=a");
	profile_attribute_add(text, PROFILE_CONTAINER_ID, "");
	profile_attribute_add(text, PROFILE_CONTAINER_IMAGE, "a\nservice.version=9\r");
	assert_string_equal(text, "service.version=1.4=a\ncontainer.image.name=a?service.version=9?\n");
	assert_string_equal(found(text, PROFILE_SERVICE_VERSION), "1.4=a");
	assert_string_equal(found(text, PROFILE_CONTAINER_IMAGE), "a?service.version=9?");
	assert_string_equal(found(text, PROFILE_CONTAINER_ID), "");
}

/* What has no room leaves the others as they are. */
static void test_room(void **unused)
{
	char text[PROFILE_ATTRIBUTES_MAX] = "", wide[PROFILE_ATTRIBUTES_MAX];

	(void)unused;
	memset(wide, 'x', sizeof(wide));
	wide[sizeof(wide) - 1] = '\0';
	profile_attribute_add(text, PROFILE_CONTAINER_ID, "4f79");
	profile_attribute_add(text, PROFILE_CONTAINER_IMAGE, wide);
	assert_string_equal(text, "container.id=4f79\n");
	wide[PROFILE_ATTRIBUTES_MAX - sizeof("container.id=4f79\ncontainer.image.name=\n")] = '\0';
	profile_attribute_add(text, PROFILE_CONTAINER_IMAGE, wide);
	assert_int_equal(strlen(text), sizeof(text) - 1);
	assert_int_equal(strlen(found(text, PROFILE_CONTAINER_IMAGE)), PROFILE_ATTRIBUTE_MAX - 1);
}

/* Texts of saved profiles are anything. */
static void test_foreign_texts(void **unused)
{
	(void)unused;
	assert_string_equal(found("container.id", PROFILE_CONTAINER_ID), "");
	assert_string_equal(found("container.id=", PROFILE_CONTAINER_ID), "");
	assert_string_equal(found("\n\n=\ncontainer.id=7", PROFILE_CONTAINER_ID), "7");
	assert_string_equal(found("container.idx=7\ncontainer.id=8", PROFILE_CONTAINER_ID), "8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_added_is_found),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_foreign_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
