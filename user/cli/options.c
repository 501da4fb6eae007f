// SPDX-License-Identifier: Apache-2.0
/* Parses a command line by the tables of struct cli_option, and prints --help from the same tables. */
#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/suggestions.h"
#include "base/host.h"
#include "base/log.h"
#include "base/text.h"

#define WIDTH       80
#define HELP_COLUMN 26
/* What getopt_long returns for an operand, if its letters begin with '-'. */
#define OPERAND 1
/* The first value that getopt_long returns for a long option; it is above all letters. */
#define FIRST_NAME 256

bool cli_options_as_table;

struct row {
	const struct cli_option *option;
	void *target;
};

/* All groups in the form that getopt_long wants. */
struct table {
	struct row *rows;
	struct option *names;
	char *letters;
	size_t count;
};

static void free_table(struct table *t)
{
	free(t->rows);
	free(t->names);
	free(t->letters);
}

static int make_table(const struct cli_options *options, struct table *t)
{
	const struct cli_option *option;
	size_t count = 0;
	char *letter;

	for (const struct cli_option_group *g = options->groups; g->options; g++) {
		for (option = g->options; option->name; option++)
			count++;
	}
	t->rows = calloc(count, sizeof(*t->rows));
	t->names = calloc(count + 1, sizeof(*t->names));
	/* "+:" or "-:", three characters for each option, and the terminating NUL. */
	t->letters = calloc(3 * count + 3, 1);
	if (!t->rows || !t->names || !t->letters)
		return -1;
	letter = stpcpy(t->letters, options->command_follows ? "+:" : options->take_operand ? "-:" : ":");
	for (const struct cli_option_group *g = options->groups; g->options; g++) {
		for (option = g->options; option->name; option++, t->count++) {
			t->rows[t->count] = (struct row){option, g->target};
			t->names[t->count].name = option->name;
			t->names[t->count].has_arg = !option->value     ? no_argument
						     : option->optional ? optional_argument
									: required_argument;
			t->names[t->count].val = FIRST_NAME + (int)t->count;
			if (option->letter)
				*letter++ = option->letter;
			if (option->letter && option->value)
				*letter++ = ':';
			if (option->letter && option->optional)
				*letter++ = ':';
		}
	}
	return 0;
}

/* Returns the row for a return value of getopt_long; NULL for ':' and '?'. */
static const struct row *find_row(const struct table *t, int found)
{
	for (size_t i = 0; i < t->count; i++) {
		if (found == t->names[i].val || found == t->rows[i].option->letter)
			return &t->rows[i];
	}
	return NULL;
}

/* Returns what other programs' users are told about the option, or NULL. The name may have a value behind =. */
static const char *find_advice(const struct cli_options *options, const char *name, size_t len, char letter)
{
	for (const struct cli_other_tool *s = options->other_tools; s && s->advice; s++) {
		if (letter ? s->letter == letter : strlen(s->name) == len && !strncmp(s->name, name, len))
			return s->advice;
	}
	return NULL;
}

/* Reports a letter that is no option. Letters may be combined in one argument (-abc), so it is named alone. */
static int refuse_letter(const struct cli_options *options, char letter)
{
	const char *advice = find_advice(options, "", 0, letter);

	if (advice)
		return cli_usage("unknown option -%c; %s", letter, advice);
	return cli_usage("unknown option -%c; see `%s --help`", letter, options->command);
}

/* Lists the options that begin with the word: " --a, --b". Returns whether there is one. */
static bool list_beginnings(const struct table *t, const char *word, char *out, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < t->count && at < size; i++) {
		if (!strncmp(t->names[i].name, word, strlen(word)))
			at += (size_t)snprintf(out + at, size - at, "%s --%s", at ? "," : "", t->names[i].name);
	}
	return at;
}

