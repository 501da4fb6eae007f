// SPDX-License-Identifier: Apache-2.0
/* For the static binary, in place of curl.c: it loads no library, which would need the C library of the host. */
#include <errno.h>

#include "push/internal.h"

int push_curl_load(struct push_curl *curl, struct error *error)
{
	(void)curl;
	return error_set(
		error, -ENOSYS,
		"this pybpf is static and cannot send: write to a file, or use one that is linked dynamically");
}
