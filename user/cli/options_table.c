// SPDX-License-Identifier: Apache-2.0
/* `pybpf help --options`: all tables of options as tab-separated values, for shells' completion and the manual pages.
 */
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

void cli_print_table_head(void)
{
	puts("command\tsection\tletter\toption\talias of\tvalue\tvalues\thelp");
}

void cli_print_table_command(const char *name, const char *summary)
{
	printf("%s\t\t\t\t\t\t\t%s\n", name, summary);
}

static void print_values(const struct cli_option *option)
{
	if (option->optional)
		fputs(option->value, stdout);
	for (const struct cli_word *w = option->words; w && w->word; w++)
		printf("%s%s", w == option->words ? "" : ", ", w->word);
	if (option->values)
		fputs(option->values(), stdout);
}

/* option: the one that this is, or is an alias of. */
static void print_row(const char *command, const char *section, const struct cli_option *spelling,
		      const struct cli_option *option)
{
	char letter[] = {spelling->letter, '\0'};

	printf("%s\t%s\t%s\t%s\t%s\t", command, section, letter, spelling->name,
	       spelling == option ? "" : option->name);
	if (option->value)
		printf(option->optional ? "[=%s]" : "%s", option->value);
	putchar('\t');
	print_values(option);
	printf("\t%s\n", option->help);
}

void cli_print_table(const struct cli_options *options)
{
	const char *command = strrchr(options->command, ' ') + 1, *section = "";
	const struct cli_option *option = NULL;

	for (const struct cli_option_group *g = options->groups; g->options; g++) {
		section = g->heading ?: section;
		for (const struct cli_option *o = g->options; o->name; o++) {
			if (o->help || !option)
				option = o;
			print_row(command, section, o, option);
		}
	}
}