/* Reports a name that is no option, or the beginning of several. */
static int refuse_name(const struct cli_options *options, const struct table *t, const char *typed)
{
	const char *advice, *name = typed + strspn(typed, "-");
	int len = (int)strcspn(name, "=");
	char asked[256], word[64];
	struct cli_suggestions suggestions;

	advice = find_advice(options, name, (size_t)len, 0);
	if (advice)
		return cli_usage("unknown option --%.*s; %s", len, name, advice);
	snprintf(word, sizeof(word), "%.*s", len, name);
	if (list_beginnings(t, word, asked, sizeof(asked)))
		return cli_usage("--%s may be any of%s", word, asked);
	cli_suggestions_begin(&suggestions, word);
	for (size_t i = 0; i < t->count; i++)
		cli_suggestions_try(&suggestions, t->names[i].name);
	cli_suggestions_text(&suggestions, "--", asked, sizeof(asked));
	return cli_usage("unknown option --%s%s%s `%s --help`", word, asked, *asked ? " See" : "; see",
			 options->command);
}

/* Reports what getopt_long rejected. */
static int refuse(const struct cli_options *options, const struct table *t, int found, char **argv)
{
	if (found == ':')
		return cli_usage("%s needs a value; see `%s --help`", argv[optind - 1], options->command);
	if (optopt >= FIRST_NAME)
		return cli_usage("--%s takes no value", t->names[optopt - FIRST_NAME].name);
	return optopt ? refuse_letter(options, (char)optopt) : refuse_name(options, t, argv[optind - 1]);
}

static int parse(const struct cli_options *options, const struct table *t, int argc, char **argv, bool *helped)
{
	const struct row *row;
	int found, code;

	opterr = 0;
	optind = 0;
	while ((found = getopt_long(argc, argv, t->letters, t->names, NULL)) != -1) {
		if (found == OPERAND) {
			code = options->take_operand(optarg, options->operand_target);
			if (code)
				return code;
			continue;
		}
		row = find_row(t, found);
		if (!row)
			return refuse(options, t, found, argv);
		*helped = !row->option->take;
		if (*helped)
			return 0;
		code = row->option->take(row->option, optarg, row->target);
		if (code)
			return code;
	}
	for (code = 0; options->take_operand && optind < argc && !code; optind++)
		code = options->take_operand(argv[optind], options->operand_target);
	return code;
}

void cli_print_entry(const char *left, size_t column, const char *text)
{
	size_t length = strlen(left);

	if (length + 2 > column)
		printf("%s\n%*s", left, (int)column, "");
	else
		printf("%-*s", (int)column, left);
	text_wrap(text, column, column, WIDTH, stdout);
}

/* Prints the option with its aliases, which follow it in the table. Returns the last alias, or the option itself. */
static const struct cli_option *print_option(const struct cli_option *option)
{
	const struct cli_option *o = option;
	char left[256];
	size_t at = 0;

	for (bool more = true; more && at < sizeof(left); more = o[1].name && !o[1].help, o += more) {
		const char *comma = at ? ", " : o->letter ? "  " : "      ";

		if (o->letter)
			at += (size_t)snprintf(left + at, sizeof(left) - at, "%s-%c, --%s", comma, o->letter, o->name);
		else
			at += (size_t)snprintf(left + at, sizeof(left) - at, "%s--%s", comma, o->name);
	}
	if (o->value && at < sizeof(left))
		snprintf(left + at, sizeof(left) - at, o->optional ? "[=%s]" : " %s", o->value);
	cli_print_entry(left, HELP_COLUMN, option->help);
	if (option->list)
		option->list();
	return o;
}

static void print_help(const struct cli_options *options)
{
	size_t column = 0;

	text_wrap(options->about, 0, 0, WIDTH, stdout);
	puts("\nExamples:");
	for (const struct cli_example *e = options->examples; e->command; e++)
		column = strlen(e->command) + 4 > column ? strlen(e->command) + 4 : column;
	for (const struct cli_example *e = options->examples; e->command; e++) {
		char left[WIDTH];

		snprintf(left, sizeof(left), "  %s", e->command);
		cli_print_entry(left, column, e->purpose);
	}
	printf("\nUsage:\n%s", options->usage);
	for (const struct cli_option_group *g = options->groups; g->options; g++) {
		if (g->heading)
			printf("\n%s:\n", g->heading);
		for (const struct cli_option *o = g->options; o->name; o++)
			o = print_option(o);
	}
	putchar('\n');
	text_wrap(options->notes, 0, 0, WIDTH, stdout);
}

