// SPDX-License-Identifier: Apache-2.0
/* How busy the whole machine was: /proc/stat, and the pressure of Linux 5.2 and later where it is on. */
#include "session/account/machine.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Columns of the line "cpu" in /proc/stat, in clock ticks. Guests' time is in user and nice, too. */
enum column {
	USER,
	NICE,
	SYSTEM,
	IDLE,
	IOWAIT,
	IRQ,
	SOFTIRQ,
	STEAL,
	NR_COLUMNS,
};

void session_machine_parse_stat(const char *text, struct session_machine *machine)
{
	double ticks[NR_COLUMNS], tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);

	if (sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[USER], &ticks[NICE], &ticks[SYSTEM],
		   &ticks[IDLE], &ticks[IOWAIT], &ticks[IRQ], &ticks[SOFTIRQ], &ticks[STEAL]) != NR_COLUMNS)
		return;
	machine->busy_s = tick_s * (ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ]);
	machine->stolen_s = tick_s * ticks[STEAL];
}

void session_machine_parse_pressure(const char *text, struct session_machine *machine)
{
	const char *total = strstr(text, "total=");

	if (strncmp(text, "some ", strlen("some ")) == 0 && total)
		machine->waited_s = (double)strtoull(total + strlen("total="), NULL, 10) / 1e6;
}

/* Reads the beginning of a file; an empty text if it cannot be read. */
static void read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd >= 0 ? read(fd, text, size - 1) : -1;

	text[count > 0 ? count : 0] = 0;
	if (fd >= 0)
		close(fd);
}

struct session_machine session_machine_read(void)
{
	struct session_machine machine = {-1, -1, -1};
	char text[512];

	read_text("/proc/stat", text, sizeof(text));
	session_machine_parse_stat(text, &machine);
	read_text("/proc/pressure/cpu", text, sizeof(text));
	session_machine_parse_pressure(text, &machine);
	return machine;
}

int session_machine_describe(const struct session_machine *begin, const struct session_machine *end,
			     struct profile *profile)
{
	uint64_t period_ns = profile_get_measure(profile).period_ns;
	double own_s = (double)profile_total(profile) * (double)period_ns / 1e9;
	const struct {
		const char *key;
		double begin, end;
	} sums[] = {
		{PROFILE_FACT_OTHERS, begin->busy_s, end->busy_s - own_s},
		{PROFILE_FACT_STOLEN, begin->stolen_s, end->stolen_s},
		{PROFILE_FACT_WAITED, begin->waited_s, end->waited_s},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(sums) / sizeof(*sums) && period_ns && !err; i++) {
		char text[32];

		if (sums[i].begin < 0 || sums[i].end < 0)
			continue;
		/* Samples may stand for a little more than the CPU time that was counted. */
		snprintf(text, sizeof(text), "%.3f", fmax(0, sums[i].end - sums[i].begin));
		err = profile_set_fact(profile, sums[i].key, text);
	}
	return err;
}
