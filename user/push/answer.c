// SPDX-License-Identifier: Apache-2.0
/* What a receiver's answer means for a body: taken, to be sent again, or lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "output/formats/otlp.pb-c.h"
#include "push/internal.h"

/* The first wait is up to 1 s long, later ones up to twice as long each, and no wait is longer than a minute. */
#define FIRST_WAIT_S 1.0
#define WAIT_MAX_S   60.0

/* Most columns of a receiver's own words. */
#define WORDS_WIDTH 200

static bool is_type(const struct push_answer *answer, const char *type)
{
	return answer->content_type && strncasecmp(answer->content_type, type, strlen(type)) == 0;
}

static void set_text(struct push_judgement *judgement, const char *words)
{
	char *plain = text_printable(words), *text = plain ? text_shorten(plain, WORDS_WIDTH) : NULL;

	snprintf(judgement->text, sizeof(judgement->text), "%s", text ?: "");
	free(text);
	free(plain);
}

/* Reads a message that says how much of the body was taken. */
static void read_partial_success(const struct push_answer *answer, struct push_judgement *judgement)
{
	Otlp__Response *response = otlp__response__unpack(NULL, answer->size, (const uint8_t *)answer->bytes);

	if (response && response->partial_success) {
		int64_t rejected = response->partial_success->rejected_profiles;

		judgement->rejected = rejected > 0 ? (uint64_t)rejected : 0;
		set_text(judgement, response->partial_success->error_message);
	}
	if (response)
		otlp__response__free_unpacked(response, NULL);
}

/* Sets the text to why the receiver did not take the body. */
static void read_words(const struct push_answer *answer, struct push_judgement *judgement)
{
	Otlp__Status *status = NULL;
	char line[PUSH_ANSWER_MAX + 1];
	size_t size = answer->size < sizeof(line) ? answer->size : sizeof(line) - 1;

	if (is_type(answer, "application/x-protobuf"))
		status = otlp__status__unpack(NULL, answer->size, (const uint8_t *)answer->bytes);
	if (status) {
		set_text(judgement, status->message);
		otlp__status__free_unpacked(status, NULL);
	} else if (is_type(answer, "text/plain") || is_type(answer, "application/json")) {
		memcpy(line, answer->bytes, size);
		line[size] = '\0';
		line[strcspn(line, "\r\n")] = '\0';
		set_text(judgement, line);
	}
}

/* The statuses that OTLP/HTTP calls retryable. */
static bool is_retryable(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

void push_judge(const struct push_answer *answer, struct push_judgement *judgement)
{
	*judgement = (struct push_judgement){.verdict = PUSH_WRONG};
	if (is_retryable(answer->status)) {
		judgement->verdict = PUSH_AGAIN;
		read_words(answer, judgement);
	} else if (answer->status / 100 == 2 && is_type(answer, "text/html")) {
		set_text(judgement, "a web page, which no receiver of profiles answers with: check the URL");
	} else if (answer->status / 100 == 2) {
		judgement->verdict = PUSH_TAKEN;
		if (is_type(answer, "application/x-protobuf"))
			read_partial_success(answer, judgement);
	} else if (answer->status / 100 == 3) {
		set_text(judgement, "a redirection, which is not followed: give the URL that it leads to");
	} else {
		if (answer->status == 401 || answer->status == 403)
			judgement->verdict = PUSH_DENIED;
		read_words(answer, judgement);
	}
}

double push_wait_s(unsigned attempts, double retry_after_s, double random)
{
	double limit = FIRST_WAIT_S;

	if (retry_after_s > 0)
		return retry_after_s;
	while (attempts-- > 1 && limit < WAIT_MAX_S)
		limit *= 2;
	return random * (limit < WAIT_MAX_S ? limit : WAIT_MAX_S);
}
