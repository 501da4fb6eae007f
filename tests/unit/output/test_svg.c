// SPDX-License-Identifier: Apache-2.0
/* The image's numbers; that it is XML to real parsers is shown end to end. */
#include "base/text.h"
#include "timelines.h"

static void assert_xml(const char *text, size_t size, const char *want)
{
	char *got = NULL;
	size_t n;
	FILE *out = open_memstream(&got, &n);

	assert_non_null(out);
	text_xml(text, size, out);
	fclose(out);
	assert_string_equal(got, want);
	free(got);
}

#define REPLACEMENT "\xef\xbf\xbd"

static void test_text(void **unused)
{
	(void)unused;
	assert_xml("plain \xc3\xa9 \xf0\x9f\x90\x8d", 100, "plain \xc3\xa9 \xf0\x9f\x90\x8d");
	assert_xml("plain", 2, "pl");
	assert_xml("a\xe2\x82\xac", 3, "a");
	assert_xml("<a b='c'>&\"", 100, "&#60;a b=&#39;c&#39;&#62;&#38;&#34;");
	assert_xml("a\x01"
		   "b\tc\nd\x7f",
		   100, "a" REPLACEMENT "b" REPLACEMENT "c" REPLACEMENT "d" REPLACEMENT);
	assert_xml("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd", 100, REPLACEMENT REPLACEMENT REPLACEMENT);
	assert_xml("\xff\xc3", 100, REPLACEMENT REPLACEMENT);
	assert_xml("\xed\xa0\x80", 100, REPLACEMENT REPLACEMENT REPLACEMENT);
	assert_xml("\xc2\x85", 100, REPLACEMENT);
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): that it misleads is its use. */
	assert_xml("\xe2\x80\xae(evil)", 100, REPLACEMENT "(evil)");
}

/* Where the frame of that name is drawn: after its tooltip. */
static void assert_rect(const char *svg, const char *name, double x, double width, unsigned y)
{
	char title[128];
	double got_x, got_width;
	const char *at;
	unsigned got_y;

	snprintf(title, sizeof(title), "<title>%s", name);
	at = strstr(svg, title);
	at = at ? strstr(at, "<rect") : NULL;
	if (!at)
		fail_msg("no %s in %s", name, svg);
	assert_int_equal(
		sscanf(at, "<rect class=\"%*[^\"]\" x=\"%lf\" y=\"%u\" width=\"%lf\"", &got_x, &got_y, &got_width), 3);
	assert_true(got_x > x - 0.02 && got_x < x + 0.02);
	assert_true(got_width > width - 1 && got_width < width + 0.02);
	assert_int_equal(got_y, y);
}

static void test_graph(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), main_stack = on(p, PROFILE_ROOT, "main", "app.py", 1);
	uint32_t rare = on(p, main_stack, "rare", "app.py", 4);
	double width = 1200 - 2 * 12;
	char *svg;

	(void)unused;
	measure_cpu(p);
	take_in(p, on(p, main_stack, "hot", "app.py", 2), owner, 75000);
	take_in(p, on(p, main_stack, "cold", "lib.py", 3), owner, 24999);
	take_in(p, on(p, rare, "rarest", "app.py", 5), owner, 1);
	svg = written(p, output_svg);
	assert_rect(svg,
		    "main\napp.py\n100000 samples (100.00 %), 0 of its own (0.00 %), 1000.00 s of CPU time</title>", 12,
		    width, 72 + 18);
	assert_rect(svg, "hot\napp.py", 12, width * 0.75, 72 + 36);
	assert_rect(svg, "cold\nlib.py\n24999 samples", 12 + width * 0.75, width * 0.24999, 72 + 36);
	assert_null(strstr(svg, "<title>rare"));
	assert_non_null(strstr(svg, "2 frames too narrow"));
	assert_non_null(strstr(svg, ">python3 (42)</text>"));
	free(svg);
	profile_free(p);
}

/* What does not fit is cut between characters. */
static void test_long_names(void **unused)
{
	struct profile *p = new_profile();
	char name[4096] = "", *svg;
	const char *at;

	(void)unused;
	for (int i = 0; i < 1000; i++)
		memcpy(name + 3 * i, "\xe2\x82\xac", 3);
	take_in(p, on(p, PROFILE_ROOT, name, "app.py", 1), process(p, 42, "python3"), 1);
	svg = written(p, output_svg);
	at = strstr(svg, "\">\xe2\x82\xac");
	assert_non_null(at);
	at += 2 + strspn(at + 2, "\xe2\x82\xac");
	assert_memory_equal(at, "\x80\xa6</text>", 9); /* the rest of an ellipsis */
	assert_true(strlen(svg) < 8192);
	free(svg);
	profile_free(p);
}

/* A name that is cut has room for its ellipsis: 161 characters of 7.25 pixels fit into the width of all. */
static void test_cut_names_fit(void **unused)
{
	struct profile *p = new_profile();
	char name[400], *svg;
	const char *at;

	(void)unused;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	take_in(p, on(p, PROFILE_ROOT, name, "app.py", 1), process(p, 1, "x"), 1);
	svg = written(p, output_svg);
	at = strstr(svg, "\">xxx");
	assert_non_null(at);
	assert_int_equal(strspn(at + 2, "x"), 160);
	assert_memory_equal(at + 2 + 160, "\xe2\x80\xa6</text>", 10);
	free(svg);
	profile_free(p);
}

static void test_deep_and_empty(void **unused)
{
	struct profile *deep = new_profile(), *empty = new_profile();
	uint32_t s = PROFILE_ROOT;
	char *svg;

	(void)unused;
	for (int i = 0; i < 8192; i++)
		s = on(deep, s, "dive", "deep.py", i);
	take_in(deep, s, process(deep, 42, "python3"), 1);
	svg = written(deep, output_svg);
	assert_non_null(strstr(svg, "</svg>\n"));
	free(svg);
	svg = written(empty, output_svg);
	assert_non_null(strstr(svg, "No samples"));
	assert_null(strstr(svg, "<rect"));
	assert_null(strstr(svg, "nan"));
	free(svg);
	profile_free(deep);
	profile_free(empty);
}

static void test_hostile(void **unused)
{
	struct profile *p = hostile();
	char *svg = written(p, output_svg);

	(void)unused;
	assert_null(strstr(svg, "<script"));
	assert_null(strstr(svg, "<!--"));
	for (const char *c = svg; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n');
	free(svg);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),           cmocka_unit_test(test_graph),
		cmocka_unit_test(test_long_names),     cmocka_unit_test(test_cut_names_fit),
		cmocka_unit_test(test_deep_and_empty), cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
