/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a fact of a run: see PROFILE_FACT_... of profile.h, and the table in facts.c. */
#ifndef PYBPF_PROFILE_FACTS_H
#define PYBPF_PROFILE_FACTS_H

/* How the facts of several runs become one. */
enum profile_fact_merge {
	PROFILE_FACT_JOINED,   /* a list of distinct values */
	PROFILE_FACT_ADDED,    /* a number with three decimals */
	PROFILE_FACT_EARLIEST, /* the least of whole numbers */
};

/* What --anonymize leaves of it. */
enum profile_fact_anonymized {
	PROFILE_FACT_LEFT_OUT,
	PROFILE_FACT_HIDDEN, /* a name that stands for it */
	PROFILE_FACT_KEPT,
};

struct profile_fact_rule {
	const char *key;
	const char *title; /* in the HTML report */
	enum profile_fact_merge merge;
	enum profile_fact_anonymized anonymized;
};

/* Returns what the table says of a fact; one that is not in it is joined, left out with --anonymize, and titled by key.
 */
struct profile_fact_rule profile_fact_rule(const char *key);

#endif
