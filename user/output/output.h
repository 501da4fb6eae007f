// SPDX-License-Identifier: Apache-2.0
/*
 * The output formats of a profile. A new format is a file in formats/ with one function, which is declared here, and a
 * row in formats.c.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/parents.h"
#include "profile/profile.h"

/* The rows of a table, unless the options tell another number. */
#define OUTPUT_ROWS_DEFAULT 40

/* The order of rows of a table. */
enum output_sort {
	OUTPUT_SORT_SELF,
	OUTPUT_SORT_TOTAL,
	OUTPUT_SORT_OWN,   /* of a function of the program's own: with the libraries that it calls, and their waits */
	OUTPUT_SORT_COUNT, /* waits by their number */
};

/* A label of all samples, of who runs pybpf. */
struct output_label {
	const char *key, *value;
};
#define OUTPUT_LABELS_MAX 16

struct output_options {
	bool by_line;       /* lines in place of functions, where the format can */
	bool by_expression; /* those lines, and frames in all formats, have the columns of their expressions */
	bool by_state;      /* columns of states, in the format text */
	bool by_import;     /* imported modules in place of functions, in the format text */
	bool frame_marks;   /* marks behind functions of compiled code, in the format folded */
	int sort;           /* enum output_sort */
	uint32_t rows;      /* of a table; all others are added up in one row; 0: OUTPUT_ROWS_DEFAULT */
	size_t width; /* columns of the terminal that text is written to, which is shortened to fit; 0: no terminal */
	const struct output_label *labels; /* of all samples, in the format pprof */
	size_t nr_labels;                  /* at most OUTPUT_LABELS_MAX */
	/* Only these samples, in the format pprof: the index of the first one, and how many; 0: all from there on. */
	size_t first_sample, nr_samples;
};

/* Bits for the data that a format needs. If the profile lacks them, the format writes what it can. */
enum output_needs {
	OUTPUT_THREADS = 1u << 0, /* threads told apart */
	OUTPUT_TIMES = 1u << 1,   /* events: when samples were taken */
	OUTPUT_SOURCES = 1u << 2, /* source text of files */
	OUTPUT_BINARY = 1u << 3,  /* binary format; not written to a terminal */
	OUTPUT_KEEPS = 1u << 4,   /* keeps times for formats that are made of it later */
};

struct output_diff_format;

struct output_format {
	const char *name, *alias; /* alias: NULL: the format has one name only */
	const char
		*suffixes; /* of file names that ask for it, with the dot, separated by spaces; the usual one first */
	const char *help;
	unsigned needs;     /* of enum output_needs */
	bool by_line;       /* it can show lines in place of functions */
	bool by_expression; /* it can show the columns of expressions */
	bool has_columns;   /* it has a place for them, and writes them wherever they were recorded */
	bool by_state;      /* it can have a column for each state */
	bool for_people;    /* functions of importlib are one in it, unless they are asked for */
	bool frame_marks;   /* it can mark functions of compiled code */
	bool rows;          /* it is a table, of as many rows as the options tell, in the order that they tell */
	bool separate;      /* several profiles are written one after the other, and not added up */
	/*
	 * Writes the profile. If it is empty, the result is valid, and says that it is empty if the format allows that.
	 * Returns 0 or negative errno; a failed write may also show in ferror(out).
	 */
	int (*write)(const struct profile *p, const struct output_options *options, FILE *out);
	const struct output_diff_format *diff; /* for comparisons (output/diff/diff.h); NULL: it cannot show them */
};

/* Returns the format of that name or alias, or NULL. */
const struct output_format *output_by_name(const char *name);
/* Returns the format that a file's suffix chooses, or NULL for an unknown suffix; a path without suffix is folded. */
const struct output_format *output_by_path(const char *path);
/* Returns all formats, ended by an entry without a name. */
const struct output_format *output_formats(void);

