// SPDX-License-Identifier: Apache-2.0
/* Bodies of OpenTelemetry's protocol, read by protobuf-c. */
#include <errno.h>

#include "output/formats/otlp.pb-c.h"
#include "output/otlp.h"
#include "profiles_hostile.h"
#include "rich_profile.h"

/* What was read of the bodies of one profile. */
struct totals {
	size_t bodies, largest, profiles, samples;
	size_t most;       /* samples of a profile */
	int64_t values[2]; /* of profiles of samples, and of waits */
	uint8_t ids[8][16];
};

/* Checks that indices are those of elements, of which the first ones are zero values. */
static void check_dictionary(const Otlp__Dictionary *d)
{
	assert_true(d->n_mapping_table && d->n_location_table && d->n_function_table && d->n_link_table);
	assert_true(d->n_string_table && d->n_attribute_table && d->n_stack_table);
	assert_string_equal(d->string_table[0], "");
	assert_int_equal(d->location_table[0]->n_lines, 0);
	/* Parca refuses one with identifiers that are zero. */
	assert_int_equal(otlp__link__get_packed_size(d->link_table[0]), 0);
	assert_int_equal(d->stack_table[0]->n_location_indices, 0);
	assert_int_equal(d->attribute_table[0]->key_strindex, 0);
	for (size_t i = 1; i < d->n_stack_table; i++) {
		for (size_t k = 0; k < d->stack_table[i]->n_location_indices; k++)
			assert_in_range(d->stack_table[i]->location_indices[k], 1, d->n_location_table - 1);
	}
	for (size_t i = 1; i < d->n_location_table; i++) {
		assert_int_equal(d->location_table[i]->n_lines, 1);
		assert_in_range(d->location_table[i]->lines[0]->function_index, 1, d->n_function_table - 1);
		assert_in_range(d->location_table[i]->mapping_index, 0, d->n_mapping_table - 1);
	}
	for (size_t i = 1; i < d->n_attribute_table; i++)
		assert_in_range(d->attribute_table[i]->key_strindex, 1, d->n_string_table - 1);
	for (size_t i = 1; i < d->n_string_table; i++) {
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(d->string_table[i], d->string_table[k]);
	}
}

static void count_profile(struct totals *t, const Otlp__Dictionary *d, const Otlp__Profile *profile)
{
	const bool waits = strcmp(d->string_table[profile->sample_type->type_strindex], "off_cpu") == 0;

	assert_int_equal(profile->profile_id.len, 16);
	if (t->profiles < sizeof(t->ids) / sizeof(*t->ids))
		memcpy(t->ids[t->profiles], profile->profile_id.data, 16);
	t->profiles++;
	t->most = profile->n_samples > t->most ? profile->n_samples : t->most;
	assert_true(profile->n_samples);
	/* Parca refuses a profile without it. */
	assert_non_null(profile->period_type);
	assert_true(waits ? profile->period == 0 : profile->period > 0);
	for (size_t i = 0; i < profile->n_samples; i++) {
		const Otlp__Sample *sample = profile->samples[i];

		assert_int_equal(sample->n_values, 1);
		assert_in_range(sample->stack_index, 1, d->n_stack_table - 1);
		for (size_t k = 0; k < sample->n_attribute_indices; k++)
			assert_in_range(sample->attribute_indices[k], 1, d->n_attribute_table - 1);
		t->values[waits] += sample->values[0];
		t->samples++;
	}
}

