// SPDX-License-Identifier: Apache-2.0
/* Why a saved profile cannot be read, in sentences. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "profile/saved_internal.h"

int saved_say(struct saved_why *why, int err, const char *fmt, ...)
{
	int n = snprintf(why->text, why->size, "%s ", why->file);
	va_list args;

	va_start(args, fmt);
	if (n >= 0 && (size_t)n < why->size)
		vsnprintf(why->text + n, why->size - (size_t)n, fmt, args);
	va_end(args);
	return err;
}

int saved_damaged(struct saved_why *why, const char *what)
{
	return saved_say(why, -EBADMSG, "is damaged: %s; record or copy it again", what);
}

int saved_too_large(struct saved_why *why)
{
	return saved_say(why, -EFBIG, "would take memory out of proportion to its size: pybpf writes no such file");
}

int saved_no_memory(struct saved_why *why)
{
	return saved_say(why, -ENOMEM, "does not fit into memory");
}
