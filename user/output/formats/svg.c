// SPDX-License-Identifier: Apache-2.0
/*
 * A flame graph as one static image, with the root on top. The width of a function is its share of all samples, and
 * siblings are sorted by width, the widest on the left. Numbers are in tooltips, which a browser shows for <title>; the
 * image has no script. Frames too narrow to be seen are left out, but are part of the width of their callers.
 */
#include "output/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile/tree.h"
#include "base/text.h"

/* All in pixels. */
#define SVG_WIDTH    1200
#define SVG_MARGIN   12
#define SVG_TOP      72 /* title and totals */
#define SVG_BOTTOM   34 /* the last line */
#define SVG_ROW      18
#define SVG_NARROW   0.3 /* narrower frames are left out */
#define SVG_TEXT_PAD 4   /* on each side of a frame's name */
/* Width of a character of the monospaced font: in common fonts at most about 0.6 of the font size (12). */
#define SVG_COLUMN 7.25
/* Fewer characters of a name are of no use to the reader, and are not written. */
#define SVG_FEWEST_COLUMNS 3

/* How many shades functions have; see write_style. */
#define SVG_SHADES 12

struct writer {
	const struct profile *p;
	const struct profile_tree *tree;
	FILE *out;
	bool by_line;
	double scale; /* pixels for a value of 1 */
	uint32_t rows, left_out;
};

/* Writes a style for each shade: hues from yellow to red, in an order in which successive shades differ clearly. */
static void write_style(FILE *out)
{
	fputs("<style>\n"
	      "svg{background:#fff;font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}\n"
	      "text{fill:#1c1917;white-space:pre;pointer-events:none}\n"
	      ".title{font:600 17px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}\n"
	      ".small{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#57534e}\n"
	      ".all{fill:#e7e5e4}.root{fill:#c9d6df}.note{fill:#d6d3d1}\n"
	      "g:hover>rect{stroke:#1c1917}\n",
	      out);
	for (int i = 0; i < SVG_SHADES; i++)
		fprintf(out, ".c%d{fill:hsl(%d,%d%%,%d%%)}\n", i, 14 + 3 * i, 78 + 2 * (i % 3), 70 + 3 * (i * 5 % 4));
	fputs("@media(prefers-color-scheme:dark){\n"
	      "svg{background:#1c1917}text{fill:#f5f5f4}.small{fill:#a8a29e}\n"
	      ".all{fill:#44403c}.root{fill:#34495a}.note{fill:#57534e}\n"
	      "g:hover>rect{stroke:#f5f5f4}\n",
	      out);
	for (int i = 0; i < SVG_SHADES; i++)
		fprintf(out, ".c%d{fill:hsl(%d,%d%%,%d%%)}\n", i, 14 + 3 * i, 48 + 2 * (i % 3), 21 + 3 * (i * 5 % 4));
	fputs("}\n</style>\n", out);
}

/* Returns the shade of a name by its hash (FNV-1a, 32 bits): a name has the same shade in all profiles. */
static unsigned shade_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return (hash ^ hash >> 16) % SVG_SHADES;
}

static void write_class(const struct writer *w, const struct profile_tree_node *node)
{
	const struct profile_frame *frame;

	if (node->kind == PROFILE_TREE_ALL) {
		fputs("all", w->out);
		return;
	}
	if (node->kind != PROFILE_TREE_FRAME) {
		fputs("root", w->out);
		return;
	}
	frame = profile_frame_at(w->p, node->what);
	if (frame->kind != PROFILE_NOTE && frame->kind != PROFILE_THREAD)
		fprintf(w->out, "c%u", shade_of(profile_string(w->p, frame->name)));
	else
		fputs("note", w->out);
}

/* Returns the node's label, which the caller frees. NULL: no memory. */
static char *label_of(const struct writer *w, const struct profile_tree_node *node)
{
	const struct profile_thread *thread;
	char *label = NULL;

	switch (node->kind) {
	case PROFILE_TREE_ALL:
		return strdup("all");
	case PROFILE_TREE_CONTAINER:
		return strdup(node->what ? profile_string(w->p, node->what) : "[host]");
	case PROFILE_TREE_PARENT:
		return output_parent_label(w->p, node->what);
	case PROFILE_TREE_PROCESS:
		return output_process_label(w->p, node->what);
	case PROFILE_TREE_THREAD:
		thread = profile_thread_at(w->p, node->what);
		if (asprintf(&label, "%s (%d)", profile_string(w->p, thread->name), thread->tid) < 0)
			return NULL;
		return label;
	default:
		return output_short_name(w->p, node->what);
	}
}