static int count_body(void *arg, const void *body, size_t size)
{
	struct totals *t = arg;
	Otlp__Request *request = otlp__request__unpack(NULL, size, body);
	Otlp__Dictionary *d;

	assert_non_null(request);
	d = otlp__dictionary__unpack(NULL, request->dictionary.len, request->dictionary.data);
	assert_non_null(d);
	check_dictionary(d);
	t->bodies++;
	t->largest = size > t->largest ? size : t->largest;
	for (size_t i = 0; i < request->n_resource_profiles; i++) {
		Otlp__ResourceProfiles *of = otlp__resource_profiles__unpack(NULL, request->resource_profiles[i].len,
									     request->resource_profiles[i].data);
		Otlp__ScopeProfiles *scope = NULL;

		assert_non_null(of);
		assert_int_equal(of->n_scope_profiles, 1);
		scope = otlp__scope_profiles__unpack(NULL, of->scope_profiles[0].len, of->scope_profiles[0].data);
		assert_non_null(scope);
		assert_string_equal(scope->scope->name, "pybpf");
		for (size_t k = 0; k < scope->n_profiles; k++) {
			Otlp__Profile *profile =
				otlp__profile__unpack(NULL, scope->profiles[k].len, scope->profiles[k].data);

			assert_non_null(profile);
			count_profile(t, d, profile);
			otlp__profile__free_unpacked(profile, NULL);
		}
		otlp__scope_profiles__free_unpacked(scope, NULL);
		otlp__resource_profiles__free_unpacked(of, NULL);
	}
	otlp__dictionary__free_unpacked(d, NULL);
	otlp__request__free_unpacked(request, NULL);
	return 0;
}

static struct totals encoded(const struct profile *p, size_t body_max)
{
	struct totals t = {0};

	assert_int_equal(
		otlp_encode(p, &(struct otlp_options){.body_max = body_max, .take = count_body, .take_arg = &t}), 0);
	return t;
}

static void test_bodies_have_a_limit_and_lose_nothing(void **unused)
{
	struct profile *p = rich_profile(7);
	struct totals whole = encoded(p, 0);
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	int64_t want = 0;

	(void)unused;
	for (size_t i = 0; i < count; i++)
		want += samples[i].stack == PROFILE_ROOT ? 0 : (int64_t)samples[i].value;
	assert_int_equal(whole.bodies, 1);
	assert_true(whole.values[0] + whole.values[1] == want);
	assert_true(whole.samples > 100);
	for (size_t limit = 16384; limit < whole.largest; limit = limit * 3 / 2) {
		struct totals parts = encoded(p, limit);

		assert_true(parts.bodies > 1);
		assert_true(parts.largest <= limit);
		assert_int_equal(parts.samples, whole.samples);
		assert_true(parts.values[0] == whole.values[0]);
		assert_true(parts.values[1] == whole.values[1]);
		assert_memory_not_equal(parts.ids[0], parts.ids[1], 16);
	}
	/* Each sample is larger than the limit. */
	assert_int_equal(encoded(p, 1).bodies, whole.samples);
	profile_free(p);
}

/* Pyroscope refuses a profile with too many samples. */
static void test_profiles_have_a_limit(void **unused)
{
	struct profile *p = new_profile();
	const uint32_t web = process(p, 1, "web");
	struct totals t;

	(void)unused;
	for (uint32_t i = 0; i < 20000; i++)
		take_in(p, on(p, PROFILE_ROOT, "f", "app.py", i), web, 1);
	t = encoded(p, 0);
	assert_int_equal(t.samples, 20000);
	assert_int_equal(t.profiles, 5);
	assert_int_equal(t.most, 4000);
	assert_true(t.values[0] == 20000);
	profile_free(p);
}

static int keep_types(void *arg, const void *body, size_t size)
{
	Otlp__Request *request = otlp__request__unpack(NULL, size, body);
	Otlp__Dictionary *d;

	assert_non_null(request);
	d = otlp__dictionary__unpack(NULL, request->dictionary.len, request->dictionary.data);
	assert_non_null(d);
	for (size_t i = 0; i < d->n_string_table; i++)
		*(bool *)arg |= strcmp(d->string_table[i], "uprobe_/lib/libz.so.1_page_faults") == 0;
	otlp__dictionary__free_unpacked(d, NULL);
	otlp__request__free_unpacked(request, NULL);
	return 0;
}

