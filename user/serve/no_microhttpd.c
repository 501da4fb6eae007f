// SPDX-License-Identifier: Apache-2.0
/* For the static binary, in place of microhttpd.c: it loads no library, which would need the C library of the host. */
#include <errno.h>

#include "serve/internal.h"

int serve_microhttpd_load(struct serve_microhttpd *mhd, struct error *error)
{
	(void)mhd;
	return error_set(error, -ENOSYS,
			 "this pybpf is static and cannot serve: use one that is linked dynamically, or do not listen");
}
