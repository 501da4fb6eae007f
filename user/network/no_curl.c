// SPDX-License-Identifier: Apache-2.0
/* For the static binary, in place of curl.c: it loads no library, which would need the C library of the host. */
#include <errno.h>

#include "network/curl.h"

int network_curl_load(struct network_curl *curl, struct error *error)
{
	(void)curl;
	return error_set(error, -ENOSYS,
			 "this pybpf is static and cannot use the network: use one that is linked dynamically, or "
			 "write to a file");
}
