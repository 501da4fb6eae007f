// SPDX-License-Identifier: Apache-2.0
/* A command's options, as tables: the command line is parsed by them, and --help is printed from them. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A macro's number, for a help text. */
#define CLI_NUMBER(macro)       CLI_NUMBER_TEXT(macro)
#define CLI_NUMBER_TEXT(number) #number

/* One of the values that an option takes. */
struct cli_word {
	const char *word;
	int number;
};

struct cli_option {
	const char *name;   /* without --; NULL ends a table */
	char letter;        /* 0: there is none */
	const char *value;  /* what --help calls the value; NULL: the option takes none */
	const char *help;   /* NULL: this is another name of the option before it, of which it has the rest */
	void (*list)(void); /* prints below the help what can be chosen; NULL: nothing */
	/*
	 * Takes the value into the target of the group. Returns 0, or an exit code after one sentence on stderr. NULL:
	 * the option prints the help.
	 */
	int (*take)(const struct cli_option *option, const char *value, void *target);
	size_t offset;                /* in the target, of what cli_take_... sets */
	const struct cli_word *words; /* of cli_take_word, ended by one without a word */
};

#define CLI_OPTION_HELP                                                                                                \
	{                                                                                                              \
		.name = "help", .letter = 'h', .help = "print this text"                                               \
	}

/* A table that several commands may include, and what its options are taken into. */
struct cli_option_group {
	const char *heading; /* NULL: the group belongs to the heading before */
	const struct cli_option *options;
	void *target;
};

struct cli_example {
	const char *command, *purpose;
};

struct cli_options {
	const char *command;                   /* as typed: "pybpf report" */
	const char *about;                     /* --help begins with it */
	const struct cli_example *examples;    /* ended by one without a command */
	const char *usage;                     /* printed as it is */
	const struct cli_option_group *groups; /* ended by one without options */
	const char *notes;                     /* --help ends with it; a line feed begins a line */
	bool command_follows; /* the options end at the first operand, which may be a command with its own */
};

/*
 * Parses the command line up to its operands, of which getopt's optind is the first, or until an option asks for the
 * help, which is printed: *helped. Returns 0, or an exit code after one sentence on stderr.
 */
int cli_options_parse(const struct cli_options *options, int argc, char **argv, bool *helped);

/* Prints `left`, and the text from that column on, wrapped; on a line of its own where `left` is too long. */
void cli_print_entry(const char *left, size_t column, const char *text);

/* As sentences name the option: -l, or --name where it has no letter. Valid until the next call. */
const char *cli_option_spelling(const struct cli_option *option);

/* For struct cli_option: sets a bool, counts in an int, keeps the text, finds the word's number for an enum. */
int cli_take_flag(const struct cli_option *option, const char *value, void *target);
int cli_take_count(const struct cli_option *option, const char *value, void *target);
int cli_take_text(const struct cli_option *option, const char *value, void *target);
int cli_take_word(const struct cli_option *option, const char *value, void *target);

/* The number of the option's word. Returns 0, or CLI_USAGE after one sentence on stderr. */
int cli_option_word(const struct cli_option *option, const char *value, int *number);
/* A whole number from least to most. Returns 0, or CLI_USAGE after one sentence on stderr. */
int cli_option_whole(const struct cli_option *option, const char *value, uint64_t least, uint64_t most, uint64_t *out);

#endif
