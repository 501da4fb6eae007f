// SPDX-License-Identifier: Apache-2.0
/* Pyroscope's query, and what waits and answers mean, without a network. */
#include <errno.h>

#include "profiles.h"
#include "push/internal.h"
#include "push/profile.h"
#include "push/push_v1.h"
#include "push/push_v1.pb-c.h"

static const char *query_of(const struct profile *p, const struct push_profile *how)
{
	static char text[PUSH_SUFFIX_MAX];

	assert_int_equal(push_pyroscope_query(p, how, text, sizeof(text)), 0);
	return text;
}

static void test_query(void **unused)
{
	struct profile *p = new_profile();
	const struct output_label labels[] = {{"env", "a b&c"}, {"x,y", "}=\"{"}};
	const struct output_label twice[] = {{"a_b", "1"}, {"host", "other"}, {"a_b", "2"}};

	(void)unused;
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_HOST, "node-3"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_START, "1700000000999999999"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, "60.5"), 0);
	process(p, 1, "web");
	process(p, 2, "web");
	assert_string_equal(query_of(p, &(struct push_profile){.protocol = PUSH_PYROSCOPE}),
			    "?name=web%7Bhost%3Dnode-3%7D&from=1700000000&until=1700000061&format=pprof&spyName=pybpf");
	assert_string_equal(query_of(p, &(struct push_profile){.service = "shop{1}", .labels = labels, .nr_labels = 2}),
			    "?name=shop_1_%7Benv%3Da%20b%26c%2Cx_y%3D____%2Chost%3Dnode-3%7D"
			    "&from=1700000000&until=1700000061&format=pprof&spyName=pybpf");
	/* Pyroscope refuses a label's name that occurs twice: the first one stays, and the host is pybpf's. */
	assert_string_equal(query_of(p, &(struct push_profile){.service = "shop", .labels = twice, .nr_labels = 3}),
			    "?name=shop%7Ba_b%3D1%2Chost%3Dnode-3%7D"
			    "&from=1700000000&until=1700000061&format=pprof&spyName=pybpf");
	process(p, 3, "job");
	assert_memory_equal(query_of(p, &(struct push_profile){.service = NULL}), "?name=pybpf%7B", 14);
	/* Receivers refuse an empty name, and what is not UTF-8. */
	assert_memory_equal(query_of(p, &(struct push_profile){.service = ""}), "?name=unknown_service%7B", 24);
	assert_memory_equal(query_of(p, &(struct push_profile){.service = "a\xff\n="}), "?name=a_xff_x0a_%7B", 19);
	/* Pyroscope's /ingest refuses all but these in the name of a service. */
	assert_memory_equal(query_of(p, &(struct push_profile){.service = "a.b/c-d_E9"}), "?name=a.b%2Fc-d_E9%7B", 21);
	assert_memory_equal(query_of(p, &(struct push_profile){.service = "uwsgi: w@1 [\xc3\xa9]"}),
			    "?name=uwsgi__w_1_____%7B", 24);
	profile_free(p);
	p = new_profile();
	process(p, 1, "");
	assert_memory_equal(query_of(p, &(struct push_profile){.service = NULL}), "?name=unknown_service%7B", 24);
	profile_free(p);
}

/* Pyroscope refuses a label's name that occurs twice: the first one stays. Texts are UTF-8. */
static void test_push_v1(void **unused)
{
	const struct output_label labels[] = {{"team", "w\xff"}, {"host", "other"}, {"none", ""}};
	struct proto_bytes body = proto_bytes();
	PushV1__Request *got;
	const PushV1__Series *series;

	(void)unused;
	assert_int_equal(push_v1_make(&(struct push_v1){.name = "process_cpu",
							.service = "shop",
							.host = "node-3",
							.labels = labels,
							.nr_labels = 3,
							.pprof = "bytes",
							.pprof_size = 5},
				      &body),
			 0);
	got = push_v1__request__unpack(NULL, body.size, body.bytes);
	assert_non_null(got);
	assert_int_equal(got->n_series, 1);
	series = got->series[0];
	assert_int_equal(series->n_labels, 4);
	assert_string_equal(series->labels[0]->value, "process_cpu");
	assert_string_equal(series->labels[1]->value, "shop");
	assert_string_equal(series->labels[2]->value, "node-3");
	assert_string_equal(series->labels[3]->value, "w\\xff");
	assert_int_equal(series->samples[0]->raw_profile.len, 5);
	assert_int_equal(strlen(series->samples[0]->id), 36);
	push_v1__request__free_unpacked(got, NULL);
	proto_bytes_free(&body);
	assert_true(push_is_v1("http://x:4040/push.v1.PusherService/Push"));
	assert_true(push_is_v1("http://x/prefix/push.v1.PusherService/Push?a=/b"));
	assert_false(push_is_v1("http://x/ingest?of=/push.v1.PusherService/Push"));
}

/* A name that does not fit is refused, and nothing is written behind the room. */
static void test_long_names(void **unused)
{
	struct profile *p = new_profile();
	char name[3000], text[200];

	(void)unused;
	memset(name, '%', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t room = 1; room < sizeof(text); room++) {
		memset(text, 'x', sizeof(text));
		assert_int_equal(push_pyroscope_query(p, &(struct push_profile){.service = name}, text, room), -E2BIG);
		assert_int_equal(strlen(text), room - 1);
		assert_int_equal(text[room], 'x');
	}
	profile_free(p);
}

static void test_waits(void **unused)
{
	double last = 0;

	(void)unused;
	for (unsigned attempts = 1; attempts < 100; attempts++) {
		double longest = push_wait_s(attempts, 0, 1);

		assert_true(longest >= last && longest > 0 && longest <= 60);
		assert_true(push_wait_s(attempts, 0, 0) == 0);
		assert_true(push_wait_s(attempts, 0, 0.5) == longest / 2);
		assert_true(push_wait_s(attempts, 17, 0.5) == 17);
		last = longest;
	}
	assert_true(push_wait_s(1, 0, 1) < push_wait_s(3, 0, 1));
}

static void test_verdicts(void **unused)
{
	static const struct {
		long status;
		const char *type;
		enum push_verdict verdict;
	} rows[] = {
		{200, "application/x-protobuf", PUSH_TAKEN},
		{200, NULL, PUSH_TAKEN},
		{204, NULL, PUSH_TAKEN},
		{200, "text/html; charset=utf-8", PUSH_WRONG},
		{301, NULL, PUSH_WRONG},
		{400, "application/x-protobuf", PUSH_WRONG},
		{401, NULL, PUSH_DENIED},
		{403, "text/plain", PUSH_DENIED},
		{404, "text/html", PUSH_WRONG},
		{413, NULL, PUSH_WRONG},
		{429, "text/html", PUSH_AGAIN},
		{500, NULL, PUSH_WRONG},
		{502, "text/html", PUSH_AGAIN},
		{503, NULL, PUSH_AGAIN},
		{504, NULL, PUSH_AGAIN},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct push_answer answer = {
			.status = rows[i].status, .content_type = rows[i].type, .bytes = "", .size = 0};
		struct push_judgement judgement;

		push_judge(&answer, &judgement);
		assert_int_equal(judgement.verdict, rows[i].verdict);
		assert_int_equal(judgement.rejected, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query), cmocka_unit_test(test_push_v1),  cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_waits), cmocka_unit_test(test_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
