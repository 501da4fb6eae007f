// SPDX-License-Identifier: Apache-2.0
/* Compares words by the number of letters that were typed wrongly. */
#include "cli/suggestions.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Longest word that is compared letter by letter. */
#define WORD_MAX 128
/* Shortest word that is searched for inside of candidates. */
#define PART_MIN 3
/* More wrong letters than a word has that is compared. */
#define FAR (WORD_MAX + 1)

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/*
 * Counts the letters to insert, delete, replace or swap with their neighbour, to make one word of the other (optimal
 * string alignment). Upper and lower case are the same.
 */
static unsigned count_edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t k = 0; k <= b_len; k++)
		last[k] = (unsigned)k;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned *oldest = before;

		row[0] = (unsigned)i;
		for (size_t k = 1; k <= b_len; k++) {
			char x = lower(a[i - 1]), y = lower(b[k - 1]);

			row[k] = min(min(last[k], row[k - 1]) + 1, last[k - 1] + (x != y));
			if (i > 1 && k > 1 && x == lower(b[k - 2]) && y == lower(a[i - 2]))
				row[k] = min(row[k], before[k - 2] + 1);
		}
		before = last;
		last = row;
		row = oldest;
	}
	return last[b_len];
}

/* Returns whether part is in the text, whatever the case. */
static int contains(const char *text, const char *part)
{
	size_t len = strlen(part);

	for (; *text; text++) {
		if (!strncasecmp(text, part, len))
			return 1;
	}
	return 0;
}

void cli_suggestions_begin(struct cli_suggestions *suggestions, const char *word)
{
	*suggestions = (struct cli_suggestions){.word = word};
}

/* Returns the number of wrong letters, or FAR if these are too many for a slip. */
static unsigned compare(const char *word, const char *candidate)
{
	size_t len = strlen(word), other = strlen(candidate);
	unsigned distance;

	if (len > WORD_MAX || other > WORD_MAX)
		return FAR;
	distance = count_edits(word, len, candidate, other);
	/* One wrong letter in three is a slip; with more, it is another word. */
	return distance <= (len < other ? len : other) / 3 ? distance : FAR;
}

void cli_suggestions_try(struct cli_suggestions *suggestions, const char *candidate)
{
	unsigned distance = compare(suggestions->word, candidate);
	const char *dot = strrchr(candidate, '.');
	size_t at;

	/* Often only the last part of a qualname is typed. */
	if (distance == FAR && dot && !strchr(suggestions->word, '.'))
		distance = compare(suggestions->word, dot + 1);
	if (distance == FAR && (strlen(suggestions->word) < PART_MIN || !contains(candidate, suggestions->word)))
		return;
	for (size_t i = 0; i < suggestions->count; i++) {
		if (!strcmp(suggestions->found[i].word, candidate))
			return;
	}
	for (at = suggestions->count; at && suggestions->found[at - 1].distance > distance; at--) {
		if (at < CLI_SUGGESTIONS_MAX)
			suggestions->found[at] = suggestions->found[at - 1];
	}
	if (at == CLI_SUGGESTIONS_MAX)
		return;
	suggestions->found[at] = (struct cli_suggestion){candidate, distance};
	if (suggestions->count < CLI_SUGGESTIONS_MAX)
		suggestions->count++;
}

const char *cli_suggestions_text(const struct cli_suggestions *suggestions, const char *prefix, char *out, size_t size)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < suggestions->count && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s%s",
				       !i                            ? "; did you mean "
				       : i + 1 == suggestions->count ? " or "
								     : ", ",
				       prefix, suggestions->found[i].word);
	if (at && at < size)
		snprintf(out + at, size - at, "?");
	return out;
}
