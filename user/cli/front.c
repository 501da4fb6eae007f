// SPDX-License-Identifier: Apache-2.0
/* The first page of help: what people do, and the commands. */
#include "cli/cli.h"

#include <stdio.h>

#include "cli/options.h"

/* Columns before the purposes. */
#define PURPOSE_COLUMN 45
#define COMMAND_COLUMN 12

static const struct cli_example examples[] = {
	{"sudo pybpf ps", "the Python processes"},
	{"sudo pybpf dump -p PID", "a hung process: all its stacks"},
	{"sudo pybpf top -p PID", "live: what uses the CPUs now"},
	{"sudo pybpf -p PID -d 30", "where it spends CPU time"},
	{"sudo pybpf -p PID -d 30 -o out.html", "a report for the browser"},
	{"sudo pybpf -p PID -d 30 --mode=wall", "all its time, with its waits"},
	{"sudo pybpf -p PID -d 10 --mode=gil", "who waits for the GIL, who has it"},
	{"sudo pybpf -o out.html -- python3 app.py", "a program from start to end"},
	{"sudo pybpf --container web -d 30", "all Pythons in a container"},
	{"sudo pybpf --all -d 30 -o all.pybpf", "the machine, saved for `report`"},
	{0},
};

int cli_print_front(const struct cli_command *commands)
{
	char left[64];

	puts("pybpf shows where Python processes spend their time, without changing them.\n\nMost used:");
	for (const struct cli_example *e = examples; e->command; e++) {
		snprintf(left, sizeof(left), "  %s", e->command);
		cli_print_entry(left, PURPOSE_COLUMN, e->purpose);
	}
	puts("\nCommands (`pybpf COMMAND --help` lists the options of each):");
	for (const struct cli_command *c = commands; c->name; c++) {
		snprintf(left, sizeof(left), "  %s", c->name);
		cli_print_entry(left, COMMAND_COLUMN, c->summary);
	}
	return CLI_OK;
}