/* What stores take as the end of a part of a type's name, or refuse. */
static void test_names_of_events(void **unused)
{
	struct profile *p = new_profile();
	const struct profile_measure measure = {.name = "uprobe:/lib/libz.so.1:page-faults", .unit = "count"};
	bool found = false;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &measure), 0);
	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 1), process(p, 1, "web"), 5);
	assert_int_equal(otlp_encode(p, &(struct otlp_options){.take = keep_types, .take_arg = &found}), 0);
	assert_true(found);
	profile_free(p);
}

static void test_nothing_to_send(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	take_in(p, PROFILE_ROOT, process(p, 1, "idle"), 5);
	assert_int_equal(encoded(p, 0).bodies, 1);
	assert_int_equal(encoded(p, 0).profiles, 0);
	assert_int_equal(encoded(p, OTLP_BODY_MAX).bodies, 0);
	profile_free(p);
}

static int refuse(void *arg, const void *body, size_t size)
{
	(void)body;
	(void)size;
	(*(int *)arg)++;
	return -EPIPE;
}

static void test_a_taker_that_fails_ends_it(void **unused)
{
	struct profile *p = rich_profile(3);
	struct otlp_options options = {.body_max = 16384, .take = refuse};
	uint64_t left = 0;
	int calls = 0;

	(void)unused;
	options.take_arg = &calls;
	options.left = &left;
	assert_int_equal(otlp_encode(p, &options), -EPIPE);
	assert_int_equal(calls, 1);
	assert_true(left == profile_total(p));
	profile_free(p);
}

struct some {
	struct totals totals;
	unsigned most;
};

static int count_some(void *arg, const void *body, size_t size)
{
	struct some *some = arg;

	return some->totals.bodies == some->most ? -ETIME : count_body(&some->totals, body, size);
}

static void test_what_was_not_taken_is_counted(void **unused)
{
	struct profile *p = rich_profile(7);
	const unsigned all = (unsigned)encoded(p, 16384).bodies;

	(void)unused;
	for (unsigned most = 0; most <= all; most++) {
		struct some some = {.most = most};
		struct otlp_options options = {.body_max = 16384, .take = count_some};
		uint64_t left = 0, taken;

		options.take_arg = &some;
		options.left = &left;
		assert_int_equal(otlp_encode(p, &options), most < all ? -ETIME : 0);
		taken = (uint64_t)(some.totals.values[0] + some.totals.values[1]);
		assert_true(taken + left == profile_total(p));
		assert_true((left == 0) == (most == all));
	}
	profile_free(p);
}

static const char *value_of(const Otlp__Resource *resource, const char *key)
{
	for (size_t i = 0; i < resource->n_attributes; i++) {
		if (strcmp(resource->attributes[i]->key, key) == 0)
			return resource->attributes[i]->value->string_value;
	}
	return "";
}

/* The values of services, which are called by a letter each. */
struct by_service {
	int64_t values['z' + 1];
	unsigned bodies, most;
};

static int count_services(void *arg, const void *body, size_t size)
{
	struct by_service *by = arg;
	struct totals before = {0};
	Otlp__Request *request = otlp__request__unpack(NULL, size, body);
	Otlp__ResourceProfiles *of;
	Otlp__Resource *resource;

	if (by->bodies++ == by->most) {
		otlp__request__free_unpacked(request, NULL);
		return -ETIME;
	}
	/* A body has one sample. */
	assert_int_equal(request->n_resource_profiles, 1);
	of = otlp__resource_profiles__unpack(NULL, request->resource_profiles[0].len,
					     request->resource_profiles[0].data);
	resource = otlp__resource__unpack(NULL, of->resource.len, of->resource.data);
	count_body(&before, body, size);
	by->values[(unsigned char)*value_of(resource, OTLP_SERVICE_NAME)] += before.values[0] + before.values[1];
	otlp__resource__free_unpacked(resource, NULL);
	otlp__resource_profiles__free_unpacked(of, NULL);
	otlp__request__free_unpacked(request, NULL);
	return 0;
}

