// SPDX-License-Identifier: Apache-2.0
/* Tables of a command's options: they drive the parsing of the command line, and --help is printed from them. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number that a macro is defined as, as a string literal for a help text. */
#define CLI_NUMBER(macro)       CLI_NUMBER_TEXT(macro)
#define CLI_NUMBER_TEXT(number) #number

/* One of the values that an option takes. */
struct cli_word {
	const char *word;
	int number;
};

struct cli_option {
	const char *name;            /* without --; NULL ends a table */
	char letter;                 /* 0: the option has no letter */
	const char *value;           /* what --help calls the value; NULL: the option takes none */
	const char *help;            /* NULL: this is an alias of the preceding option, and shares its help and value */
	void (*list)(void);          /* prints the list of values below the help; NULL: no list */
	const char *(*values)(void); /* names them, separated by ", " */
	/*
	 * Takes the value into the target of the group. Returns 0, or an exit code after one sentence on stderr. NULL:
	 * the option prints the help.
	 */
	int (*take)(const struct cli_option *option, const char *value, void *target);
	size_t offset;                /* in bytes, of the field of the target that cli_take_... sets */
	const struct cli_word *words; /* for cli_take_word; ended by an entry without a word */
	bool optional;                /* the value, which then follows =; take gets NULL where it is missing */
};

#define CLI_OPTION_HELP                                                                                                \
	{                                                                                                              \
		.name = "help", .letter = 'h', .help = "print this text"                                               \
	}

/* A table of options, which several commands may include, and the struct that the options set. */
struct cli_option_group {
	const char *heading; /* NULL: the group continues under the previous heading */
	const struct cli_option *options;
	void *target;
};

struct cli_example {
	const char *command, *purpose;
};

/* An option that this program does not have, and other programs do. */
struct cli_other_tool {
	const char *name;   /* without --; "" for a letter alone */
	char letter;        /* 0: only the name */
	const char *advice; /* what there is instead: it follows "no such option; " */
};

struct cli_options {
	const char *command;                      /* as typed: "pybpf report" */
	const char *about;                        /* --help begins with it */
	const struct cli_example *examples;       /* ended by an entry without a command */
	const char *usage;                        /* printed verbatim */
	const struct cli_option_group *groups;    /* ended by an entry without options */
	const char *notes;                        /* --help ends with it; a line feed begins a line */
	const struct cli_other_tool *other_tools; /* ended by an entry without advice; NULL: none */
	bool command_follows; /* the options end at the first operand, which may be a command with its own */
	/*
	 * Takes operands in their place among the options; NULL: they are moved behind all options. Returns as
	 * cli_option.take does.
	 */
	int (*take_operand)(const char *operand, void *target);
	void *operand_target;
};

/* Has an option that asks for help print the table as tab-separated values, for other programs. */
extern bool cli_options_as_table;

/* Prints the first line of these tables, and a line for a command itself, whose options follow. */
void cli_print_table_head(void);
void cli_print_table_command(const char *name, const char *summary);
/* Prints a line for each spelling of each option. */
void cli_print_table(const struct cli_options *options);

/*
 * Parses the options; getopt's optind is then the index of the first operand. At an option that asks for help, prints
 * the help, sets *helped and stops. Returns 0, or an exit code after one sentence on stderr.
 */
int cli_options_parse(const struct cli_options *options, int argc, char **argv, bool *helped);

/* Prints `left`, then the text, wrapped, from `column` on. If `left` is too long, the text begins on a new line. */
void cli_print_entry(const char *left, size_t column, const char *text);

/* Returns the option's name for messages: -l, or --name if it has no letter. Valid until the next call. */
const char *cli_option_spelling(const struct cli_option *option);

/*
 * Functions for cli_option.take. They set the field at option->offset: a bool to true; an int to one more; a
 * const char * to the value, which is not copied; an enum to the word's number.
 */
int cli_take_flag(const struct cli_option *option, const char *value, void *target);
int cli_take_count(const struct cli_option *option, const char *value, void *target);
int cli_take_text(const struct cli_option *option, const char *value, void *target);
/* As cli_take_text(), of a file that is written: "-" is refused, as stdout has other output. */
int cli_take_file(const struct cli_option *option, const char *value, void *target);
int cli_take_word(const struct cli_option *option, const char *value, void *target);

/* Finds the value among the option's words, and its number. Returns 0, or CLI_USAGE after one sentence on stderr. */
int cli_option_word(const struct cli_option *option, const char *value, int *number);
/*
 * Parses bytes with a unit, from least, whole MiB, to most, whole TiB. Returns 0, or CLI_USAGE after one sentence on
 * stderr.
 */
int cli_option_size(const struct cli_option *option, const char *value, uint64_t least, uint64_t most, uint64_t *bytes);
/* Parses a whole number from least to most. Returns 0, or CLI_USAGE after one sentence on stderr. */
int cli_option_whole(const struct cli_option *option, const char *value, uint64_t least, uint64_t most, uint64_t *out);
/* The same of a number of MiB: *bytes. */
int cli_option_mib(const struct cli_option *option, const char *value, uint64_t least, uint64_t most, uint64_t *bytes);

/* Parses a sampling rate that this kernel allows, in Hz. Returns as cli_option_whole(). */
int cli_option_rate(const struct cli_option *option, const char *value, unsigned *out);

#endif
