// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the account of a run: its duration and rate, the time of threads by state, and counts of samples and processes
 * by what happened to them.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "output/amount.h"
#include "output/output.h"
#include "profile/totals.h"
#include "base/text.h"

static void write_fact(const struct profile *p, const char *key, const char *before, const char *behind, FILE *out)
{
	const char *fact = profile_find_fact(p, key);

	if (!fact)
		return;
	fputs(before, out);
	text_print(fact, out);
	fputs(behind, out);
}

static void write_run(const struct profile *p, const char *prefix, FILE *out)
{
	const struct profile_measure measure = profile_get_measure(p);
	const char *name = measure.name;
	uint64_t total = profile_total(p);
	char noun[64];

	if (!profile_find_fact(p, PROFILE_FACT_DURATION))
		return;
	fputs(prefix, out);
	write_fact(p, PROFILE_FACT_DURATION, "", " s", out);
	write_fact(p, PROFILE_FACT_FREQ, " at ", " Hz", out);
	write_fact(p, PROFILE_FACT_EVENT, " on ", "", out);
	write_fact(p, PROFILE_FACT_HOST, ", host ", "", out);
	if (strcmp(measure.unit, PROFILE_UNIT_TIME) == 0) {
		uint64_t suspended = profile_suspended(p);

		fprintf(out, "; %.3f s of ", (double)(total - suspended) / 1e6);
		text_print(name, out);
		fputs(" time here", out);
		if (suspended)
			fprintf(out, ", and %.3f s of suspended tasks", (double)suspended / 1e6);
		fputc('\n', out);
		return;
	}
	snprintf(noun, sizeof(noun), "%.*s", (int)output_noun_length(name, total), name);
	fprintf(out, "; %" PRIu64 " ", total);
	text_print(noun, out);
	fputs(" here\n", out);
}

/* Writes the value of an entry: with the measure's unit if it is of the profile's values, which were left out. */
static const char *amount_of(const struct profile *p, const struct profile_account *entry, char out[OUTPUT_AMOUNT_MAX])
{
	const struct profile_measure measure = profile_get_measure(p);

	if (strcmp(profile_string(p, entry->group), PROFILE_ACCOUNT_LEFT_OUT) == 0)
		return output_amount(&measure, entry->value, out);
	snprintf(out, OUTPUT_AMOUNT_MAX, "%" PRIu64, entry->value);
	return out;
}

const char *output_account_scope(const struct profile *p, const char *group)
{
	size_t count;
	const struct profile_account *account = profile_account_entries(p, &count);

	if (strcmp(group, PROFILE_ACCOUNT_STATES) == 0 || strcmp(group, PROFILE_ACCOUNT_LEFT_OUT) == 0)
		return "";
	for (size_t i = 0; i < count; i++) {
		if (account[i].value && strcmp(profile_string(p, account[i].group), PROFILE_ACCOUNT_LEFT_OUT) == 0)
			return "without filters, ";
	}
	return "";
}

void output_account_group(const struct profile *p, const char *group, const char *prefix, const char *title, FILE *out)
{
	size_t count;
	const struct profile_account *account = profile_account_entries(p, &count);
	char amount[OUTPUT_AMOUNT_MAX];
	bool first = true;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(profile_string(p, account[i].group), group) != 0 || !account[i].value)
			continue;
		if (first) {
			fputs(prefix, out);
			text_print(title, out);
		}
		fprintf(out, "%s %s ", first ? ":" : ";", amount_of(p, &account[i], amount));
		text_print(profile_string(p, account[i].text), out);
		first = false;
	}
	if (!first)
		fputc('\n', out);
}

void output_account_entry(const struct profile *p, const struct profile_account *entry, FILE *out)
{
	const char *text = profile_string(p, entry->text);

	fputs(output_account_scope(p, profile_string(p, entry->group)), out);
	output_escaped(profile_string(p, entry->group), out);
	fprintf(out, ": %" PRIu64 " ", entry->value);
	output_escaped(*text ? text : profile_string(p, entry->key), out);
}

void output_states(const struct profile *p, const char *prefix, FILE *out)
{
	const char *separator = ": ";
	size_t count;
	const struct profile_account *account = profile_account_entries(p, &count);
	uint64_t total = 0;
	bool known = false;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(profile_string(p, account[i].group), PROFILE_ACCOUNT_STATES) != 0)
			continue;
		total += account[i].value;
		known = true;
	}
	if (!known)
		return;
	fprintf(out, "%s%.2f thread-seconds", prefix, (double)total / 1e9);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(profile_string(p, account[i].group), PROFILE_ACCOUNT_STATES) != 0 || !account[i].value)
			continue;
		fprintf(out, "%s%.1f %% ", separator, 100.0 * (double)account[i].value / (double)total);
		text_print(profile_string(p, account[i].text), out);
		separator = ", ";
	}
	fputc('\n', out);
}

void output_account(const struct profile *p, const char *prefix, FILE *out)
{
	size_t count;
	const struct profile_account *account = profile_account_entries(p, &count);
	const char *group;
	char title[256];

	write_run(p, prefix, out);
	for (size_t i = 0; i < count; i++) {
		bool seen = false;

		for (size_t before = 0; before < i && !seen; before++)
			seen = account[before].group == account[i].group;
		if (seen)
			continue;
		group = profile_string(p, account[i].group);
		snprintf(title, sizeof(title), "%s%s", output_account_scope(p, group), group);
		if (strcmp(group, PROFILE_ACCOUNT_STATES) == 0)
			output_states(p, prefix, out);
		else
			output_account_group(p, group, prefix, title, out);
	}
}