/* Where each epoch has time for two bodies, each of five services is sent in turn, and one of many bodies, too. */
static void test_no_service_is_always_left(void **unused)
{
	struct profile *p = new_profile();
	uint32_t from = UINT32_MAX, stacks[9];
	struct by_service by = {.bodies = 0};

	(void)unused;
	for (uint32_t i = 0; i < 9; i++)
		stacks[i] = on(p, PROFILE_ROOT, (char[]){(char)('0' + i), '\0'}, "app.py", 1);
	for (int name = 'a'; name <= 'e'; name++) {
		uint32_t owner = process(p, name, (char[]){(char)name, '\0'});

		for (uint32_t i = 0; i < (name == 'c' ? 9 : 1); i++)
			take_in(p, stacks[i], owner, 1);
	}
	for (unsigned i = 0; i < 12; i++) {
		struct otlp_options options = {.body_max = 1, .take = count_services, .take_arg = &by, .from = &from};

		by.bodies = 0;
		by.most = 2;
		assert_int_equal(otlp_encode(p, &options), -ETIME);
	}
	for (int name = 'a'; name <= 'e'; name++)
		assert_in_range(by.values[name], 3, 12);
	profile_free(p);
}

static int keep_first_resource(void *arg, const void *body, size_t size)
{
	Otlp__Request *request = otlp__request__unpack(NULL, size, body);
	Otlp__ResourceProfiles *of;

	assert_non_null(request);
	assert_int_equal(request->n_resource_profiles, 2);
	of = otlp__resource_profiles__unpack(NULL, request->resource_profiles[0].len,
					     request->resource_profiles[0].data);
	assert_non_null(of);
	*(Otlp__Resource **)arg = otlp__resource__unpack(NULL, of->resource.len, of->resource.data);
	otlp__resource_profiles__free_unpacked(of, NULL);
	otlp__request__free_unpacked(request, NULL);
	return 0;
}

static void describe(void *arg, const struct profile *p, uint32_t process, struct otlp_resource *resource)
{
	(void)p;
	(void)process;
	otlp_resource_set(resource, "deployment.environment.name", arg);
	otlp_resource_set(resource, OTLP_SERVICE_NAME, "shop");
	otlp_resource_set(resource, OTLP_EXECUTABLE_NAME, "");
}

/* Workers of one container are one resource, and another program of it is another one. */
static void test_resources(void **unused)
{
	struct profile *p = new_profile();
	struct profile_process_info web = {.pid = 42, .name = "web", .container = "shop-5d9/app"};
	struct profile_process_info job = {.pid = 50, .name = "job"};
	struct otlp_options options = {.take = keep_first_resource};
	Otlp__Resource *got = NULL;
	uint32_t stack = on(p, PROFILE_ROOT, "f", "app.py", 1);

	(void)unused;
	options.take_arg = &got;
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, "node-3"), 0);
	take_in(p, stack, profile_add_process(p, &web), 1);
	web.pid = 43;
	take_in(p, stack, profile_add_process(p, &web), 1);
	take_in(p, stack, profile_add_process(p, &job), 1);
	assert_int_equal(otlp_encode(p, &options), 0);
	assert_string_equal(value_of(got, OTLP_SERVICE_NAME), "app");
	assert_string_equal(value_of(got, OTLP_K8S_POD), "shop-5d9");
	assert_string_equal(value_of(got, OTLP_K8S_CONTAINER), "app");
	assert_string_equal(value_of(got, OTLP_CONTAINER_NAME), "");
	assert_string_equal(value_of(got, OTLP_HOST_NAME), "node-3");
	assert_string_equal(value_of(got, OTLP_EXECUTABLE_NAME), "web");
	otlp__resource__free_unpacked(got, NULL);
	options.describe = describe;
	options.describe_arg = (char[]){"test"};
	assert_int_equal(otlp_encode(p, &options), 0);
	assert_string_equal(value_of(got, "deployment.environment.name"), "test");
	assert_string_equal(value_of(got, OTLP_SERVICE_NAME), "shop");
	assert_string_equal(value_of(got, OTLP_EXECUTABLE_NAME), "");
	assert_string_equal(value_of(got, OTLP_K8S_POD), "shop-5d9");
	otlp__resource__free_unpacked(got, NULL);
	profile_free(p);
}

