// SPDX-License-Identifier: Apache-2.0
/* Runs doctor's checks, prints one line for each and the verdict, and parses texts of the kernel for them. */
#include "doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/sudo.h"
#include "base/text.h"

#define NAME_WIDTH 18

static const char *const mark_names[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_SKIP] = "skip",
	[DOCTOR_WARN] = "warn",
	[DOCTOR_FAIL] = "FAIL",
};

void doctor_found(struct doctor_item *item, enum doctor_mark mark, const char *fmt, ...)
{
	va_list args;

	item->mark = mark;
	va_start(args, fmt);
	vsnprintf(item->found, sizeof(item->found), fmt, args);
	va_end(args);
}

void doctor_advise(struct doctor_item *item, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(item->advice, sizeof(item->advice), fmt, args);
	va_end(args);
}

static void remember(unsigned *count, char names[512], const char *name)
{
	size_t at = strlen(names);

	snprintf(names + at, 512 - at, "%s%s", *count ? ", " : "", name);
	++*count;
}

void doctor_run(struct doctor *d, const struct doctor_check *checks)
{
	for (const struct doctor_check *c = checks; c->name; c++) {
		struct doctor_item item = {0};

		/* A check may take long and may print to stderr: the lines before it must be visible first. */
		fflush(d->out);
		c->look(d, &item);
		fprintf(d->out, "%-5s %-*s ", mark_names[item.mark], NAME_WIDTH, c->name);
		text_print(item.found, d->out);
		if (*item.advice) {
			fprintf(d->out, "\n%-5s %-*s -> ", "", NAME_WIDTH, "");
			text_print(item.advice, d->out);
		}
		fputc('\n', d->out);
		if (item.mark == DOCTOR_FAIL)
			remember(&d->fails, d->failed, c->name);
		else if (item.mark == DOCTOR_WARN)
			remember(&d->warnings, d->warned, c->name);
	}
}

static void print_verdict(const struct doctor *d)
{
	struct error error;

	if (!d->fails)
		fprintf(d->out, "the main job can run: %s -p PID -d 30%s%s%s\n", sudo_program(),
			d->warnings ? " (less than everything: see " : "", d->warned, d->warnings ? ")" : "");
	else if (host_check_privilege(&error))
		fprintf(d->out,
			"the main job cannot run from here: start with the privileges, `%s` (failed: "
			"%s)\n",
			sudo_command(), d->failed);
	else
		fprintf(d->out, "the main job cannot run: change what is marked FAIL above (%s)\n", d->failed);
}

int doctor_verdict(struct doctor *d)
{
	fputc('\n', d->out);
	print_verdict(d);
	return d->fails ? -ENOTSUP : 0;
}

int doctor_parse_release(const char *release, int *major, int *minor)
{
	return sscanf(release, "%d.%d", major, minor) == 2 && *major >= 0 && *minor >= 0 ? 0 : -EBADMSG;
}

int doctor_parse_choice(const char *text, char *out, size_t out_size)
{
	const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

	if (!close || close == open + 1 || (size_t)(close - open) > out_size)
		return -EBADMSG;
	memcpy(out, open + 1, (size_t)(close - open - 1));
	out[close - open - 1] = '\0';
	return 0;
}