int output_folded(const struct profile *p, const struct output_options *options, FILE *out);
int output_html(const struct profile *p, const struct output_options *options, FILE *out);
int output_text(const struct profile *p, const struct output_options *options, FILE *out);
/* The table of imported modules, which output_text() writes with by_import. */
int output_text_imports(const struct profile *p, const struct output_options *options, FILE *out);
/* The table of functions with a column for each state, which output_text() writes with by_state. */
int output_text_states(const struct profile *p, const struct output_options *options, FILE *out);
int output_pybpf(const struct profile *p, const struct output_options *options, FILE *out);
int output_pprof(const struct profile *p, const struct output_options *options, FILE *out);
int output_otlp(const struct profile *p, const struct output_options *options, FILE *out);
int output_callgrind(const struct profile *p, const struct output_options *options, FILE *out);
int output_pstats(const struct profile *p, const struct output_options *options, FILE *out);
int output_json(const struct profile *p, const struct output_options *options, FILE *out);
int output_jsonl(const struct profile *p, const struct output_options *options, FILE *out);
int output_svg(const struct profile *p, const struct output_options *options, FILE *out);
int output_speedscope(const struct profile *p, const struct output_options *options, FILE *out);
int output_gecko(const struct profile *p, const struct output_options *options, FILE *out);
int output_chrometrace(const struct profile *p, const struct output_options *options, FILE *out);
int output_perfscript(const struct profile *p, const struct output_options *options, FILE *out);

/*
 * Writes a name so that it stays one name on one line, and different from every other: backslash as \\, `;` as \x3b,
 * the bytes of characters that are not plain (text_character) as \xNN. All other characters are written as UTF-8.
 */
void output_escaped(const char *text, FILE *out);
/* Returns what the rows of a table are: "function", "line" or "expression". */
const char *output_row_noun(const struct output_options *options);
/* Returns the length of a measure's name, such as "samples", after the number n: without its s after 1. */
size_t output_noun_length(const char *name, uint64_t n);
/*
 * Makes the labels below the frames of a sample, those that the profile's roots select: container (or "[host]"), who
 * started the process, process, thread, in this order and not escaped. The caller frees the labels. Returns their
 * number, or -ENOMEM.
 */
#define OUTPUT_ROOTS (PROFILE_PARENTS_MAX + 3)
int output_roots(const struct profile *p, const struct profile_sample *sample, char *labels[OUTPUT_ROOTS]);
/*
 * Writes roots and frames of a sample, root;...;leaf, escaped; marks: with OUTPUT_MARK_NATIVE behind functions of
 * compiled code. Returns 0 or -ENOMEM.
 */
int output_folded_stack(const struct profile *p, const struct profile_sample *sample, bool marks, FILE *out);
/* As flamegraph.pl has _[k] for the kernel's functions, which they have in all formats. */
#define OUTPUT_MARK_NATIVE "_[n]"
/* Returns what formats for machines call a frame's kind. */
const char *output_kind_name(const struct profile_frame *frame);
/*
 * Returns "name (PID)"; "name (PID, N inside)" if the process has another PID in its own namespace; "name" if it has no
 * PID. The caller frees it. NULL: no memory.
 */
char *output_process_label(const struct profile *p, uint32_t process);
/* Likewise, of a process that started others (profile/parents.h): "name (PID, ended)" if it had ended. */
char *output_parent_label(const struct profile *p, uint32_t parent);
/*
 * Says where in its file a place is: ":LINE", or ":LINE:COLUMN-END", of the expression's first and last byte, both from
 * 1, and ":LINE:COLUMN-LINE:END" if it ends on another line; "" if the line is not known.
 */
#define OUTPUT_POSITION_MAX 64
void output_position(const struct profile_place *place, char text[OUTPUT_POSITION_MAX]);
/* Writes "qualname (file.py:LINE)", with the columns where the frame has them, escaped. */
void output_frame(const struct profile *p, uint32_t frame, FILE *out);

/* Returns the name of a frame, of a module's body with its file. The caller frees it. NULL: no memory. */
char *output_short_name(const struct profile *p, uint32_t frame);

/* Writes the account: the run in one line, then a line for each group of counts that are not all 0. */
void output_account(const struct profile *p, const char *prefix, FILE *out);
/* Writes the time of threads as a line "TIME thread-seconds: SHARE STATE, SHARE STATE"; no line if it is not known. */
void output_states(const struct profile *p, const char *prefix, FILE *out);
/* Writes the entries of one group that are not 0 as a line "TITLE: VALUE TEXT; VALUE TEXT"; no line if all are 0. */
void output_account_group(const struct profile *p, const char *group, const char *prefix, const char *title, FILE *out);
/*
 * Returns the words before the name of a group of the account which say that its counts are of all that was recorded,
 * and not of what filters let pass: nobody knows whose lost samples were. "" where both are the same.
 */
const char *output_account_scope(const struct profile *p, const char *group);
/* Writes an entry of the account as "GROUP: VALUE TEXT", escaped, behind its scope; TEXT is the entry's key if it has
 * no text. */
void output_account_entry(const struct profile *p, const struct profile_account *entry, FILE *out);

#endif
