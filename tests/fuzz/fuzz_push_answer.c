// SPDX-License-Identifier: Apache-2.0
/* Answers of receivers of profiles: a byte for the status, one for the type of the content, and the content. */
#include "fuzz.h"
#include "push/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = {"application/x-protobuf", "text/plain; charset=utf-8", "text/html", NULL};
	static const long statuses[] = {200, 202, 302, 400, 429, 500, 503, 999};
	struct push_judgement judgement;
	struct push_answer answer;

	if (size < 2 || size - 2 > PUSH_ANSWER_MAX)
		return 0;
	answer = (struct push_answer){.status = statuses[data[0] % (sizeof(statuses) / sizeof(*statuses))],
				      .content_type = types[data[1] % (sizeof(types) / sizeof(*types))],
				      .bytes = (const char *)data + 2,
				      .size = size - 2};
	push_judge(&answer, &judgement);
	FUZZ_CHECK(strnlen(judgement.text, sizeof(judgement.text)) < sizeof(judgement.text));
	FUZZ_CHECK(!strpbrk(judgement.text, "\n\r\x1b"));
	FUZZ_CHECK(judgement.verdict == PUSH_TAKEN || !judgement.rejected);
	FUZZ_CHECK((judgement.verdict == PUSH_AGAIN) == (answer.status == 429 || answer.status == 503));
	FUZZ_CHECK(judgement.verdict != PUSH_TAKEN || answer.status / 100 == 2);
	return 0;
}