/* The service that was found for a process counts more than its container. */
static void test_services(void **unused)
{
	struct profile *p = new_profile();
	struct profile_process_info web = {
		.pid = 42,
		.name = "web",
		.container = "app",
		.service = "shop",
		.attributes = "container.id=4f79\nk8s.namespace.name=prod\nservice.version=1.4\n",
	};
	struct profile_process_info job = {.pid = 50, .name = "job"};
	Otlp__Resource *got = NULL;
	uint32_t stack = on(p, PROFILE_ROOT, "f", "app.py", 1);

	(void)unused;
	take_in(p, stack, profile_add_process(p, &web), 1);
	take_in(p, stack, profile_add_process(p, &job), 1);
	assert_int_equal(otlp_encode(p, &(struct otlp_options){.take = keep_first_resource, .take_arg = &got}), 0);
	assert_string_equal(value_of(got, OTLP_SERVICE_NAME), "shop");
	assert_string_equal(value_of(got, OTLP_CONTAINER_NAME), "app");
	assert_string_equal(value_of(got, "container.id"), "4f79");
	assert_string_equal(value_of(got, "k8s.namespace.name"), "prod");
	assert_string_equal(value_of(got, "service.version"), "1.4");
	otlp__resource__free_unpacked(got, NULL);
	profile_free(p);
}

static void test_hostile_texts(void **unused)
{
	struct profile *p = hostile_profile();

	(void)unused;
	assert_int_equal(encoded(p, 0).bodies, 1);
	profile_free(p);
}

/* Bytes that Pyroscope takes at once, and names that each service has there: the dictionary has them once. */
#define BURST     (2u << 20)
#define NAMES     100
#define NAME_SIZE 300

static int count_burst(void *arg, const void *body, size_t size)
{
	struct totals *all = arg, of_body = {0};

	count_body(&of_body, body, size);
	assert_true(of_body.profiles * NAMES * (NAME_SIZE - 1) <= BURST);
	all->bodies++;
	all->profiles += of_body.profiles;
	all->values[0] += of_body.values[0];
	return 0;
}

/* Together they are more than Pyroscope takes at once, though less than a body may have. */
static void test_services_that_share_names(void **unused)
{
	struct profile *p = new_profile();
	struct totals t = {0};
	struct otlp_options options = {.body_max = OTLP_BODY_MAX, .take = count_burst, .take_arg = &t};
	uint32_t stack = PROFILE_ROOT;
	char name[NAME_SIZE];

	(void)unused;
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "%0*d", NAME_SIZE - 1, i);
		stack = on(p, stack, name, "app.py", 1);
	}
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "service %d", i);
		take_in(p, stack, process(p, i + 1, name), 1);
	}
	assert_int_equal(otlp_encode(p, &options), 0);
	assert_int_equal(t.profiles, 200);
	assert_int_equal(t.values[0], 200);
	assert_in_range(t.bodies, 3, 6);
	assert_int_equal(encoded(p, 0).bodies, 1);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bodies_have_a_limit_and_lose_nothing),
		cmocka_unit_test(test_profiles_have_a_limit),
		cmocka_unit_test(test_names_of_events),
		cmocka_unit_test(test_nothing_to_send),
		cmocka_unit_test(test_a_taker_that_fails_ends_it),
		cmocka_unit_test(test_what_was_not_taken_is_counted),
		cmocka_unit_test(test_no_service_is_always_left),
		cmocka_unit_test(test_services_that_share_names),
		cmocka_unit_test(test_resources),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_hostile_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
