// SPDX-License-Identifier: Apache-2.0
/* Error messages for saved profiles that cannot be read. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "profile/saved_internal.h"

int saved_say(struct saved_error *error, int err, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(error->error, err, "%s %s", error->file, text);
}

int saved_damaged(struct saved_error *error, const char *what)
{
	return saved_say(error, -EBADMSG, "is damaged: %s; record or copy it again", what);
}

int saved_too_large(struct saved_error *error)
{
	return saved_say(error, -EFBIG, "would take memory out of proportion to its size: pybpf writes no such file");
}

int saved_no_memory(struct saved_error *error)
{
	return saved_say(error, -ENOMEM, "does not fit into memory");
}