/*
 * Returns the columns of the character that text begins with. The first byte decides: from 0xe1 on the character has
 * three or more bytes, and may be one of two columns, which begin at U+1100.
 */
static double columns_of(const char *text)
{
	return (unsigned char)*text >= 0xe1 ? 2 : 1;
}

/* Returns how many bytes of the label fit into the columns. *cut: an ellipsis must follow, for which room is left. */
static size_t fitting(const char *label, double columns, bool *cut)
{
	double used = 0;
	size_t n = 0, with_ellipsis = 0;

	*cut = false;
	while (label[n]) {
		bool plain;
		size_t next = n + text_character(label + n, &plain);

		used += columns_of(label + n);
		if (used > columns) {
			*cut = true;
			return with_ellipsis;
		}
		n = next;
		if (used <= columns - 1)
			with_ellipsis = n;
	}
	return n;
}

static double share(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* Writes the CPU time that the value represents, if that is known. */
static void write_time(const struct writer *w, uint64_t value)
{
	uint64_t period = profile_get_measure(w->p).period_ns;

	if (period)
		fprintf(w->out, ", %.2f s of CPU time", (double)value * (double)period / 1e9);
}

static void write_tooltip(const struct writer *w, const struct profile_tree_node *node, const char *label)
{
	const struct profile_frame *frame =
		node->kind == PROFILE_TREE_FRAME ? profile_frame_at(w->p, node->what) : NULL;
	uint64_t all = w->tree->nodes[0].total;
	const char *name = profile_get_measure(w->p).name;

	fputs("<title>", w->out);
	text_xml(label, strlen(label), w->out);
	if (frame && frame->file) {
		const char *file = profile_string(w->p, frame->file);
		const struct profile_place place = profile_place_of(frame);
		char position[OUTPUT_POSITION_MAX];

		output_position(&place, position);
		fputc('\n', w->out);
		text_xml(file, strlen(file), w->out);
		if (w->by_line)
			fputs(position, w->out);
	}
	fprintf(w->out, "\n%" PRIu64 " ", node->total);
	text_xml(name, output_noun_length(name, node->total), w->out);
	fprintf(w->out, " (%.2f %%), %" PRIu64 " of its own (%.2f %%)", share(node->total, all), node->self,
		share(node->self, all));
	write_time(w, node->total);
	fputs("</title>", w->out);
}

static int write_node(const struct writer *w, const struct profile_tree_node *node, double x)
{
	double width = (double)node->total * w->scale, room;
	uint32_t y = SVG_TOP + node->depth * SVG_ROW;
	char *label = label_of(w, node);
	size_t n;
	bool cut;

	if (!label)
		return -ENOMEM;
	fputs("<g>", w->out);
	write_tooltip(w, node, label);
	/* A gap of half a pixel separates neighbours. */
	fprintf(w->out, "<rect class=\"");
	write_class(w, node);
	fprintf(w->out, "\" x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" rx=\"1.5\"/>", x, y,
		width > 1 ? width - 0.5 : width, SVG_ROW - 1);
	room = (width - 2 * SVG_TEXT_PAD) / SVG_COLUMN;
	n = fitting(label, room, &cut);
	if (room >= SVG_FEWEST_COLUMNS && n) {
		fprintf(w->out, "<text x=\"%.2f\" y=\"%u\">", x + SVG_TEXT_PAD, y + SVG_ROW - 5);
		text_xml(label, n, w->out);
		fputs(cut ? "…</text>" : "</text>", w->out);
	}
	fputs("</g>\n", w->out);
	free(label);
	return 0;
}

/* Returns the left edge of each node in pixels, -1 for nodes that are not drawn. Caller frees; NULL: no memory. */
static double *lay_out(struct writer *w)
{
	const struct profile_tree_node *nodes = w->tree->nodes;
	double *x = calloc(w->tree->count, sizeof(*x));

	if (!x)
		return NULL;
	x[0] = SVG_MARGIN;
	w->rows = 1;
	/* A parent has a smaller index than its children. */
	for (uint32_t i = 0; i < w->tree->count; i++) {
		double at = x[i];

		if (i && x[i] >= 0 && (double)nodes[i].total * w->scale < SVG_NARROW) {
			x[i] = -1;
			w->left_out++;
		} else if (i && x[i] < 0) {
			w->left_out++;
		}
		if (x[i] >= 0 && nodes[i].depth + 1 > w->rows)
			w->rows = nodes[i].depth + 1;
		for (uint32_t c = nodes[i].first_child; c != PROFILE_TREE_NONE; c = nodes[c].next_sibling) {
			x[c] = x[i] < 0 ? -1 : at;
			at += (double)nodes[c].total * w->scale;
		}
	}
	return x;
}

static void write_fact(const struct writer *w, const char *before, const char *key, const char *after)
{
	const char *fact = profile_find_fact(w->p, key);

	if (!fact)
		return;
	fputs(before, w->out);
	text_xml(fact, strlen(fact), w->out);
	fputs(after, w->out);
}

/* Writes the title: what was profiled. */
static int write_title(const struct writer *w)
{
	uint32_t processes = profile_process_count(w->p);
	char *label = processes == 1 ? output_process_label(w->p, 0) : NULL;

	if (processes == 1 && !label)
		return -ENOMEM;
	if (label)
		text_xml(label, strlen(label), w->out);
	else if (processes)
		fprintf(w->out, "%u processes", processes);
	else
		fputs("Python", w->out);
	free(label);
	return 0;
}

static int write_head(const struct writer *w, uint64_t all)
{
	const char *name = profile_get_measure(w->p).name;
	uint32_t height = SVG_TOP + w->rows * SVG_ROW + SVG_BOTTOM;
	int err;

	fprintf(w->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" width=\"%d\" height=\"%u\" "
		"role=\"img\">\n<title>Flame graph: ",
		SVG_WIDTH, height, SVG_WIDTH, height);
	err = write_title(w);
	fputs("</title>\n", w->out);
	write_style(w->out);
	fprintf(w->out, "<text class=\"title\" x=\"%d\" y=\"30\">", SVG_MARGIN);
	err = err ?: write_title(w);
	fprintf(w->out, "</text>\n<text class=\"small\" x=\"%d\" y=\"52\">%" PRIu64 " ", SVG_MARGIN, all);
	text_xml(name, output_noun_length(name, all), w->out);
	write_time(w, all);
	write_fact(w, ", sampled at ", PROFILE_FACT_FREQ, " Hz");
	write_fact(w, " for ", PROFILE_FACT_DURATION, " s");
	write_fact(w, " on ", PROFILE_FACT_HOST, "");
	fputs("</text>\n", w->out);
	return err;
}

static void write_foot(const struct writer *w)
{
	fprintf(w->out, "<text class=\"small\" x=\"%d\" y=\"%u\">", SVG_MARGIN,
		SVG_TOP + w->rows * SVG_ROW + SVG_BOTTOM - 12);
	if (w->left_out)
		fprintf(w->out, "%u frame%s too narrow to be drawn %s part of what %s on.", w->left_out,
			w->left_out == 1 ? "" : "s", w->left_out == 1 ? "is" : "are",
			w->left_out == 1 ? "it stands" : "they stand");
	fprintf(w->out,
		"</text>\n<text class=\"small\" x=\"%d\" y=\"%u\" text-anchor=\"end\">pybpf " PYBPF_VERSION "</text>\n",
		SVG_WIDTH - SVG_MARGIN, SVG_TOP + w->rows * SVG_ROW + SVG_BOTTOM - 12);
}

int output_svg(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct writer w = {.p = p, .out = out, .by_line = options->by_line};
	struct profile_tree tree;
	double *x = NULL;
	uint64_t all;
	int err = profile_tree_build(p, options->by_line, &tree);

	if (err)
		return err;
	all = tree.nodes[0].total;
	w.tree = &tree;
	w.scale = all ? (double)(SVG_WIDTH - 2 * SVG_MARGIN) / (double)all : 0;
	x = lay_out(&w);
	err = x ? write_head(&w, all) : -ENOMEM;
	if (!err && !all)
		fprintf(out, "<text x=\"%d\" y=\"%d\">No samples with Python frames.</text>\n", SVG_MARGIN,
			SVG_TOP + SVG_ROW - 5);
	for (uint32_t i = 0; i < tree.count && !err && all; i++) {
		if (x[i] >= 0)
			err = write_node(&w, &tree.nodes[i], x[i]);
	}
	if (!err) {
		write_foot(&w);
		fputs("</svg>\n", out);
	}
	free(x);
	profile_tree_free(&tree);
	return err;
}
