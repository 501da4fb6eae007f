// SPDX-License-Identifier: Apache-2.0
/* An error code with its sentence. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/* Bytes of a sentence with its NUL; a longer one is cut. */
#define ERROR_TEXT_MAX 2048

/* An error to hand up to callers: a function that takes a struct error returns its code. */
struct error {
	int code; /* negative errno; 0: no error */
	char text[ERROR_TEXT_MAX];
};

void error_write(struct error *error, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Appends to the sentence. */
void error_append(struct error *error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void error_clear(struct error *error);

/*
 * Sets code and sentence, and evaluates to the code. A macro, so that static analysers see that the result is not 0
 * when the code is not.
 */
#define error_set(error, code, ...)                                                                                    \
	({                                                                                                             \
		int error_code_ = (code);                                                                              \
		error_write((error), error_code_, __VA_ARGS__);                                                        \
		error_code_;                                                                                           \
	})

#endif
