// SPDX-License-Identifier: Apache-2.0
/* A profile as text or file. A new format is one file with one function, declared here, and a row in formats.c. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/profile.h"

struct output_options {
	bool by_line; /* lines in place of functions, where the format can */
};

/* What a format cannot do without, a set of these. Where the profile has none, it writes what it can all the same. */
enum output_needs {
	OUTPUT_THREADS = 1u << 0, /* threads told apart */
	OUTPUT_TIMES = 1u << 1,   /* events: when samples were taken */
	OUTPUT_SOURCES = 1u << 2, /* source text of files */
	OUTPUT_BINARY = 1u << 3,  /* it is nothing for a terminal */
};

struct output_diff_format;

struct output_format {
	const char *name, *alias; /* alias: NULL where there is none */
	const char
		*suffixes; /* of file names that ask for it, with the dot, separated by spaces; the usual one first */
	const char *help;
	unsigned needs; /* of enum output_needs */
	bool by_line;   /* it can show lines in place of functions */
	/*
	 * Writes the profile, which may be empty: the result is then valid and says so where the format can. Returns 0
	 * or negative errno; a failed write may also show in ferror(out).
	 */
	int (*write)(const struct profile *p, const struct output_options *options, FILE *out);
	const struct output_diff_format *diff; /* of a comparison (output/diff.h); NULL where it has none */
};

/* The format of that name or alias, or NULL. */
const struct output_format *output_by_name(const char *name);
/* The format that a file's suffix asks for, or NULL for an unknown suffix; a path without suffix is folded. */
const struct output_format *output_by_path(const char *path);
/* All formats, ended by one without a name. */
const struct output_format *output_formats(void);

int output_folded(const struct profile *p, const struct output_options *options, FILE *out);
int output_html(const struct profile *p, const struct output_options *options, FILE *out);
int output_text(const struct profile *p, const struct output_options *options, FILE *out);
int output_pybpf(const struct profile *p, const struct output_options *options, FILE *out);
int output_pprof(const struct profile *p, const struct output_options *options, FILE *out);
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
 * the bytes of what is not plain (text_character) as \xNN. The rest is UTF-8 as it is.
 */
void output_escaped(const char *text, FILE *out);
/*
 * What stands below the frames of a sample as the profile's roots want it: container (or "[host]"), process, thread,
 * none escaped. The caller frees the labels. Returns how many there are, or -ENOMEM.
 */
#define OUTPUT_ROOTS 3
int output_roots(const struct profile *p, const struct profile_sample *sample, char *labels[OUTPUT_ROOTS]);
/* Writes roots and frames of a sample, root;...;leaf, escaped. Returns 0 or -ENOMEM. */
int output_folded_stack(const struct profile *p, const struct profile_sample *sample, FILE *out);
/* "name (PID)", "name (PID, N inside)" for another PID in its own namespace, or "name"; caller frees. NULL: no memory.
 */
char *output_process_label(const struct profile *p, uint32_t process);
/* Writes "qualname (file.py:LINE)", escaped. */
void output_frame(const struct profile *p, uint32_t frame, FILE *out);

/* Writes what became of samples and processes: the run in one line, then one for each group that has numbers. */
void output_account(const struct profile *p, const char *prefix, FILE *out);
/* Writes the entries of one group that are not 0, as a line "TITLE: VALUE TEXT; VALUE TEXT"; nothing without any. */
void output_account_group(const struct profile *p, const char *group, const char *prefix, const char *title, FILE *out);
/* Writes an entry of the account as "GROUP: VALUE TEXT", escaped; the entry's key where it has no text. */
void output_account_entry(const struct profile *p, const struct profile_account *entry, FILE *out);

#endif
