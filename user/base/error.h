// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/* Of a sentence; what is longer is cut. */
#define ERROR_TEXT_MAX 2048

/* What went wrong, for the caller's caller: a function that takes one returns its code. */
struct error {
	int code; /* negative errno; 0: nothing was said */
	char text[ERROR_TEXT_MAX];
};

void error_write(struct error *error, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Adds to the sentence. */
void error_append(struct error *error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void error_clear(struct error *error);

/* Sets code and sentence, and is the code. A macro, so that analysers see that it is not 0 where the code is not. */
#define error_set(error, code, ...)                                                                                    \
	({                                                                                                             \
		int error_code_ = (code);                                                                              \
		error_write((error), error_code_, __VA_ARGS__);                                                        \
		error_code_;                                                                                           \
	})

#endif
