// SPDX-License-Identifier: Apache-2.0
/*
 * What is probably a secret: by the name of what holds it, and by the text itself. Both go by one rule, which
 * docs/dump.md has in a paragraph. A text is bytes, of which those that are not ASCII belong to no word.
 */
#ifndef SYMBOLS_PY_SECRET_H
#define SYMBOLS_PY_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether a variable, an attribute or a key of that name probably holds a secret. */
bool py_is_secret(const char *name);
/* The same of a name without a NUL at its end, which may have NULs. */
bool py_secret_is_name(const char *name, size_t size);
/* Returns whether all of the text is such a name, or an option, so that the secret comes next: "password", "--token".
 */
bool py_secret_stands_before(const char *text, size_t size);

/* Returns whether it is an option whose value is a user, perhaps with a password, as of curl: "-u". */
bool py_secret_is_user_option(const char *text, size_t size);
/* The scheme of an authorization, such as "Basic", whose secret is the next word. */
struct py_secret_scheme {
	const char *word;
	size_t least; /* bytes of the secret in a text: a shorter word is not one, as in "basic one" */
	bool alone;   /* if both are all of the text, the next word is a secret whatever it looks like */
};
/* Returns the scheme of that name, or NULL. */
const struct py_secret_scheme *py_secret_find_scheme(const char *word, size_t size);
/* Returns whether a field of that name names what another field has the value of: {"name": "password", "value": "x"}.
 */
bool py_secret_is_name_field(const char *name, size_t size);
/* Returns whether it is that other field. */
bool py_secret_is_value_field(const char *name, size_t size);

/*
 * Marks what is a secret in a text, or would be with what follows, if the text is cut: a byte of mask, all zero before,
 * for each of its bytes.
 */
void py_secret_mark(const char *text, size_t size, bool cut, uint8_t *mask);

#endif