int cli_options_parse(const struct cli_options *options, int argc, char **argv, bool *helped)
{
	struct table t = {0};
	int code;

	*helped = false;
	if (make_table(options, &t)) {
		log_error("out of memory while starting");
		code = CLI_FAILED;
	} else {
		code = parse(options, &t, argc, argv, helped);
	}
	free_table(&t);
	if (*helped && cli_options_as_table)
		cli_print_table(options);
	else if (*helped)
		print_help(options);
	return code;
}

const char *cli_option_spelling(const struct cli_option *option)
{
	static char text[64];

	if (option->letter)
		snprintf(text, sizeof(text), "-%c", option->letter);
	else
		snprintf(text, sizeof(text), "--%s", option->name);
	return text;
}

static void *field(const struct cli_option *option, void *target)
{
	return (char *)target + option->offset;
}

int cli_take_flag(const struct cli_option *option, const char *value, void *target)
{
	(void)value;
	*(bool *)field(option, target) = true;
	return 0;
}

int cli_take_count(const struct cli_option *option, const char *value, void *target)
{
	(void)value;
	(*(int *)field(option, target))++;
	return 0;
}

int cli_take_text(const struct cli_option *option, const char *value, void *target)
{
	*(const char **)field(option, target) = value;
	return 0;
}

int cli_take_file(const struct cli_option *option, const char *value, void *target)
{
	if (strcmp(value, "-") == 0)
		return cli_usage("%s -: stdout has other output here; give a file", cli_option_spelling(option));
	return cli_take_text(option, value, target);
}

int cli_take_word(const struct cli_option *option, const char *value, void *target)
{
	int number, code = cli_option_word(option, value, &number);

	/* An enum has the size of an int, but is another type: memcpy avoids aliasing. */
	if (!code)
		memcpy(field(option, target), &number, sizeof(number));
	return code;
}

int cli_option_word(const struct cli_option *option, const char *value, int *number)
{
	const struct cli_word *w;
	char words[256] = "", asked[256];
	struct cli_suggestions suggestions;
	size_t at = 0;

	for (w = option->words; w->word; w++) {
		if (strcmp(value, w->word) == 0) {
			*number = w->number;
			return 0;
		}
	}
	for (w = option->words; w->word && at < sizeof(words); w++)
		at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%s",
				       !at         ? ""
				       : w[1].word ? ", "
						   : " or ",
				       w->word);
	cli_suggestions_begin(&suggestions, value);
	for (w = option->words; w->word; w++)
		cli_suggestions_try(&suggestions, w->word);
	cli_suggestions_text(&suggestions, "", asked, sizeof(asked));
	return cli_usage("%s %s: it takes %s%s", cli_option_spelling(option), value, words, asked);
}

int cli_option_whole(const struct cli_option *option, const char *value, uint64_t least, uint64_t most, uint64_t *out)
{
	double number;

	if (cli_number(value, (double)least, (double)most, &number) || number != (double)(uint64_t)number)
		return cli_usage("%s %s: it takes a whole number from %llu to %llu", cli_option_spelling(option), value,
				 (unsigned long long)least, (unsigned long long)most);
	*out = (uint64_t)number;
	return 0;
}

int cli_option_mib(const struct cli_option *option, const char *value, uint64_t least, uint64_t most, uint64_t *bytes)
{
	uint64_t mib = 0;
	int code = cli_option_whole(option, value, least, most, &mib);

	*bytes = mib << 20;
	return code;
}

int cli_option_rate(const struct cli_option *option, const char *value, unsigned *out)
{
	int64_t limit = host_max_sample_rate();
	double freq;

	if (cli_number(value, 1, UINT32_MAX, &freq) || freq != (unsigned)freq)
		return cli_usage("%s %s: not a sampling rate; it takes a whole number of Hz from 1 up",
				 cli_option_spelling(option), value);
	if ((int64_t)freq > limit)
		return cli_usage("%s %s: above this kernel's limit of %lld Hz; ask for less, or raise it with "
				 "`sysctl " HOST_MAX_RATE_SYSCTL "=%u`",
				 cli_option_spelling(option), value, (long long)limit, (unsigned)freq);
	*out = (unsigned)freq;
	return 0;
}
